/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_write_all_at(int fd, const void *data, size_t len, uint64_t at)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		p += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

ssize_t fd_read_all(int fd, void *data, size_t len)
{
	char *p = data;
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, p + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int fd_put_at(int dir, const char *path, const char *text)
{
	size_t len = strlen(text);
	AUTO_FD fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len); /* one write: the kernel parses each write to such a file separately */
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int fd_putf_at(int dir, const char *path, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof(text))
		return -EFBIG;
	return fd_put_at(dir, path, text);
}

ssize_t fd_get_at(int dir, const char *path, char *text, size_t size)
{
	AUTO_FD fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fd_read_all(fd, text, size);
	if (n < 0)
		return n;
	if ((size_t)n == size)
		return -EFBIG;
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	return n;
}

/* One line, which the first read returns: unlike fd_get_at(), no second read looks for its end. */
static int get_line_at(int dir, const char *path, char *text, size_t size)
{
	AUTO_FD fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do
		n = read(fd, text, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int fd_get_u64_at(int dir, const char *path, uint64_t *ret)
{
	char text[64];
	int rc = get_line_at(dir, path, text, sizeof(text));

	if (rc < 0)
		return rc;
	if (strcmp(text, "max") == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	return str_to_u64(text, ret) ? 0 : -EINVAL;
}

int fd_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

/* A blocking flock() has no time limit of its own, and a library has no signal to end it with: retry, with growing
 * pauses. */
int fd_lock(int fd, int how, uint64_t patience_ns)
{
	const uint64_t longest = 5 * NS_PER_MS;
	uint64_t begin = 0, pause = 20000;

	while (flock(fd, how | LOCK_NB) < 0) {
		uint64_t now = clock_now_ns();
		struct timespec ts = { .tv_nsec = (long)pause };

		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (begin == 0)
			begin = now;
		if (now - begin >= patience_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&ts, NULL);
		pause = min_u64(2 * pause, longest);
	}
	return 0;
}

int fd_move_up(int *fd, int min)
{
	int moved = fcntl(*fd, F_DUPFD_CLOEXEC, min);

	if (moved < 0)
		return -errno;
	fd_closep(fd);
	*fd = moved;
	return 0;
}

int fd_pipe_to_child(int *child, int *ours, bool child_reads, int min)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*child = ends[child_reads ? 0 : 1];
	*ours = ends[child_reads ? 1 : 0];
	/* Through /proc/self/fd a process that has this end can reopen it, whatever its user id, and only this end. */
	if (fchmod(*child, child_reads ? 0444 : 0222) < 0)
		return -errno;
	/* Only our end: O_NONBLOCK is a property of the open file, and each end has its own. */
	if (fd_set_nonblock(*ours) < 0)
		return -errno;
	return fd_move_up(child, min);
}

/* ---- descriptors as messages ------------------------------------------------------------------- */

union one_fd {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int fd_send(int sock, int fd)
{
	int word = fd < 0 ? fd : 0;
	struct iovec iov = { .iov_base = &word, .iov_len = sizeof(word) };
	union one_fd control = { .space = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
				       .cmsg_level = SOL_SOCKET,
				       .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(word) ? 0 : -errno;
}

int fd_receive(int sock)
{
	int word = -EPROTO, fd = FD_NONE;
	struct iovec iov = { .iov_base = &word, .iov_len = sizeof(word) };
	union one_fd control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)
	};
	const struct cmsghdr *c;
	ssize_t n;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (n == (ssize_t)sizeof(word) && word == 0 && fd >= 0)
		return fd;
	fd_closep(&fd);
	return n < 0 ? -errno : n == (ssize_t)sizeof(word) && word < 0 ? word : -EPIPE;
}

int fd_send_record(int sock, struct iovec *pieces, size_t n_pieces, const int *fds, size_t n_fds, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FD_BESIDE_MAX)];
	} control;
	struct msghdr msg = { .msg_iov = pieces, .msg_iovlen = n_pieces };

	if (n_fds > FD_BESIDE_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
	}
	return sendmsg(sock, &msg, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

size_t fd_take_beside(struct msghdr *msg, int *fds, size_t max)
{
	size_t n_fds = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
				   ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				   : 0;

		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n_fds < max)
				fds[n_fds++] = fd;
			else
				(void)close(fd);
		}
	}
	return n_fds;
}

ssize_t fd_receive_record(int sock, struct msghdr *msg, int flags)
{
	const struct msghdr asked = *msg;
	bool ended = false;

	for (;;) {
		ssize_t n = recvmsg(sock, msg, flags);

		if (n > 0 || (n == 0 && ended) || (n < 0 && errno != EINTR && errno != ECONNRESET))
			return n;
		/* A last record may have arrived between EAGAIN and the hang-up; none does after the hang-up. */
		ended = ended || n == 0;
		*msg = asked;
	}
}
