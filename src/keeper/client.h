/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of the protocol; shared by start.c, request.c and client.c. */
#ifndef KEEPER_CLIENT_H
#define KEEPER_CLIENT_H

#include "keeper/keeper.h"

/* A cell that has ended.  The keeper closes the channel when nothing of the cell is left, or has reported what is. */
struct ended {
	struct ended *next;
	int channel;
	char id[RUN_ID_LEN + 1]; /* of the run */
	uint64_t patience_ns;
};

struct backend_host {
	int socket, pidfd; /* pidfd: FD_NONE if another process started the keeper */
	struct ended *ended;
	int pools_channel; /* on which a KEEP_POOLS reply is due; FD_NONE: none */
	struct keep_pool *pools;
	size_t n_pools; /* as last received */
};

/* A pair of connected sockets for the records of protocol.h.  0 or -errno. */
int keeper_open_channel(int *ours, int *theirs);
/* Sends a job.  The keeper answers on *ret_channel.  -BRIG_E_USAGE: the plan cannot be expressed as a job. */
int keeper_send_job(const struct backend_host *h, const struct plan *plan, int *ret_channel, struct brig_error *err);
/* Whether KEEP_GO is sent before the cell is built. */
static inline bool keeper_starts_early(const struct plan *plan)
{
	return plan->start_at_once && !plan->waits_at && !plan_watches_hidden(plan);
}
/* Closes the host's descriptors and waits until the keeper has exited; the caller frees the host itself. */
void keeper_release(struct backend_host *h);

#endif
