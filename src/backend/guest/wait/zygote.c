/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of an interpreter that has been started and warmed up once.
 *
 * The zygote has the tree, network, limits and ids of a cell of its kind, and no capability.  It is in the supervisor's
 * user and pid namespaces, since only from there can a process enter a cell.  It reads orders of fixed size and
 * descriptors: never a byte from a caller or a guest.  For each order it creates three processes, one after the other,
 * of which only the last has memory of its own:
 *
 *	I	shares our memory: enters the cell's cgroups and, through its descriptors, the namespaces.  The user
 *		namespace comes first: our user id owns it, which is the only reason why this is permitted
 *	G	I's child, shares it too: the first process inside the pid namespace, with a pid that leaves the next
 *		one free
 *	P	G's child by fork(3): the program's process.  When G and I have exited, its parent is the cell's init
 *
 * P continues on our own stack, where I was created, confines itself (walls.c) and returns to the interpreter's wait.
 * P reports its failures to the cell's supervisor itself, not to us.
 *
 * A process orphaned by a parent outside of its pid namespace is not reparented to the init inside: hence G.  Memory
 * shared with a zygote must not be left changed: hence separate stacks, blocked signals, and no writes except to struct
 * fork_order.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/guest/wait/library.h"

#define STACK_BYTES 32768
#define GUIDE_PID   300 /* G's pid; G is gone before the program could see it */

/* I's and G's, mapped; P unmaps them. Between fork and longjmp, P runs on G's. */
static struct {
	char enter[STACK_BYTES], guide[STACK_BYTES];
} * stacks;

struct fork_order {
	const struct guest_walls *walls;
	int fds[GUEST_FORK_FDS_MAX];
	size_t n_fds, n_groups;
	jmp_buf back;
	enum guest_join failed;
	int rc; /* 0: P was created */
};

static void fail(struct fork_order *b, enum guest_join step, int rc)
{
	b->failed = step;
	b->rc = rc;
}

/* Runs in G. */
static void fork_program(void *arg)
{
	struct fork_order *b = arg;
	pid_t pid;

	if (walls_fault(b->walls, JOIN_child_fork, &b->rc)) {
		b->failed = JOIN_child_fork;
		return;
	}
	pid = fork();
	if (pid == 0)
		longjmp(b->back, 1);
	if (pid < 0)
		fail(b, JOIN_child_fork, -errno);
}

static int enter_groups(const struct fork_order *b)
{
	int rc;

	if (walls_fault(b->walls, JOIN_child_groups, &rc))
		return rc;
	for (size_t i = 0; i < b->n_groups; i++)
		if (write(b->fds[GUEST_FD_GROUPS + i], "0", 1) != 1)
			return -errno;
	return 0;
}

static int enter_namespaces(const struct fork_order *b)
{
	int rc;

	if (walls_fault(b->walls, JOIN_child_namespaces, &rc))
		return rc;
	for (size_t i = GUEST_FD_USER; i <= GUEST_FD_PID; i++)
		if (setns(b->fds[i], 0) < 0)
			return -errno;
	return 0;
}

/* Runs in I. */
static void enter_cell(void *arg)
{
	static const int guide_pid = GUIDE_PID;
	struct fork_order *b = arg;
	int rc = enter_groups(b);
	long guide;

	if (rc < 0) {
		fail(b, JOIN_child_groups, rc);
		return;
	}
	rc = enter_namespaces(b);
	if (rc < 0) {
		fail(b, JOIN_child_namespaces, rc);
		return;
	}
	guide = clone_sharing(stacks->guide, sizeof(stacks->guide), &guide_pid, fork_program, b);
	if (guide < 0)
		fail(b, JOIN_child_fork, (int)guide);
	else
		(void)waitpid((pid_t)guide, NULL, __WALL);
}

/* True in P; false in the zygote, where b->rc says whether P was created. */
static bool make_child(struct fork_order *b)
{
	sigset_t all, before;
	long enters;

	b->rc = 0;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	if (_setjmp(b->back)) {
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		return true;
	}
	enters = clone_sharing(stacks->enter, sizeof(stacks->enter), NULL, enter_cell, b);
	if (enters < 0)
		fail(b, JOIN_child_fork, (int)enters);
	else
		(void)waitpid((pid_t)enters, NULL, __WALL);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return false;
}

static void close_all(struct fork_order *b)
{
	for (size_t i = 0; i < b->n_fds; i++)
		(void)close(b->fds[i]);
	b->n_fds = 0;
}

/* Receives one order.  Exits at end of file, or if the record is malformed. */
static void hear_order(int sock, struct fork_order *b)
{
	union {
		char bytes[CMSG_SPACE(sizeof(b->fds))];
		struct cmsghdr align;
	} control;
	struct guest_word word;
	struct iovec space = { &word, sizeof(word) };
	struct msghdr msg = { .msg_iov = &space, .msg_iovlen = 1 };
	const struct cmsghdr *c;
	ssize_t n;

	memset(&control, 0, sizeof(control));
	msg.msg_control = control.bytes;
	msg.msg_controllen = sizeof(control.bytes);
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n == sizeof(word) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || word.magic != GUEST_WORD_MAGIC ||
	    word.kind != GUEST_FORK || word.value > GUEST_GROUPS_MAX ||
	    c->cmsg_len != CMSG_LEN((GUEST_FD_GROUPS + word.value) * sizeof(int)))
		wait_give_up();
	b->n_groups = word.value;
	b->n_fds = GUEST_FD_GROUPS + b->n_groups;
	memcpy(b->fds, CMSG_DATA(c), b->n_fds * sizeof(int));
}

/* In the child.  Waits until G has exited: before that, init would not be notified of our exit. */
static void become_program(struct wait_order *o, struct fork_order *b)
{
	while (getppid() != 1)
		(void)sched_yield();
	if (getpid() != GUEST_PROGRAM_PID)
		walls_failed(b->fds[GUEST_FD_SOCKET], JOIN_child_fork, -ESRCH);
	(void)munmap(stacks, sizeof(*stacks));
	pages_copy();
	python_fork_child();
	pages_rehearse();
	o->sock = walls_put_up(b->walls, b->fds);
}

void zygote_have_children(struct wait_order *o)
{
	static struct fork_order b; /* shared with I and G */

	b.walls = o->walls;
	stacks = mmap(NULL, sizeof(*stacks), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stacks == MAP_FAILED)
		wait_give_up();
	pages_share();
	if (!wait_say(o->sock, GUEST_WAITING, 0, -1))
		wait_give_up();
	for (;;) {
		hear_order(o->sock, &b);
		pages_learn();
		if (!python_fork_before())
			wait_report(o, GUEST_FAILED, 0);
		if (make_child(&b))
			break;
		python_fork_parent();
		if (b.rc == 0)
			pages_child_made();
		else
			(void)wait_say(b.fds[GUEST_FD_SOCKET], GUEST_NOT_JOINED,
				       (uint64_t)b.failed << 32 | (uint32_t)-b.rc, -1);
		close_all(&b);
	}
	become_program(o, &b);
	explicit_bzero(&b, sizeof(b));
}
