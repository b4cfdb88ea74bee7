/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of the JavaScript inspector: small structs copied by value, whose strings and lists live in an arena that is
 * freed as a whole.  A value that does not fit into the arena becomes unknown; nothing here fails.
 */
#include "inspect/javascript.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct js_chunk {
	struct js_chunk *next;
	size_t used, size;
	char data[];
};

#define CHUNK_SIZE (32 * KiB)

static struct js_chunk *chunk_add(struct js *js, size_t size)
{
	size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;
	struct js_chunk *chunk;

	if (js->arena_used + room > JS_ARENA_MAX)
		return NULL;
	chunk = malloc(sizeof(*chunk) + room);
	if (!chunk) {
		js->judge->out_of_memory = true;
		return NULL;
	}
	*chunk = (struct js_chunk){ .next = js->chunks, .size = room };
	js->arena_used += room;
	js->chunks = chunk;
	return chunk;
}

void *js_alloc(struct js *js, size_t size)
{
	struct js_chunk *chunk = js->chunks;
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (!chunk || chunk->size - chunk->used < size)
		chunk = chunk_add(js, size);
	if (!chunk)
		return NULL;
	p = chunk->data + chunk->used;
	chunk->used += size;
	return p;
}

void js_arena_release(struct js *js)
{
	while (js->chunks) {
		struct js_chunk *next = js->chunks->next;

		free(js->chunks);
		js->chunks = next;
	}
}

/* Makes room for one more element in a heap array; array is the address of the pointer. */
bool js_grow(struct js *js, void *array, uint32_t n, uint32_t *cap, size_t size)
{
	void **at = array;
	uint32_t want;
	void *bigger;

	if (n < *cap)
		return true;
	want = *cap ? *cap * 2 : 64;
	bigger = reallocarray(*at, want, size);
	if (!bigger) {
		js->judge->out_of_memory = true;
		js->exhausted = true;
		return false;
	}
	*at = bigger;
	*cap = want;
	return true;
}

struct js_value js_simple(enum js_kind kind)
{
	return (struct js_value){ .kind = (uint8_t)kind };
}

struct js_value js_number(double d)
{
	return (struct js_value){ .kind = JS_NUMBER, .number = d };
}

struct js_value js_text(const char *s)
{
	return (struct js_value){ .kind = JS_STRING, .n = (uint32_t)strlen(s), .s = s };
}

struct js_value js_path(const char *s, size_t len)
{
	return (struct js_value){ .kind = JS_PATH, .flags = JS_PENDING, .n = (uint32_t)len, .s = s };
}

struct js_value js_string(struct js *js, const char *s, size_t len)
{
	char *copy;

	if (len > JS_STRING_MAX || js->fold_left < len)
		return js_simple(JS_UNKNOWN);
	js->fold_left -= len;
	copy = js_alloc(js, len + 1);
	if (!copy)
		return js_simple(JS_UNKNOWN);
	memcpy(copy, s, len);
	copy[len] = '\0';
	return (struct js_value){ .kind = JS_STRING, .n = (uint32_t)len, .s = copy };
}

static size_t list_room(enum js_kind kind, size_t n)
{
	return kind == JS_OBJECT || kind == JS_PATTERN_OBJECT ? 2 * n : n;
}

bool js_list_new(struct js *js, enum js_kind kind, size_t n, struct js_value *ret)
{
	size_t room = list_room(kind, n);

	*ret = js_simple(JS_UNKNOWN);
	if (n > JS_ARRAY_MAX)
		return false;
	*ret = (struct js_value){ .kind = (uint8_t)kind,
				  .n = (uint32_t)n,
				  .v = js_alloc(js, (room + 1) * sizeof(*ret)) };
	if (!ret->v) {
		*ret = js_simple(JS_UNKNOWN);
		return false;
	}
	ret->v[room] = js_simple(JS_UNDEFINED);
	return true;
}

void js_list_spoil(const struct js_value *list)
{
	size_t room = list_room(list->kind, list->n);

	for (size_t i = 0; i <= room; i++)
		list->v[i] = js_simple(JS_UNKNOWN);
}

bool js_list_intact(const struct js_value *list)
{
	return list->v[list_room(list->kind, list->n)].kind != JS_UNKNOWN;
}

struct js_value js_list(struct js *js, enum js_kind kind, const struct js_value *v, size_t n)
{
	struct js_value list;

