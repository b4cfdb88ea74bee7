/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, words and variables of the shell inspector.  Everything lives in one arena that is freed when the inspection
 * ends; its limit, and the judge's steps, bound the cost of hostile text.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "inspect/shell.h"

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	max_align_t data[];
};

#define CHUNK_SIZE ((size_t)(16 * KiB))
#define FIELDS_MAX 128

void *sh_alloc(struct shell *sh, size_t size)
{
	struct arena_chunk *c = sh->chunks;

	size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (!c || c->size - c->used < size) {
		size_t room = size > CHUNK_SIZE / 4 ? size : CHUNK_SIZE;

		if (sh->allocated + room <= SH_MEMORY_MAX)
			c = calloc(1, sizeof(*c) + room);
		else
			c = NULL;
		if (!c) {
			if (!sh->stop)
				judge_check(sh->j, "not-analysable", (struct span){ 0, 0 }, "needs too much memory");
			sh->stop = true;
			return NULL;
		}
		c->size = room;
		sh->allocated += room;
		/* A large chunk is inserted after the current one, whose free space stays in use. */
		if (room != CHUNK_SIZE && sh->chunks) {
			c->next = sh->chunks->next;
			sh->chunks->next = c;
		} else {
			c->next = sh->chunks;
			sh->chunks = c;
		}
	}
	c->used += size;
	return (char *)c->data + c->used - size;
}

void sh_release(struct shell *sh)
{
	while (sh->chunks) {
		struct arena_chunk *c = sh->chunks;

		sh->chunks = c->next;
		free(c);
	}
}

static bool past_deadline(const struct judge *j)
{
	struct timespec now;

	if (!j->deadline_ns || j->steps_left % 1024)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec > j->deadline_ns;
}

bool sh_step(struct shell *sh)
{
	if (sh->stop)
		return false;
	if (sh->j->steps_left == 0 || past_deadline(sh->j)) {
		sh->stop = true;
		judge_check(sh->j, "not-analysable", (struct span){ 0, 0 }, "takes too many steps");
		return false;
	}
	sh->j->steps_left--;
	return true;
}

void sh_add(struct shell *sh, struct sh_buf *b, const char *s, size_t len)
{
	if (len > SH_WORD_MAX - b->len)
		len = SH_WORD_MAX - b->len;
	if (b->len + len + 1 > b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 32;
		char *p;

		while (cap < b->len + len + 1)
			cap *= 2;
		p = sh_alloc(sh, cap);
		if (!p)
			return;
		if (b->len)
			memcpy(p, b->p, b->len);
		b->p = p;
		b->cap = cap;
	}
	if (len)
		memcpy(b->p + b->len, s, len);
	b->len += len;
	b->p[b->len] = '\0';
}

void sh_addc(struct shell *sh, struct sh_buf *b, char c)
{
	sh_add(sh, b, &c, 1);
}

const char *sh_copy(struct shell *sh, const char *s, size_t len)
{
	char *p = sh_alloc(sh, len + 1);

	if (!p)
		return "";
	if (len)
		memcpy(p, s, len);
	return p;
}

void sh_push(struct shell *sh, struct sh_words *list, const char *s, size_t len, uint32_t flags)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 8;
		struct sh_word *row = sh_alloc(sh, cap * sizeof(*row));

		if (!row)
			return;
		if (list->n)
			memcpy(row, list->row, list->n * sizeof(*row));
		list->row = row;
		list->cap = cap;
	}
	list->row[list->n++] = (struct sh_word){ .s = s, .len = (uint32_t)len, .flags = flags };
}

struct sh_word sh_single(struct shell *sh, const char *marked, size_t len)
{
	static const char plain[] = { [MARK_STAR] = '*', [MARK_QUERY] = '?', [MARK_SET] = '[',
				      [MARK_OPEN] = '{', [MARK_COMMA] = ',', [MARK_CLOSE] = '}' };
	struct sh_word w = { .s = "" };
	char *p = sh_alloc(sh, len + 1);
	size_t n = 0;

	if (!p)
		return w;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)marked[i];

		if (c == MARK_HOLE) {
			w.flags |= WORD_DYNAMIC;
			if (n && p[n - 1] == MARK_HOLE)
				continue;
		} else if (c == MARK_SPLIT) {
			c = ' ';
		} else if (c == MARK_EMPTY) {
			continue;
		} else if (c < sizeof(plain) && plain[c]) {
			if (c <= MARK_SET)
				w.flags |= WORD_GLOB;
			c = (unsigned char)plain[c];
		}
		p[n++] = (char)c;
	}
	w.s = p;
	w.len = (uint32_t)n;
	return w;
}

