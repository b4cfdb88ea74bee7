/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sanitize.h"

#include <string.h>

#include "base/str.h"

/* Characters that are valid but steer a terminal or deceive a reader. */
static const struct {
	uint32_t first, last;
} steering[] = {
	{ 0x00, 0x08 },       /* controls, but for tab, newline ... */
	{ 0x0b, 0x0c },       /* ... and carriage return */
	{ 0x0e, 0x1f },       /* the rest of C0: ESC is here */
	{ 0x7f, 0x9f },       /* DEL and C1: CSI as one character */
	{ 0x2028, 0x2029 },   /* line and paragraph separator */
	{ 0x202a, 0x202e },   /* bidirectional embeddings and overrides */
	{ 0x2066, 0x2069 },   /* bidirectional isolates */
	{ 0xfff9, 0xfffb },   /* interlinear annotation */
	{ 0xe0000, 0xe007f }, /* invisible tags */
};

static bool is_steering(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(steering); i++)
		if (c >= steering[i].first && c <= steering[i].last)
			return true;
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

/* The valid character at s; 0 if there is none. */
static size_t character_length(const char *s, size_t len)
{
	size_t n = announced_length((unsigned char)s[0]);

	return n <= len && str_utf8_prefix(s, n) == n ? n : 0;
}

/* Whether more bytes may still turn what is at s into a character. */
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

static void show_character(const char *s, size_t n, struct buf *out)
{
	uint32_t c = decode((const unsigned char *)s, n);

	if (!is_steering(c))
		buf_add(out, s, n);
	else if (n == 1)
		buf_addf(out, "\\x%02x", (unsigned)c);
	else
		buf_addf(out, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
}

/* Length of the run of printable ASCII and newlines at s: nearly all output is nothing else. */
static size_t plain_length(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && ((s[n] >= 0x20 && s[n] < 0x7f) || s[n] == '\n'))
		n++;
	return n;
}

/* Shows what is complete; returns how many bytes that was. */
static size_t show(const char *s, size_t len, struct buf *out)
{
	size_t at = 0;

	while (at < len) {
		size_t n = plain_length(s + at, len - at);

		buf_add(out, s + at, n);
		at += n;
		if (at == len)
			break;
		n = character_length(s + at, len - at);
		if (n > 0) {
			show_character(s + at, n, out);
			at += n;
		} else if (may_be_completed(s + at, len - at)) {
			break;
		} else {
			buf_addf(out, "\\x%02x", (unsigned char)s[at++]);
		}
	}
	return at;
}

/* Completes what is held, byte by byte; returns how many bytes of data it took. */
static size_t finish_held(struct sanitizer *s, const char *data, size_t len, struct buf *out)
{
	size_t taken = 0;

	while (s->n_held > 0 && taken < len) {
		size_t shown;

		s->held[s->n_held++] = data[taken++];
		shown = show(s->held, s->n_held, out);
		s->n_held -= shown;
		memmove(s->held, s->held + shown, s->n_held);
	}
	return taken;
}

void sanitize(struct sanitizer *s, const char *data, size_t len, struct buf *out)
{
	size_t at = finish_held(s, data, len, out);

	at += show(data + at, len - at, out);
	/* Whatever is left is the beginning of one character, shorter than the whole: at most 3 bytes. */
	if (at < len) {
		memcpy(s->held, data + at, len - at);
		s->n_held = len - at;
	}
}

void sanitize_end(struct sanitizer *s, struct buf *out)
{
	for (size_t i = 0; i < s->n_held; i++)
		buf_addf(out, "\\x%02x", (unsigned char)s->held[i]);
	s->n_held = 0;
}

void sanitize_text(const char *data, size_t len, struct buf *out)
{
	struct sanitizer s = { 0 };

	sanitize(&s, data, len, out);
	sanitize_end(&s, out);
}
