/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pre-forked workers.  Forking and confining a worker takes longer than inspecting a small program, so a caller with
 * many texts has one process that does only this, in parallel with the caller's own work:
 *
 *	caller				inspectors				spare worker
 *	  socketpair, fork  --------->    one socket, no capability
 *					  socketpair, fork  ------------>	  limits, close all, filter
 *	  (queued by the kernel)  <----	  its pidfd and its socket		  inspects a sample, waits
 *	  take: the two descriptors,
 *	  the request ------------------------------------------------------>	  inspect_text()
 *	  findings           <------------------------------------------------	  header and findings, rests, _exit
 *	  refill: one byte  --------->	  reaps, forks the next
 *
 * The spare workers wait in the queue of the caller's socket, as descriptors: taking one is one recvmsg().  A worker is
 * used once, so no text can influence how the next one is inspected.  It runs the same code as a worker of worker.c
 * (RULE W1 to W3), with its request in a message (wire_ask.c) instead of in copied memory.  The wall clock counts from
 * the request; cpu time from the fork, but a waiting worker uses none.
 *
 * The inspectors process has one thread whatever the caller has, and a copy of the rules at the time of its fork.  Of
 * the messages that it receives only the length matters.  It exits when the caller's socket closes, which also happens
 * when the caller is killed.  A parent-death signal would not do: it is sent when the forking thread exits.
 *
 * On any failure here (no process, a dead spare worker, a request that is too long) worker.c forks a worker itself.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "inspect/wire.h"
#include "inspect/worker.h"
#include "sys/caps.h"
#include "sys/memory.h"
#include "sys/proc.h"

#define END_MAX_NS NS_PER_SEC /* time for the inspectors to notice that their caller has closed the socket */
#define ANSWER_MS  1
#define REAP_MS    30 /* longer than workers rest after their answer */

struct inspectors {
	int sock;                                     /* non-blocking; receives spare workers */
	int pid_fd;                                   /* of the inspectors process */
	size_t used;                                  /* workers taken since the last refill */
	struct worker retired[INSPECTORS_SPARES_MAX]; /* workers that have answered; the oldest is at index next */
	size_t next;
};

/* ---- a spare worker ------------------------------------------------------------------------------------- */

/*
 * Pre-faults the memory that every inspection touches.  First in the process that forks the workers, so that tables are
 * filled once and not by each worker; then in each worker, because a child does not inherit its parent's mappings of
 * file pages.  A notebook is inspected by the code that inspects Python, and some more.
 */
static void warm_up(const struct rule_set *rules)
{
	static const char text[] =
		"import json\n\n\ndef f(a, b=1):\n    return [json.dumps(x) for x in a if x.y > b]\n\n\n"
		"t = sum(n * n for n in range(9))\nprint(f'{t}', f([t], b=2)[0])\nt\n";
	const struct inspect_request req = {
		.kind = INSPECT_NOTEBOOK, .level = INSPECTION_GUARD, .text = text, .len = sizeof(text) - 1
	};
	struct findings found = { 0 };

	(void)inspect_text(rules, &req, &found, NULL);
	findings_release(&found);
}

/* Does not answer a malformed message; the caller then forks a worker of its own (await_answer()). */
static _Noreturn void wait_for_text(const struct rule_set *rules, int sock, pid_t maker)
{
	char *bytes = malloc(WIRE_ASK_MAX);
	struct wire_ask ask;
	sigset_t term;
	int confined;
	size_t size;

	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM); /* for end_with_workers() */
	(void)sigprocmask(SIG_UNBLOCK, &term, NULL);
	if (!bytes)
		_exit(1);
	confined = worker_confine(sock, maker);
	if (confined == 0)
		warm_up(rules);
	if (fd_read_all(0, bytes, WIRE_ASK_HEAD) != (ssize_t)WIRE_ASK_HEAD || (size = wire_ask_size(bytes)) == 0 ||
	    fd_read_all(0, bytes + WIRE_ASK_HEAD, size - WIRE_ASK_HEAD) != (ssize_t)(size - WIRE_ASK_HEAD) ||
	    !wire_ask_decode(bytes, size, &ask))
		_exit(1);
	worker_work(confined, rules, &ask.req, /* rests= */ true);
}

/* ---- the inspectors process ----------------------------------------------------------------------------- */

enum { SENT_PID_FD, SENT_SOCK, SENT_COUNT };

union sent_fds {
	char space[CMSG_SPACE(SENT_COUNT * sizeof(int))];
	struct cmsghdr align;
};