/* The alternatives of the first brace group of a word: each is inserted between the text before and after the group. */
struct braces {
	size_t open, close;
	size_t comma[FIELDS_MAX];
	size_t n;
};

static bool find_braces(const char *s, size_t len, struct braces *b)
{
	for (size_t open = 0; open < len; open++) {
		size_t depth = 0;

		if (s[open] != MARK_OPEN)
			continue;
		*b = (struct braces){ .open = open };
		for (size_t i = open; i < len; i++) {
			if (s[i] == MARK_OPEN)
				depth++;
			else if (s[i] == MARK_COMMA && depth == 1 && b->n < FIELDS_MAX)
				b->comma[b->n++] = i;
			else if (s[i] == MARK_CLOSE && --depth == 0) {
				b->close = i;
				break;
			}
		}
		if (b->close && (b->n || memmem(s + open, b->close - open, "..", 2)))
			return true;
	}
	return false;
}

/* {a..e} and {1..9} as alternatives; a longer range keeps its first values and its last one. */
static size_t range_values(const char *s, size_t len, char ret[][16], size_t max)
{
	char text[40];
	char *dots;
	long from, to, step;
	size_t n = 0;
	bool letters;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, s, len);
	text[len] = '\0';
	dots = strstr(text, "..");
	if (!dots || dots == text || !dots[2])
		return 0;
	letters = dots == text + 1 && !(text[0] >= '0' && text[0] <= '9');
	from = letters ? text[0] : strtol(text, NULL, 10);
	to = letters ? dots[2] : strtol(dots + 2, NULL, 10);
	step = from <= to ? 1 : -1;
	for (long v = from; n < max; v += step) {
		if (n == max - 1)
			v = to;
		if (letters)
			snprintf(ret[n++], 16, "%c", (char)v);
		else
			snprintf(ret[n++], 16, "%ld", v);
		if (v == to)
			break;
	}
	return n;
}

static void split_fields(struct shell *sh, const char *s, size_t len, struct sh_words *list)
{
	size_t start = 0;

	for (size_t i = 0; i <= len; i++) {
		struct sh_word w;

		if (i < len && s[i] != MARK_SPLIT)
			continue;
		if (i > start) {
			w = sh_single(sh, s + start, i - start);
			sh_push(sh, list, w.s, w.len, w.flags);
		}
		start = i + 1;
	}
}

void sh_fields(struct shell *sh, const struct sh_buf *marked, struct sh_words *list)
{
	struct sh_buf todo[FIELDS_MAX]; /* a stack: the first alternative is on top */
	size_t n = 0, made = 0;

	todo[n++] = *marked;
	while (n && sh_step(sh)) {
		struct sh_buf one = todo[--n];
		char range[16][16];
		struct braces b;
		size_t parts;

		if (made >= FIELDS_MAX || !one.len || !find_braces(one.p, one.len, &b)) {
			split_fields(sh, one.p, one.len, list);
			made++;
			continue;
		}
		parts = b.n ? b.n + 1 : range_values(one.p + b.open + 1, b.close - b.open - 1, range, ARRAY_LEN(range));
		if (!parts || n + parts > FIELDS_MAX) {
			split_fields(sh, one.p, one.len, list);
			made++;
			continue;
		}
		for (size_t i = parts; i-- > 0;) {
			size_t from = i == 0 ? b.open + 1 : b.comma[i - 1] + 1;
			size_t to = i == b.n ? b.close : b.comma[i];
			struct sh_buf whole = { 0 };

			sh_add(sh, &whole, one.p, b.open);
			if (b.n)
				sh_add(sh, &whole, one.p + from, to - from);
			else
				sh_add(sh, &whole, range[i], strlen(range[i]));
			sh_add(sh, &whole, one.p + b.close + 1, one.len - b.close - 1);
			todo[n++] = whole;
		}
	}
}

bool sh_is(const struct sh_word *w, const char *s)
{
	return strcmp(w->s, s) == 0;
}

