/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Bytes of the character at s that may be shown as they are; 0: show '?' instead and go on by one byte. */
static size_t shown_length(const char *s, size_t len)
{
	unsigned char c = (unsigned char)s[0];
	size_t n = 1;

	if (c < 0x80)
		return c >= 0x20 && c != 0x7f;
	while (n < len && n < 4 && ((unsigned char)s[n] & 0xc0) == 0x80)
		n++;
	/* U+0080..U+009F are terminal controls too. */
	if (c == 0xc2 && n > 1 && (unsigned char)s[1] < 0xa0)
		return 0;
	return str_is_utf8(s, n) ? n : 0;
}

const char *printable(const char *word, char *dst, size_t size)
{
	size_t len = strlen(word), at = 0, out = 0;

	while (at < len) {
		size_t n = shown_length(word + at, len - at);
		size_t need = n ? n : 1;

		if (out + need + 4 > size) { /* room for "..." and the NUL */
			memcpy(dst + out, "...", 3);
			out += 3;
			break;
		}
		if (n)
			memcpy(dst + out, word + at, n);
		else
			dst[out] = '?';
		out += need;
		at += need;
	}
	dst[out] = '\0';
	return dst;
}

void diag_add(struct policy_diags *d, const struct place *at, const char *fmt, ...)
{
	struct policy_diag *row;
	va_list ap;

	if (d->n == POLICY_DIAGS_MAX) {
		d->dropped++;
		return;
	}
	row = &d->row[d->n++];
	row->line = at->line;
	row->column = at->column;
	if (at->line)
		(void)snprintf(row->place, sizeof(row->place), "%.130s:%u:%u", at->name, at->line, at->column);
	else
		(void)snprintf(row->place, sizeof(row->place), "%.150s", at->name);
	va_start(ap, fmt);
	(void)vsnprintf(row->msg, sizeof(row->msg), fmt, ap);
	va_end(ap);
	/* A cut message must not end inside a character. */
	row->msg[str_utf8_prefix(row->msg, strlen(row->msg))] = '\0';
}
