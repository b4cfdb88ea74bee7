/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v1: every controller is a hierarchy of its own.
 *
 * Entering is where time is lost.  Moving a task by cgroup.procs, or any task but oneself by either
 * file, takes the kernel's process-wide thread group lock for writing, which waits for an RCU grace
 * period unless someone just did the same.  Only a task that writes "0" into `tasks` is let through
 * without it.  Measured on Linux 6.18, two cpus, idle between attempts, per hierarchy:
 *
 *	"0" into tasks, by the task itself		0.036 ms
 *	"0" into cgroup.procs, by the task itself	7.4 ms
 *	its pid into tasks, by the parent		5.4 ms
 *	its pid into cgroup.procs, by the parent	5.3 ms
 *
 * So the parent opens `tasks` of each leaf and the child, still having one thread, writes "0".
 *
 * On hybrid hosts the v2 hierarchy would add cgroup.kill.  It is not used: mkdir 36 us, rmdir 27 us
 * and 70 us more for clone3 with CLONE_INTO_CGROUP, for nothing that killing the first process of
 * the cell's pid namespace does not do as well.
 *
 * Writing memory.kmem.tcp.limit_in_bytes costs 0.2 ms (the kernel patches its own code when the first
 * such limit appears); without it socket buffers would be free memory outside every limit.
 */
#include "sys/cgroup_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/str.h"

#define V1_UNLIMITED ((uint64_t)1 << 62) /* v1 has no word for it: the largest multiple of the page size */
#define DEPTH_MAX    16
#define QUOTA_FILE   "cpu.cfs_quota_us"

/*
 * v1 counts socket buffers apart from memory, so a cell may hold both sums.  A quarter of the memory
 * limit is plenty for traffic inside one cell, and the cap keeps large cells from pinning much more
 * than they were given.
 */
static bool limit_socket_memory(const struct cgroup_limits *limits, uint64_t *ret)
{
	*ret = min_u64(limits->memory_bytes / 4, 64 * MiB);
	return limits->memory_bytes > 0;
}

static const struct cgroup_limit_file limits_v1[] = {
	{ CONTROLLER_MEMORY, "memory.limit_in_bytes", cgroup_limit_memory, false },
	/* Memory and swap together; never below the limit above, so it comes second. */
	{ CONTROLLER_MEMORY, "memory.memsw.limit_in_bytes", cgroup_limit_memory, true },
	{ CONTROLLER_MEMORY, "memory.kmem.tcp.limit_in_bytes", limit_socket_memory, true },
	{ CONTROLLER_PIDS, "pids.max", cgroup_limit_pids, false },
	{ CONTROLLER_CPU, QUOTA_FILE, cgroup_limit_cpu, false },
};

#define COUNTER(member, controller, file, key)                                               \
	{                                                                                    \
		offsetof(struct cgroup_usage, member), CONTROLLER_##controller, file, key, 1 \
	}

static const struct cgroup_counter counters_v1[] = {
	COUNTER(cpu_ns, CPUACCT, "cpuacct.usage", NULL),
	COUNTER(memory_bytes, MEMORY, "memory.usage_in_bytes", NULL),
	COUNTER(memory_peak_bytes, MEMORY, "memory.max_usage_in_bytes", NULL),
	COUNTER(oom_kills, MEMORY, "memory.oom_control", "oom_kill"),
	COUNTER(pids, PIDS, "pids.current", NULL),
	COUNTER(pids_peak, PIDS, "pids.peak", NULL),
	COUNTER(pids_refused, PIDS, "pids.events", "max"),
};

/*
 * The quota in force, in percent of one cpu, and the file that has it: this group's or, while that
 * says -1, an outer one's.
 */
static bool read_quota(const struct cgroup_leaf *leaf, uint64_t *ret_percent, char *ret_file, size_t size)
{
	char up[3 * DEPTH_MAX + 1] = "", file[sizeof(up) + 32], text[32];

	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		uint64_t quota, period;

		(void)snprintf(file, sizeof(file), "%s" QUOTA_FILE, up);
		if (fd_get_at(leaf->dir, file, text, sizeof(text)) < 0)
			break;
		if (str_to_u64(text, &quota)) {
			(void)str_copy(ret_file, size, file);
			(void)snprintf(file, sizeof(file), "%scpu.cfs_period_us", up);
			if (fd_get_u64_at(leaf->dir, file, &period) < 0 || period == 0)
				break;
			*ret_percent = quota * 100 / period;
			return true;
		}
		memcpy(up + (size_t)3 * (size_t)depth, "../", sizeof("../"));
	}
	return false;
}

/* v1 refuses a quota above an outer group's.  Without one of its own the cell has the outer one, which is tighter. */
static bool is_kept_outside_v1(const struct cgroup_leaf *leaf, const struct cgroup_limit_file *limit, uint64_t value)
{
	char file[80];
	uint64_t percent;

	return limit->controller == CONTROLLER_CPU && read_quota(leaf, &percent, file, sizeof(file)) &&
	       percent <= value * 100 / CGROUP_PERIOD_US;
}

