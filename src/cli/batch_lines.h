/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines from a descriptor, one at a time, in memory bounded by the maximum length of a line. */
#ifndef CLI_BATCH_LINES_H
#define CLI_BATCH_LINES_H

#include "base/buf.h"

#define BATCH_LINE_MAX (32 * MiB) /* a job's line without newline */

struct batch_lines {
	int fd;          /* stays the caller's */
	size_t max;      /* maximum length of a line */
	struct buf text; /* read but not yet returned, from at on */
	size_t at;
	size_t searched; /* there is no newline before this */
	uint64_t number; /* of the line returned last, from 1 */
	uint64_t offset; /* in the file, of the byte after that line */
	bool skipping;   /* inside a line that is too long */
	bool ended;      /* end of file was read */
	bool is_torn;    /* the line returned last had no newline */
};
#define BATCH_LINES_INIT(descriptor, longest)                                                \
	{                                                                                    \
		.fd = (descriptor), .max = (longest), .text = BUF_INIT((longest) + 64 * KiB) \
	}

enum batch_line {
	BATCH_LINE_WAIT,     /* incomplete: call batch_lines_read() when the descriptor is readable */
	BATCH_LINE_GOOD,     /* *ret and *ret_len, valid until the next call */
	BATCH_LINE_TOO_LONG, /* a line exceeded the maximum */
	BATCH_LINE_END,
};

enum batch_line batch_lines_next(struct batch_lines *l, const char **ret, size_t *ret_len);
/* One read(): 0 or -errno; -EAGAIN: no data. */
int batch_lines_read(struct batch_lines *l);
/* Counts the lines of a regular file from its offset, which is not changed; 0 for other files. */
uint64_t batch_lines_count(int fd);
void batch_lines_release(struct batch_lines *l);

#endif