	if (js_list_new(js, kind, n, &list) && n)
		memcpy(list.v, v, list_room(kind, n) * sizeof(*v));
	return list;
}

/* Compares bits, not with ==: NaN stands for what cannot be computed and equals itself here, and 0 differs from -0. */
static bool same_bits(double a, double b)
{
	uint64_t of_a, of_b;

	memcpy(&of_a, &a, sizeof(of_a));
	memcpy(&of_b, &b, sizeof(of_b));
	return of_a == of_b;
}

bool js_same(const struct js_value *a, const struct js_value *b)
{
	if (a->kind != b->kind || a->n != b->n)
		return false;
	switch (a->kind) {
	case JS_STRING:
	case JS_PATH:
	case JS_MODULE:
	case JS_REGEX:
		return a->s == b->s || memcmp(a->s, b->s, a->n) == 0;
	case JS_NUMBER:
		return same_bits(a->number, b->number);
	case JS_MEMBER:
		return a->v == b->v || (js_same(&a->v[1], &b->v[1]) && a->v[0].kind == b->v[0].kind);
	case JS_ARRAY:
	case JS_OBJECT:
	case JS_BOUND:
		return a->v == b->v;
	default:
		return true;
	}
}

bool js_is(const struct js_value *v, enum js_kind kind, const char *text)
{
	return v->kind == kind && v->n == strlen(text) && memcmp(v->s, text, v->n) == 0;
}

bool js_starts(const struct js_value *v, const char *prefix)
{
	size_t len = strlen(prefix);

	return v->n >= len && memcmp(v->s, prefix, len) == 0;
}

size_t js_alternatives(const struct js_value *v, const struct js_value **ret)
{
	if (v->kind == JS_ONE_OF) {
		*ret = v->v;
		return v->n;
	}
	*ret = v;
	return 1;
}

static size_t add_alternatives(struct js_value *list, size_t n, const struct js_value *v, uint8_t *flags)
{
	const struct js_value *each;
	size_t count = js_alternatives(v, &each);

	*flags |= v->flags;
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		*flags |= each[i].flags;
		if (each[i].kind == JS_UNKNOWN) {
			*flags |= JS_MAYBE;
			continue;
		}
		while (k < n && !js_same(&list[k], &each[i]))
			k++;
		if (k < n)
			continue;
		if (n == JS_ONE_OF_MAX)
			*flags |= JS_MAYBE;
		else
			list[n++] = each[i];
	}
	return n;
}

/* Either of two values.  An unknown one becomes a flag, so that the known ones are still judged. */
struct js_value js_join(struct js *js, struct js_value a, struct js_value b)
{
	struct js_value list[JS_ONE_OF_MAX];
	struct js_value joined;
	uint8_t flags = 0;
	size_t n = 0;

	n = add_alternatives(list, n, &a, &flags);
	n = add_alternatives(list, n, &b, &flags);
	if (n == 0) {
		joined = js_simple(JS_UNKNOWN);
		joined.flags = flags & (JS_ORIGIN | JS_BUILT);
		return joined;
	}
	joined = n == 1 ? list[0] : js_list(js, JS_ONE_OF, list, n);
	joined.flags |= flags;
	return joined;
}

static bool join_text(struct js *js, const struct js_value *v, struct js_value *ret, unsigned depth);

/* Functions whose source text is known, because programs pick single letters from it. */
static const char *const constructors[] = { "Object",   "Array", "String", "Number", "Boolean", "RegExp",
					    "Function", "Date",  "Error",  "Map",    "Set",     "Promise" };
static const char *const methods[] = { "at",   "concat", "constructor", "entries", "fill",   "filter",    "find",
				       "flat", "join",   "map",         "pop",     "push",   "shift",     "slice",
				       "sort", "splice", "toString",    "valueOf", "anchor", "big",       "bold",
				       "link", "match",  "replace",     "search",  "split",  "sub",       "sup",
				       "trim", "exec",   "test",        "italics", "some",   "fontcolor", "every" };

static bool is_listed(const struct js_value *v, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (js_is(v, (enum js_kind)v->kind, list[i]))
			return true;
	return false;
}

