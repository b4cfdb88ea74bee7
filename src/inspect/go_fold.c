/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go: constant folding.  Library functions that only rearrange text are evaluated; all others yield GO_UNKNOWN.  No
 * string grows beyond GO_STRING_MAX.
 */
#include "inspect/go.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static const struct go_value unknown = { .kind = GO_UNKNOWN, .binding = -1 };

static struct go_value text_value(const char *text, size_t len)
{
	return (struct go_value){ .kind = GO_STRING, .fresh = true, .binding = -1, .text = text, .len = (uint32_t)len };
}

struct go_value go_string(struct go *g, const char *text, size_t len)
{
	char *copy;

	if (len > GO_STRING_MAX || !(copy = go_alloc(g, len + 1)))
		return unknown;
	memcpy(copy, text, len);
	return text_value(copy, len);
}

struct go_value go_list(struct go *g, const struct go_value *items, size_t n)
{
	struct go_value v = unknown, *copy;

	if (n > GO_LIST_MAX || !(copy = go_alloc(g, (n + 1) * sizeof(*copy))))
		return unknown;
	if (n)
		memcpy(copy, items, n * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		v.hidden |= items[i].hidden;
	v.kind = GO_LIST;
	v.items = copy;
	v.len = (uint32_t)n;
	return v;
}

struct go_value go_concat(struct go *g, const struct go_value *a, const struct go_value *b)
{
	size_t len = (size_t)a->len + b->len, room;
	struct go_value v;
	char *dst;

	if (a->kind != GO_STRING || b->kind != GO_STRING || len > GO_STRING_MAX)
		return unknown;
	if (g->tail && a->text + a->len == g->tail && g->tail_room >= b->len) {
		memcpy(g->tail, b->text, b->len);
		g->tail += b->len;
		g->tail_room -= b->len;
		v = text_value(a->text, len);
		v.hidden = a->hidden || b->hidden || go_splits_word(a, b);
		return v;
	}
	room = max_u64(2 * len, 32);
	dst = go_alloc(g, room);
	if (!dst)
		return unknown;
	memcpy(dst, a->text, a->len);
	memcpy(dst + a->len, b->text, b->len);
	g->tail = dst + len;
	g->tail_room = room - len;
	v = text_value(dst, len);
	v.hidden = a->hidden || b->hidden || go_splits_word(a, b);
	return v;
}

static struct go_value take(struct go *g, struct buf *b)
{
	struct go_value v = b->full || b->no_memory ? unknown : go_string(g, buf_str(b), b->len);

	buf_release(b);
	return v;
}

static void add_rune(struct buf *b, int64_t c)
{
	char utf8[4];

	if (c < 0x80) {
		utf8[0] = (char)c;
		(void)buf_add(b, utf8, 1);
	} else if (c < 0x800) {
		utf8[0] = (char)(0xc0 | c >> 6);
		utf8[1] = (char)(0x80 | (c & 0x3f));
		(void)buf_add(b, utf8, 2);
	} else if (c < 0x10000) {
		utf8[0] = (char)(0xe0 | c >> 12);
		utf8[1] = (char)(0x80 | (c >> 6 & 0x3f));
		utf8[2] = (char)(0x80 | (c & 0x3f));
		(void)buf_add(b, utf8, 3);
	}
}

struct go_value go_fold_bytes(struct go *g, const struct go_value *list, bool runes)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);

	if (list->kind == GO_STRING)
		return *list;
	if (list->kind == GO_INT) {
		add_rune(&b, list->number);
		return take(g, &b);
	}
	if (list->kind != GO_LIST)
		return unknown;
	for (uint32_t i = 0; i < list->len; i++) {
		char byte = (char)list->items[i].number;

		if (list->items[i].kind != GO_INT) {
			buf_release(&b);
			return unknown;
		}
		if (runes)
			add_rune(&b, list->items[i].number);
		else
			(void)buf_add(&b, &byte, 1);
	}
	return take(g, &b);
}

struct go_value go_fold_index(const struct go_value *operand, const struct go_value *index)
{
	struct go_value v = unknown;

