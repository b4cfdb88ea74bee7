/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings computed from strings: decoders for the usual encodings, and Python's three ways to insert values into a
 * string.
 */
#include "inspect/python.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

bool py_atom_text(const struct py_atom *a, struct buf *out)
{
	switch (a->kind) {
	case PY_STR:
	case PY_PART:
		buf_add(out, a->text, a->len);
		return !out->full;
	case PY_INT:
		return buf_addf(out, "%lld", (long long)a->number);
	default:
		return false;
	}
}

/* ---- decoders ------------------------------------------------------------------------------------------- */

static int digit_of(char c, const char *alphabet)
{
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (int)(at - alphabet) : -1;
}

/* bits per digit: 6 for base64, 5 for base32, 4 for base16. */
static bool decode_bits(const char *s, size_t len, const char *alphabet, unsigned bits, struct buf *out)
{
	uint32_t held = 0;
	unsigned n = 0;

	for (size_t i = 0; i < len && s[i] != '='; i++) {
		int v = digit_of(s[i], alphabet);

		if (v < 0 && bits == 6)
			v = s[i] == '-' ? 62 : s[i] == '_' ? 63 : -1;
		if (v < 0 && isspace((unsigned char)s[i]))
			continue;
		if (v < 0)
			return false;
		held = held << bits | (uint32_t)v;
		n += bits;
		if (n >= 8) {
			char c = (char)(held >> (n - 8));

			buf_add(out, &c, 1);
			n -= 8;
		}
	}
	return !out->full;
}

static bool decode_base64(const char *s, size_t len, struct buf *out)
{
	return decode_bits(s, len, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6, out);
}

static bool decode_base32(const char *s, size_t len, struct buf *out)
{
	return decode_bits(s, len, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, out);
}

static bool decode_hex(const char *s, size_t len, struct buf *out)
{
	AUTO_BUF upper = BUF_INIT(PY_STRING_MAX);

	for (size_t i = 0; i < len; i++) {
		char c = (char)toupper((unsigned char)s[i]);

		buf_add(&upper, &c, 1);
	}
	return decode_bits(buf_str(&upper), upper.len, "0123456789ABCDEF", 4, out);
}

static bool decode_rot13(const char *s, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		char c = s[i], lower = (char)(c | 0x20);

		if (lower >= 'a' && lower <= 'z')
			c = (char)(c + (lower < 'n' ? 13 : -13));
		buf_add(out, &c, 1);
	}
	return !out->full;
}

static bool decode_plain(const char *s, size_t len, struct buf *out)
{
	return buf_add(out, s, len) == len;
}

static bool decode_latin1(const char *s, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++)
		py_put_code(out, (unsigned char)s[i], false);
	return !out->full;
}

static bool decode_percent(const char *s, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '%' && i + 2 < len && isxdigit((unsigned char)s[i + 1]) &&
		    isxdigit((unsigned char)s[i + 2])) {
			decode_hex(s + i + 1, 2, out);
			i += 2;
		} else {
			buf_add(out, s + i, 1);
		}
	}
	return !out->full;
}

/* In UTF-16 and UTF-32 only ASCII matters: removes the zero bytes. */
static bool decode_wide(const char *s, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] && (unsigned char)s[i] < 0x80)
			buf_add(out, s + i, 1);
	return !out->full;
}

struct codec {
	const char *name; /* lower case letters and digits only */
	bool (*decode)(const char *s, size_t len, struct buf *out);
};

static const struct codec codecs[] = {
	{ "base64", decode_base64 },   { "b64", decode_base64 },         { "base32", decode_base32 },
	{ "hex", decode_hex },         { "base16", decode_hex },         { "rot13", decode_rot13 },
	{ "rot", decode_rot13 },       { "utf8", decode_plain },         { "ascii", decode_plain },
	{ "utf16", decode_wide },      { "utf16le", decode_wide },       { "utf16be", decode_wide },
	{ "utf32", decode_wide },      { "latin1", decode_latin1 },      { "iso88591", decode_latin1 },
	{ "percent", decode_percent }, { "cp1252", decode_latin1 },      { "utf8sig", decode_plain },
	{ "hexcodec", decode_hex },    { "base64codec", decode_base64 }, { "unicodeescape", NULL },
};