bool sh_glob(const char *pattern, size_t plen, const char *s, size_t len)
{
	size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;

	while (i < len) {
		if (p < plen && pattern[p] == '*') {
			star = p++;
			mark = i;
		} else if (p < plen && (pattern[p] == '?' || pattern[p] == s[i])) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (p < plen && pattern[p] == '*')
		p++;
	return p == plen;
}

static unsigned bucket_of(const char *name, size_t len)
{
	unsigned h = 5381;

	for (size_t i = 0; i < len; i++)
		h = h * 33 + (unsigned char)name[i];
	return h % SH_BUCKETS;
}

struct sh_var *sh_var_find(struct shell *sh, const char *name, size_t len)
{
	for (struct sh_var *v = sh->vars[bucket_of(name, len)]; v; v = v->next)
		if (v->len == len && memcmp(v->name, name, len) == 0)
			return v;
	return NULL;
}

void sh_var_set(struct shell *sh, const char *name, size_t len, struct sh_value value, bool replace)
{
	struct sh_var *v = sh_var_find(sh, name, len);

	if (!v) {
		struct sh_var **head = &sh->vars[bucket_of(name, len)];

		v = sh_alloc(sh, sizeof(*v));
		if (!v)
			return;
		v->name = sh_copy(sh, name, len);
		v->len = (uint32_t)len;
		v->next = *head;
		*head = v;
	}
	if (replace)
		v->n = 0;
	for (unsigned i = 0; i < v->n; i++)
		if (v->value[i].len == value.len && memcmp(v->value[i].s, value.s, value.len) == 0)
			return;
	/* The newest value comes first; the oldest is dropped. */
	memmove(&v->value[1], &v->value[0], sizeof(v->value[0]) * (SH_ALTERNATIVES - 1));
	v->value[0] = value;
	if (v->n < SH_ALTERNATIVES)
		v->n++;
}

bool sh_var_value(struct shell *sh, const char *name, size_t len, struct sh_value *ret)
{
	const struct sh_var *v = sh_var_find(sh, name, len);

	if (!v || !v->n)
		return false;
	if (v->n > sh->pick_max)
		sh->pick_max = v->n;
	*ret = v->value[sh->pick < v->n ? sh->pick : v->n - 1];
	for (unsigned hops = 0; ret->ref && hops < 8; hops++) {
		v = sh_var_find(sh, ret->s, ret->len);
		if (!v || !v->n)
			return false;
		*ret = v->value[sh->pick < v->n ? sh->pick : v->n - 1];
	}
	return true;
}

struct sh_function *sh_function_find(struct shell *sh, const char *name, size_t len)
{
	for (struct sh_function *f = sh->functions[bucket_of(name, len)]; f; f = f->next)
		if (f->len == len && memcmp(f->name, name, len) == 0)
			return f;
	return NULL;
}

void sh_function_add(struct shell *sh, struct sh_function *f)
{
	struct sh_function **head = &sh->functions[bucket_of(f->name, f->len)];

	f->next = *head;
	*head = f;
}

/* ./x and x are the same file. */
static const char *file_key(const char *name)
{
	while (name[0] == '.' && name[1] == '/')
		name += 2;
	return name;
}

struct sh_file *sh_file_find(const struct shell *sh, const char *name)
{
	name = file_key(name);
	for (struct sh_file *f = sh->files; f; f = f->next)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

void sh_file_set(struct shell *sh, const char *name, const struct sh_stream *contents)
{
	struct sh_file *f = sh_file_find(sh, name);

	if (!f) {
		f = sh_alloc(sh, sizeof(*f));
		if (!f)
			return;
		f->name = file_key(name);
		f->next = sh->files;
		sh->files = f;
	}
	f->text = contents->text;
	f->len = contents->len;
	f->flags |= contents->flags;
}

struct span sh_span(const struct shell *sh, const struct sh_text *t, size_t start, size_t end)
{
	(void)sh;
	if (t->mapped)
		return t->host;
	return (struct span){ (uint32_t)(t->offset + start), (uint32_t)(t->offset + end) };
}

void sh_check(struct shell *sh, const struct sh_text *t, const char *check, size_t start, const char *detail)
{
	size_t end = t->pos > start ? t->pos : start;

	if (end > t->len)
		end = t->len;
	if (sh->guessing && sh->j->level != INSPECTION_STRICT && strcmp(check, "shell-syntax") == 0)
		return;
	judge_check(sh->j, check, sh_span(sh, t, start, end), "%s", detail);
}
