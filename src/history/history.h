/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history: what was run, what was found, what was enforced, what happened, for people to look up afterwards.
 *
 * A run appends one record to a spool, which takes some tens of microseconds; readers of the history, and every few
 * hundredth writer, import the spool into a SQLite database (docs/HISTORY.md).  The history is not the audit log: when
 * it cannot be written the run goes on, and its result says so.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include "base/buf.h"
#include "model/record.h"
#include "sys/statedir.h"

/* What went wrong on the way without being a failure, in sentences. */
#define HISTORY_NOTES_MAX 8
struct history_notes {
	char text[HISTORY_NOTES_MAX][RESULT_TEXT_MAX];
	size_t n;
};
void history_note(struct history_notes *notes, const char *fmt, ...) PRINTF(2, 3);

/* The state folder, and where tests look in. */
struct history_place {
	const struct statedir *dir;
	/* Called at each point at which being killed must do no harm; NULL: nobody looks. */
	void (*at)(const char *point);
	/* Where the spool stays open from one record to the next, FD_NONE at first; NULL: it is opened for each. */
	int *spool;
};

/* How long executions are remembered. */
struct history_retention {
	uint64_t days;
	uint64_t bytes;
};

/* How much of a stream must be at hand for the history: pass it to record_stream_begin(). */
size_t history_head_max(const struct settings *set);

/* Remembers one request.  Negative: it is not remembered, and *err says why. */
int history_add(const struct history_place *place, const struct record *r, struct history_notes *notes,
		struct brig_error *err);

/*
 * The same in two halves, because the run and its record may be handled by two processes.  The writer validates what
 * was packed: a record of this id, or -BRIG_E_REFUSED.  *ret_due: history_ingest() should follow.
 */
#define HISTORY_PACKED_MAX (60 * MiB)
struct history_packed {
	const char *id;
	struct bytes bytes;
	/* Its entry in the audit log, where the writer knows it and who ran could not; 0 and NULL: as the record says. */
	uint64_t audit_seq;
	const uint8_t *audit_hash;
};
int history_pack(const struct record *r, struct buf *out, struct brig_error *err);
int history_add_packed(const struct history_place *place, const struct history_packed *what, bool *ret_due,
		       struct history_notes *notes, struct brig_error *err);

/*
 * Brings in what was spooled, and forgets what is too old or too much.  Nothing to do is success.  Waits for others who
 * do the same for at most patience_ns (err->sys ETIMEDOUT).
 */
int history_ingest(const struct history_place *place, const struct history_retention *keep, uint64_t patience_ns,
		   struct history_notes *notes, struct brig_error *err);
#define HISTORY_PATIENCE (30 * NS_PER_SEC) /* of those who want to read */

/* Of the database's schema.  *ret is 0 if there is no database, or one that is just being made. */
#define HISTORY_VERSION 4
int history_version(const struct history_place *place, uint64_t *ret, struct brig_error *err);
/* Brings an older database up, all of the way or not at all.  Writers do that by themselves. */
int history_upgrade(const struct history_place *place, struct brig_error *err);

/* Loads what the others load when they first need it: for a process that will not be able to. */
int history_warm_up(struct brig_error *err);

/* Whether there is a database at all. */
bool history_has_database(const struct history_place *place);

/* Which executions; NULL and 0 mean any. */
struct history_query {
	const char *verdict, *language, *trust, *who; /* NULL: any */
	const char *door;                             /* likewise; "none": those that came through none */
	uint64_t since_ns, until_ns;                  /* until_ns: not included */
	uint64_t limit;                               /* of executions, the newest first; 0: all */
};

/* { "executions": [ ... ], "total", "warnings": [ ... ] }. */
int history_list_json(const struct history_place *place, const struct history_query *q, struct history_notes *notes,
		      char **ret, struct brig_error *err);
/* Everything about the one execution whose id has this prefix; NULL: about the newest. */
int history_show_json(const struct history_place *place, const char *prefix, struct history_notes *notes, char **ret,
		      struct brig_error *err);

#endif
