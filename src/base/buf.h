/* SPDX-License-Identifier: Apache-2.0 */
/* A byte buffer that states its ceiling at creation; reaching it is an event, not an error (INV-7). */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>

#include "base/util.h"

/* Borrowed bytes; data is NULL if there are none. */
struct bytes {
	const char *data;
	size_t len;
};

struct buf {
	char *data; /* always NUL-terminated once anything was added; NULL before */
	size_t len;
	size_t cap;
	size_t max;
	bool full;      /* something did not fit below max */
	bool no_memory; /* out of memory: contents are incomplete */
};

#define BUF_INIT(ceiling)        \
	{                        \
		.max = (ceiling) \
	}

/* Add what fits; the rest is dropped and b->full is set.  Returns the number of bytes kept. */
size_t buf_add(struct buf *b, const void *data, size_t len);
size_t buf_adds(struct buf *b, const char *s);
/* All or nothing. */
bool buf_addf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
bool buf_vaddf(struct buf *b, const char *fmt, va_list ap) PRINTF(2, 0);
/* The contents as a string, "" when empty; belongs to the buffer. */
const char *buf_str(const struct buf *b);
/* The contents as a heap string, now owned by the caller; the buffer is empty again. NULL: out of memory. */
char *buf_take(struct buf *b);
void buf_release(struct buf *b);
#define AUTO_BUF             \
	CLEANUP(buf_release) \
	struct buf

#endif
