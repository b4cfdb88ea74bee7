/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to look at a running cell next.  The wall clock needs one look, at its end.  Cpu time needs a look
 * at the earliest moment at which it could be used up, which its quota bounds: a cell that may use half a
 * cpu cannot burn its last 100 ms in less than 200.  Samples come at their interval.
 */
#ifndef MONITOR_PACE_H
#define MONITOR_PACE_H

#include "base/util.h"

struct pace {
	uint64_t wall_deadline_ns;
	uint64_t cpu_limit_ns; /* 0: not watched */
	uint64_t cpu_percent;
	uint64_t next_cpu_ns;
	uint64_t interval_ns; /* of samples; 0: none */
	uint64_t next_sample_ns;
};

void pace_start(struct pace *p, uint64_t now_ns);
bool pace_wall_is_over(const struct pace *p, uint64_t now_ns);
bool pace_sample_is_due(struct pace *p, uint64_t now_ns); /* and plans the next one */
bool pace_cpu_is_due(const struct pace *p, uint64_t now_ns);
/* After a look at the cpu clock: true if the limit is reached, else plans the next look. */
bool pace_cpu_is_over(struct pace *p, uint64_t used_ns, uint64_t now_ns);
/* For poll(2): milliseconds until something is due, rounded up. */
int pace_timeout_ms(const struct pace *p, uint64_t now_ns);

#endif
