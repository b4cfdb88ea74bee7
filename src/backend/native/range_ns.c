/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user namespace for the supervisor of an ordinary user's cells.
 *
 * Only newuidmap(1) can map the ids of a user's range, and it does so for processes that the user starts.  Mapping them
 * per cell means two runs of a set-uid program for each, so the supervisor must keep the ability to run it; and only a
 * process started inside a cell can be in it: to join a cell, a process must own its user namespace, in the namespace
 * directly above, and processes beside the supervisor have the user's own id, like all others of the user.
 *
 * Here the helpers run once.  The supervisor enters a user namespace that maps the user's id and the whole range, each
 * id to itself:
 *
 *	host             user 1001, range 100000 to 165535 in /etc/subuid
 *	 └─ supervisor's 1001 and 100000 to 165535; no 0: no process there is named root
 *	     ├─ cell     0 is 103500, 1000 is 103501
 *	     └─ cell     0 is 103526, 1000 is 103527
 *
 * In it the supervisor has every capability, over its own children: it writes the id maps of cells, takes another id
 * while a cell is cloned, and inspects cells.  Over everything else it has only the user's rights: the kernel checks a
 * capability in the namespace that owns the object, and ignores it for files of unmapped ids.  Because no id changes
 * its number, files, cgroups, signals and evidence are the same from either side.
 *
 * A child creates the namespace and waits in it until the maps are written.  If that fails the child exits, nothing has
 * changed, and each cell gets its maps by the helpers as before.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "backend/native/cell.h"
#include "backend/native/made.h"
#include "base/clock.h"
#include "base/fd.h"
#include "sys/proc.h"

#define END_MAX_NS NS_PER_SEC

/* Blocks until it is killed, or exits if its parent died before PDEATHSIG was set. */
static _Noreturn void hold(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent)
		(void)pause();
	_exit(1);
}

static int open_user_ns(pid_t pid)
{
	char path[48];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Creates the namespace with its maps; returns a descriptor for the caller to close, or -errno. */
static int make(const struct idmap *ids)
{
	int pidfd = FD_NONE, fd;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWUSER,
				   .pidfd = (uintptr_t)&pidfd };
	const pid_t own = getpid();
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		hold(own);
	if (pid < 0)
		return -errno;
	fd = idmap_write_range(ids, (pid_t)pid);
	if (fd == 0)
		fd = open_user_ns((pid_t)pid);
	(void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	(void)proc_reap(&pidfd, clock_now_ns() + END_MAX_NS, NULL);
	proc_leave(&pidfd);
	return fd;
}

bool native_enter_range(struct backend_host *h)
{
	AUTO_FD ns = FD_NONE;

	if (h->ids.kind != IDMAP_SUBORDINATE)
		return false;
	ns = make(&h->ids);
	if (ns < 0 || setns(ns, CLONE_NEWUSER) < 0)
		return false;
	/* Gaining capabilities makes a process undumpable, and cells would inherit that. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	h->ids.kind = IDMAP_DIRECT;
	return true;
}