static bool is_method(const struct js_value *object, const struct js_value *name)
{
	return (object->kind == JS_STRING || object->kind == JS_ARRAY || object->kind == JS_NUMBER ||
		object->kind == JS_REGEX) &&
	       name->kind == JS_STRING && is_listed(name, methods, ARRAY_LEN(methods));
}

static bool simple_text(struct js *js, const struct js_value *v, struct js_value *ret, unsigned depth)
{
	static const struct {
		enum js_kind kind;
		const char *text;
	} fixed[] = {
		{ JS_UNDEFINED, "undefined" },
		{ JS_NULL, "null" },
		{ JS_OBJECT, "[object Object]" },
	};
	char line[160];

	if (v->kind == JS_OBJECT && v->n) /* it may define its own toString() */
		return false;
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		if (v->kind == fixed[i].kind) {
			*ret = js_text(fixed[i].text);
			return true;
		}
	}
	switch (v->kind) {
	case JS_STRING:
		*ret = *v;
		return true;
	case JS_BOOL:
		*ret = js_text(v->n ? "true" : "false");
		return true;
	case JS_NUMBER:
		*ret = js_number_text(js, v->number, 10);
		return ret->kind == JS_STRING;
	case JS_REGEX:
		*ret = js_string(js, v->s, v->n);
		return ret->kind == JS_STRING;
	case JS_ARRAY:
		return join_text(js, v, ret, depth);
	case JS_MEMBER: /* a method of a literal: "function flat() { [native code] }" */
		if (!is_method(&v->v[0], &v->v[1]))
			return false;
		(void)snprintf(line, sizeof(line), "function %.*s() { [native code] }", (int)v->v[1].n, v->v[1].s);
		break;
	case JS_PATH:
		if (!is_listed(v, constructors, ARRAY_LEN(constructors)))
			return false;
		(void)snprintf(line, sizeof(line), "function %.*s() { [native code] }", (int)v->n, v->s);
		break;
	default:
		return false;
	}
	*ret = js_string(js, line, strlen(line));
	return ret->kind == JS_STRING;
}

/* Converts an array to a string: its elements with commas; null and undefined are empty. */
static bool join_text(struct js *js, const struct js_value *v, struct js_value *ret, unsigned depth)
{
	struct js_value all = js_text("");

	if (depth > JS_NESTING_MAX || !js_list_intact(v))
		return false;
	for (uint32_t i = 0; i < v->n; i++) {
		struct js_value comma = js_text(","), one = js_text("");

		if (v->v[i].kind != JS_NULL && v->v[i].kind != JS_UNDEFINED &&
		    !simple_text(js, &v->v[i], &one, depth + 1))
			return false;
		if (i)
			all = js_concat(js, &all, &comma);
		all = js_concat(js, &all, &one);
		if (all.kind != JS_STRING)
			return false;
	}
	*ret = all;
	return true;
}

bool js_to_string(struct js *js, const struct js_value *v, struct js_value *ret)
{
	return simple_text(js, v, ret, 0);
}

static bool text_to_number(const struct js_value *text, double *ret)
{
	char copy[64], *end;
	const char *s = text->s;
	size_t n = text->n;

	while (n && (*s == ' ' || *s == '\n' || *s == '\t'))
		s++, n--;
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\n' || s[n - 1] == '\t'))
		n--;
	if (n >= sizeof(copy))
		return false;
	memcpy(copy, s, n);
	copy[n] = '\0';
	*ret = 0;
	if (n == 0)
		return true;
	if (copy[0] == '0' && (copy[1] == 'b' || copy[1] == 'B' || copy[1] == 'o' || copy[1] == 'O'))
		*ret = (double)strtoull(copy + 2, &end, copy[1] == 'b' || copy[1] == 'B' ? 2 : 8);
	else
		*ret = strtod(copy, &end);
	if (*end)
		*ret = NAN;
	return true;
}

bool js_to_number(struct js *js, const struct js_value *v, double *ret)
{
	struct js_value text;

	switch (v->kind) {
	case JS_NUMBER:
		*ret = v->number;
		return true;
	case JS_BOOL:
		*ret = v->n;
		return true;
	case JS_NULL:
		*ret = 0;
		return true;
	case JS_UNDEFINED:
		*ret = NAN;
		return true;
	case JS_STRING:
	case JS_ARRAY:
	case JS_OBJECT:
		return js_to_string(js, v, &text) && text_to_number(&text, ret);
	default:
		return false;
	}
}
