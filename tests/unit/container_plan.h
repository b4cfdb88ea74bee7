/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with a number of its own for each limit, for tests of what backends make of it. */
#ifndef TESTS_UNIT_CONTAINER_PLAN_H
#define TESTS_UNIT_CONTAINER_PLAN_H

#include "model/plan.h"

static struct plan plan = {
	.id = "abcdefghijklmnop",
	.step = "run",
	.language = "python",
	.uid = 1000,
	.gid = 1001,
	.limits = { .cpu_percent = 50,
		    .memory_bytes = 64 * MiB,
		    .pids = 20,
		    .disk_bytes = 8 * MiB,
		    .inodes = 800,
		    .open_files = 99,
		    .startup_ms = 5000,
		    .wall_ms = 1000,
		    .cleanup_ms = 2000 },
	.disk_io_bps = 1 * MiB,
	.family = FAMILY_INTERPRETER,
};

#endif
