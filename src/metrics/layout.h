/* SPDX-License-Identifier: Apache-2.0 */
/* Where each number stands in the file of counters, and which file is one of ours. */
#ifndef METRICS_LAYOUT_H
#define METRICS_LAYOUT_H

#include "metrics/metrics.h"
#include "model/result.h"
#include "sys/crypto.h"

enum cache_event {
#define X(name, help) CACHE_EVENT_##name,
	CACHE_EVENTS(X)
#undef X
		CACHE_EVENT_COUNT
};

enum label_set {
	LABELS_NONE,
#define METRIC(...)
#define LABELS(set, ...) LABELS_##set,
#include "metrics/metrics.def"
	LABELS_COUNT
};

enum metric {
#define METRIC(id, ...) METRIC_##id,
#define LABELS(...)
#include "metrics/metrics.def"
	METRIC_COUNT
};

enum metric_type { TYPE_COUNTER, TYPE_HISTOGRAM };
enum metric_unit { METRIC_UNIT_NONE, METRIC_UNIT_SECONDS, METRIC_UNIT_BYTES, METRIC_UNIT_COUNT };

struct label_info {
	const char *name;
	bool open;
	size_t size;
	const char *(*fixed)(size_t i); /* names of a FIXED set */
};
extern const struct label_info label_info[LABELS_COUNT];

#define METRIC_LABELS_MAX 4
struct metric_info {
	const char *name, *help;
	enum metric_type type;
	enum metric_unit unit;
	enum label_set label[METRIC_LABELS_MAX]; /* LABELS_NONE behind the last one */
};
extern const struct metric_info metric_info[METRIC_COUNT];

/* Upper bounds of a histogram's places, in what is kept: nanoseconds, bytes. */
#define METRIC_BOUNDS_MAX 20
struct metric_bounds {
	uint64_t at[METRIC_BOUNDS_MAX];
	size_t n;
	double scale; /* from what is kept to the base unit */
};
extern const struct metric_bounds metric_bounds[METRIC_UNIT_COUNT];

/* ---- the file --------------------------------------------------------------------------------- */

#define METRIC_NAME_MAX 47

#define METRICS_FORMAT '1' /* the last character of magic */

struct metrics_header {
	char magic[8];
	uint64_t size;       /* of the file */
	uint64_t created_ns; /* wall clock */
	uint64_t layout;     /* hash of the table */
	uint8_t reserved[64];
	uint8_t sum[SHA256_LEN]; /* of what stands before */
};

/* A place of an OPEN set.  hash 0: free.  The claiming process writes the name, then ready; see count.c. */
struct metrics_name {
	uint64_t hash;
	uint64_t ready;
	char text[METRIC_NAME_MAX + 1];
};

struct metrics_layout {
	size_t names[LABELS_COUNT];   /* byte offset of an OPEN set's places */
	size_t numbers[METRIC_COUNT]; /* byte offset of a metric's first number */
	size_t size;                  /* of the file */
	uint64_t hash;
};

/* FNV-1a, going on from h: distinguishes names and tables; it is no protection. */
#define METRICS_HASH_BEGIN 0xcbf29ce484222325ull
static inline uint64_t metrics_hash(uint64_t h, const void *data, size_t len)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ at[i]) * 0x100000001b3ull;
	return h;
}

void metrics_layout_make(struct metrics_layout *l);
/* Numbers of one combination of labels: 1, or a place per bound, one above them all, and the sum. */
size_t metric_width(enum metric m);
/* Combinations of labels. */
size_t metric_rows(enum metric m);
/* The row of these labels, one index per label of the metric. */
size_t metric_row(enum metric m, const size_t index[METRIC_LABELS_MAX]);

/* A header for a new file. */
void metrics_header_make(const struct metrics_layout *l, struct metrics_header *ret);
/* NULL if it is the header of a file of this layout and size; else what is wrong. */
const char *metrics_header_check(const struct metrics_layout *l, const struct metrics_header *h, uint64_t file_size);

#define METRICS_FILE "metrics"

#endif
