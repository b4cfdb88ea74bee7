/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what a plan promised with what a backend read back. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include "model/evidence.h"
#include "model/facts.h"
#include "model/plan.h"

struct verify_outcome {
	protection_set degraded;  /* not kept, and the policy allows that */
	const char *first_broken; /* name of the first check that failed without leave; NULL: none */
};

/* One row per promise.  A fact that could not be read counts as not kept. */
struct verify_outcome verify_run(const struct plan *plan, const struct facts *facts, struct evidence *ret);

#endif
