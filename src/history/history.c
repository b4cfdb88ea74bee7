/* SPDX-License-Identifier: Apache-2.0 */
#include "history/history.h"

#include "history/db.h"
#include "history/encode.h"
#include "history/spool.h"

#define RECORD_MAX (SPOOL_MAX - SPOOL_HEAD)

int history_add(const struct history_place *place, const struct record *r, struct history_notes *notes,
		struct brig_error *err)
{
	const struct history_retention keep = { .days = r->set->history_days, .bytes = r->set->history_size };
	AUTO_BUF record = BUF_INIT(RECORD_MAX);
	struct brig_error why = BRIG_ERROR_INIT;
	struct spool_outcome outcome;
	int rc;

	spool_record_begin(&record);
	history_encode(r, &record);
	rc = spool_append(place->dir, &record, &outcome, err);
	if (rc < 0)
		return rc;
	if (outcome.aside[0])
		history_note(notes,
			     "what stood in the place of the history's spool was no spool; it is kept as '%.200s/%s'",
			     place->dir->path, outcome.aside);
	/* The record is safe: if it cannot be brought in now, or somebody else is at it, another one will try again. */
	if (outcome.due && history_ingest(place, &keep, 0, notes, &why) < 0 && why.sys != ETIMEDOUT)
		history_note(notes, "the history is not up to date: %s", why.msg);
	return 0;
}

int history_version(const struct history_place *place, uint64_t *ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_DB db = { .handle = NULL };
	int64_t version = 0;
	int rc = db_open(&db, place->dir, DB_READ, &why);

	if (rc == 0)
		rc = db_number(&db, "PRAGMA user_version", &version, &why);
	*ret = version > 0 ? (uint64_t)version : 0;
	if (rc < 0 && why.sys == ENOENT)
		return 0;
	if (rc < 0 && err)
		*err = why;
	return rc;
}

int history_upgrade(const struct history_place *place, struct brig_error *err)
{
	AUTO_DB db = { .handle = NULL };

	return db_open(&db, place->dir, DB_WRITE, err);
}