bool py_decode_text(const char *codec, size_t codec_len, const struct py_atom *in, struct buf *out)
{
	char name[24];
	size_t n = 0;

	for (size_t i = 0; i < codec_len && n < sizeof(name) - 1; i++)
		if (isalnum((unsigned char)codec[i]))
			name[n++] = (char)tolower((unsigned char)codec[i]);
	name[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (strcmp(codecs[i].name, name) == 0)
			return codecs[i].decode && codecs[i].decode(in->text, in->len, out);
	return false;
}

/* ---- values into strings -------------------------------------------------------------------------------- */

/* Appends the string of a value; an unknown one becomes '*' and makes the result known in part. */
static void put_value(const struct py *p, uint32_t set, struct buf *out, bool *part)
{
	const struct py_set *s = &p->set[set];

	if (s->n != 1 || s->open || !py_atom_text(&p->atom[s->atom[0]], out)) {
		buf_adds(out, "*");
		*part = true;
	} else if (p->atom[s->atom[0]].kind == PY_PART) {
		*part = true;
	}
}

static void put_character(const struct py *p, uint32_t set, struct buf *out, bool *part)
{
	const struct py_atom *code = py_only(p, set, PY_INT);

	if (code && code->number >= 0 && code->number < 0x110000)
		py_put_code(out, (uint32_t)code->number, false);
	else
		put_value(p, set, out, part);
}

bool py_percent(struct py *p, const struct py_atom *format, uint32_t args, struct buf *out, bool *part)
{
	const struct py_atom *tuple = py_only(p, args, PY_LIST);
	uint32_t n = 0;

	for (uint32_t i = 0; i < format->len; i++) {
		uint32_t value;

		if (format->text[i] != '%' || i + 1 == format->len) {
			buf_add(out, format->text + i, 1);
			continue;
		}
		if (format->text[++i] == '%') {
			buf_adds(out, "%");
			continue;
		}
		value = !tuple ? (n == 0 ? args : PY_UNKNOWN) : n < tuple->len ? tuple->item[n] : PY_UNKNOWN;
		n++;
		if (format->text[i] == 'c')
			put_character(p, value, out, part);
		else if (format->text[i] == 's' || format->text[i] == 'd' || format->text[i] == 'i')
			put_value(p, value, out, part);
		else
			return false; /* widths, names, other conversions are not supported */
	}
	return !out->full && !out->no_memory;
}

/* The argument to which {}, {0} or {name} refers. */
static uint32_t field_value(const struct py *p, const struct py_args *a, const char *field, size_t len, unsigned *next)
{
	char name[32];
	uint32_t keyword;
	size_t digits = 0;

	if (len == 0)
		return py_arg_value(p, a, (*next)++);
	while (digits < len && isdigit((unsigned char)field[digits]))
		digits++;
	if (len >= sizeof(name))
		return PY_UNKNOWN;
	memcpy(name, field, len);
	name[len] = '\0';
	if (digits == len)
		return len > 3 ? PY_UNKNOWN : py_arg_value(p, a, (unsigned)atoi(name));
	keyword = py_keyword(p, a->call, name);
	return keyword == PY_NONE ? PY_UNKNOWN : p->node[keyword].value;
}

bool py_format(struct py *p, const struct py_args *a, const struct py_atom *format, struct buf *out, bool *part)
{
	const char *s = format->text;
	unsigned next = 0;

	for (uint32_t i = 0; i < format->len; i++) {
		const char *close;
		size_t len;
		bool character;

		if ((s[i] == '{' || s[i] == '}') && i + 1 < format->len && s[i + 1] == s[i]) {
			buf_add(out, s + i++, 1);
			continue;
		}
		if (s[i] != '{') {
			buf_add(out, s + i, 1);
			continue;
		}
		close = memchr(s + i, '}', format->len - i);
		if (!close)
			return false;
		len = (size_t)(close - (s + i)) - 1;
		character = len >= 2 && memcmp(close - 2, ":c", 2) == 0;
		(character ? put_character
			   : put_value)(p, field_value(p, a, s + i + 1, character ? len - 2 : len, &next), out, part);
		i += (uint32_t)len + 1;
	}
	return !out->full && !out->no_memory;
}
