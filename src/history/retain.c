/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain.c - what is removed: executions older than so many days, and the oldest ones while the database is too large.
 * By the time of the request: where the clock was stepped back, "oldest" is what it says.
 */
#include <stdio.h>

#include "history/ingest.h"

#define DAY_NS     (86400 * NS_PER_SEC)
#define ROUNDS_MAX 64 /* each takes at least one execution and usually all that is needed */
#define AIM        9  /* tenths of the size to come down to, so that not every record is followed by a deletion */

/* Bytes of pages in use. */
static int used_bytes(struct db *db, uint64_t *ret, struct brig_error *err)
{
	int64_t pages, unused, size;
	int rc = db_number(db, "PRAGMA page_count", &pages, err);

	if (rc == 0)
		rc = db_number(db, "PRAGMA freelist_count", &unused, err);
	if (rc == 0)
		rc = db_number(db, "PRAGMA page_size", &size, err);
	if (rc == 0)
		*ret = (uint64_t)(pages - unused) * (uint64_t)size;
	return rc;
}

static int forget_old(struct db *db, uint64_t before_ns, struct brig_error *err)
{
	char sql[128];
	int64_t n;
	int rc;

	(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM executions WHERE at_ns < %llu",
		       (unsigned long long)before_ns);
	rc = db_number(db, sql, &n, err);
	if (rc < 0 || n == 0)
		return rc; /* without a lock: nearly always there is nothing to do */
	(void)snprintf(sql, sizeof(sql), "DELETE FROM executions WHERE at_ns < %llu", (unsigned long long)before_ns);
	return db_exec(db, sql, err);
}

static int forget_oldest(struct db *db, uint64_t n, struct brig_error *err)
{
	char sql[160];

	(void)snprintf(sql, sizeof(sql),
		       "DELETE FROM executions WHERE n IN (SELECT n FROM executions ORDER BY at_ns, n LIMIT %llu)",
		       (unsigned long long)n);
	return db_exec(db, sql, err);
}

static int forget_too_much(struct db *db, uint64_t most, struct brig_error *err)
{
	uint64_t used = 0, aim = most / 10 * AIM;
	int rc = used_bytes(db, &used, err);

	if (rc < 0 || used <= most)
		return rc;
	for (int i = 0; rc == 0 && used > aim && i < ROUNDS_MAX; i++) {
		int64_t n = 0;

		rc = db_number(db, "SELECT count(*) FROM executions", &n, err);
		if (rc < 0 || n == 0)
			return rc;
		/* As many as there would be to go if all had the same size. */
		rc = forget_oldest(db, max_u64((uint64_t)((double)n * (double)(used - aim) / (double)used), 1), err);
		if (rc == 0)
			rc = used_bytes(db, &used, err);
	}
	return rc < 0 ? rc : db_exec(db, "PRAGMA incremental_vacuum;", err);
}

int history_retain(struct db *db, const struct history_retention *keep, uint64_t now_ns, struct brig_error *err)
{
	uint64_t age = keep->days > UINT64_MAX / DAY_NS ? UINT64_MAX : keep->days * DAY_NS;
	/* Only here: what belongs to an execution goes with it, and asking for it at every row that is added takes time. */
	int rc = db_exec(db, "PRAGMA foreign_keys = ON;", err);

	if (rc == 0 && age < now_ns)
		rc = forget_old(db, now_ns - age, err);
	return rc < 0 ? rc : forget_too_much(db, keep->bytes, err);
}
