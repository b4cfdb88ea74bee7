/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/native/janitor.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/native/report.h"
#include "base/clock.h"
#include "sys/cgroup.h"

/*
 * Runs in a fork of a process that may have threads: async-signal-safe to the end.  It holds copies of
 * all of the supervisor's descriptors, and must not keep a pipe open that somebody waits on; so every
 * one is closed but the lifeline and those through which groups are removed.
 */
static _Noreturn void janitor_main(int lifeline, const struct cgroup *cg, uint64_t patience_ns)
{
	struct received kept;

	cgroup_close_other_fds(cg, lifeline);
	while (report_receive(lifeline, /* wait= */ true, &kept) > 0)
		;
	_exit(cgroup_remove(cg, clock_now_ns() + patience_ns) < 0 ? 1 : 0);
}

int janitor_start(struct janitor *j, const struct cgroup *cg, uint64_t patience_ns)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&j->pidfd };
	int ends[2];
	sigset_t all, was;
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* Blocked before the fork: a Ctrl-C for the whole process group must not end the janitor first. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &was);
	/* No exit signal: a caller's own wait() must not find this child. */
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		(void)close(ends[1]);
		janitor_main(ends[0], cg, patience_ns);
	}
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	(void)close(ends[0]);
	if (pid < 0) {
		int saved = errno;

		(void)close(ends[1]);
		j->pidfd = FD_NONE;
		return -saved;
	}
	j->lifeline = ends[1];
	return 0;
}

void janitor_keep(struct janitor *j, int fd)
{
	const struct report keep = report_make(REPORT_KEEP);

	if (j->lifeline >= 0 && fd >= 0)
		(void)report_send(j->lifeline, &keep, &fd, 1); /* if it fails, the work is done elsewhere */
}

void janitor_dismiss(struct janitor *j)
{
	if (j->pidfd >= 0)
		(void)pidfd_send_signal(j->pidfd, SIGKILL, NULL, 0);
	fd_closep(&j->lifeline); /* too late to be taken for our death */
}

void janitor_leave(struct janitor *j)
{
	fd_closep(&j->lifeline);
	fd_closep(&j->pidfd);
}

void janitor_reap(struct janitor *j)
{
	while (j->pidfd >= 0 && waitid(P_PIDFD, (id_t)j->pidfd, NULL, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	fd_closep(&j->pidfd);
}
