/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/native/janitor.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/native/report.h"
#include "base/clock.h"
#include "sys/cgroup.h"
#include "sys/proc.h"

/*
 * Runs in a fork of a process that may have threads: async-signal-safe to the end.  It holds copies of
 * all of the supervisor's descriptors, and must not keep a pipe open that somebody waits on; so every
 * one is closed but the lifeline and those through which groups are removed.
 */
static _Noreturn void janitor_main(int lifeline, const struct cgroup *cg, uint64_t patience_ns)
{
	struct received last;
	uint64_t deadline_ns;
	int rc;

	(void)prctl(PR_SET_NAME, "brig-janitor"); /* for whoever looks at a list of processes */
	cgroup_close_other_fds(cg, lifeline);
	rc = report_receive(lifeline, /* wait= */ true, &last);
	deadline_ns = clock_now_ns() + patience_ns;
	/* To ask for the removal before would only take the dying one's cpu. */
	if (rc == 1 && last.n_fds == 1)
		(void)proc_await(last.fds[0], deadline_ns);
	_exit(cgroup_remove(cg, deadline_ns) < 0 ? 1 : 0);
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
	/* A process group of its own, before there is a control group to be left: timeout(1) and shells send SIGKILL to the
	 * supervisor's whole group, which must not take the janitor along. */
	if (pid > 0)
		(void)setpgid((pid_t)pid, (pid_t)pid);
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

void janitor_finish(struct janitor *j, int dying)
{
	struct report last = report_make(REPORT_LAST);

	if (dying >= 0 && j->lifeline >= 0)
		(void)report_send(j->lifeline, &last, &dying, 1); /* a janitor that is dead is missed later */
	fd_closep(&j->lifeline);
}

int janitor_await(struct janitor *j, uint64_t deadline_ns)
{
	siginfo_t end = { .si_code = 0 };
	int rc;

	if (j->pidfd < 0)
		return 0;
	rc = proc_reap(&j->pidfd, deadline_ns, &end);
	proc_leave(&j->pidfd);
	if (rc < 0)
		return -EBUSY;
	return end.si_code == CLD_EXITED && end.si_status == 0 ? 0 : -ECHILD;
}
