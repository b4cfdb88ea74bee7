/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v2: one hierarchy, one leaf per cell, entered at birth with CLONE_INTO_CGROUP (no lock, no
 * later move: a move by cgroup.procs costs milliseconds, see cgroup_v1.c).  Where leaves may be made
 * is the harder half: cgroup_place.c.
 */
#include "sys/cgroup_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/str.h"

#define DISK_FILE "io.max"

static bool limit_no_swap(const struct cgroup_limits *limits, uint64_t *ret)
{
	*ret = 0;
	return limits->memory_bytes > 0;
}

/* Out of memory ends the whole cell: half a program is of no use, and what is left could be anything.  A session is many. */
static bool limit_oom_group(const struct cgroup_limits *limits, uint64_t *ret)
{
	*ret = !limits->outlives_oom;
	return limits->memory_bytes > 0;
}

static const struct cgroup_limit_file limits_v2[] = {
	{ CONTROLLER_MEMORY, "memory.max", cgroup_limit_memory, false },
	{ CONTROLLER_MEMORY, "memory.swap.max", limit_no_swap, true },
	{ CONTROLLER_MEMORY, "memory.oom.group", limit_oom_group, true },
	{ CONTROLLER_PIDS, "pids.max", cgroup_limit_pids, false },
	{ CONTROLLER_CPU, "cpu.max", cgroup_limit_cpu, false },
};

#define COUNTER(member, controller, file, key, factor)                                            \
	{                                                                                         \
		offsetof(struct cgroup_usage, member), CONTROLLER_##controller, file, key, factor \
	}

static const struct cgroup_counter counters_v2[] = {
	COUNTER(cpu_ns, CPUACCT, "cpu.stat", "usage_usec", 1000),
	COUNTER(memory_bytes, MEMORY, "memory.current", NULL, 1),
	COUNTER(memory_peak_bytes, MEMORY, "memory.peak", NULL, 1),
	COUNTER(oom_kills, MEMORY, "memory.events", "oom_kill", 1),
	COUNTER(pids, PIDS, "pids.current", NULL, 1),
	COUNTER(pids_peak, PIDS, "pids.peak", NULL, 1),
	COUNTER(pids_refused, PIDS, "pids.events", "max", 1),
};

static void readback_number(const struct cgroup_leaf *leaf, enum cgroup_controller c, const char *file,
			    struct cgroup_readback *ret)
{
	uint64_t value;

	if (cgroup_leaf_has(leaf, c) && fd_get_u64_at(leaf->dir, file, &value) == 0)
		cgroup_known(leaf, file, value, ret);
}

static void readback_swap(const struct cgroup_leaf *leaf, struct cgroup_readback *ret)
{
	readback_number(leaf, CONTROLLER_MEMORY, "memory.swap.max", ret);
	if (!ret->known && cgroup_leaf_has(leaf, CONTROLLER_MEMORY) && cgroup_no_swap_device())
		*ret = (struct cgroup_readback){ .known = true, .value = 0, .source = "/proc/swaps" };
}

/* "max 100000" or "50000 100000". */
static void readback_cpu(const struct cgroup_leaf *leaf, struct cgroup_readback *ret)
{
	char text[64], *space;
	uint64_t quota, period;

	if (!cgroup_leaf_has(leaf, CONTROLLER_CPU) || fd_get_at(leaf->dir, "cpu.max", text, sizeof(text)) < 0)
		return;
	space = strchr(text, ' ');
	if (!space)
		return;
	*space = '\0';
	if (str_eq(text, "max"))
		cgroup_known(leaf, "cpu.max", UINT64_MAX, ret);
	else if (str_to_u64(text, &quota) && str_to_u64(space + 1, &period) && period > 0)
		cgroup_known(leaf, "cpu.max", quota * 100 / period, ret);
}

