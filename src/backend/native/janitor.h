/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The janitor is a small process beside the supervisor.  Everything of a cell dies with the
 * supervisor by itself (processes by PDEATHSIG and the pid namespace, mounts and networks with their
 * namespaces) except the directories of its control groups.  The janitor waits for the supervisor's
 * end, however it comes, and removes them (INV-3).  A supervisor that lives to the end of the run removes them itself,
 * and sends the janitor home, which takes a reference to the cell's mounts with it: to undo them the kernel waits for every
 * cpu, and meanwhile the supervisor can write its record.
 */
#ifndef NATIVE_JANITOR_H
#define NATIVE_JANITOR_H

#include "base/util.h"

struct cgroup;

struct janitor {
	int pidfd;
	int lifeline; /* our end; the kernel closes it when we die */
};
#define JANITOR_NONE                                  \
	{                                             \
		.pidfd = FD_NONE, .lifeline = FD_NONE \
	}

/* Started before the groups exist, so that there is no moment at which they could be left.  0 or -errno. */
int janitor_start(struct janitor *j, const struct cgroup *cg, uint64_t patience_ns);
/* Has it hold a copy of fd until its end. */
void janitor_keep(struct janitor *j, int fd);
/* Ends it without a clean-up: the supervisor has done that itself.  Accepts one that was never started. */
void janitor_dismiss(struct janitor *j);
/* Lets it go on trying what the supervisor could not do in time. */
void janitor_leave(struct janitor *j);
/* Waits for the end of a dismissed one, which takes the kernel a while: best done after something else. */
void janitor_reap(struct janitor *j);

#endif
