/* SPDX-License-Identifier: Apache-2.0 */
/* How much of this host one token may use; 0 is no bound. */
#ifndef SERVER_QUOTA_H
#define SERVER_QUOTA_H

#include "base/util.h"

struct quota {
	uint32_t concurrent;           /* executions that run at one time */
	uint32_t runs_per_minute;      /* executions that are taken, whether they wait or run */
	uint64_t cpu_seconds_per_hour; /* of the processors, by all executions that ended */
	uint64_t memory;               /* bytes: the sum of the memory limits of those that run */
};

/* More than anybody means; what is computed with them fits 64 bits. */
#define QUOTA_CONCURRENT_MAX  100000
#define QUOTA_RUNS_MAX        1000000
#define QUOTA_CPU_SECONDS_MAX ((uint64_t)1000000000)
#define QUOTA_MEMORY_MAX      ((uint64_t)1 << 46)

#endif
