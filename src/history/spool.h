/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: where runs leave their records until they are imported.  See spool.c. */
#ifndef HISTORY_SPOOL_H
#define HISTORY_SPOOL_H

#include <limits.h>

#include "base/buf.h"
#include "sys/statedir.h"

#define SPOOL_NAME       "spool"
#define SPOOL_TAKEN_NAME "spool.taken" /* what is on its way into the database */
#define SPOOL_HEAD       32
#define SPOOL_RECORD     24                /* bytes before each record */
#define SPOOL_MAX        (64 * MiB)        /* nothing is added beyond it */
#define SPOOL_INGEST     (1 * MiB)         /* whenever this much more is in it, the one who wrote that brings it in */
#define SPOOL_PATIENCE   (10 * NS_PER_SEC) /* for others, who hold it for microseconds */

/* An empty record: room for the head, behind which the caller writes. */
void spool_record_begin(struct buf *record);

struct spool_outcome {
	bool due;             /* it has grown past another SPOOL_INGEST: it should be imported */
	char aside[NAME_MAX]; /* something else stood in its place and is called so now; "": no */
};

/* Appends the record, whole or not at all. */
int spool_append(const struct statedir *d, int *kept, struct buf *record, struct spool_outcome *ret,
		 struct brig_error *err);

/*
 * Renames an unusable file to NAME.bad-1 to -9, for later analysis; the last one of these is replaced when all are
 * there.
 */
int spool_set_aside(const struct statedir *d, const char *name, char *ret_name, size_t size, struct brig_error *err);

/*
 * Takes the spool away from the writers, under SPOOL_TAKEN_NAME: they begin another.  The caller holds the lock of the
 * history.  *ret: there is one.
 */
int spool_take(const struct statedir *d, bool *ret, struct brig_error *err);

/* What was read of a spool. */
struct spool_report {
	size_t records;
	size_t damaged_bytes; /* that belong to no whole record */
};

/*
 * Hands every whole record to fn, which returns 0 or ends the reading with a negative value.  Damage is passed over
 * and counted.  0, or what fn said.
 */
int spool_scan(const void *data, size_t len, int (*fn)(void *arg, const void *record, size_t len), void *arg,
	       struct spool_report *ret);

#endif