	if (index->kind != GO_INT || index->number < 0 || index->number >= operand->len)
		return unknown;
	if (operand->kind == GO_LIST)
		return operand->items[index->number];
	if (operand->kind != GO_STRING)
		return unknown;
	v.kind = GO_INT;
	v.number = (unsigned char)operand->text[index->number];
	return v;
}

/* children: the operand, then start, end and capacity as far as present. */
struct go_value go_fold_slice(struct go *g, const struct go_value *children, size_t n)
{
	const struct go_value *operand = &children[0];
	int64_t from = 0, to = operand->len;

	for (size_t i = 1; i < n; i++) {
		if (children[i].kind != GO_INT)
			return unknown;
		if (children[i].field == GO_FIELD_START)
			from = children[i].number;
		else if (children[i].field == GO_FIELD_END)
			to = children[i].number;
	}
	if (from < 0 || to > operand->len || from > to)
		return unknown;
	if (operand->kind == GO_STRING) {
		struct go_value v = text_value(operand->text + from, (size_t)(to - from));

		v.hidden = operand->hidden || operand->fresh;
		return v;
	}
	return operand->kind == GO_LIST ? go_list(g, operand->items + from, (size_t)(to - from)) : unknown;
}

/* a: the n arguments of a library function. */
typedef struct go_value fold_function(struct go *g, const struct go_value *a, size_t n);

static bool are_strings(const struct go_value *a, size_t n, size_t wanted)
{
	if (n < wanted)
		return false;
	for (size_t i = 0; i < wanted; i++)
		if (a[i].kind != GO_STRING)
			return false;
	return true;
}

static struct go_value fold_same(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	return n && a[0].kind == GO_STRING ? a[0] : unknown;
}

static struct go_value fold_join(struct go *g, const struct go_value *a, size_t n)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);

	if (n < 2 || a[0].kind != GO_LIST || a[1].kind != GO_STRING || !are_strings(a[0].items, a[0].len, a[0].len))
		return unknown;
	for (uint32_t i = 0; i < a[0].len; i++) {
		if (i)
			(void)buf_add(&b, a[1].text, a[1].len);
		(void)buf_add(&b, a[0].items[i].text, a[0].items[i].len);
	}
	return take(g, &b);
}

struct go_value go_join_path(struct go *g, const struct go_value *a, size_t n)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);

	if (!n || !are_strings(a, n, n))
		return unknown;
	for (size_t i = 0; i < n; i++) {
		if (b.len && a[i].len)
			(void)buf_add(&b, "/", 1);
		(void)buf_add(&b, a[i].text, a[i].len);
	}
	return take(g, &b);
}

static struct go_value replace(struct go *g, const struct go_value *a, int64_t count)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);
	const char *at = a[0].text, *end = at + a[0].len;

	while (at < end) {
		const char *hit = a[1].len && count ? memmem(at, (size_t)(end - at), a[1].text, a[1].len) : NULL;

		(void)buf_add(&b, at, (size_t)((hit ? hit : end) - at));
		if (!hit)
			break;
		(void)buf_add(&b, a[2].text, a[2].len);
		at = hit + a[1].len;
		count--;
	}
	return take(g, &b);
}

static struct go_value fold_replace_all(struct go *g, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 3) ? replace(g, a, -1) : unknown;
}

static struct go_value fold_replace(struct go *g, const struct go_value *a, size_t n)
{
	return n == 4 && are_strings(a, n, 3) && a[3].kind == GO_INT ? replace(g, a, a[3].number) : unknown;
}

static struct go_value fold_repeat(struct go *g, const struct go_value *a, size_t n)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);

	if (n != 2 || a[0].kind != GO_STRING || a[1].kind != GO_INT || a[1].number > (int64_t)GO_STRING_MAX)
		return unknown;
	for (int64_t i = 0; i < a[1].number && a[0].len && !b.full; i++)
		(void)buf_add(&b, a[0].text, a[0].len);
	return take(g, &b);
}

static struct go_value change_case(struct go *g, const struct go_value *a, size_t n, int (*change)(int))
{
	struct go_value v = n ? a[0] : unknown;
	char *copy;

	if (v.kind != GO_STRING || !(copy = go_alloc(g, v.len + 1u)))
		return unknown;
	for (uint32_t i = 0; i < v.len; i++)
		copy[i] = (char)change((unsigned char)v.text[i]);
	return text_value(copy, v.len);
}

