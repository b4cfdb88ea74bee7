/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a keeper process (main.c), and its cells as a backend.
 *
 * The backend takes any plan that can be expressed as a job (model/job.h); begin refuses others with BRIG_E_USAGE.  The
 * result is a native cell in every respect.
 */
#ifndef KEEPER_KEEPER_H
#define KEEPER_KEEPER_H

#include "keeper/protocol.h"

/* Starts a keeper.  *ret is the host for keeper_backend; its close() ends the keeper and all its cells. */
int keeper_start(const struct keep_hello *ceilings, struct backend_host **ret, struct brig_error *err);
/* Another process that starts keepers, under ceilings that it has chosen. */
struct keeper_starter {
	/*
	 * Starts a keeper at this end of a socket, which it duplicates; 0 or -errno.  NULL: this process starts keepers
	 * itself.
	 */
	int (*start)(void *arg, int socket, int limits_disks);
	void *arg;
};
/* Like keeper_start(), but asks that process for the keeper.  If it fails to start one, the first run reports that. */
int keeper_request(const struct keeper_starter *by, bool limits_disks, struct backend_host **ret,
		   struct brig_error *err);
/* For that process: its ceilings as a sealed file, or -errno. */
int keeper_seal_ceilings(const struct keep_hello *ceilings);
/* For a single-threaded child of that process: becomes the keeper.  Returns only on failure, -errno. */
int keeper_become(int ceilings, int caller);
/*
 * Forks a keeper for keeper_start() to use instead of starting one.  For a process that has one thread and has read no
 * input yet. If the fork fails, keeper_start() starts a keeper as usual.
 */
void keeper_fork(void);
/* Ends a forked keeper that keeper_start() has not used. */
void keeper_fork_end(void);
/* Tells the keeper to end, and does not wait; close() does. */
void keeper_hang_up(struct backend_host *h);
/* Whether the keeper is alive; if not, the host must be closed. */
bool keeper_is_alive(const struct backend_host *h);

/*
 * How many cells of which kind the keeper has; returns the number of rows.  Waits a few milliseconds for a busy keeper,
 * then returns the previous answer; the late reply is read by the next call.
 */
size_t keeper_pools(struct backend_host *h, struct keep_pool rows[KEEP_POOLS_MAX]);

extern const struct backend_ops keeper_backend;

/* Valid after finish: whether the cell existed before the request. */
bool keeper_cell_was_waiting(const struct cell *c);
/* Valid after finish: whether the cell's interpreter is a fork of a zygote. */
bool keeper_cell_was_forked(const struct cell *c);

#endif
