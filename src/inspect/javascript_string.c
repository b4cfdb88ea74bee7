/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding: evaluates string and array methods on constants, so that a name put together from pieces is known like one
 * that is spelled out.  Strings are bytes here; code units beyond ASCII are not counted exactly, which can only turn a
 * name that is no engine name into another such name.
 */
#include "inspect/javascript.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

struct js_value js_concat(struct js *js, const struct js_value *a, const struct js_value *b)
{
	size_t n = (size_t)a->n + b->n;
	char *both;

	if (a->n == 0)
		return *b;
	if (b->n == 0)
		return *a;
	if (n > JS_STRING_MAX || js->fold_left < n)
		return js_simple(JS_UNKNOWN);
	js->fold_left -= n;
	both = js_alloc(js, n + 1);
	if (!both)
		return js_simple(JS_UNKNOWN);
	memcpy(both, a->s, a->n);
	memcpy(both + a->n, b->s, b->n);
	both[n] = '\0';
	return (struct js_value){ .kind = JS_STRING, .n = (uint32_t)n, .s = both };
}

struct js_value js_number_text(struct js *js, double d, int radix)
{
	char line[80];
	size_t at = sizeof(line);
	uint64_t whole;

	if (isnan(d))
		return js_text("NaN");
	if (isinf(d))
		return js_text(d > 0 ? "Infinity" : "-Infinity");
	if (radix < 2 || radix > 36)
		return js_simple(JS_UNKNOWN);
	if (floor(d) != d || fabs(d) > 9e15) {
		if (radix != 10)
			return js_simple(JS_UNKNOWN);
		(void)snprintf(line, sizeof(line), "%.17g", d);
		return js_string(js, line, strlen(line));
	}
	whole = (uint64_t)fabs(d);
	do {
		line[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[whole % (unsigned)radix];
		whole /= (unsigned)radix;
	} while (whole);
	if (d < 0)
		line[--at] = '-';
	return js_string(js, line + at, sizeof(line) - at);
}

/* String.fromCharCode(...) */
struct js_value js_code_units(struct js *js, const struct js_value *args, size_t n)
{
	AUTO_BUF out = BUF_INIT(JS_STRING_MAX);

	for (size_t i = 0; i < n; i++) {
		char dst[4];
		double code;

		if (!js_to_number(js, &args[i], &code) || !(code >= 0 && code <= 0x10ffff))
			return js_simple(JS_UNKNOWN);
		buf_add(&out, dst, js_utf8(dst, (uint32_t)code));
	}
	return js_string(js, buf_str(&out), out.len);
}

/* --- methods of strings ---------------------------------------- */

struct call {
	const struct js_value *self, *args;
	size_t n;
};

static bool arg_number(struct js *js, const struct call *c, size_t i, double missing, double *ret)
{
	*ret = missing;
	return i >= c->n || (js_to_number(js, &c->args[i], ret) && !isnan(*ret));
}

static bool arg_string(struct js *js, const struct call *c, size_t i, struct js_value *ret)
{
	*ret = js_text("");
	return i >= c->n || js_to_string(js, &c->args[i], ret);
}

static double clamp(double d, double low, double high)
{
	return d < low ? low : d > high ? high : js_whole(d);
}

/* Start and end of a slice; negative positions count from the end. */
static bool slice_bounds(struct js *js, const struct call *c, double len, double *from, double *to)
{
	if (!arg_number(js, c, 0, 0, from) || !arg_number(js, c, 1, len, to))
		return false;
	*from = clamp(*from < 0 ? *from + len : *from, 0, len);
	*to = clamp(*to < 0 ? *to + len : *to, 0, len);
	return true;
}

static struct js_value part(const struct js_value *s, double from, double to)
{
	if (to <= from)
		return js_text("");
	return (struct js_value){ .kind = JS_STRING, .n = (uint32_t)(to - from), .s = s->s + (size_t)from };
}

static struct js_value do_slice(struct js *js, const struct call *c)
{
	double from, to;

	return slice_bounds(js, c, c->self->n, &from, &to) ? part(c->self, from, to) : js_simple(JS_UNKNOWN);
}

static struct js_value do_substring(struct js *js, const struct call *c)
{
	double len = c->self->n, from, to;