static struct go_value fold_lower(struct go *g, const struct go_value *a, size_t n)
{
	return change_case(g, a, n, tolower);
}

static struct go_value fold_upper(struct go *g, const struct go_value *a, size_t n)
{
	return change_case(g, a, n, toupper);
}

static struct go_value trim(const struct go_value *s, const char *set, size_t n_set, bool left, bool right)
{
	size_t from = 0, to = s->len;

	while (left && from < to && memchr(set, s->text[from], n_set))
		from++;
	while (right && to > from && memchr(set, s->text[to - 1], n_set))
		to--;
	return text_value(s->text + from, to - from);
}

static struct go_value fold_trim_space(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 1) ? trim(&a[0], " \t\r\n\v\f", 6, true, true) : unknown;
}

static struct go_value fold_trim(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 2) ? trim(&a[0], a[1].text, a[1].len, true, true) : unknown;
}

static struct go_value fold_trim_left(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 2) ? trim(&a[0], a[1].text, a[1].len, true, false) : unknown;
}

static struct go_value fold_trim_right(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 2) ? trim(&a[0], a[1].text, a[1].len, false, true) : unknown;
}

static struct go_value fold_trim_prefix(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	if (!are_strings(a, n, 2))
		return unknown;
	if (a[0].len < a[1].len || memcmp(a[0].text, a[1].text, a[1].len) != 0)
		return a[0];
	return text_value(a[0].text + a[1].len, a[0].len - a[1].len);
}

static struct go_value fold_trim_suffix(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	if (!are_strings(a, n, 2))
		return unknown;
	if (a[0].len < a[1].len || memcmp(a[0].text + a[0].len - a[1].len, a[1].text, a[1].len) != 0)
		return a[0];
	return text_value(a[0].text, a[0].len - a[1].len);
}

static struct go_value split(struct go *g, const struct go_value *s, const char *by, size_t by_len, bool drop_empty)
{
	struct go_value items[64];
	const char *at = s->text, *end = at + s->len;
	size_t n = 0;

	while (n < ARRAY_LEN(items)) {
		const char *hit = by_len ? memmem(at, (size_t)(end - at), by, by_len) : at < end ? at + 1 : NULL;
		size_t len = (size_t)((hit ? hit : end) - at);

		if (len || !drop_empty)
			items[n++] = text_value(at, len);
		if (!hit)
			return go_list(g, items, n);
		at = hit + by_len;
	}
	return unknown;
}

static struct go_value fold_split(struct go *g, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 2) ? split(g, &a[0], a[1].text, a[1].len, false) : unknown;
}

static struct go_value fold_fields(struct go *g, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 1) ? split(g, &a[0], " ", 1, true) : unknown;
}

static void add_number(struct buf *b, char verb, int64_t number)
{
	const char *format = verb == 'x' ? "%llx" : verb == 'X' ? "%llX" : verb == 'o' ? "%llo" : "%lld";
	char digits[32];

	if (verb == 'c') {
		add_rune(b, number);
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(digits, sizeof(digits), format, (long long)number);
#pragma GCC diagnostic pop
	(void)buf_adds(b, digits);
}

static bool add_value(struct buf *b, char verb, const struct go_value *v)
{
	if (v->kind == GO_INT)
		add_number(b, verb, v->number);
	else if (v->kind == GO_STRING && (verb == 's' || verb == 'v'))
		(void)buf_add(b, v->text, v->len);
	else
		return false;
	return true;
}

static struct go_value fold_sprintf(struct go *g, const struct go_value *a, size_t n)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);
	size_t next = 1;

	if (!are_strings(a, n, 1))
		return unknown;
	for (uint32_t i = 0; i < a[0].len; i++) {
		char c = a[0].text[i];

		if (c != '%') {
			(void)buf_add(&b, &c, 1);
			continue;
		}
		c = ++i < a[0].len ? a[0].text[i] : '\0';
		if (c == '%') {
			(void)buf_add(&b, &c, 1);
		} else if (next >= n || !add_value(&b, c, &a[next++])) {
			buf_release(&b);
			return unknown;
		}
	}
	return take(g, &b);
}

