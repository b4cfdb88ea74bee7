/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is returned in place in the buffer; returned lines are discarded when more is read.  Of a line that is too
 * long only its existence is recorded.
 */
#include "cli/batch_lines.h"

#include <string.h>
#include <sys/stat.h>

#define PIECE (64 * KiB)

static void drop_taken(struct batch_lines *l)
{
	if (l->at == 0)
		return;
	l->text.len -= l->at;
	memmove(l->text.data, l->text.data + l->at, l->text.len);
	l->searched -= l->at;
	l->at = 0;
}

/* Returns the line that ends at end, with or without newline. */
static enum batch_line take(struct batch_lines *l, size_t end, bool has_newline, const char **ret, size_t *ret_len)
{
	bool is_long = l->skipping || end - l->at > l->max;

	*ret = l->text.data + l->at;
	*ret_len = end - l->at;
	l->number++;
	l->offset += end - l->at + has_newline;
	l->at = end + has_newline;
	l->searched = l->at;
	l->skipping = false;
	l->is_torn = !has_newline;
	return is_long ? BATCH_LINE_TOO_LONG : BATCH_LINE_GOOD;
}

enum batch_line batch_lines_next(struct batch_lines *l, const char **ret, size_t *ret_len)
{
	const char *newline =
		l->searched < l->text.len ? memchr(l->text.data + l->searched, '\n', l->text.len - l->searched) : NULL;

	if (newline)
		return take(l, (size_t)(newline - l->text.data), true, ret, ret_len);
	l->searched = l->text.len;
	if (l->ended)
		return l->text.len > l->at || l->skipping ? take(l, l->text.len, false, ret, ret_len) : BATCH_LINE_END;
	if (l->text.len - l->at > l->max) {
		l->skipping = true;
		l->offset += l->text.len - l->at;
		l->at = l->text.len;
	}
	return BATCH_LINE_WAIT;
}

int batch_lines_read(struct batch_lines *l)
{
	char piece[PIECE];
	ssize_t n = read(l->fd, piece, sizeof(piece));

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	drop_taken(l);
	l->ended = n == 0;
	(void)buf_add(&l->text, piece, (size_t)n);
	return l->text.no_memory ? -ENOMEM : 0;
}

uint64_t batch_lines_count(int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	char piece[PIECE], last = '\n';
	uint64_t lines = 0;
	struct stat st;
	ssize_t n;

	if (at < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	while ((n = pread(fd, piece, sizeof(piece), at)) > 0) {
		for (const char *c = piece; (c = memchr(c, '\n', (size_t)(piece + n - c))); c++)
			lines++;
		last = piece[n - 1];
		at += n;
	}
	return lines + (last != '\n');
}

void batch_lines_release(struct batch_lines *l)
{
	buf_release(&l->text);
}
