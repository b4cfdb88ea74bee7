/* SPDX-License-Identifier: Apache-2.0 */
/* Lines from a descriptor, one at a time, in memory that is bounded by the longest line that is taken. */
#ifndef CLI_BATCH_LINES_H
#define CLI_BATCH_LINES_H

#include "base/buf.h"

#define BATCH_LINE_MAX (32 * MiB) /* of a job, without its newline */

struct batch_lines {
	int fd;          /* stays the caller's */
	size_t max;      /* bytes of a line */
	struct buf text; /* what was read and not yet handed out, from at on */
	size_t at;
	size_t searched; /* there is no newline before this */
	uint64_t number; /* of the line that was handed out last; the first one is 1 */
	uint64_t offset; /* in the file, of the byte behind that line */
	bool skipping;   /* in the middle of a line that is too long */
	bool ended;      /* end of file was read */
	bool is_torn;    /* the line that was handed out last had no newline */
};
#define BATCH_LINES_INIT(descriptor, longest)                                                \
	{                                                                                    \
		.fd = (descriptor), .max = (longest), .text = BUF_INIT((longest) + 64 * KiB) \
	}

enum batch_line {
	BATCH_LINE_WAIT,     /* there is none yet: batch_lines_read() when the descriptor is readable */
	BATCH_LINE_GOOD,     /* *ret and *ret_len, until the next call */
	BATCH_LINE_TOO_LONG, /* there was one, longer than the longest */
	BATCH_LINE_END,
};

enum batch_line batch_lines_next(struct batch_lines *l, const char **ret, size_t *ret_len);
/* One read(): 0 or -errno; -EAGAIN: nothing is there. */
int batch_lines_read(struct batch_lines *l);
/* Lines of a regular file from where it stands, which stays there; 0 if it is none. */
uint64_t batch_lines_count(int fd);
void batch_lines_release(struct batch_lines *l);

#endif
