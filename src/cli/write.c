/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/write.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "base/util.h"

/* What a descriptor that polls writable takes without blocking, so that cancelling and waiting always work. */
static size_t piece_size(int fd)
{
	return isatty(fd) ? 256 : PIPE_BUF;
}

ssize_t write_part(int fd, const void *data, size_t len, int cancel_fd, int wait_ms)
{
	const size_t piece = piece_size(fd);
	const char *p = data;
	size_t done = 0;

	while (done < len) {
		struct pollfd fds[] = { { .fd = fd, .events = POLLOUT }, { .fd = cancel_fd, .events = POLLIN } };
		int ready = poll(fds, ARRAY_LEN(fds), wait_ms);
		ssize_t n;

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready == 0)
			break;
		if (fds[0].revents == 0 && fds[1].revents != 0)
			return -ECANCELED;
		if (fds[0].revents == 0)
			continue;
		n = write(fd, p + done, len - done < piece ? len - done : piece);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	return (ssize_t)done;
}

int write_all(int fd, const void *data, size_t len, int cancel_fd)
{
	ssize_t n = write_part(fd, data, len, cancel_fd, -1);

	return n < 0 ? (int)n : 0;
}
