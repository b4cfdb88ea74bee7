/* SPDX-License-Identifier: Apache-2.0 */
/* From the spool into the database; see ingest.c. */
#ifndef HISTORY_INGEST_H
#define HISTORY_INGEST_H

#include "history/db.h"
#include "history/history.h"

/* One at a time may change which file is which.  A descriptor that holds the lock, or negative. */
int history_lock(const struct history_place *place, uint64_t patience_ns, struct brig_error *err);
/* With that lock held.  An unusable database is renamed for later analysis; the next one to open it makes a new one. */
int history_set_db_aside(const struct history_place *place, struct history_notes *notes, struct brig_error *err);
/* Forgets what is too old or too much. */
int history_retain(struct db *db, const struct history_retention *keep, uint64_t now_ns, struct brig_error *err);

static inline void history_point(const struct history_place *place, const char *point)
{
	if (place->at)
		place->at(point);
}

#endif
