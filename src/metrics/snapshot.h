/* SPDX-License-Identifier: Apache-2.0 */
/* All numbers of one moment, checked, for those that write them down. */
#ifndef METRICS_SNAPSHOT_H
#define METRICS_SNAPSHOT_H

#include "metrics/layout.h"

struct metrics_snapshot {
	struct metrics_layout layout;
	uint64_t created_ns;                 /* 0: there is no file yet */
	const char *name[LABELS_COUNT][256]; /* of each place; NULL: nothing was counted there */
	char *names;                         /* what they point to, where they are not fixed */
	unsigned char *bytes;
};

/* One combination of labels that has something in it. */
struct metric_sample {
	const char *label[METRIC_LABELS_MAX]; /* values */
	size_t index[METRIC_LABELS_MAX];
	const uint64_t *number; /* metric_width() of them */
	uint64_t value;         /* of a counter; of a histogram: how often something was observed */
	uint64_t sum;           /* of a histogram */
};

/*
 * Walks the samples of a metric: *row starts at 0; false behind the last one.  A metric without labels always has
 * one, others only those with something in them.
 */
bool metric_sample_next(const struct metrics_snapshot *s, enum metric m, size_t *row, struct metric_sample *ret);
/* Never wraps: a damaged number must not look small. */
uint64_t metric_add(uint64_t a, uint64_t b);

#endif
