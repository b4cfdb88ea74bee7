/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the keeper.  Its program is embedded in this one and executed from memory, so there is no path to be found
 * or replaced.  It gets one descriptor, no argument and no environment.
 *
 * A command line runs one program and exits, and executing a keeper first would take a millisecond.  It forks its
 * keeper instead, before it has read more than the name of its command: the keeper's memory then contains only what the
 * kernel put there, and the environment is wiped.  It waits for KEEP_HELLO like any other keeper.
 *
 * On cgroup v2 a process may have to be alone in its group to divide it.  For root the forked keeper does not prevent
 * that: it is moved along.  An ordinary user may get a scope for one process from the service manager, so nothing is
 * forked there.
 *
 * The child is created with clone3(2) directly: without an exit signal, so that wait() in the caller's code does not
 * find it, and with only async-signal-safe calls between clone and exec, since this process may have threads.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/sealed.h"
#include "keeper/client.h"
#include "keeper/program.h"
#include "sys/cgroup.h"
#include "sys/proc.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static int open_program(void)
{
	AUTO_FD fd = memfd_create("brig-keeper", MFD_CLOEXEC | MFD_EXEC);
	int rc;

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 every memfd was executable */
		fd = memfd_create("brig-keeper", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, keeper_program_bytes, keeper_program_size);
	return rc < 0 ? rc : fd_move(&fd);
}

/* Empty, except in a build with faults, where the environment names the step that must fail. */
static char *const *environment(void)
{
#ifdef BRIG_FAULTS
	return environ;
#else
	static char *const none[] = { NULL };

	return none;
#endif
}

static _Noreturn void become_keeper(int program, int caller)
{
	char *const argv[] = { (char *)(uintptr_t) "brig-keeper", NULL };
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The program may have the number that the socket needs. */
	program = fcntl(program, F_DUPFD_CLOEXEC, KEEPER_CALLER_FD + 1);
	if (program >= 0 && setpgid(0, 0) == 0 && dup2(caller, KEEPER_CALLER_FD) >= 0 &&
	    close_range(KEEPER_CALLER_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		(void)syscall(SYS_execveat, program, "", argv, environment(), AT_EMPTY_PATH);
	_exit(127);
}

static int spawn(int program, int caller, int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)ret_pidfd };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		become_keeper(program, caller);
	if (pid > 0)
		return 0;
	*ret_pidfd = FD_NONE;
	return -errno;
}

/* A record can have all evidence of a run, which may exceed the default buffer size. */
static void make_room(int sock)
{
	const int size = 4 * (int)KEEP_BODY_MAX;

	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

int keeper_open_channel(int *ours, int *theirs)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	make_room(ends[0]);
	make_room(ends[1]);
	*ours = ends[0];
	*theirs = ends[1];
	return 0;
}

/* ---- forked in advance -------------------------------------------------------------------------- */

static struct {
	int socket, pidfd;
	pid_t by; /* 0: none */
} forked;

static bool may_fork(void)
{
	struct statfs fs;

	return forked.by == 0 &&
	       (geteuid() == 0 || statfs("/sys/fs/cgroup", &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC);
}

static void wipe_environment(void)
{
#ifndef BRIG_FAULTS
	static char *none[] = { NULL };

	for (char **e = environ; e && *e; e++)
		explicit_bzero(*e, strlen(*e));
	environ = none;
#endif
}

static _Noreturn void become_forked_keeper(int caller)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	wipe_environment();
	if (setpgid(0, 0) < 0 || dup2(caller, KEEPER_CALLER_FD) < 0 || close_range(KEEPER_CALLER_FD + 1, ~0U, 0) < 0)
		_exit(127);
	_exit(keeper_main());
}

void keeper_fork(void)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&forked.pidfd };
	AUTO_FD theirs = FD_NONE;
	long pid;

	if (!may_fork() || keeper_open_channel(&forked.socket, &theirs) < 0)
		return;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		become_forked_keeper(theirs);
	if (pid < 0) {
		fd_closep(&forked.socket);
		return;
	}
	forked.by = getpid();
	cgroup_take_along((pid_t)pid);
}

