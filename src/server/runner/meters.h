/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token usage across restarts (STATE/serve/meters, journal.h): a restarted service continues to count where it was.  A
 * line is appended whenever a meter was charged; the last one of a token counts:
 *
 *	m TOKEN RUNS CPU      when each meter is empty, in milliseconds since 1970
 */
#ifndef SERVER_RUNNER_METERS_H
#define SERVER_RUNNER_METERS_H

#include "server/admission.h"
#include "server/runner/journal.h"

#define METERS_NAME "meters"

struct meters {
	struct journal journal;
	bool is_failing; /* and this was reported */
};
#define METERS_INIT                     \
	{                               \
		.journal = JOURNAL_INIT \
	}

/* Restores the meters of an earlier process into the admission. */
int meters_open(struct meters *m, const struct statedir *dir, struct admission *a, struct brig_error *err);
/* Writes the meters charged since the last call: 0, or -code once, when writing begins to fail. */
int meters_commit(struct meters *m, struct admission *a, struct brig_error *err);
void meters_close(struct meters *m);

#endif
