/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters: $x and ${x...} with every operator of bash.  Words inside operators are expanded even if the shell would
 * not need them, so every substitution in them is judged; the value is folded where it is constant.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "inspect/shell.h"

struct parameter {
	const char *name;
	size_t len;
	bool indirect, count;
	bool subscripted, all; /* [i], [@] */
	struct sh_buf subscript;
	bool set; /* assigned by the script, or known from the environment */
	struct sh_value value;
};

/* Variables of an ordinary environment. */
static const struct {
	const char *name, *value;
} environment[] = {
	{ "HOME", "~" },
	{ "IFS", " \t\n" },
	{ "SHELL", "/bin/sh" },
	{ "BASH", "/bin/bash" },
	{ "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
	{ "USER", "user" },
	{ "LOGNAME", "user" },
	{ "0", "$0" },
	{ "?", "0" },
};

static bool from_environment(struct shell *sh, const char *name, size_t len, struct sh_value *ret)
{
	if (len == 3 && memcmp(name, "PWD", 3) == 0) {
		const char *w = sh->j->workspace ? sh->j->workspace : "/workspace";

		*ret = (struct sh_value){ .s = w, .len = (uint32_t)strlen(w) };
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(environment); i++)
		if (strlen(environment[i].name) == len && memcmp(environment[i].name, name, len) == 0) {
			*ret = (struct sh_value){ .s = environment[i].value,
						  .len = (uint32_t)strlen(environment[i].value) };
			return true;
		}
	return false;
}

static bool is_positional(const char *name, size_t len)
{
	return len && (isdigit((unsigned char)name[0]) || (len == 1 && (name[0] == '@' || name[0] == '*'))) &&
	       !(len == 1 && name[0] == '0');
}

static struct sh_value positional(struct shell *sh, const char *name, size_t len)
{
	static const char hole[] = { MARK_HOLE, '\0' };
	struct sh_value v = { .s = hole, .len = 1 };
	size_t index;

	sh->used_parameter = true;
	sh->origins |= ORIGIN_VARIABLE;
	if (!sh->parameters) {
		sh->origins |= ORIGIN_PARAMETER;
		return v;
	}
	if (!isdigit((unsigned char)name[0])) {
		struct sh_buf all = { 0 };

		for (size_t i = 0; i < sh->parameters->n; i++) {
			sh_add(sh, &all, sh->parameters->row[i].s, sh->parameters->row[i].len);
			sh_addc(sh, &all, MARK_SPLIT);
			sh->origins |= sh->parameters->row[i].flags & ORIGINS;
		}
		return (struct sh_value){ .s = all.p ? all.p : "", .len = (uint32_t)all.len, .array = true };
	}
	index = 0;
	for (size_t i = 0; i < len && index < 1000; i++)
		index = index * 10 + (size_t)(name[i] - '0');
	if (index == 0 || index > sh->parameters->n)
		return (struct sh_value){ .s = "", .len = 0 };
	sh->origins |= sh->parameters->row[index - 1].flags & ORIGINS;
	return (struct sh_value){ .s = sh->parameters->row[index - 1].s, .len = sh->parameters->row[index - 1].len };
}

static bool is_own_process(const char *name, size_t len)
{
	return (len == 1 && (name[0] == '!' || name[0] == '$')) || (len == 7 && memcmp(name, "BASHPID", 7) == 0);
}

/* False: the script does not set it.  Then it is empty or comes from the environment, which is unknown here. */
static bool lookup(struct shell *sh, const char *name, size_t len, struct sh_value *ret)
{
	static const char hole[] = { MARK_HOLE, '\0' };

	if (is_positional(name, len)) {
		*ret = positional(sh, name, len);
		return sh->parameters != NULL;
	}
	sh->origins |= ORIGIN_VARIABLE;
	if (sh_var_value(sh, name, len, ret) || from_environment(sh, name, len, ret)) {
		sh->origins |= ret->origins;
		return true;
	}
	*ret = (struct sh_value){ .s = hole, .len = 1 };
	sh->origins |= is_own_process(name, len) ? ORIGIN_OWN : ORIGIN_UNSET;
	return false;
}

void sh_parameter_plain(struct shell *sh, const char *name, size_t len, bool quoted, struct sh_buf *out)
{
	struct sh_value v;
	size_t n;

	(void)lookup(sh, name, len, &v);
	n = v.len;
	/* $array is its first element. */
	if (v.array && !is_positional(name, len)) {
		const char *end = memchr(v.s, MARK_SPLIT, v.len);

		n = end ? (size_t)(end - v.s) : v.len;
	}
	sh_add_value(sh, out, v.s, n, quoted, v.array && name[0] != '*');
}

static struct sh_value element(const struct sh_value *v, const struct sh_buf *subscript)
{
	const char *p = v->s, *end = v->s + v->len;
	size_t index = 0;

	for (size_t i = 0; i < subscript->len; i++) {
		if (!isdigit((unsigned char)subscript->p[i]) || index > 10000)
			return (struct sh_value){ .s = "\001", .len = 1 };
		index = index * 10 + (size_t)(subscript->p[i] - '0');
	}
	while (p < end) {
		const char *stop = memchr(p, MARK_SPLIT, (size_t)(end - p));

		if (!stop)
			stop = end;
		if (index-- == 0)
			return (struct sh_value){ .s = p, .len = (uint32_t)(stop - p) };
		p = stop + 1;
	}
	return (struct sh_value){ .s = "", .len = 0 };
}

static char at(const struct sh_text *t)
{
	return t->pos < t->len ? t->s[t->pos] : '\0';
}

static void read_subscript(struct shell *sh, struct sh_text *t, struct parameter *p)
{
	size_t depth = 0, i = t->pos, len = t->len;

	for (; i < t->len; i++) {
		if (t->s[i] == '\\')
			i++;
		else if (t->s[i] == '[')
			depth++;
		else if (t->s[i] == ']' && --depth == 0)
			break;
	}
	if (i >= t->len)
		i = t->len;
	t->pos++;
	t->len = i;
	(void)sh_expand(sh, t, EXPAND_ARITHMETIC, true, &p->subscript);
	t->len = len;
	t->pos = i < len ? i + 1 : len;
	p->subscripted = true;
	p->all = p->subscript.len == 1 && (p->subscript.p[0] == '@' || p->subscript.p[0] == '*');
}

static void read_name(struct shell *sh, struct sh_text *t, struct parameter *p)
{
	size_t start;

	if (at(t) == '#' && t->pos + 1 < t->len && !strchr("}:-=?+%#/", t->s[t->pos + 1])) {
		p->count = true;
		t->pos++;
	} else if (at(t) == '!' && t->pos + 1 < t->len && !strchr("}:-=?+%#/", t->s[t->pos + 1])) {
		p->indirect = true;
		t->pos++;
	}
	start = t->pos;
	if (isdigit((unsigned char)at(t)))
		while (isdigit((unsigned char)at(t)))
			t->pos++;
	else if (isalpha((unsigned char)at(t)) || at(t) == '_')
		while (isalnum((unsigned char)at(t)) || at(t) == '_')
			t->pos++;
	else if (at(t) && strchr("@*#?-$!", at(t)))
		t->pos++;
	p->name = t->s + start;
	p->len = t->pos - start;
	if (at(t) == '[')
		read_subscript(sh, t, p);
}

static void resolve(struct shell *sh, struct parameter *p)
{
	p->set = lookup(sh, p->name, p->len, &p->value);
	if (p->indirect && p->set && !memchr(p->value.s, MARK_HOLE, p->value.len)) {
		struct sh_value name = p->value;

		p->set = lookup(sh, name.s, name.len, &p->value);
	}
	if (p->subscripted && !p->all)
		p->value = element(&p->value, &p->subscript);
	else if (!p->subscripted && p->value.array && !is_positional(p->name, p->len))
		p->value = element(&p->value, &(struct sh_buf){ 0 });
}

static bool is_constant(const struct parameter *p)
{
	return p->set && !memchr(p->value.s, MARK_HOLE, p->value.len);
}

/* Parses -N or N; false if the text contains more than a number. */
static bool read_number(const char *s, size_t len, long *ret)
{
	char text[24], *end;

	while (len && s[0] == ' ') {
		s++;
		len--;
	}
	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	*ret = strtol(text, &end, 10);
	return *end == '\0' || *end == ' ';
}

static void op_substring(struct shell *sh, struct parameter *p, const struct sh_buf *w, bool quoted, struct sh_buf *out)
{
	const char *colon = w->len ? memchr(w->p, ':', w->len) : NULL;
	size_t first = colon ? (size_t)(colon - w->p) : w->len;
	long len = (long)p->value.len, from, count;
	/* the home folder is unknown, but its path begins with a slash */
	bool home = p->len == 4 && memcmp(p->name, "HOME", 4) == 0;

	if (p->value.array || !is_constant(p) || !read_number(w->p ? w->p : "", first, &from)) {
		sh_addc(sh, out, MARK_HOLE);
		return;
	}
	if (colon && !read_number(colon + 1, w->len - first - 1, &count)) {
		sh_addc(sh, out, MARK_HOLE);
		return;
	}
	if (home && from == 0 && colon && count == 1) {
		sh_addc(sh, out, '/');
		return;
	}
	if (from < 0)
		from = from + len > 0 ? from + len : 0;
	if (from > len)
		from = len;
	if (!colon)
		count = len - from;
	else if (count < 0)
		count = len + count - from;
	if (count < 0)
		count = 0;
	if (count > len - from)
		count = len - from;
	sh_add_value(sh, out, p->value.s + from, (size_t)count, quoted, false);
}

static void op_case(struct shell *sh, struct parameter *p, char how, bool whole, bool quoted, struct sh_buf *out)
{
	struct sh_buf text = { 0 };

	for (size_t i = 0; i < p->value.len; i++) {
		int c = (unsigned char)p->value.s[i];

		if (whole || i == 0)
			c = how == '^' ? toupper(c) : how == ',' ? tolower(c) : isupper(c) ? tolower(c) : toupper(c);
		sh_addc(sh, &text, (char)c);
	}
	sh_add_value(sh, out, text.p ? text.p : "", text.len, quoted, p->value.array);
}

static struct sh_word pattern_of(struct shell *sh, const struct sh_buf *w)
{
	return sh_single(sh, w->p ? w->p : "", w->len);
}

static void op_trim(struct shell *sh, struct parameter *p, char side, bool longest, const struct sh_buf *w, bool quoted,
		    struct sh_buf *out)
{
	struct sh_word pattern = pattern_of(sh, w);
	size_t len = p->value.len;

	if (!is_constant(p) || (pattern.flags & WORD_DYNAMIC) || len > 4096) {
		sh_addc(sh, out, MARK_HOLE);
		return;
	}
	for (size_t i = 0; i <= len && sh_step(sh); i++) {
		size_t cut = longest ? len - i : i;
		const char *part = side == '#' ? p->value.s : p->value.s + len - cut;

		if (!sh_glob(pattern.s, pattern.len, part, cut))
			continue;
		sh_add_value(sh, out, side == '#' ? p->value.s + cut : p->value.s, len - cut, quoted, false);
		return;
	}
	sh_add_value(sh, out, p->value.s, len, quoted, false);
}

/* Finds the longest match at i; false: none. */
static bool match_at(const struct sh_word *pattern, const char *s, size_t len, size_t i, size_t *end)
{
	if (!(pattern->flags & WORD_GLOB)) {
		*end = i + pattern->len;
		return pattern->len && *end <= len && memcmp(s + i, pattern->s, pattern->len) == 0;
	}
	for (*end = len; *end > i; (*end)--)
		if (sh_glob(pattern->s, pattern->len, s + i, *end - i))
			return true;
	return false;
}

static void op_replace(struct shell *sh, struct parameter *p, bool every, const struct sh_buf *w, bool quoted,
		       struct sh_buf *out)
{
	const char *slash = w->len > 1 ? memchr(w->p + 1, '/', w->len - 1) : NULL;
	struct sh_buf head = { .p = w->p, .len = slash ? (size_t)(slash - w->p) : w->len };
	struct sh_word pattern = pattern_of(sh, &head);
	struct sh_word with = slash ? sh_single(sh, slash + 1, w->len - head.len - 1) : (struct sh_word){ .s = "" };
	struct sh_buf text = { 0 };
	size_t len = p->value.len;
	bool done = false;

	if (!is_constant(p) || (pattern.flags & WORD_DYNAMIC) || len > 4096) {
		sh_addc(sh, out, MARK_HOLE);
		return;
	}
	for (size_t i = 0, end; i < len && sh_step(sh);) {
		if ((every || !done) && match_at(&pattern, p->value.s, len, i, &end)) {
			sh_add(sh, &text, with.s, with.len);
			i = end;
			done = true;
		} else {
			sh_addc(sh, &text, p->value.s[i++]);
		}
	}
	sh_add_value(sh, out, text.p ? text.p : "", text.len, quoted, p->value.array);
}

static void op_default(struct shell *sh, struct parameter *p, char op, bool colon, const struct sh_buf *w, bool quoted,
		       struct sh_buf *out)
{
	bool unknown = !p->set || (p->value.len == 1 && p->value.s[0] == MARK_HOLE);
	bool absent = unknown || (colon && p->value.len == 0);

	if (op == '+' ? (absent && !unknown) : (!absent || op == '?')) {
		if (op != '+')
			sh_add_value(sh, out, p->value.s, p->value.len, quoted, p->value.array);
		/* ${x:?}: x is not empty after this */
		if (op == '?' && (sh->origins & (ORIGIN_UNSET | ORIGIN_PARAMETER)))
			sh->origins = (sh->origins & ~(uint32_t)(ORIGIN_UNSET | ORIGIN_PARAMETER)) | ORIGIN_OUTPUT;
		return;
	}
	/* the word has already been expanded with the right quoting */
	sh_add(sh, out, w->p ? w->p : "", w->len);
	if (op == '=')
		sh_var_set(sh, p->name, p->len,
			   (struct sh_value){ .s = sh_copy(sh, w->p ? w->p : "", w->len), .len = (uint32_t)w->len },
			   true);
}

/* ${x@P} runs the value like a prompt, ${x@E} unescapes it. */
static void op_transform(struct shell *sh, struct sh_text *t, struct parameter *p, char how, size_t start, bool quoted,
			 struct sh_buf *out)
{
	if (how == 'P') {
		if (!is_constant(p))
			sh_check(sh, t, "dynamic-code", start, "a prompt expansion runs what the value holds");
		else
			sh_expand_again(sh, p->value.s, p->value.len, sh_span(sh, t, start, t->pos));
		sh_addc(sh, out, MARK_HOLE);
	} else if (how == 'E') {
		struct sh_buf text = { 0 };

		for (size_t i = 0; i < p->value.len;)
			if (p->value.s[i] == '\\' && i + 1 < p->value.len) {
				i++;
				sh_add_escape(sh, &text, p->value.s, &i);
			} else {
				sh_addc(sh, &text, p->value.s[i++]);
			}
		sh_add_value(sh, out, text.p ? text.p : "", text.len, quoted, false);
	} else if (how == 'U' || how == 'L' || how == 'u') {
		op_case(sh, p, how == 'L' ? ',' : '^', how != 'u', quoted, out);
	} else {
		sh_add_value(sh, out, p->value.s, p->value.len, quoted, p->value.array);
	}
}

static void apply(struct shell *sh, struct sh_text *t, struct parameter *p, size_t start, bool quoted,
		  struct sh_buf *out)
{
	struct sh_buf w = { 0 };
	char op = at(t);
	bool colon = op == ':' && t->pos + 1 < t->len && strchr("-=?+", t->s[t->pos + 1]);
	bool twice;

	t->pos += colon;
	op = colon ? at(t) : op;
	t->pos++;
	twice = at(t) == op && op && strchr("#%/^,", op);
	t->pos += twice;
	/* In double quotes, single quotes are special only in pattern operators. */
	if (!sh_expand(sh, t, EXPAND_BRACE, quoted && !(op && strchr("#%/^,", op)), &w)) {
		sh_check(sh, t, "shell-syntax", start, "${ is never closed");
		return;
	}
	switch (op) {
	case '-':
	case '=':
	case '?':
	case '+':
		op_default(sh, p, op, colon, &w, quoted, out);
		break;
	case ':':
		op_substring(sh, p, &w, quoted, out);
		break;
	case '#':
	case '%':
		op_trim(sh, p, op, twice, &w, quoted, out);
		break;
	case '/':
		op_replace(sh, p, twice, &w, quoted, out);
		break;
	case '^':
	case ',':
	case '~':
		op_case(sh, p, op, twice, quoted, out);
		break;
	case '@':
		op_transform(sh, t, p, w.len ? w.p[0] : '\0', start, quoted, out);
		break;
	default:
		sh_addc(sh, out, MARK_HOLE);
		sh_check(sh, t, "shell-syntax", start, "an unknown form of ${}");
	}
}

void sh_parameter(struct shell *sh, struct sh_text *t, bool quoted, struct sh_buf *out)
{
	struct parameter p = { 0 };
	size_t start = t->pos - 2;

	read_name(sh, t, &p);
	/* ${!prefix*} lists names. */
	if (p.indirect && (at(t) == '*' || at(t) == '@') && t->pos + 1 < t->len && t->s[t->pos + 1] == '}') {
		t->pos += 2;
		sh_addc(sh, out, MARK_HOLE);
		return;
	}
	resolve(sh, &p);
	if (at(t) != '}') {
		apply(sh, t, &p, start, quoted, out);
		return;
	}
	t->pos++;
	if (p.count) {
		char digits[16];
		int n = snprintf(digits, sizeof(digits), "%u", p.value.len);

		if (is_constant(&p) && !p.value.array)
			sh_add(sh, out, digits, (size_t)n);
		else
			sh_addc(sh, out, MARK_HOLE);
	} else if (p.indirect && p.all) {
		sh_addc(sh, out, MARK_HOLE);
	} else {
		sh_add_value(sh, out, p.value.s, p.value.len, quoted, p.all ? p.subscript.p[0] == '@' : p.value.array);
	}
}
