/* SPDX-License-Identifier: Apache-2.0 */
#include "server/keepers.h"

#include <brig/brig.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "server/report.h"
#include "server/rights.h"
#include "sys/proc.h"

#define READ_SECONDS 30 /* to read a policy, at the most */
#define READ_NS      (READ_SECONDS * NS_PER_SEC)
#define READER_MADE  'c' /* sent with two files; any other text is an error message, sent without files */

/* ---- ceilings ------------------------------------------------------------------------------------------------ */

/* The process that reads the policy and does nothing else: sends the files with the ceilings, or an error message. */
static _Noreturn void be_reader(const struct serve_options *o, int to)
{
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct iovec word = { .iov_base = (char[]){ READER_MADE }, .iov_len = 1 };
	int files[2];

	opts.policy_file = o->policy;
	opts.preset = o->preset;
	opts.state_dir = o->state;
	opts.warm_cells = runner_warm_cells(o);
	if (brig_ceilings(&opts, 0, &files[0], &err) < 0 ||
	    brig_ceilings(&opts, BRIG_CEILINGS_DISKS, &files[1], &err) < 0) {
		struct iovec why = { .iov_base = err.msg, .iov_len = strlen(err.msg) };

		_exit(fd_send_record(to, &why, 1, NULL, 0, 0) < 0 || err.code);
	}
	_exit(fd_send_record(to, &word, 1, files, ARRAY_LEN(files), 0) < 0);
}

/* Receives the files, or the error message; end of file means that the process died. */
static int take_files(int from, int ret[2], struct brig_error *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	char said[sizeof(err->msg)];
	struct iovec piece = { said, sizeof(said) - 1 };
	struct msghdr msg = { .msg_iov = &piece,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct pollfd p = { .fd = from, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, (int)(READ_NS / NS_PER_MS)) <= 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "reading the policy takes more than %d seconds", READ_SECONDS);
	n = fd_receive_record(from, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return err_set(err, BRIG_E_SYSTEM, n < 0 ? errno : 0, "the process that reads the policy has died");
	said[n] = '\0';
	if (fd_take_beside(&msg, ret, 2) == 2)
		return 0;
	return err_set(err, BRIG_E_POLICY, 0, "%s", said);
}

int keepers_read_policy(struct keepers *k, const struct serve_options *o, struct brig_error *err)
{
	int ends[2], files[2] = { FD_NONE, FD_NONE }, pidfd, rc;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot read the policy for the ceilings of cells");
	pid = fork();
	if (pid == 0)
		be_reader(o, ends[1]);
	(void)close(ends[1]);
	rc = pid < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot read the policy for the ceilings of cells")
		     : take_files(ends[0], files, err);
	(void)close(ends[0]);
	pidfd = pid < 0 ? FD_NONE : (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		if (rc < 0)
			(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		(void)proc_reap(&pidfd, clock_now_ns() + READ_NS, NULL);
		fd_closep(&pidfd);
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (rc < 0) {
			fd_closep(&files[i]);
			continue;
		}
		fd_closep(&k->ceilings[i]);
		k->ceilings[i] = files[i];
	}
	return rc;
}

/* ---- processes ----------------------------------------------------------------------------------------------- */

int keepers_open(struct keepers *k, const struct serve_options *o, struct brig_error *err)
{
	*k = (struct keepers)KEEPERS_NONE;
	k->ended = epoll_create1(EPOLL_CLOEXEC);
	if (k->ended < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the keepers of cells");
	return keepers_read_policy(k, o, err);
}

static _Noreturn void be_keeper(int ceilings, int socket)
{
	static const int masters[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(masters); i++)
		(void)signal(masters[i], SIG_DFL);
	rc = rights_keep(RIGHTS_KEEPER);
	if (rc == 0)
		rc = brig_become_keeper(ceilings, socket);
	report("the keeper of cells cannot be started: %s", strerrordesc_np(-rc));
	_exit(BRIG_E_SYSTEM);
}

static int *free_place(struct keepers *k)
{
	for (size_t i = 0; i < KEEPERS_MAX; i++)
		if (k->pidfd[i] < 0)
			return &k->pidfd[i];
	return NULL;
}

void keepers_start(struct keepers *k, int socket, bool limits_disks)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ceilings = k->ceilings[limits_disks], *place;
	pid_t pid;

	keepers_reap(k);
	place = free_place(k);
	pid = place && ceilings >= 0 ? fork() : -1;
	if (pid == 0)
		be_keeper(ceilings, socket);
	if (pid > 0)
		*place = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid < 0 || *place < 0 || epoll_ctl(k->ended, EPOLL_CTL_ADD, *place, &ev) < 0)
		report("no keeper of cells is started: %s", place ? strerrordesc_np(errno) : "there are too many");
}

static void reap_by(int *pidfd, uint64_t deadline_ns)
{
	if (proc_reap(pidfd, deadline_ns, NULL) == 0)
		fd_closep(pidfd);
}

void keepers_reap(struct keepers *k)
{
	for (size_t i = 0; i < KEEPERS_MAX; i++) {
		struct pollfd p = { .fd = k->pidfd[i], .events = POLLIN };

		if (p.fd >= 0 && poll(&p, 1, 0) > 0)
			reap_by(&k->pidfd[i], clock_now_ns() + NS_PER_SEC);
	}
}

void keepers_close(struct keepers *k, uint64_t patience_ns)
{
	const uint64_t deadline = clock_now_ns() + patience_ns;

	for (size_t i = 0; i < KEEPERS_MAX; i++) {
		if (k->pidfd[i] < 0)
			continue;
		reap_by(&k->pidfd[i], deadline);
		if (k->pidfd[i] < 0)
			continue;
		/* the janitor removes its cgroups */
		(void)syscall(SYS_pidfd_send_signal, k->pidfd[i], SIGKILL, NULL, 0);
		reap_by(&k->pidfd[i], clock_now_ns() + patience_ns);
		fd_closep(&k->pidfd[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(k->ceilings); i++)
		fd_closep(&k->ceilings[i]);
	fd_closep(&k->ended);
}