static bool get_bytes(const struct cgroup_leaf *leaf, const char *file, uint64_t *ret)
{
	if (!cgroup_leaf_has(leaf, CONTROLLER_MEMORY) || fd_get_u64_at(leaf->dir, file, ret) < 0)
		return false;
	if (*ret >= V1_UNLIMITED)
		*ret = UINT64_MAX;
	return true;
}

static void readback_bytes(const struct cgroup_leaf *leaf, const char *file, struct cgroup_readback *ret)
{
	uint64_t value;

	if (get_bytes(leaf, file, &value))
		cgroup_known(leaf, file, value, ret);
}

/* What memory and swap together may exceed memory by. */
static void readback_swap(const struct cgroup_leaf *leaf, struct cgroup_readback *ret)
{
	const char *file = "memory.memsw.limit_in_bytes";
	uint64_t both, memory;

	if (!get_bytes(leaf, "memory.limit_in_bytes", &memory))
		return;
	if (get_bytes(leaf, file, &both))
		cgroup_known(leaf, file, both == UINT64_MAX ? both : both - min_u64(both, memory), ret);
	else if (cgroup_no_swap_device())
		*ret = (struct cgroup_readback){ .known = true, .value = 0, .source = "/proc/swaps" };
}

static void readback_cpu(const struct cgroup_leaf *leaf, struct cgroup_readback *ret)
{
	char file[80] = QUOTA_FILE;
	uint64_t percent;

	if (!cgroup_leaf_has(leaf, CONTROLLER_CPU))
		return;
	if (!read_quota(leaf, &percent, file, sizeof(file)))
		percent = UINT64_MAX;
	cgroup_known(leaf, file, percent, ret);
}

static void readback_v1(const struct cgroup_leaf *leaf, enum cgroup_resource r, struct cgroup_readback *ret)
{
	uint64_t value;

	switch (r) {
	case CGROUP_MEMORY:
		return readback_bytes(leaf, "memory.limit_in_bytes", ret);
	case CGROUP_SWAP:
		return readback_swap(leaf, ret);
	case CGROUP_SOCKET_MEMORY:
		return readback_bytes(leaf, "memory.kmem.tcp.limit_in_bytes", ret);
	case CGROUP_CPU:
		return readback_cpu(leaf, ret);
	case CGROUP_PIDS:
		if (cgroup_leaf_has(leaf, CONTROLLER_PIDS) && fd_get_u64_at(leaf->dir, "pids.max", &value) == 0)
			cgroup_known(leaf, "pids.max", value, ret);
		return;
	case CGROUP_CPU_TIME:
		if (cgroup_leaf_has(leaf, CONTROLLER_CPUACCT) && fd_get_u64_at(leaf->dir, "cpuacct.usage", &value) == 0)
			cgroup_known(leaf, "cpuacct.usage", value, ret);
		return;
	case CGROUP_DISK_IO: /* of disks: read_disk */
	case CGROUP_RESOURCE_COUNT:
		return;
	}
}

static const char *const disk_files[] = { "blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device" };

static int limit_disk_v1(const struct cgroup_leaf *leaf, dev_t disk, uint64_t bps)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(disk_files); i++)
		r = fd_putf_at(leaf->dir, disk_files[i], "%u:%u %llu", major(disk), minor(disk),
			       (unsigned long long)bps);
	return r;
}

/* Lines "8:0 1048576"; a disk without one is not limited. */
static int read_disk_v1(const struct cgroup_leaf *leaf, dev_t disk, uint64_t *ret)
{
	char key[32];

	(void)snprintf(key, sizeof(key), "%u:%u", major(disk), minor(disk));
	*ret = 0;
	for (size_t i = 0; i < ARRAY_LEN(disk_files); i++) {
		uint64_t value;
		int r = cgroup_get_keyed(leaf->dir, disk_files[i], key, &value);

		if (r < 0 && r != -ENODATA)
			return r;
		*ret = max_u64(*ret, r < 0 ? UINT64_MAX : value);
	}
	return 0;
}

const struct cgroup_ops cgroup_v1_ops = {
	.entry_file = "tasks",
	.limits = limits_v1,
	.n_limits = ARRAY_LEN(limits_v1),
	.counters = counters_v1,
	.n_counters = ARRAY_LEN(counters_v1),
	.is_kept_outside = is_kept_outside_v1,
	.readback = readback_v1,
	.limit_disk = limit_disk_v1,
	.read_disk = read_disk_v1,
	.disk_file = "blkio.throttle.read_bps_device",
	.quota_file = "cpu.cfs_quota_us",
	.no_quota = "-1",
};
