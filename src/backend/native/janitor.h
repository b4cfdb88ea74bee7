/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The janitor is a small process beside the supervisor.  When the supervisor dies, everything of a cell disappears by
 * itself (processes by PDEATHSIG and the pid namespace, mounts and networks with their namespaces) except the
 * directories of its cgroups.  The janitor waits for the supervisor's request or for its end, however it comes, and
 * removes them (INV-3).
 *
 * So the same code cleans up after a run that ends normally and after one that is killed.  A supervisor that lives
 * writes its record meanwhile, and waits for the janitor last.
 *
 * One janitor serves all cells that a host has at a time: forking one per cell would be a tenth of the cost of a warm
 * cell.
 */
#ifndef NATIVE_JANITOR_H
#define NATIVE_JANITOR_H

#include "base/util.h"

struct cgroup;
struct guarded; /* the cgroups of one cell */

/* The janitors of one host. */
struct janitors {
	struct janitor *current; /* NULL: the next cell starts one */
	bool stays;              /* even while there is no cell */
};

/*
 * Puts the groups into a janitor's care.  Called before they are created, so that there is no moment at which they
 * could be left behind. 0 or -errno.
 */
int janitor_guard(struct janitors *js, struct cgroup *cg, struct guarded **ret);
/* Requests removal: every process of the cell is dead, except perhaps the dying one of this pidfd (FD_NONE: none). */
void janitor_finish(struct janitors *js, struct guarded *g, int dying);
/* Readable when the janitor has answered, for these groups or others, or has exited; stays the janitor's. */
int janitor_fd(const struct guarded *g);
/* Whether there is nothing left to wait for. */
bool janitor_is_done(struct guarded *g);
/*
 * Waits until the groups are removed; best called after other work.  0; -EBUSY if the janitor has not succeeded at the
 * deadline (it continues without us); -ECHILD if it cannot remove them or was killed.
 */
int janitor_await(struct guarded *g, uint64_t deadline_ns);
/* Frees g.  A janitor without other groups exits, and is waited for until the deadline. */
void janitor_release(struct janitors *js, struct guarded *g, uint64_t deadline_ns);
/* Call when nothing is guarded. */
void janitor_end(struct janitors *js, uint64_t deadline_ns);
/* In a child: closes its copy of the lifelines.  Async-signal-safe. */
void janitor_close_in_child(const struct janitors *js);

#endif