	if (!arg_number(js, c, 0, 0, &from) || !arg_number(js, c, 1, len, &to))
		return js_simple(JS_UNKNOWN);
	from = clamp(from, 0, len);
	to = clamp(to, 0, len);
	return from < to ? part(c->self, from, to) : part(c->self, to, from);
}

static struct js_value do_substr(struct js *js, const struct call *c)
{
	double len = c->self->n, from, n;

	if (!arg_number(js, c, 0, 0, &from) || !arg_number(js, c, 1, len, &n))
		return js_simple(JS_UNKNOWN);
	from = clamp(from < 0 ? from + len : from, 0, len);
	return part(c->self, from, clamp(from + n, from, len));
}

static struct js_value do_char_at(struct js *js, const struct call *c)
{
	double at;

	if (!arg_number(js, c, 0, 0, &at))
		return js_simple(JS_UNKNOWN);
	if (at < 0)
		at += c->self->n;
	return at >= 0 && at < c->self->n ? part(c->self, js_whole(at), js_whole(at) + 1) : js_text("");
}

static struct js_value do_char_code(struct js *js, const struct call *c)
{
	double at;

	if (!arg_number(js, c, 0, 0, &at) || at < 0 || at >= c->self->n)
		return js_simple(JS_UNKNOWN);
	return js_number((uint8_t)c->self->s[(size_t)at]);
}

static struct js_value do_concat(struct js *js, const struct call *c)
{
	struct js_value all = *c->self;

	for (size_t i = 0; i < c->n && all.kind == JS_STRING; i++) {
		struct js_value more;

		if (!arg_string(js, c, i, &more))
			return js_simple(JS_UNKNOWN);
		all = js_concat(js, &all, &more);
	}
	return all;
}

static struct js_value replace_text(struct js *js, const struct call *c, bool all)
{
	AUTO_BUF out = BUF_INIT(JS_STRING_MAX);
	struct js_value from, to;
	bool done = false;

	if (c->n < 2 || !arg_string(js, c, 1, &to))
		return js_simple(JS_UNKNOWN);
	if (c->args[0].kind == JS_REGEX)
		return js_regex_replace(js, c->self, &c->args[0], &to);
	if (!arg_string(js, c, 0, &from) || from.n == 0)
		return js_simple(JS_UNKNOWN);
	for (size_t i = 0; i < c->self->n;) {
		bool hit = !done && c->self->n - i >= from.n && memcmp(c->self->s + i, from.s, from.n) == 0;

		buf_add(&out, hit ? to.s : c->self->s + i, hit ? to.n : 1);
		done = done || (hit && !all);
		i += hit ? from.n : 1;
	}
	return js_string(js, buf_str(&out), out.len);
}

static struct js_value do_replace(struct js *js, const struct call *c)
{
	return replace_text(js, c, false);
}

static struct js_value do_replace_all(struct js *js, const struct call *c)
{
	return replace_text(js, c, true);
}

static struct js_value do_split(struct js *js, const struct call *c)
{
	struct js_value by, list, *parts;
	size_t n = 0, start = 0;

	if (c->n == 0 || c->args[0].kind == JS_REGEX || !arg_string(js, c, 0, &by) ||
	    !js_list_new(js, JS_ARRAY, (size_t)c->self->n + 1, &list))
		return js_simple(JS_UNKNOWN);
	parts = list.v;
	for (size_t i = 0; i < c->self->n && by.n == 0; i++)
		parts[n++] = part(c->self, (double)i, (double)i + 1);
	for (size_t i = 0; by.n && i <= c->self->n; i++) {
		bool hit = c->self->n - i >= by.n && memcmp(c->self->s + i, by.s, by.n) == 0;

		if (!hit && i < c->self->n)
			continue;
		parts[n++] = part(c->self, (double)start, (double)i);
		start = i + by.n;
		i += hit ? by.n - 1 : 0;
	}
	list.n = (uint32_t)n;
	parts[n] = js_simple(JS_UNDEFINED);
	return list;
}

static struct js_value change_case(struct js *js, const struct call *c, char first)
{
	struct js_value copy = js_string(js, c->self->s, c->self->n);
	char *s;

