/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of a keeper; shared by start.c and client.c. */
#ifndef KEEPER_CLIENT_H
#define KEEPER_CLIENT_H

#include "keeper/keeper.h"

/* A cell that has ended: its keeper closes the channel when nothing of it is left, or has said what is. */
struct ended {
	struct ended *next;
	int channel;
	char id[RUN_ID_LEN + 1]; /* the run's */
	uint64_t patience_ns;
};

struct backend_host {
	int socket, pidfd; /* pidfd: FD_NONE of one that another process has started */
	struct ended *ended;
	int pools_channel; /* in which KEEP_POOLS is to be answered; FD_NONE: none is */
	struct keep_pool *pools;
	size_t n_pools; /* as they were told last */
};

/* A pair of sockets for records of protocol.h.  0 or -errno. */
int keeper_open_channel(int *ours, int *theirs);
/* Asks for a cell: *ret_channel is what the keeper answers in.  -BRIG_E_USAGE: the plan is none that a job can say. */
int keeper_send_job(const struct backend_host *h, const struct plan *plan, int *ret_channel, struct brig_error *err);
/* Whether the word to begin is said before the cell is built. */
static inline bool keeper_starts_early(const struct plan *plan)
{
	return plan->start_at_once && !plan->waits_at && !plan_watches_hidden(plan);
}
/* Closes what the host holds, and waits for the keeper's end; the host itself is the caller's. */
void keeper_release(struct backend_host *h);

#endif
