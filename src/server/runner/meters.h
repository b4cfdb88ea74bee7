/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tokens have used of their quotas (STATE/serve/meters, journal.h), so that a service that is started again goes on
 * counting where it was.  A line whenever a meter was added to, the last one of a token counts:
 *
 *	m TOKEN RUNS CPU      the milliseconds since 1970 at which each meter is empty
 */
#ifndef SERVER_RUNNER_METERS_H
#define SERVER_RUNNER_METERS_H

#include "server/admission.h"
#include "server/runner/journal.h"

#define METERS_NAME "meters"

struct meters {
	struct journal journal;
	bool is_failing; /* which has been said */
};
#define METERS_INIT                     \
	{                               \
		.journal = JOURNAL_INIT \
	}

/* Reads what an earlier process left into the admission. */
int meters_open(struct meters *m, const struct statedir *dir, struct admission *a, struct brig_error *err);
/* Writes what was added since the last time: 0, or -code once, when it begins to fail. */
int meters_commit(struct meters *m, struct admission *a, struct brig_error *err);
void meters_close(struct meters *m);

#endif