static struct go_value fold_sprint(struct go *g, const struct go_value *a, size_t n)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);

	for (size_t i = 0; i < n; i++)
		if (!add_value(&b, 'v', &a[i])) {
			buf_release(&b);
			return unknown;
		}
	return take(g, &b);
}

static struct go_value fold_unquote(struct go *g, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 1) ? go_unquote(g, a[0].text, a[0].len) : unknown;
}

/* strings.NewReplacer: the value is the list of its arguments. */
static struct go_value fold_pairs(struct go *g, const struct go_value *a, size_t n)
{
	return n % 2 == 0 && are_strings(a, n, n) ? go_list(g, a, n) : unknown;
}

static struct go_value fold_hex(struct go *g, const struct go_value *a, size_t n)
{
	struct buf b = BUF_INIT(GO_STRING_MAX);

	if (!are_strings(a, n, 1))
		return unknown;
	for (uint32_t i = 0; i + 1 < a[0].len; i += 2) {
		char pair[3] = { a[0].text[i], a[0].text[i + 1], '\0' }, *end;
		char byte = (char)strtol(pair, &end, 16);

		if (end != pair + 2) {
			buf_release(&b);
			return unknown;
		}
		(void)buf_add(&b, &byte, 1);
	}
	return take(g, &b);
}

static struct go_value fold_base64(struct go *g, const struct go_value *a, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct buf b = BUF_INIT(GO_STRING_MAX);
	uint32_t bits = 0, have = 0;

	if (!are_strings(a, n, 1))
		return unknown;
	for (uint32_t i = 0; i < a[0].len && a[0].text[i] != '='; i++) {
		char c = a[0].text[i] == '-' ? '+' : a[0].text[i] == '_' ? '/' : a[0].text[i];
		const char *at = memchr(digits, c, 64);

		if (!at)
			continue;
		bits = (bits << 6 | (uint32_t)(at - digits)) & 0xffffff;
		have += 6;
		if (have >= 8) {
			char byte = (char)(bits >> (have -= 8));

			(void)buf_add(&b, &byte, 1);
		}
	}
	return take(g, &b);
}

/* The home folder as "~": precise enough to see which files a program names. */
static struct go_value fold_home(struct go *g UNUSED, const struct go_value *a UNUSED, size_t n UNUSED)
{
	return text_value("~", 1);
}

static struct go_value fold_config(struct go *g UNUSED, const struct go_value *a UNUSED, size_t n UNUSED)
{
	return text_value("~/.config", 9);
}

static struct go_value fold_temp(struct go *g UNUSED, const struct go_value *a UNUSED, size_t n UNUSED)
{
	return text_value("/tmp", 4);
}

static struct go_value fold_getenv(struct go *g UNUSED, const struct go_value *a, size_t n)
{
	return are_strings(a, n, 1) && go_is(&a[0], "HOME") ? text_value("~", 1) : unknown;
}

/* Sorted by name for binary search. */
static const struct fold_row {
	const char *name;
	fold_function *fold;
} fold_rows[] = {
	{ "encoding/base64.RawStdEncoding.DecodeString", fold_base64 },
	{ "encoding/base64.RawURLEncoding.DecodeString", fold_base64 },
	{ "encoding/base64.StdEncoding.DecodeString", fold_base64 },
	{ "encoding/base64.URLEncoding.DecodeString", fold_base64 },
	{ "encoding/hex.DecodeString", fold_hex },
	{ "fmt.Sprint", fold_sprint },
	{ "fmt.Sprintf", fold_sprintf },
	{ "io.ReadAll", fold_same },
	{ "io/fs.Sub", go_join_path },
	{ "os.DirFS", fold_same }, /* its value is the path of the folder */
	{ "os.ExpandEnv", fold_same },
	{ "os.Getenv", fold_getenv },
	{ "os.LookupEnv", fold_getenv },
	{ "os.OpenRoot", fold_same },
	{ "os.TempDir", fold_temp },
	{ "os.UserConfigDir", fold_config },
	{ "os.UserHomeDir", fold_home },
	{ "os/exec.LookPath", fold_same },
	{ "path.Clean", fold_same },
	{ "path.Join", go_join_path },
	{ "path/filepath.Abs", fold_same },
	{ "path/filepath.Clean", fold_same },
	{ "path/filepath.FromSlash", fold_same },
	{ "path/filepath.Join", go_join_path },
	{ "path/filepath.ToSlash", fold_same },
	{ "strconv.Unquote", fold_unquote },
	{ "strings.Clone", fold_same },
	{ "strings.Fields", fold_fields },
	{ "strings.Join", fold_join },
	{ "strings.NewBuffer", fold_same },
	{ "strings.NewBufferString", fold_same },
	{ "strings.NewReader", fold_same },
	{ "strings.NewReplacer", fold_pairs },
	{ "strings.Repeat", fold_repeat },
	{ "strings.Replace", fold_replace },
	{ "strings.ReplaceAll", fold_replace_all },
	{ "strings.Split", fold_split },
	{ "strings.ToLower", fold_lower },
	{ "strings.ToUpper", fold_upper },
	{ "strings.Trim", fold_trim },
	{ "strings.TrimLeft", fold_trim_left },
	{ "strings.TrimPrefix", fold_trim_prefix },
	{ "strings.TrimRight", fold_trim_right },
	{ "strings.TrimSpace", fold_trim_space },
	{ "strings.TrimSuffix", fold_trim_suffix },
};

