/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The janitor is a small process beside the supervisor.  Everything of a cell dies with the
 * supervisor by itself (processes by PDEATHSIG and the pid namespace, mounts and networks with their
 * namespaces) except the directories of its control groups.  The janitor waits for the supervisor's
 * word or its end, however it comes, and removes them (INV-3).
 *
 * So a run that ends well and one that is killed are cleaned up by the same code.  A supervisor that lives to the end
 * writes its record meanwhile, and waits for the janitor last.
 *
 * One serves all cells that a host has at a time: to fork one for each would be a tenth of what a warm cell costs.
 */
#ifndef NATIVE_JANITOR_H
#define NATIVE_JANITOR_H

#include "base/util.h"

struct cgroup;
struct guarded; /* the groups of one cell */

/* Of one host. */
struct janitors {
	struct janitor *current; /* NULL: the next cell starts one */
	bool stays;              /* also while there is no cell */
};

/*
 * The groups are in a janitor's care, before they exist, so that there is no moment at which they could be left.  0 or
 * -errno.
 */
int janitor_guard(struct janitors *js, struct cgroup *cg, struct guarded **ret);
/* The word: every process of the cell is dead but perhaps the one of this pidfd (FD_NONE: none), which is dying. */
void janitor_finish(struct janitors *js, struct guarded *g, int dying);
/* Readable when the janitor has said something, of these or of others, or has ended; still its own. */
int janitor_fd(const struct guarded *g);
/* Whether there is nothing left to wait for. */
bool janitor_is_done(struct guarded *g);
/*
 * Waits until they are removed, which best comes after something else was done.  0; -EBUSY if the janitor still tries at
 * the deadline, and goes on without us; -ECHILD if it cannot, or somebody has killed it.
 */
int janitor_await(struct guarded *g, uint64_t deadline_ns);
/* Frees it.  A janitor that has nobody else to serve ends, and is waited for until the deadline. */
void janitor_release(struct janitors *js, struct guarded *g, uint64_t deadline_ns);
/* When nothing is guarded any more. */
void janitor_end(struct janitors *js, uint64_t deadline_ns);
/* In a child: it must not hold a janitor's lifeline.  Async-signal-safe. */
void janitor_close_in_child(const struct janitors *js);

#endif
