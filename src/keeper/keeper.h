/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper of cells beside this process (main.c), and its cells as a backend.
 *
 * The backend takes plans that a job can say (model/job.h) and whose interpreter can wait for its program; others are refused
 * by begin with BRIG_E_USAGE.  What it gives is a native cell in every respect.
 */
#ifndef KEEPER_KEEPER_H
#define KEEPER_KEEPER_H

#include "keeper/protocol.h"

/* Starts the keeper; the host is for keeper_backend, and for its close, which ends the keeper and every cell of it. */
int keeper_start(const struct keep_hello *ceilings, struct backend_host **ret, struct brig_error *err);
/* Another process that starts keepers, under ceilings of its own. */
struct keeper_starter {
	/* Brings a keeper to this end of a socket, of which it makes a copy; 0 or -errno.  NULL: this process starts them. */
	int (*start)(void *arg, int socket, int limits_disks);
	void *arg;
};
/* The same as keeper_start(), of such a process; whether that could do it is seen by the first run. */
int keeper_request(const struct keeper_starter *by, bool limits_disks, struct backend_host **ret,
		   struct brig_error *err);
/* What that process needs: its ceilings as a sealed file, or -errno; ... */
int keeper_seal_ceilings(const struct keep_hello *ceilings);
/* ... and in a child of it, which has one thread, to become the keeper: returns only -errno. */
int keeper_become(int ceilings, int caller);
/*
 * Forks a keeper that keeper_start() will greet instead of starting one: for a process that has one thread, and has read nothing
 * yet.  What cannot be forked is started later.
 */
void keeper_fork(void);
/* One that nobody has greeted goes. */
void keeper_fork_end(void);
/* Tells it to end, which it then does while others do something else; closing waits for that. */
void keeper_hang_up(struct backend_host *h);
/* Whether it still answers; one that does not is to be closed. */
bool keeper_is_alive(const struct backend_host *h);

/*
 * How many cells of which kind it has: the number of rows.  A keeper that is busy is waited for for a few milliseconds only: then
 * it is what it said last, and what it says later is for the next one who asks.
 */
size_t keeper_pools(struct backend_host *h, struct keep_pool rows[KEEP_POOLS_MAX]);

extern const struct backend_ops keeper_backend;

/* Of a cell of it, after finish: whether it was there before the request. */
bool keeper_cell_was_waiting(const struct cell *c);
/* Whether its interpreter is a fork of one that others are forked from too. */
bool keeper_cell_was_forked(const struct cell *c);

#endif
