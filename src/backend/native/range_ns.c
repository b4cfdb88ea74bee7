/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user namespace for the supervisor of an ordinary user's cells.
 *
 * Of the ids of a user's range only newuidmap(1) can make maps, and it maps them for processes that the user starts.  So each cell
 * took two runs of a program with rights of its own, its supervisor could not give those rights up, and no process but one
 * that was started inside could be in a cell: who joins one must own its user namespace, from the namespace right above it,
 * and what runs beside the supervisor has the user's own id, like everything else of the user's.
 *
 * Here the helpers run once.  The supervisor goes into a user namespace whose map is the user's id and the whole range, each id being
 * what it is outside:
 *
 *	host             user 1001, range 100000 to 165535 in /etc/subuid
 *	 └─ supervisor's 1001 and 100000 to 165535; no 0, and nobody there has the name of root
 *	     ├─ cell     0 is 103500, 1000 is 103501
 *	     └─ cell     0 is 103526, 1000 is 103527
 *
 * In it the supervisor has every capability, over its own children: it writes the maps of cells, takes another id for the moment in
 * which a cell is born, and looks at what is in there.  Over anything else it has the rights of the user, as before: the kernel
 * asks for a capability where the thing was made, and lets nobody use one on files of ids that are not mapped.  Because no
 * id changes its number, files, control groups, signals and evidence are the same from either side.
 *
 * A child makes the namespace and waits in it until the maps are written.  If that fails the child ends, nothing has happened,
 * and cells get their maps one by one as before.
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

/* Nobody tells it to go on: it is killed, or its parent was before it could ask for that. */
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

/* With its maps; the caller's descriptor, or -errno. */
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
	/* To gain capabilities makes a process one that may not be looked into, and cells would inherit that. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	h->ids.kind = IDMAP_DIRECT;
	return true;
}
