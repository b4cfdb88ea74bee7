/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The janitor is a small process beside the supervisor.  Everything of a cell dies with the
 * supervisor by itself (processes by PDEATHSIG and the pid namespace, mounts and networks with their
 * namespaces) except the directories of its control groups.  The janitor waits for the supervisor's
 * end, however it comes, and removes them (INV-3).  After a whole run it is told to do so while the supervisor
 * is still judging: that takes a quarter of a millisecond, and there is another processor.
 */
#ifndef NATIVE_JANITOR_H
#define NATIVE_JANITOR_H

#include "base/util.h"

struct cgroup;

struct janitor {
	int pidfd;
	int lifeline; /* our end; the kernel closes it when we die */
	bool sweeping;
};
#define JANITOR_NONE                                  \
	{                                             \
		.pidfd = FD_NONE, .lifeline = FD_NONE \
	}

/* Started before the groups exist, so that there is no moment at which they could be left.  0 or -errno. */
int janitor_start(struct janitor *j, const struct cgroup *cg, uint64_t patience_ns);
/* Lets it remove the groups now, beside whatever the supervisor goes on to do.  0 or -errno. */
int janitor_sweep(struct janitor *j);
/* Waits until it has done so.  0, or negative if something stayed by the deadline; then it goes on trying. */
int janitor_await(struct janitor *j, uint64_t deadline_ns);
/* Ends it without a clean-up: the supervisor has done that itself.  Accepts one that was never started. */
void janitor_dismiss(struct janitor *j);

#endif
