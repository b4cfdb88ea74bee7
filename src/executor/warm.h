/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells that are there before their request, for handles that want them: see warm.c.
 */
#ifndef EXECUTOR_WARM_H
#define EXECUTOR_WARM_H

#include "executor/prepare.h"
#include "executor/select.h"
#include "model/result.h"

/* Of one handle; zero is one that wants none. */
struct warm {
	unsigned wanted;             /* waiting cells of each kind, at most; 0: none */
	struct backend_host *keeper; /* NULL: not started yet */
	unsigned starts;             /* of keepers: one that dies is replaced, but not for ever */
};

void warm_release(struct warm *w);
/*
 * A keeper for this run, and the plan made ready for it; NULL: the run is none for it, or there is no keeper, and an ordinary
 * cell is to be made.
 */
struct warm_ask {
	const struct prepared_request *request;
	const struct brig_request *req;
	const struct selection *chosen;
	struct recorder *recorder;
	bool named_packages; /* those of an environment, which somebody made for all who use it */
};
struct backend_host *warm_keeper(struct warm *w, const struct warm_ask *ask, struct plan *plan);

#endif
