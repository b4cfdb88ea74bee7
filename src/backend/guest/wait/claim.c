/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait itself: says that it waits, takes the program, writes it into the program file, and returns when it may run.
 *
 * Whatever goes wrong ends the process: an interpreter that went on without a claim would run an empty program, and one
 * that went on without the last word would run what the inspection has not passed.  Only calls that the filters of all
 * interpreters allow (sendfile is not among them), and none that this library interposes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/guest/wait.h"
#include "backend/guest/wait/library.h"

#define COPY_BYTES 16384

/* Not exit(), whose handlers are the interpreter's. */
_Noreturn void wait_give_up(void)
{
	for (;;)
		(void)syscall(SYS_exit_group, GUEST_WAIT_FAILED);
}

bool wait_say(int sock, enum guest_word_kind kind, uint64_t value, int fd)
{
	struct guest_word word = { GUEST_WORD_MAGIC, kind, value };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec whole = { &word, sizeof(word) };
	struct msghdr msg = { .msg_iov = &whole, .msg_iovlen = 1 };
	ssize_t n;

	memset(&control, 0, sizeof(control));
	if (fd >= 0) {
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fd)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof(word);
}

static void say(const struct wait_order *o, enum guest_word_kind kind, uint64_t value)
{
	if (!wait_say(o->sock, kind, value, -1))
		wait_give_up();
}

_Noreturn void wait_report(const struct wait_order *o, enum guest_word_kind kind, size_t value)
{
	say(o, kind, value);
	wait_give_up();
}

/* The descriptor of a record, which has one and nothing else beside its words. */
static int sole_descriptor(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(fd)) ||
	    CMSG_NXTHDR(msg, c))
		wait_give_up();
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* One record: how many words it has, and its descriptor if wanted. */
static size_t hear(int sock, struct guest_word words[2], int *ret_fd)
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
	if (n <= 0 || (size_t)n % sizeof(words[0]) != 0 || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		wait_give_up();
	if (ret_fd)
		*ret_fd = sole_descriptor(&msg);
	else if (msg.msg_controllen != 0)
		wait_give_up();
	return (size_t)n / sizeof(words[0]);
}

static bool is_word(const struct guest_word *w, enum guest_word_kind kind)
{
	return w->magic == GUEST_WORD_MAGIC && w->kind == (uint32_t)kind && (kind == GUEST_CLAIM || w->value == 0);
}

static void write_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno != EINTR)
			wait_give_up();
		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
		}
	}
}

/* Exactly size bytes: a descriptor with fewer or more is not what was claimed with. */
static void copy_all(int from, int to, uint64_t size)
{
	char bytes[COPY_BYTES];
	uint64_t at = 0;
	ssize_t n;

	while ((n = pread(from, bytes, sizeof(bytes), (off_t)at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (uint64_t)n > size - at)
			wait_give_up();
		write_all(to, bytes, (size_t)n);
		at += (uint64_t)n;
	}
	if (at != size)
		wait_give_up();
}

/* The file is there, with the right owner and mode; it stays the same file, of which an interpreter may know things. */
static void fill_program(const char *path, int from, uint64_t size)
{
	long to = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);

	if (to < 0)
		wait_give_up();
	copy_all(from, (int)to, size);
	if (close((int)to) < 0 || close(from) < 0)
		wait_give_up();
}

void wait_for_claim(const struct wait_order *o)
{
	struct guest_word words[2];
	int program;
	size_t n;

	say(o, GUEST_WAITING, 0);
	n = hear(o->sock, words, &program);
	if (!is_word(&words[0], GUEST_CLAIM) || (n == 2 && !is_word(&words[1], GUEST_GO)))
		wait_give_up();
	fill_program(o->path[0], program, words[0].value);
	python_after(o);
	if (n == 1 && (hear(o->sock, words, NULL) != 1 || !is_word(&words[0], GUEST_GO)))
		wait_give_up();
	if (close(o->sock) < 0)
		wait_give_up();
}