static int compare_row(const void *key, const void *row)
{
	const struct go_value *name = key;
	const char *other = ((const struct fold_row *)row)->name;
	size_t n = strlen(other);
	int order = memcmp(name->text, other, min_u64(name->len, n));

	return order ? order : name->len < n ? -1 : name->len > n;
}

/* Bytes are strings here, so package bytes uses the functions of package strings. */
static struct go_value as_strings(struct go *g, const struct go_value *function)
{
	struct go_value v = *function;
	char *name;

	if (v.len < 6 || v.len > 64 || memcmp(v.text, "bytes.", 6) != 0 || !(name = go_alloc(g, v.len + 2u)))
		return v;
	memcpy(name, "strings.", 8);
	memcpy(name + 8, v.text + 6, v.len - 6);
	v.text = name;
	v.len += 2;
	return v;
}

struct go_value go_fold_call(struct go *g, const struct go_value *function, const struct go_value *arguments)
{
	const struct fold_row *row;
	struct go_value name;

	if (function->kind != GO_MEMBER || arguments->kind != GO_LIST)
		return unknown;
	name = as_strings(g, function);
	row = bsearch(&name, fold_rows, ARRAY_LEN(fold_rows), sizeof(fold_rows[0]), compare_row);
	return row ? row->fold(g, arguments->items, arguments->len) : unknown;
}

static struct go_value replace_pairs(struct go *g, const struct go_value *pairs, const struct go_value *text)
{
	struct go_value v = *text;

	/*
	 * Replaces pair by pair, not in one pass as Go does; the result differs only if a pair replaces what an earlier
	 * one inserted.
	 */
	for (uint32_t i = 0; i + 1 < pairs->len && v.kind == GO_STRING; i += 2) {
		struct go_value a[3] = { v, pairs->items[i], pairs->items[i + 1] };

		v = fold_replace_all(g, a, 3);
	}
	return v;
}

struct go_value go_fold_method(struct go *g, const struct go_value *method, const struct go_value *arguments)
{
	const struct go_value *receiver = method->receiver, *a = arguments->items;
	struct go_value piece = unknown;
	bool writes = go_is(method, "Write") || go_is(method, "WriteString") || go_is(method, "WriteByte") ||
		      go_is(method, "WriteRune");

	if (receiver->kind == GO_UNKNOWN)
		return unknown;
	if (receiver->kind == GO_STRING && (go_is(method, "String") || go_is(method, "Bytes")))
		return *receiver;
	if (arguments->len != 1)
		return unknown;
	if (receiver->kind == GO_LIST && go_is(method, "Replace") &&
	    are_strings(receiver->items, receiver->len, receiver->len))
		return replace_pairs(g, receiver, a);
	if (!writes || receiver->kind != GO_STRING || method->binding < 0 || (size_t)method->binding >= g->n_bindings)
		return unknown;
	piece = go_fold_bytes(g, &a[0], true);
	piece = go_concat(g, &g->binding[method->binding].value, &piece);
	piece.fresh = false;
	g->binding[method->binding].value = piece;
	return unknown;
}
