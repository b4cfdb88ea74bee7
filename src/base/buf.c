/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Makes room for len more bytes and the final NUL. */
static bool buf_grow(struct buf *b, size_t len)
{
	size_t want = b->len + len + 1;
	size_t cap = b->cap ? b->cap : 256;
	char *data;

	assert(len <= b->max && b->len <= b->max - len); /* INV-7: the caller has checked the ceiling */
	if (want <= b->cap)
		return true;
	while (cap < want)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data) {
		b->no_memory = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

size_t buf_add(struct buf *b, const void *data, size_t len)
{
	size_t room = b->max > b->len ? b->max - b->len : 0;

	if (len > room) {
		b->full = true;
		len = room;
	}
	if (len == 0 || !buf_grow(b, len))
		return 0;
	memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return len;
}

size_t buf_adds(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

bool buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0 || (size_t)len > b->max - b->len) {
		b->full = true;
		return false;
	}
	if (!buf_grow(b, (size_t)len))
		return false;
	(void)vsnprintf(b->data + b->len, (size_t)len + 1, fmt, ap);
	b->len += (size_t)len;
	return true;
}

bool buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	bool ok;

	va_start(ap, fmt);
	ok = buf_vaddf(b, fmt, ap);
	va_end(ap);
	return ok;
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
	char *data = b->data ? b->data : strdup("");

	*b = (struct buf)BUF_INIT(b->max);
	return data;
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf)BUF_INIT(b->max);
}
