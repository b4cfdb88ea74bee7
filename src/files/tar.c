/* SPDX-License-Identifier: Apache-2.0 */
#include "files/tar.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#define PAX_MAX 5120 /* a record with the longest path */

/* Never blocks for good: who reads may be gone or asleep. */
static int put(int out, const void *data, size_t len, int cancel_fd)
{
	const char *at = data;

	while (len > 0) {
		struct pollfd fds[] = { { .fd = out, .events = POLLOUT }, { .fd = cancel_fd, .events = POLLIN } };
		ssize_t n = poll(fds, ARRAY_LEN(fds), -1);

		if (n > 0 && fds[0].revents == 0)
			return -ECANCELED;
		if (n > 0)
			n = write(out, at, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int pad(int out, uint64_t size, int cancel_fd)
{
	static const char zeroes[TAR_BLOCK];

	return put(out, zeroes, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK), cancel_fd);
}

/* Offsets and widths of the fields that are not zero. */
static int put_head(int out, const char *name, char type, unsigned mode, uint64_t size, int cancel_fd)
{
	unsigned char block[TAR_BLOCK] = { 0 };
	char *text = (char *)block;
	unsigned sum = 0;

	(void)snprintf(text, 100 + 1, "%s", name);
	(void)snprintf(text + 100, 8, "%07o", mode & 0777);
	(void)snprintf(text + 108, 8, "%07o", 0);
	(void)snprintf(text + 116, 8, "%07o", 0);
	(void)snprintf(text + 124, 12, "%011llo", (unsigned long long)size);
	(void)snprintf(text + 136, 12, "%011o", 0);
	memset(text + 148, ' ', 8);
	text[156] = type;
	memcpy(text + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof(block); i++)
		sum += block[i];
	(void)snprintf(text + 148, 8, "%06o", sum);
	return put(out, block, sizeof(block), cancel_fd);
}

/* "LEN path=PATH\n", where LEN counts its own digits, too. */
static int put_long_path(int out, const char *path, int cancel_fd)
{
	size_t rest = strlen(" path=\n") + strlen(path), len = rest + 2;
	char record[PAX_MAX];
	int n, rc;

	while ((size_t)snprintf(record, sizeof(record), "%zu", len) + rest != len)
		len++;
	n = snprintf(record, sizeof(record), "%zu path=%s\n", len, path);
	if (n < 0 || (size_t)n >= sizeof(record))
		return -ENAMETOOLONG;
	rc = put_head(out, "pax", 'x', 0644, (uint64_t)n, cancel_fd);
	if (rc == 0)
		rc = put(out, record, (size_t)n, cancel_fd);
	return rc < 0 ? rc : pad(out, (uint64_t)n, cancel_fd);
}

static int put_content(int out, int from, uint64_t size, int cancel_fd)
{
	char piece[16 * KiB];

	for (uint64_t left = size; left > 0;) {
		ssize_t n = fd_read_all(from, piece, (size_t)min_u64(left, sizeof(piece)));
		int rc = n > 0 ? put(out, piece, (size_t)n, cancel_fd) : n < 0 ? (int)n : -ENODATA;

		if (rc < 0)
			return rc;
		left -= (uint64_t)n;
	}
	return pad(out, size, cancel_fd);
}

int tar_put_file(int out, const char *path, unsigned mode, uint64_t size, int from, int cancel_fd)
{
	int rc = strlen(path) > 100 ? put_long_path(out, path, cancel_fd) : 0;

	if (rc == 0)
		rc = put_head(out, path, '0', mode & 0111 ? 0755 : 0644, size, cancel_fd);
	return rc < 0 ? rc : put_content(out, from, size, cancel_fd);
}

int tar_put_end(int out, int cancel_fd)
{
	static const char zeroes[2 * TAR_BLOCK];

	return put(out, zeroes, sizeof(zeroes), cancel_fd);
}
