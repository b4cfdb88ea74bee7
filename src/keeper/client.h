/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of a keeper; shared by start.c and client.c. */
#ifndef KEEPER_CLIENT_H
#define KEEPER_CLIENT_H

#include "keeper/keeper.h"

/* A cell that has ended: its keeper closes the talk when nothing of it is left, or has said what is. */
struct ended {
	struct ended *next;
	int talk;
	char id[RUN_ID_LEN + 1]; /* the run's */
	uint64_t patience_ns;
};

struct backend_host {
	int socket, pidfd;
	struct ended *ended;
	int pools_talk; /* in which KEEP_POOLS is to be answered; FD_NONE: none is */
	struct keep_pool *pools;
	size_t n_pools; /* as they were told last */
};

/* A pair of sockets for records of protocol.h.  0 or -errno. */
int keeper_open_talk(int *ours, int *theirs);
/* Closes what the host holds, and waits for the keeper's end; the host itself is the caller's. */
void keeper_release(struct backend_host *h);

#endif
