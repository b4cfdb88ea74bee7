/* SPDX-License-Identifier: Apache-2.0 */
#include "history/history.h"

#include "base/str.h"
#include "history/db.h"
#include "history/encode.h"
#include "history/packed.h"
#include "history/spool.h"
#include "history/sqlite.h"
#include "model/plan.h"

#define RECORD_MAX (SPOOL_MAX - SPOOL_HEAD)

/* Appends the record; *ret_due: it is time to bring the spool in. */
static int add_record(const struct history_place *place, struct buf *record, bool *ret_due, struct history_notes *notes,
		      struct brig_error *err)
{
	struct spool_outcome outcome;
	int rc = spool_append(place->dir, place->spool, record, &outcome, err);

	if (rc < 0)
		return rc;
	if (outcome.aside[0])
		history_note(notes,
			     "what stood in the place of the history's spool was no spool; it is kept as '%.200s/%s'",
			     place->dir->path, outcome.aside);
	*ret_due = outcome.due;
	return 0;
}

int history_add(const struct history_place *place, const struct record *r, struct history_notes *notes,
		struct brig_error *err)
{
	const struct history_retention keep = { .days = r->set->history_days, .bytes = r->set->history_size };
	AUTO_BUF record = BUF_INIT(RECORD_MAX);
	struct brig_error why = BRIG_ERROR_INIT;
	bool due = false;
	int rc;

	spool_record_begin(&record);
	history_encode(r, &record);
	rc = add_record(place, &record, &due, notes, err);
	/* The record is safe: if it cannot be imported now, or another process is importing, a later one will try
	 * again. */
	if (rc == 0 && due && history_ingest(place, &keep, 0, notes, &why) < 0 && why.sys != ETIMEDOUT)
		history_note(notes, "the history is not up to date: %s", why.msg);
	return rc;
}

int history_pack(const struct record *r, struct buf *out, struct brig_error *err)
{
	history_encode(r, out);
	if (out->no_memory)
		return err_nomem(err);
	return out->full ? err_set(err, BRIG_E_SYSTEM, EFBIG, "its record has more than %zu bytes", out->max) : 0;
}

/* The bytes as they are, but for where the entry in the audit log is. */
static void add_bytes(struct buf *record, const struct history_packed *what)
{
	const char *data = what->bytes.data;
	const size_t len = what->bytes.len;
	size_t from = packed_place(data, len, COLUMN_executions_audit_seq);
	size_t to = packed_place(data, len, COLUMN_executions_audit_sha256 + 1);
	struct packed_writer w = { .out = record, .count_at = SIZE_MAX }; /* as many values as before */
	char hash[SHA256_HEX + 1];

	if (what->audit_seq == 0 || from == 0 || to == 0) {
		(void)buf_add(record, data, len);
		return;
	}
	(void)buf_add(record, data, from);
	packed_num(&w, what->audit_seq);
	packed_text(&w, hex_put(hash, what->audit_hash, SHA256_LEN));
	(void)buf_add(record, data + to, len - to);
}

int history_add_packed(const struct history_place *place, const struct history_packed *what, bool *ret_due,
		       struct history_notes *notes, struct brig_error *err)
{
	const struct bytes *packed = &what->bytes;
	AUTO_BUF record = BUF_INIT(RECORD_MAX);
	char own[RUN_ID_LEN + 1];

	if (packed->len > HISTORY_PACKED_MAX || !packed_check(packed->data, packed->len, own) || !str_eq(own, what->id))
		return err_set(err, BRIG_E_REFUSED, 0, "this is no record of run %s for the history", what->id);
	spool_record_begin(&record);
	add_bytes(&record, what);
	return add_record(place, &record, ret_due, notes, err);
}

int history_warm_up(struct brig_error *err)
{
	struct sqlite api;

	return sqlite_load(&api, err);
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
