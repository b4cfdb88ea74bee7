/* SPDX-License-Identifier: Apache-2.0 */
#include "files/tar.h"

#include <limits.h>
#include <poll.h>

#include "base/fd.h"
#include "base/ustar.h"
#include "base/wait.h"

/* Never blocks indefinitely: the reader may be gone or asleep. */
static int put(int out, const void *data, size_t len, int cancel_fd)
{
	const char *at = data;

	while (len > 0) {
		struct pollfd fds[] = { { .fd = out, .events = POLLOUT }, { .fd = cancel_fd, .events = POLLIN } };
		ssize_t n = wait_poll(fds, ARRAY_LEN(fds), -1);

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

static int put_content(int out, int from, uint64_t size, int cancel_fd)
{
	static const char zeroes[USTAR_BLOCK];
	char piece[16 * KiB];

	for (uint64_t left = size; left > 0;) {
		ssize_t n = fd_read_all(from, piece, (size_t)min_u64(left, sizeof(piece)));
		int rc = n > 0 ? put(out, piece, (size_t)n, cancel_fd) : n < 0 ? (int)n : -ENODATA;

		if (rc < 0)
			return rc;
		left -= (uint64_t)n;
	}
	return put(out, zeroes, ustar_padding(size), cancel_fd);
}

int tar_put_file(int out, const char *path, unsigned mode, uint64_t size, int from, int cancel_fd)
{
	AUTO_BUF head = BUF_INIT(16 * KiB);
	int rc;

	if (!ustar_add_head(&head, path, mode, size))
		return -ENAMETOOLONG;
	rc = put(out, head.data, head.len, cancel_fd);
	return rc < 0 ? rc : put_content(out, from, size, cancel_fd);
}

int tar_put_end(int out, int cancel_fd)
{
	AUTO_BUF end = BUF_INIT(4 * KiB);

	return ustar_add_end(&end) ? put(out, end.data, end.len, cancel_fd) : -ENOMEM;
}