	if (copy.kind != JS_STRING)
		return copy;
	s = js_alloc(js, copy.n + 1);
	if (!s)
		return js_simple(JS_UNKNOWN);
	for (uint32_t i = 0; i < copy.n; i++)
		s[i] = (char)(copy.s[i] >= first && copy.s[i] < first + 26 ? copy.s[i] ^ 0x20 : copy.s[i]);
	copy.s = s;
	return copy;
}

static struct js_value do_lower(struct js *js, const struct call *c)
{
	return change_case(js, c, 'A');
}

static struct js_value do_upper(struct js *js, const struct call *c)
{
	return change_case(js, c, 'a');
}

static struct js_value do_trim(struct js *js UNUSED, const struct call *c)
{
	struct js_value v = *c->self;

	while (v.n && (*v.s == ' ' || (*v.s >= '\t' && *v.s <= '\r')))
		v.s++, v.n--;
	while (v.n && (v.s[v.n - 1] == ' ' || (v.s[v.n - 1] >= '\t' && v.s[v.n - 1] <= '\r')))
		v.n--;
	return v;
}

static struct js_value do_self(struct js *js UNUSED, const struct call *c)
{
	return *c->self;
}

static struct js_value do_repeat(struct js *js, const struct call *c)
{
	struct js_value all = js_text("");
	double times;

	if (!arg_number(js, c, 0, 0, &times) || times < 0 || times > 256)
		return js_simple(JS_UNKNOWN);
	for (int i = 0; i < (int)times && all.kind == JS_STRING; i++)
		all = js_concat(js, &all, c->self);
	return all;
}

/* --- methods of arrays ---------------------------------------- */

static struct js_value do_join(struct js *js, const struct call *c)
{
	struct js_value by = js_text(","), all = js_text("");

	if (c->n && c->args[0].kind != JS_UNDEFINED && !arg_string(js, c, 0, &by))
		return js_simple(JS_UNKNOWN);
	for (uint32_t i = 0; i < c->self->n && all.kind == JS_STRING; i++) {
		struct js_value one = js_text("");

		if (c->self->v[i].kind != JS_NULL && c->self->v[i].kind != JS_UNDEFINED &&
		    !js_to_string(js, &c->self->v[i], &one))
			return js_simple(JS_UNKNOWN);
		if (i)
			all = js_concat(js, &all, &by);
		if (all.kind == JS_STRING)
			all = js_concat(js, &all, &one);
	}
	return all;
}

static struct js_value do_reversed(struct js *js, const struct call *c)
{
	struct js_value list;

	if (!js_list_new(js, JS_ARRAY, c->self->n, &list))
		return list;
	for (uint32_t i = 0; i < list.n; i++)
		list.v[i] = c->self->v[list.n - 1 - i];
	return list;
}

/* The array itself is reversed, too: its other references become unknown. */
static struct js_value do_reverse(struct js *js, const struct call *c)
{
	struct js_value list = do_reversed(js, c);

	js_list_spoil(c->self);
	return list;
}

static struct js_value do_change(struct js *js UNUSED, const struct call *c)
{
	js_list_spoil(c->self);
	return js_simple(JS_UNKNOWN);
}

static struct js_value do_array_slice(struct js *js, const struct call *c)
{
	double from, to;

	if (!slice_bounds(js, c, c->self->n, &from, &to))
		return js_simple(JS_UNKNOWN);
	return js_list(js, JS_ARRAY, c->self->v + (size_t)from, to > from ? (size_t)(to - from) : 0);
}

static struct js_value do_array_concat(struct js *js, const struct call *c)
{
	size_t n = c->self->n, at = 0;
	struct js_value list;

	for (size_t i = 0; i < c->n; i++)
		n += c->args[i].kind == JS_ARRAY ? c->args[i].n : 1;
	if (!js_list_new(js, JS_ARRAY, n, &list))
		return list;
	for (; at < c->self->n; at++)
		list.v[at] = c->self->v[at];
	for (size_t i = 0; i < c->n; i++) {
		if (c->args[i].kind != JS_ARRAY)
			list.v[at++] = c->args[i];
		for (uint32_t k = 0; c->args[i].kind == JS_ARRAY && k < c->args[i].n; k++)
			list.v[at++] = c->args[i].v[k];
	}
	return list;
}

static struct js_value do_at(struct js *js, const struct call *c)
{
	double at;

