/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sanitize.h"

#include <string.h>

#include "base/str.h"

#define IN_STREAM (1u << SANITIZE_STREAM)
#define IN_LINES  (1u << SANITIZE_LINES)

/* Characters that control a terminal, deceive a reader or are invisible, and the kinds of text in which they pass
 * nevertheless. */
static const struct {
	uint32_t first, last;
	unsigned passes;
} steering[] = {
	{ 0x00, 0x08, 0 },
	{ 0x09, 0x0a, IN_STREAM | IN_LINES }, /* tab and newline */
	{ 0x0b, 0x0c, 0 },
	{ 0x0d, 0x0d,
	  IN_STREAM },         /* a program can only overwrite its own line; in our own text it would overwrite ours */
	{ 0x0e, 0x1f, 0 },     /* the rest of C0: ESC is here */
	{ 0x7f, 0x9f, 0 },     /* DEL and C1: CSI as one character */
	{ 0xad, 0xad, 0 },     /* soft hyphen */
	{ 0x61c, 0x61c, 0 },   /* Arabic letter mark */
	{ 0x115f, 0x1160, 0 }, /* Hangul fillers */
	{ 0x17b4, 0x17b5, 0 }, /* invisible vowels */
	{ 0x180b, 0x180f, 0 }, /* Mongolian selectors */
	{ 0x200b, 0x200b, 0 }, /* zero width space */
	{ 0x200c, 0x200d, IN_STREAM }, /* joiners, which scripts and emoji need */
	{ 0x200e, 0x200f, 0 },         /* left-to-right and right-to-left mark */
	{ 0x2028, 0x202e, 0 },         /* line and paragraph separator; bidirectional embeddings and overrides */
	{ 0x2060, 0x206f, 0 },         /* invisible operators, bidirectional isolates */
	{ 0x3164, 0x3164, 0 },         /* Hangul filler */
	{ 0xfeff, 0xfeff, 0 },         /* byte order mark */
	{ 0xffa0, 0xffa0, 0 },         /* Hangul filler */
	{ 0xfff0, 0xfffb, 0 },         /* interlinear annotation */
	{ 0x1d173, 0x1d17a, 0 },       /* invisible signs of musical notation */
	{ 0xe0000, 0xe0fff, 0 },       /* invisible tags and selectors */
};

static bool is_steering(uint32_t c, enum sanitize_kind kind)
{
	for (size_t i = 0; i < ARRAY_LEN(steering); i++)
		if (c >= steering[i].first && c <= steering[i].last)
			return !(steering[i].passes & 1u << kind);
	return false;
}

/* The character that starts at s and takes n bytes of valid UTF-8. */
static uint32_t decode(const unsigned char *s, size_t n)
{
	uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

static size_t announced_length(unsigned char lead)
{
	return lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
}

/* Length of the valid character at s; 0 if there is none. */
static size_t character_length(const char *s, size_t len)
{
	size_t n = announced_length((unsigned char)s[0]);

	return n <= len && str_utf8_prefix(s, n) == n ? n : 0;
}

/* Whether more bytes could complete the character at s. */
static bool may_be_completed(const char *s, size_t len)
{
	unsigned char lead = (unsigned char)s[0];

	if (lead < 0xc2 || lead > 0xf4 || len >= announced_length(lead))
		return false;
	for (size_t i = 1; i < len; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return false;
	return true;
}

/* JSON escapes have 16 bits; other characters are surrogate pairs. */
static void escape_json(uint32_t c, struct buf *out)
{
	if (c > 0xffff) {
		buf_addf(out, "\\u%04x", (unsigned)(0xd7c0 + (c >> 10)));
		c = 0xdc00 | (c & 0x3ff);
	}
	buf_addf(out, "\\u%04x", (unsigned)c);
}

static void show_character(enum sanitize_kind kind, const char *s, size_t n, struct buf *out)
{
	uint32_t c = decode((const unsigned char *)s, n);

	if (!is_steering(c, kind == SANITIZE_JSON ? SANITIZE_LINES : kind))
		buf_add(out, s, n);
	else if (kind == SANITIZE_JSON)
		escape_json(c, out);
	else if (n == 1)
		buf_addf(out, "\\x%02x", (unsigned)c);
	else
		buf_addf(out, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
}

static void show_byte(enum sanitize_kind kind, char byte, struct buf *out)
{
	if (kind == SANITIZE_JSON)
		escape_json(0xfffd, out); /* JSON cannot represent bytes */
	else
		buf_addf(out, "\\x%02x", (unsigned char)byte);
}

/* Length of the run of printable ASCII and newlines at s: nearly all output is nothing else. */
static size_t plain_length(enum sanitize_kind kind, const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && ((s[n] >= 0x20 && s[n] < 0x7f) || (s[n] == '\n' && kind != SANITIZE_LINE)))
		n++;
	return n;
}

/* Writes complete characters; returns their length in bytes. */
static size_t show(enum sanitize_kind kind, const char *s, size_t len, struct buf *out)
{
	size_t at = 0;

	while (at < len) {
		size_t n = plain_length(kind, s + at, len - at);

		buf_add(out, s + at, n);
		at += n;
		if (at == len)
			break;
		n = character_length(s + at, len - at);
		if (n > 0) {
			show_character(kind, s + at, n, out);
			at += n;
		} else if (may_be_completed(s + at, len - at)) {
			break;
		} else {
			show_byte(kind, s[at++], out);
		}
	}
	return at;
}

/* Completes the held character, byte by byte; returns how many bytes of data it took. */
static size_t finish_held(struct sanitizer *s, const char *data, size_t len, struct buf *out)
{
	size_t taken = 0;

	while (s->n_held > 0 && taken < len) {
		size_t shown;

		s->held[s->n_held++] = data[taken++];
		shown = show(s->kind, s->held, s->n_held, out);
		s->n_held -= shown;
		memmove(s->held, s->held + shown, s->n_held);
	}
	return taken;
}

void sanitize(struct sanitizer *s, const char *data, size_t len, struct buf *out)
{
	size_t at = finish_held(s, data, len, out);

	at += show(s->kind, data + at, len - at, out);
	/* The rest is an incomplete character: at most 3 bytes. */
	if (at < len) {
		memcpy(s->held, data + at, len - at);
		s->n_held = len - at;
	}
}

void sanitize_end(struct sanitizer *s, struct buf *out)
{
	for (size_t i = 0; i < s->n_held; i++)
		show_byte(s->kind, s->held[i], out);
	s->n_held = 0;
}

void sanitize_text(enum sanitize_kind kind, const char *data, size_t len, struct buf *out)
{
	struct sanitizer s = { .kind = kind };

	sanitize(&s, data, len, out);
	sanitize_end(&s, out);
}
