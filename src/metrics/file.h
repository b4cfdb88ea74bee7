/* SPDX-License-Identifier: Apache-2.0 */
/* The file of counters, mapped for a moment: see file.c. */
#ifndef METRICS_FILE_H
#define METRICS_FILE_H

#include "metrics/layout.h"

struct metrics_map {
	struct metrics_layout layout;
	unsigned char *at; /* NULL: not mapped */
};

/* 0; 1 if counting restarts (err says where the old numbers are); or negative. */
int metrics_map_open(const struct statedir *dir, struct metrics_map *ret, struct brig_error *err);
void metrics_map_close(struct metrics_map *m);

#endif
