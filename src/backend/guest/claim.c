/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/guest/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/guest/wait.h"

#define COPY_BYTES 16384

/* The descriptor of a record, which must be its only control data. */
static int sole_descriptor(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(fd)) ||
	    CMSG_NXTHDR(msg, c))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Receives one record: number of words, and the descriptor if requested; or -errno. */
static int hear(int sock, struct guest_word words[2], int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec space = { words, 2 * sizeof(words[0]) };
	struct msghdr msg = { .msg_iov = &space, .msg_iovlen = 1 };
	ssize_t n;

	memset(&control, 0, sizeof(control));
	msg.msg_control = control.bytes;
	msg.msg_controllen = sizeof(control.bytes);
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0 || (size_t)n % sizeof(words[0]) != 0 || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EPROTO;
	if (ret_fd) {
		*ret_fd = sole_descriptor(&msg);
		if (*ret_fd < 0)
			return *ret_fd;
	} else if (msg.msg_controllen != 0) {
		return -EPROTO;
	}
	return (int)((size_t)n / sizeof(words[0]));
}

static bool is_word(const struct guest_word *w, enum guest_word_kind kind)
{
	return w->magic == GUEST_WORD_MAGIC && w->kind == (uint32_t)kind && (kind == GUEST_CLAIM || w->value == 0);
}

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

/* Exactly size bytes: a file with fewer or more is not the one that was claimed with. */
static int copy_all(int from, int to, uint64_t size)
{
	char bytes[COPY_BYTES];
	uint64_t at = 0;
	ssize_t n;

	while ((n = pread(from, bytes, sizeof(bytes), (off_t)at)) != 0) {
		int rc;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((uint64_t)n > size - at)
			return -EPROTO;
		rc = write_all(to, bytes, (size_t)n);
		if (rc < 0)
			return rc;
		at += (uint64_t)n;
	}
	return at == size ? 0 : -EPROTO;
}

/*
 * The file exists, with the right owner and mode.  Its inode must not change, since the interpreter may have recorded
 * it.
 */
static int fill_program(const char *path, int from, uint64_t size)
{
	long to = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC) : -1;
	int rc = !path ? (size == 0 ? 0 : -EPROTO) : to < 0 ? -errno : copy_all(from, (int)to, size);

	if (to >= 0 && close((int)to) < 0 && rc == 0)
		rc = -errno;
	if (close(from) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

int guest_claim_take(int sock, const char *path, bool *ret_go)
{
	struct guest_word words[2];
	int program;
	int n = hear(sock, words, &program);

	if (n < 0)
		return n;
	if (!is_word(&words[0], GUEST_CLAIM) || (n == 2 && !is_word(&words[1], GUEST_GO)))
		return -EPROTO;
	*ret_go = n == 2;
	return fill_program(path, program, words[0].value);
}

int guest_claim_await_go(int sock)
{
	struct guest_word words[2];
	int n = hear(sock, words, NULL);

	if (n < 0)
		return n;
	return n == 1 && is_word(&words[0], GUEST_GO) ? 0 : -EPROTO;
}