static bool send_worker(int sock, const int fds[SENT_COUNT])
{
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union sent_fds control = { .space = { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)
	};

	control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(SENT_COUNT * sizeof(int)),
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.align), fds, SENT_COUNT * sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1;
}

/* True: a new worker is in the queue; false: no worker was made. */
static bool make_worker(const struct rule_set *rules, int queue)
{
	AUTO_FD pid_fd = FD_NONE;
	AUTO_FD ours = FD_NONE;
	AUTO_FD workers = FD_NONE;
	pid_t maker = getpid(), pid;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	ours = ends[0];
	workers = ends[1];
	pid = fork();
	if (pid == 0)
		wait_for_text(rules, workers, maker);
	if (pid < 0)
		return false;
	pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid_fd >= 0 && send_worker(queue, (const int[SENT_COUNT]){ [SENT_PID_FD] = pid_fd, [SENT_SOCK] = ours }))
		return true;
	(void)kill(pid, SIGKILL);
	return false;
}

/*
 * Drops everything that a long-lived process must not keep from its caller: descriptors, working folder, process group,
 * capabilities.  All signals stay blocked.  0 or -errno.
 */
static int settle_down(int sock)
{
	if (dup2(sock, 0) < 0 || close_range(1, ~0U, 0) < 0 || setpgid(0, 0) < 0 || chdir("/") < 0 ||
	    prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	(void)prctl(PR_SET_NAME, "brig-inspectors"); /* also the name of its workers; for process listings */
	if (signal(SIGTERM, SIG_DFL) == SIG_ERR || signal(SIGCHLD, SIG_DFL) == SIG_ERR)
		return -errno;
	return caps_clear();
}

/* Kills the workers.  The process group contains only this process and them, and only they have SIGTERM unblocked. */
static _Noreturn void end_with_workers(void)
{
	(void)kill(0, SIGTERM);
	while (waitpid(-1, NULL, 0) > 0)
		;
	_exit(0);
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/*
 * Waits for a byte from the caller.  Waiting workers are left alone, because a caller will wait for one of them.
 * Workers that have answered are dead after REAP_MS and are reaped.
 */
static void rest_until_asked(void)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };

	if (poll(&p, 1, REAP_MS) != 0)
		return;
	reap();
	if (poll(&p, 1, MEMORY_REST_MS) == 0)
		memory_rest();
}

static _Noreturn void keep_spares(const struct rule_set *rules, int sock, size_t spares)
{
	char used[INSPECTORS_SPARES_MAX];
	size_t waiting = 0;
	ssize_t n;

	if (settle_down(sock) < 0)
		_exit(1);
	warm_up(rules);
	do {
		reap();
		while (waiting < spares && make_worker(rules, 0))
			waiting++;
		rest_until_asked();
		n = read(0, used, sizeof(used));
		waiting -= n > 0 ? min_u64((uint64_t)n, waiting) : 0;
		/* Another worker is ready, and the caller is about to answer a client, on the same CPUs. */
		if (n > 0 && waiting > 0)
			(void)poll(NULL, 0, ANSWER_MS);
	} while (n > 0);
	end_with_workers();
}

/* ---- the caller ----------------------------------------------------------------------------------------- */

struct inspectors_task {
	const struct rule_set *rules;
	size_t spares;
	int sock;
};

static void become_inspectors(void *arg)
{
	const struct inspectors_task *t = arg;

	keep_spares(t->rules, t->sock, t->spares);
}

int inspectors_open(const struct rule_set *rules, unsigned spares, struct inspectors **ret, struct brig_error *err)
{
	AUTO_FREE struct inspectors *made = malloc(sizeof(*made));
	AUTO_FD ours = FD_NONE;
	AUTO_FD theirs = FD_NONE;
	struct inspectors_task task = { .rules = rules, .spares = min_u64(spares, INSPECTORS_SPARES_MAX) };
	int ends[2];
	pid_t pid;

	if (!made)
		return err_nomem(err);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "inspection: cannot make a socket for spare workers");
	ours = ends[0];
	theirs = ends[1];
	if (fd_set_nonblock(ours) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "inspection: cannot set up the socket for spare workers");
	task.sock = theirs;
	pid = worker_fork(become_inspectors, &task);
	if (pid < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "inspection: cannot start the process with spare workers");
	*made = (struct inspectors){ .pid_fd = (int)syscall(SYS_pidfd_open, pid, 0), .sock = fd_move(&ours) };
	for (size_t i = 0; i < INSPECTORS_SPARES_MAX; i++)
		made->retired[i] = WORKER_NONE;
	if (made->pid_fd < 0) {
		err_set(err, BRIG_E_SYSTEM, errno, "inspection: cannot hold the process with spare workers");
		fd_closep(&made->sock);
		(void)waitpid(pid, NULL, 0); /* the process notices that its socket is closed, and exits */
		return -BRIG_E_SYSTEM;
	}
	*ret = MOVE_PTR(made);
	return 0;
}

