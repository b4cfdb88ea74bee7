/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes the cells of a handle's runs, and cells that are there before their request: see warm.c. */
#ifndef EXECUTOR_WARM_H
#define EXECUTOR_WARM_H

#include "executor/prepare.h"
#include "executor/select.h"
#include "keeper/keeper.h"
#include "model/result.h"

struct keep_hello;
struct keep_pool;
struct keeper_use;

/* Of one handle; zero is one that wants no waiting cells. */
struct warm {
	unsigned wanted;            /* waiting cells of each kind, at most; 0: none */
	struct keeper_use *keepers; /* that were started; most handles need one */
	unsigned starts;            /* of keepers with waiting cells: what dies is replaced, but not forever */
	/* Another process starts the keepers, with ceilings that it has chosen: then no cell is made without one. */
	struct keeper_starter starter;
};

/* Tells the keepers to end, which takes them a while; release waits for that. */
void warm_hang_up(struct warm *w);
void warm_release(struct warm *w);

struct warm_ask {
	const struct prepared_request *request;
	const struct brig_request *req;
	const struct selection *chosen;
	struct recorder *recorder;
	bool named_packages; /* those of an environment, which are shared by design */
	bool may_wait;       /* for its program: a cell that was made ahead will do */
};
/*
 * A keeper for this plan, started if need be and held until warm_put(); *use may hold one from before.  With plan->waits_at set
 * the keeper may have such a cell already.  NULL: the plan is none that a keeper serves, or none can be started here; then
 * the backend itself makes the cell.
 */
struct backend_host *warm_take(struct warm *w, const struct warm_ask *ask, struct plan *plan, struct keeper_use **use);
/* Ceilings of what any request can have under a policy, for a process that starts keepers for others.  recorder: it knows where
 * packages lie. */
void warm_ceilings(const struct policy *policy, struct recorder *recorder, unsigned wanted, bool limits_disks,
		   struct keep_hello *ret);
void warm_put(struct warm *w, struct keeper_use **use);
/* Rows of all keepers, as many as there is room for: their number. */
size_t warm_pools(struct warm *w, struct keep_pool *rows, size_t room);
/* Of a keeper that is held: its settle. */
int warm_settle(struct keeper_use *use, const char *run_id, char *leftovers, size_t size);

#endif
