/* SPDX-License-Identifier: Apache-2.0 */
/* What one token may use of this host; 0: unlimited. */
#ifndef SERVER_QUOTA_H
#define SERVER_QUOTA_H

#include "base/util.h"

struct quota {
	uint32_t concurrent;           /* executions running at one time */
	uint32_t runs_per_minute;      /* executions accepted, whether they wait or run */
	uint64_t cpu_seconds_per_hour; /* CPU time of executions that have ended */
	uint64_t memory;               /* bytes: the sum of the memory limits of running executions */
};

/* Above any useful value; arithmetic with them does not overflow 64 bits. */
#define QUOTA_CONCURRENT_MAX  100000
#define QUOTA_RUNS_MAX        1000000
#define QUOTA_CPU_SECONDS_MAX ((uint64_t)1000000000)
#define QUOTA_MEMORY_MAX      ((uint64_t)1 << 46)

#endif