static void end_retired(struct worker *w)
{
	if (w->pid_fd >= 0) /* dead for long, unless a text has taken it over */
		(void)syscall(SYS_pidfd_send_signal, w->pid_fd, SIGKILL, NULL, 0);
	fd_closep(&w->pid_fd);
	fd_closep(&w->answer_fd);
}

/*
 * Also closes the sockets of retired workers here, when no client waits for a result: closing the last end of a socket
 * takes long.
 */
bool inspectors_refill(struct inspectors *from)
{
	static const char bytes[INSPECTORS_SPARES_MAX];
	size_t used = min_u64(from->used, sizeof(bytes));

	from->used = 0;
	for (size_t i = 0; i < INSPECTORS_SPARES_MAX; i++)
		fd_closep(&from->retired[i].answer_fd);
	end_retired(&from->retired[from->next]);
	return used == 0 || send(from->sock, bytes, used, MSG_NOSIGNAL) == (ssize_t)used;
}

void inspectors_retire(struct inspectors *from, struct worker *w)
{
	end_retired(&from->retired[from->next]);
	from->retired[from->next] = *w;
	*w = WORKER_NONE;
	from->next = (from->next + 1) % INSPECTORS_SPARES_MAX;
}

void inspectors_close(struct inspectors *from)
{
	if (!from)
		return;
	for (size_t i = 0; i < INSPECTORS_SPARES_MAX; i++)
		end_retired(&from->retired[i]);
	fd_closep(&from->sock);
	if (proc_reap(&from->pid_fd, clock_now_ns() + END_MAX_NS, NULL) < 0) {
		(void)syscall(SYS_pidfd_send_signal, from->pid_fd, SIGKILL, NULL, 0);
		(void)proc_reap(&from->pid_fd, clock_now_ns() + END_MAX_NS, NULL);
		proc_leave(&from->pid_fd);
	}
	free(from);
}

bool inspectors_are_ready(const struct inspectors *from)
{
	struct pollfd p = { .fd = from->sock, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && p.revents == POLLIN;
}

static bool receive_worker(int queue, struct worker *ret)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union sent_fds control = { .space = { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)
	};
	int fds[SENT_COUNT] = { FD_NONE, FD_NONE };
	size_t len;
	ssize_t n;

	do
		n = recvmsg(queue, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	/*
	 * The peer is our own process and inspects no code: it sends two descriptors.  Fewer arrive if this process has
	 * too many files open.
	 */
	len = n == 1 && msg.msg_controllen > CMSG_LEN(0) ? control.align.cmsg_len - CMSG_LEN(0) : 0;
	memcpy(fds, CMSG_DATA(&control.align), min_u64(len, sizeof(fds)));
	*ret = (struct worker){ .pid = -1, .pid_fd = fds[SENT_PID_FD], .answer_fd = fds[SENT_SOCK] };
	return n == 1;
}

/* True if the worker still waits for a request: it has neither exited nor sent anything. */
static bool is_waiting(const struct worker *w)
{
	struct pollfd p = { .fd = w->answer_fd, .events = POLLIN };

	return w->pid_fd >= 0 && w->answer_fd >= 0 && poll(&p, 1, 0) == 0;
}

bool inspectors_take(struct inspectors *from, const struct inspect_request *req, struct worker *ret)
{
	AUTO_BUF message = BUF_INIT(WIRE_ASK_MAX);
	struct worker w = WORKER_NONE;

	if (!from || !wire_ask_encode(req, &message) || !receive_worker(from->sock, &w))
		return false;
	from->used++;
	if (is_waiting(&w) &&
	    send(w.answer_fd, message.data, message.len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)message.len) {
		*ret = w;
		return true;
	}
	(void)syscall(SYS_pidfd_send_signal, w.pid_fd, SIGKILL, NULL, 0);
	fd_closep(&w.pid_fd);
	fd_closep(&w.answer_fd);
	return false;
}
