/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The janitor is a small process beside the supervisor.  Everything of a cell dies with the
 * supervisor by itself (processes by PDEATHSIG and the pid namespace, mounts and networks with their
 * namespaces) except the directories of its control groups.  The janitor waits for the supervisor's
 * word or its end, however it comes, and removes them (INV-3).
 *
 * So a run that ends well and one that is killed are cleaned up by the same code.  A supervisor that lives to the end
 * writes its record meanwhile, and waits for the janitor last.
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
/* The word: every process of the cell is dead but perhaps the one of this pidfd (FD_NONE: none), which is dying. */
void janitor_finish(struct janitor *j, int dying);
/*
 * Waits for its end, which best comes after something else was done.  0, also for one that was never started; -EBUSY if
 * it still tries at the deadline, and goes on without us; -ECHILD if it ended in any other way than by its work.
 */
int janitor_await(struct janitor *j, uint64_t deadline_ns);

#endif
