/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of everything that ran, in one small file of the state folder that all brig processes share: metrics.def
 * says what is counted, file.c how the file is kept.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <jansson.h>

#include "base/buf.h"
#include "model/record.h"
#include "sys/statedir.h"

/*
 * Adds a finished request.  0; 1 if that worked but counting restarts, because the old file was damaged or of another
 * version: err says where it went; or negative, and it is not counted.
 */
int metrics_count(const struct statedir *dir, const struct record *rec, struct brig_error *err);

/* All numbers of one moment. */
struct metrics_snapshot;
/* A folder without the file, or none at all (NULL), gives zeros. */
int metrics_read(const struct statedir *dir, struct metrics_snapshot **ret, struct brig_error *err);
/* From the bytes of a file; -BRIG_E_SYSTEM with the reason if they are none. */
int metrics_read_bytes(const void *bytes, size_t len, struct metrics_snapshot **ret, struct brig_error *err);
void metrics_snapshot_free(struct metrics_snapshot *s); /* NULL is fine */

/* The text format of Prometheus, version 0.0.4. */
void metrics_to_prometheus(const struct metrics_snapshot *s, struct buf *out);
/* The document of docs/METRICS.md; NULL: no memory. */
json_t *metrics_to_json(const struct metrics_snapshot *s);

#endif
