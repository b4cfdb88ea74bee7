/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders for encoded strings: escapes, base64, hex, percent signs, and replacements by simple patterns. */
#include "inspect/javascript.h"

#include <string.h>

#include "base/buf.h"

size_t js_utf8(char *dst, uint32_t code)
{
	if (code < 0x80) {
		dst[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		dst[0] = (char)(0xc0 | code >> 6);
		dst[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		dst[0] = (char)(0xe0 | code >> 12);
		dst[1] = (char)(0x80 | (code >> 6 & 0x3f));
		dst[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	dst[0] = (char)(0xf0 | (code >> 18 & 7));
	dst[1] = (char)(0x80 | (code >> 12 & 0x3f));
	dst[2] = (char)(0x80 | (code >> 6 & 0x3f));
	dst[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads up to max hex digits; returns how many there are. */
static size_t hex_number(const char *s, const char *end, size_t max, uint32_t *ret)
{
	size_t n = 0;

	*ret = 0;
	while (n < max && s + n < end && hex_digit(s[n]) >= 0)
		*ret = *ret << 4 | (uint32_t)hex_digit(s[n++]);
	return n;
}

/* --- escapes in literals ---------------------------------------- */

/* \u0041, \u{41}, surrogate pairs.  s is after the u; returns the end of the escape, NULL if it is malformed. */
static const char *unicode_escape(const char *s, const char *end, uint32_t *ret)
{
	uint32_t low;

	if (s < end && *s == '{') {
		size_t n = hex_number(s + 1, end, 8, ret);

		s += 1 + n;
		if (n == 0 || *ret > 0x10ffff || s >= end || *s != '}')
			return NULL;
		return s + 1;
	}
	if (hex_number(s, end, 4, ret) != 4)
		return NULL;
	s += 4;
	if (*ret >= 0xd800 && *ret < 0xdc00 && end - s >= 6 && s[0] == '\\' && s[1] == 'u' &&
	    hex_number(s + 2, end, 4, &low) == 4 && low >= 0xdc00 && low < 0xe000) {
		*ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
		s += 6;
	}
	return s;
}

static const char *octal_escape(const char *s, const char *end, uint32_t *ret)
{
	const char *start = s;

	for (*ret = 0; s < end && s - start < 3 && *s >= '0' && *s <= '7' && *ret * 8 + (uint32_t)(*s - '0') < 256; s++)
		*ret = *ret * 8 + (uint32_t)(*s - '0');
	return s;
}

/* Decodes one escape; s is after the backslash.  Returns its end and appends the character. */
static const char *one_escape(const char *s, const char *end, char *dst, size_t *n)
{
	static const char from[] = "nrtbvf", to[] = "\n\r\t\b\v\f";
	const char *hit, *after;
	uint32_t code;

	*n = 0;
	if (*s == '\n')
		return s + 1;
	if (*s == ' ' && s + 1 < end && s[1] == '\n') /* CRLF after the bytes pass */
		return s + 2;
	if ((unsigned char)*s == 0xe2 && end - s >= 3 && (unsigned char)s[1] == 0x80 &&
	    ((unsigned char)s[2] & 0xfe) == 0xa8)
		return s + 3;
	if (*s == 'x' && hex_number(s + 1, end, 2, &code) == 2) {
		*n = js_utf8(dst, code);
		return s + 3;
	}
	if (*s == 'u' && (after = unicode_escape(s + 1, end, &code))) {
		*n = js_utf8(dst, code);
		return after;
	}
	if (*s >= '0' && *s <= '7') {
		after = octal_escape(s, end, &code);
		*n = js_utf8(dst, code);
		return after;
	}
	hit = *s ? strchr(from, *s) : NULL;
	dst[0] = hit ? to[hit - from] : *s;
	*n = 1;
	return s + 1;
}

/* The value of text[start..end), the inside of a literal. */
struct js_value js_literal(struct js *js, uint32_t start, uint32_t end)
{
	const char *s = js->text + start, *stop = js->text + end;
	char *dst;
	size_t n = 0;

	if (end <= start)
		return js_text("");
	if (end - start > JS_STRING_MAX)
		return js_simple(JS_UNKNOWN);
	if (!memchr(s, '\\', end - start)) /* the source lives longer than the values */
		return (struct js_value){ .kind = JS_STRING, .n = end - start, .s = s };
	dst = js_alloc(js, 4 * (size_t)(end - start) + 1);
	if (!dst)
		return js_simple(JS_UNKNOWN);
	while (s < stop) {
		size_t more;

		if (*s != '\\' || s + 1 >= stop) {
			dst[n++] = *s++;
			continue;
		}
		s = one_escape(s + 1, stop, dst + n, &more);
		n += more;
	}
	return (struct js_value){ .kind = JS_STRING, .n = (uint32_t)n, .s = dst };
}

/* --- decoders ---------------------------------------- */

static int base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *hit;

	if (c == '-')
		c = '+';
	if (c == '_')
		c = '/';
	hit = c ? strchr(digits, c) : NULL;
	return hit ? (int)(hit - digits) : -1;
}

static void decode_base64(const struct js_value *text, struct buf *out)
{
	uint32_t bits = 0, have = 0;

	for (uint32_t i = 0; i < text->n && text->s[i] != '='; i++) {
		int digit = base64_digit(text->s[i]);

		if (digit < 0)
			continue;
		bits = bits << 6 | (uint32_t)digit;
		have += 6;
		if (have >= 8) {
			char byte = (char)(bits >> (have - 8));

			buf_add(out, &byte, 1);
			have -= 8;
		}
	}
}

static void decode_hex(const struct js_value *text, struct buf *out)
{
	for (uint32_t i = 0; i + 1 < text->n; i += 2) {
		int high = hex_digit(text->s[i]), low = hex_digit(text->s[i + 1]);
		char byte;

		if (high < 0 || low < 0)
			break;
		byte = (char)(high << 4 | low);
		buf_add(out, &byte, 1);
	}
}

/* %41 and, for unescape(), %u0041. */
static void decode_percent(const struct js_value *text, struct buf *out)
{
	const char *s = text->s, *end = s + text->n;

	while (s < end) {
		char dst[4];
		uint32_t code;

		if (*s == '%' && hex_number(s + 1, end, 2, &code) == 2) {
			dst[0] = (char)code;
			buf_add(out, dst, 1);
			s += 3;
		} else if (*s == '%' && end - s >= 6 && s[1] == 'u' && hex_number(s + 2, end, 4, &code) == 4) {
			buf_add(out, dst, js_utf8(dst, code));
			s += 6;
		} else {
			buf_add(out, s++, 1);
		}
	}
}

static void decode_nothing(const struct js_value *text, struct buf *out)
{
	buf_add(out, text->s, text->n);
}

struct js_value js_decode(struct js *js, const char *how, const struct js_value *text)
{
	static const struct {
		const char *how;
		void (*decode)(const struct js_value *text, struct buf *out);
	} decoders[] = {
		{ "base64", decode_base64 },   { "base64url", decode_base64 }, { "hex", decode_hex },
		{ "percent", decode_percent }, { "utf8", decode_nothing },     { "utf-8", decode_nothing },
		{ "latin1", decode_nothing },  { "ascii", decode_nothing },    { "binary", decode_nothing },
	};
	AUTO_BUF out = BUF_INIT(JS_STRING_MAX);

	for (size_t i = 0; i < ARRAY_LEN(decoders); i++) {
		if (strcmp(how, decoders[i].how) == 0) {
			decoders[i].decode(text, &out);
			return js_string(js, buf_str(&out), out.len);
		}
	}
	return js_simple(JS_UNKNOWN);
}

/* --- replace() by a simple pattern ---------------------------------------- */

/* A pattern of one element: a literal text, or a set of characters, optionally repeated. */
struct pattern {
	char text[64];
	size_t n;
	bool set[256], is_set, repeated, global, ignore_case;
};

static void add_class(struct pattern *p, char name)
{
	for (unsigned c = 1; c < 128; c++) {
		bool digit = c >= '0' && c <= '9', word = digit || (c | 0x20) - 'a' < 26u || c == '_';
		bool space = c == ' ' || (c >= '\t' && c <= '\r');

		p->set[c] |= name == '.' || (name == 'd' && digit) || (name == 'D' && !digit) ||
			     (name == 'w' && word) || (name == 'W' && !word) || (name == 's' && space) ||
			     (name == 'S' && !space);
	}
	p->is_set = true;
}

static bool parse_set(struct pattern *p, const char **at, const char *end)
{
	const char *s = *at;
	bool negated = s < end && *s == '^';

	for (s += negated; s < end && *s != ']'; s++) {
		if (*s == '\\' && s + 1 < end) {
			if (strchr("dDwWsS", *++s))
				add_class(p, *s);
			else
				p->set[(uint8_t)*s] = true;
		} else if (s + 2 < end && s[1] == '-' && s[2] != ']') {
			for (unsigned c = (uint8_t)*s; c <= (uint8_t)s[2]; c++)
				p->set[c] = true;
			s += 2;
		} else {
			p->set[(uint8_t)*s] = true;
		}
	}
	for (unsigned c = 0; negated && c < 256; c++)
		p->set[c] = !p->set[c];
	p->is_set = true;
	*at = s + 1;
	return s < end;
}

static bool parse_pattern(const struct js_value *regex, struct pattern *p)
{
	const char *s = regex->s + 1, *end = s + regex->n - 1;

	while (end > s && *end != '/')
		end--;
	for (const char *flag = end + 1; flag < regex->s + regex->n; flag++) {
		p->global |= *flag == 'g';
		p->ignore_case |= *flag == 'i';
	}
	if (p->ignore_case)
		return false;
	while (s < end) {
		if (p->is_set && (*s != '+' || s + 1 != end))
			return false;
		if (*s == '+' && p->is_set) {
			p->repeated = true;
			s++;
		} else if (*s == '[' && p->n == 0) {
			s++;
			if (!parse_set(p, &s, end))
				return false;
		} else if ((*s == '.' && p->n == 0) ||
			   (*s == '\\' && s + 1 < end && p->n == 0 && strchr("dDwWsS", s[1]))) {
			add_class(p, *s == '.' ? '.' : s[1]);
			s += *s == '.' ? 1 : 2;
		} else if (strchr("^$*+?()[]{}|.", *s) || p->n == sizeof(p->text)) {
			return false;
		} else {
			s += *s == '\\' && s + 1 < end;
			p->text[p->n++] = *s++;
		}
	}
	return p->n || p->is_set;
}

static size_t match_at(const struct pattern *p, const char *s, size_t left)
{
	size_t n = 0;

	if (!p->is_set)
		return left >= p->n && memcmp(s, p->text, p->n) == 0 ? p->n : 0;
	while (n < left && p->set[(uint8_t)s[n]] && (n == 0 || p->repeated))
		n++;
	return n;
}

struct js_value js_regex_replace(struct js *js, const struct js_value *self, const struct js_value *regex,
				 const struct js_value *with)
{
	AUTO_BUF out = BUF_INIT(JS_STRING_MAX);
	struct pattern p = { 0 };
	bool done = false;

	if (regex->n < 2 || memchr(with->s, '$', with->n) || !parse_pattern(regex, &p))
		return js_simple(JS_UNKNOWN);
	for (size_t i = 0; i < self->n;) {
		size_t hit = done ? 0 : match_at(&p, self->s + i, self->n - i);

		if (hit)
			buf_add(&out, with->s, with->n);
		else
			buf_add(&out, self->s + i, 1);
		done = done || (hit && !p.global);
		i += hit ? hit : 1;
	}
	return js_string(js, buf_str(&out), out.len);
}