void keeper_fork_end(void)
{
	if (forked.by != getpid())
		return;
	forked.by = 0;
	fd_closep(&forked.socket);
	proc_leave(&forked.pidfd);
}

/* Assigns the forked keeper to this host; false: there is none. */
static bool take_forked(struct backend_host *h)
{
	if (forked.by != getpid())
		return false;
	forked.by = 0;
	h->socket = fd_move(&forked.socket);
	h->pidfd = fd_move(&forked.pidfd);
	return true;
}

static int spawn_program(struct backend_host *h)
{
	AUTO_FD program = open_program(), theirs = FD_NONE;
	int rc = program < 0 ? program : keeper_open_channel(&h->socket, &theirs);

	return rc < 0 ? rc : spawn(program, theirs, &h->pidfd);
}

static struct backend_host *host_new(struct brig_error *err)
{
	struct backend_host *h = calloc(1, sizeof(*h));

	if (!h)
		(void)err_nomem(err);
	else
		h->socket = h->pidfd = h->pools_channel = FD_NONE;
	return h;
}

int keeper_start(const struct keep_hello *ceilings, struct backend_host **ret, struct brig_error *err)
{
	AUTO_FREE struct backend_host *h = host_new(err);
	struct keep_hello hello = *ceilings;
	int rc;

	if (!h)
		return -err->code;
	hello.version = KEEP_VERSION;
	hello.build = KEEP_BUILD;
	rc = take_forked(h) ? 0 : spawn_program(h);
	if (rc == 0)
		rc = keep_send(h->socket, KEEP_HELLO, &hello, sizeof(hello), NULL, 0, NULL, 0);
	if (rc < 0) {
		keeper_release(h);
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot start the keeper of cells");
	}
	*ret = MOVE_PTR(h);
	return 0;
}

/* ---- started by another process ------------------------------------------------------------------ */

int keeper_request(const struct keeper_starter *by, bool limits_disks, struct backend_host **ret,
		   struct brig_error *err)
{
	AUTO_FREE struct backend_host *h = host_new(err);
	AUTO_FD theirs = FD_NONE;
	int rc;

	if (!h)
		return -err->code;
	rc = keeper_open_channel(&h->socket, &theirs);
	if (rc == 0)
		rc = by->start(by->arg, theirs, limits_disks);
	if (rc < 0) {
		keeper_release(h);
		return err_set(err, BRIG_E_SYSTEM, -rc, "the keeper of cells cannot be asked for");
	}
	*ret = MOVE_PTR(h);
	return 0;
}

int keeper_seal_ceilings(const struct keep_hello *ceilings)
{
	struct keep_hello hello = *ceilings;

	hello.version = KEEP_VERSION;
	hello.build = KEEP_BUILD;
	return sealed_make("brig-ceilings", &hello, sizeof(hello));
}

/* Moves both to their fixed numbers, whichever numbers they have now. */
static int put_in_place(int ceilings, int caller)
{
	int high = fcntl(caller, F_DUPFD_CLOEXEC, KEEPER_CEILINGS_FD + 1);

	if (high < 0 || dup2(ceilings, KEEPER_CEILINGS_FD) < 0 || dup2(high, KEEPER_CALLER_FD) < 0)
		return -errno;
	return 0;
}

int keeper_become(int ceilings, int caller)
{
	char *const argv[] = { (char *)(uintptr_t) "brig-keeper", NULL };
	int program = open_program(), high = FD_NONE;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	high = program < 0 ? FD_NONE : fcntl(program, F_DUPFD_CLOEXEC, KEEPER_CEILINGS_FD + 2);
	if (setpgid(0, 0) < 0 || put_in_place(ceilings, caller) < 0)
		return -errno;
	if (high >= 0 && close_range(KEEPER_CEILINGS_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		(void)syscall(SYS_execveat, high, "", argv, environment(), AT_EMPTY_PATH);
	/*
	 * The host forbids execution from memory: this process, which has read no request, becomes the keeper itself.
	 */
	wipe_environment();
	if (close_range(KEEPER_CEILINGS_FD + 1, ~0U, 0) < 0)
		return -errno;
	_exit(keeper_main());
}