	if (!arg_number(js, c, 0, 0, &at))
		return js_simple(JS_UNKNOWN);
	at = js_whole(at < 0 ? at + c->self->n : at);
	return at >= 0 && at < c->self->n ? c->self->v[(size_t)at] : js_simple(JS_UNDEFINED);
}

static struct js_value do_pop(struct js *js UNUSED, const struct call *c)
{
	struct js_value last = c->self->n ? c->self->v[c->self->n - 1] : js_simple(JS_UNDEFINED);

	js_list_spoil(c->self);
	return last;
}

static struct js_value do_shift(struct js *js UNUSED, const struct call *c)
{
	struct js_value first = c->self->n ? c->self->v[0] : js_simple(JS_UNDEFINED);

	js_list_spoil(c->self);
	return first;
}

/* Usually concatenates the elements.  The callback is not examined, so the result may be something else (JS_MAYBE). */
static struct js_value do_reduce(struct js *js, const struct call *c)
{
	struct js_value nothing = js_text("");
	struct call join = { c->self, &nothing, 1 };
	struct js_value sum = do_join(js, &join);

	sum.flags |= JS_MAYBE;
	return sum;
}

/* Any one of the elements. */
static struct js_value do_any(struct js *js, const struct call *c)
{
	struct js_value any = js_simple(JS_UNKNOWN);

	for (uint32_t i = 0; i < c->self->n && i < 2 * JS_ONE_OF_MAX; i++)
		any = js_join(js, any, c->self->v[i]);
	return any;
}

struct method {
	const char *name;
	struct js_value (*fold)(struct js *js, const struct call *c);
};

static bool run_method(struct js *js, const struct method *table, size_t n_table, const char *name, size_t len,
		       const struct call *c, struct js_value *ret)
{
	for (size_t i = 0; i < n_table; i++) {
		if (strncmp(table[i].name, name, len) == 0 && table[i].name[len] == '\0') {
			*ret = table[i].fold(js, c);
			return true;
		}
	}
	return false;
}

bool js_string_method(struct js *js, const struct js_value *self, const char *name, size_t len,
		      const struct js_value *args, size_t n, struct js_value *ret)
{
	static const struct method methods[] = {
		{ "slice", do_slice },
		{ "substring", do_substring },
		{ "substr", do_substr },
		{ "charAt", do_char_at },
		{ "at", do_char_at },
		{ "charCodeAt", do_char_code },
		{ "codePointAt", do_char_code },
		{ "concat", do_concat },
		{ "replace", do_replace },
		{ "replaceAll", do_replace_all },
		{ "split", do_split },
		{ "toLowerCase", do_lower },
		{ "toUpperCase", do_upper },
		{ "toLocaleLowerCase", do_lower },
		{ "trim", do_trim },
		{ "trimStart", do_trim },
		{ "trimEnd", do_trim },
		{ "toString", do_self },
		{ "valueOf", do_self },
		{ "normalize", do_self },
		{ "repeat", do_repeat },
		{ "toLocaleUpperCase", do_upper },
	};
	struct call c = { self, args, n };

	return run_method(js, methods, ARRAY_LEN(methods), name, len, &c, ret);
}

bool js_array_method(struct js *js, const struct js_value *self, const char *name, size_t len,
		     const struct js_value *args, size_t n, struct js_value *ret)
{
	static const struct method methods[] = {
		{ "join", do_join },         { "reverse", do_reverse },     { "toReversed", do_reversed },
		{ "slice", do_array_slice }, { "concat", do_array_concat }, { "at", do_at },
		{ "pop", do_pop },           { "shift", do_shift },         { "toString", do_join },
		{ "find", do_any },          { "findLast", do_any },        { "values", do_self },
		{ "reduce", do_reduce },     { "push", do_change },         { "unshift", do_change },
		{ "splice", do_change },     { "sort", do_change },         { "fill", do_change },
		{ "copyWithin", do_change },
	};
	struct call c = { self, args, n };

	return js_list_intact(self) && run_method(js, methods, ARRAY_LEN(methods), name, len, &c, ret);
}
