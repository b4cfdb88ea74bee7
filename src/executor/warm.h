/* SPDX-License-Identifier: Apache-2.0 */
/* The keepers that create the cells of a handle's runs, and cells created ahead of their request: see warm.c. */
#ifndef EXECUTOR_WARM_H
#define EXECUTOR_WARM_H

#include "executor/prepare.h"
#include "executor/select.h"
#include "keeper/keeper.h"
#include "model/result.h"

struct keep_hello;
struct keep_pool;
struct keeper_use;

/* One per handle; zero-initialized keeps no waiting cells. */
struct warm {
	unsigned wanted;            /* maximum number of waiting cells of each kind; 0: none */
	struct keeper_use *keepers; /* keepers started; most handles need one */
	unsigned starts; /* starts of keepers with waiting cells: dead ones are replaced, but not without limit */
	/* If another process starts the keepers, with limits that it chose, no cell is created without one. */
	struct keeper_starter starter;
};

/* Tells the keepers to end, without waiting; warm_release() waits. */
void warm_hang_up(struct warm *w);
void warm_release(struct warm *w);

struct warm_ask {
	const struct prepared_request *request;
	const struct brig_request *req;
	const struct selection *chosen;
	struct recorder *recorder;
	bool named_packages; /* packages of an environment, which is meant to be shared */
	bool may_wait;       /* the program may run in a cell created ahead */
};
/*
 * A keeper for this plan, started if necessary and held until warm_put(); *use may hold one from an earlier call. With
 * plan->waits_at set, the keeper may already have a waiting cell. NULL: keepers do not serve such plans, or none can be
 * started; the backend then creates the cell itself.
 */
struct backend_host *warm_take(struct warm *w, const struct warm_ask *ask, struct plan *plan, struct keeper_use **use);
/*
 * Upper limits for any request under a policy, for a process that starts keepers for others. recorder: provides the
 * location of packages.
 */
void warm_ceilings(const struct policy *policy, struct recorder *recorder, unsigned wanted, bool limits_disks,
		   struct keep_hello *ret);
void warm_put(struct warm *w, struct keeper_use **use);
/* Fills in statistics of the keepers, up to room; returns their number. */
size_t warm_pools(struct warm *w, struct keep_pool *rows, size_t room);
/* The settle operation of a held keeper. */
int warm_settle(struct keeper_use *use, const char *run_id, char *leftovers, size_t size);

#endif
