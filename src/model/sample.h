/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of a running cell, and a bounded series of them. */
#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

#include "base/util.h"

struct sample {
	uint64_t at_ms;
	uint64_t cpu_ms;
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t output_bytes;
};

#define SAMPLES_MAX 256

/* When the series is full every second sample is dropped and the stride doubles, so that a long run
 * is still covered from start to end. */
struct sample_series {
	struct sample row[SAMPLES_MAX];
	size_t n;
	uint64_t seen;
	uint64_t stride; /* 0 counts as 1 */
};

void sample_series_add(struct sample_series *s, const struct sample *row);

#endif