/* Socket buffers are charged as memory; the kernel shows that by counting them in memory.stat. */
static void readback_socket_memory(const struct cgroup_leaf *leaf, struct cgroup_readback *ret)
{
	uint64_t sock, limit;

	if (cgroup_leaf_has(leaf, CONTROLLER_MEMORY) &&
	    cgroup_get_keyed(leaf->dir, "memory.stat", "sock", &sock) == 0 &&
	    fd_get_u64_at(leaf->dir, "memory.max", &limit) == 0)
		cgroup_known(leaf, "memory.stat sock", limit, ret);
}

static void readback_v2(const struct cgroup_leaf *leaf, enum cgroup_resource r, struct cgroup_readback *ret)
{
	uint64_t value;

	switch (r) {
	case CGROUP_MEMORY:
		return readback_number(leaf, CONTROLLER_MEMORY, "memory.max", ret);
	case CGROUP_SWAP:
		return readback_swap(leaf, ret);
	case CGROUP_PIDS:
		return readback_number(leaf, CONTROLLER_PIDS, "pids.max", ret);
	case CGROUP_CPU:
		return readback_cpu(leaf, ret);
	case CGROUP_SOCKET_MEMORY:
		return readback_socket_memory(leaf, ret);
	case CGROUP_CPU_TIME:
		if (cgroup_leaf_has(leaf, CONTROLLER_CPUACCT) &&
		    cgroup_get_keyed(leaf->dir, "cpu.stat", "usage_usec", &value) == 0)
			cgroup_known(leaf, "cpu.stat", value * 1000, ret);
		return;
	case CGROUP_DISK_IO: /* of disks: read_disk */
	case CGROUP_RESOURCE_COUNT:
		return;
	}
}

static int limit_disk_v2(const struct cgroup_leaf *leaf, dev_t disk, uint64_t bps)
{
	return fd_putf_at(leaf->dir, DISK_FILE, "%u:%u rbps=%llu wbps=%llu", major(disk), minor(disk),
			  (unsigned long long)bps, (unsigned long long)bps);
}

/* The number behind one of the keys in "8:0 rbps=1048576 wbps=max riops=max wiops=max". */
static uint64_t number_in(const char *line, size_t len, const char *key)
{
	const char *at = memmem(line, len, key, strlen(key));
	char text[24];
	uint64_t value;
	size_t n;

	if (!at)
		return UINT64_MAX;
	at += strlen(key);
	n = strcspn(at, " \n");
	(void)snprintf(text, sizeof(text), "%.*s", (int)min_u64(n, sizeof(text) - 1), at);
	return str_to_u64(text, &value) ? value : UINT64_MAX;
}

static int read_disk_v2(const struct cgroup_leaf *leaf, dev_t disk, uint64_t *ret)
{
	char text[4096], key[32];
	ssize_t n = fd_get_at(leaf->dir, DISK_FILE, text, sizeof(text));
	size_t key_len, len;

	if (n < 0)
		return (int)n;
	key_len = (size_t)snprintf(key, sizeof(key), "%u:%u ", major(disk), minor(disk));
	*ret = UINT64_MAX;
	for (const char *line = text; *line; line += len + (line[len] == '\n')) {
		len = strcspn(line, "\n");
		if (strncmp(line, key, key_len) == 0)
			*ret = max_u64(number_in(line, len, " rbps="), number_in(line, len, " wbps="));
	}
	return 0;
}

static bool kill_all_v2(const struct cgroup_leaf *leaf)
{
	return fd_put_at(leaf->dir, "cgroup.kill", "1") == 0; /* Linux 5.14 */
}

const struct cgroup_ops cgroup_v2_ops = {
	.entry_file = NULL,
	.limits = limits_v2,
	.n_limits = ARRAY_LEN(limits_v2),
	.counters = counters_v2,
	.n_counters = ARRAY_LEN(counters_v2),
	.readback = readback_v2,
	.limit_disk = limit_disk_v2,
	.read_disk = read_disk_v2,
	.disk_file = DISK_FILE,
	.kill_all = kill_all_v2,
	.quota_file = "cpu.max",
	.no_quota = "max",
};
