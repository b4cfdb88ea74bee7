/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was really in force: what init read inside the container when the program was dead (or, if it could not, before
 * the program started), its namespaces compared with ours, and the engine's account where that is the only source.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"

/* Inode numbers of namespaces come from the kernel: on the same machine they can be compared. */
static void read_spaces(const struct cell *c, struct facts *f)
{
	static const char *const names[WIRE_SPACE_COUNT] = WIRE_SPACE_NAMES;
	static const enum fact_id facts[WIRE_SPACE_COUNT] = { FACT_user_ns, FACT_pid_ns, FACT_mount_ns,  FACT_net_ns,
							      FACT_ipc_ns,  FACT_uts_ns, FACT_cgroup_ns, FACT_time_ns };

	for (size_t i = 0; c->pump.has_spaces && i < WIRE_SPACE_COUNT; i++) {
		char path[40];
		struct stat ours;

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		if (!c->host->local || stat(path, &ours) < 0 || c->pump.spaces.inode[i] == 0)
			continue;
		fact_text(f, facts[i], ours.st_ino != c->pump.spaces.inode[i] ? "own" : "shared", "init: %s:[%llu]",
			  names[i], (unsigned long long)c->pump.spaces.inode[i]);
	}
}

/* For an engine elsewhere there is only its account, and the fact that our init is PID 1. */
static void read_modes(const struct cell *c, struct facts *f)
{
	static const struct {
		enum fact_id fact;
		const char *mode;
	} rows[] = {
		{ FACT_pid_ns, "HostConfig.PidMode" },     { FACT_ipc_ns, "HostConfig.IpcMode" },
		{ FACT_uts_ns, "HostConfig.UTSMode" },     { FACT_cgroup_ns, "HostConfig.CgroupnsMode" },
		{ FACT_net_ns, "HostConfig.NetworkMode" }, { FACT_mount_ns, "HostConfig.ReadonlyRootfs" },
	};
	const json_t *said = c->after ? c->after : c->before;

	for (size_t i = 0; said && i < ARRAY_LEN(rows); i++)
		if (!f->row[rows[i].fact].known)
			fact_text(f, rows[i].fact, "own", "engine: %s", rows[i].mode); /* map_check has compared it */
}

static void read_limits(const struct cell *c, struct facts *f)
{
	static const struct {
		enum fact_id fact;
		const char *path;
	} rows[] = { { FACT_memory_max, "HostConfig.Memory" }, { FACT_pids_max, "HostConfig.PidsLimit" } };
	const json_t *said = c->after ? c->after : c->before;
	uint64_t n, both;

	for (size_t i = 0; said && i < ARRAY_LEN(rows); i++)
		if (!f->row[rows[i].fact].known && answer_u64(said, rows[i].path, &n))
			fact_num(f, rows[i].fact, n, "engine: %s", rows[i].path);
	if (said && !f->row[FACT_swap_max].known && answer_u64(said, "HostConfig.Memory", &n) &&
	    answer_u64(said, "HostConfig.MemorySwap", &both) && both >= n)
		fact_num(f, FACT_swap_max, both - n, "engine: HostConfig.MemorySwap");
	if (said && !f->row[FACT_cpu_quota_percent].known && answer_u64(said, "HostConfig.CpuQuota", &n) &&
	    answer_u64(said, "HostConfig.CpuPeriod", &both) && both > 0)
		fact_num(f, FACT_cpu_quota_percent, (n * 100 + both - 1) / both, "engine: HostConfig.CpuQuota");
}

/* map_check has compared the engine's Binds and Mounts with the request, which has none. */
static void read_project(const struct cell *c, struct facts *f)
{
	if (!c->plan->workspace || !c->after)
		return;
	fact_text(f, FACT_project, "ro", "engine: no mount of the host; the container had a copy");
}

void docker_read_back(struct cell *c, struct facts *ret)
{
	if (!c->stopped)
		return; /* the first call comes while init is still working: it reports everything at the end */
	lifecycle_facts(&c->pump, ret);
	if (!c->violated)
		c->violated = !lifecycle_ids(&c->pump, ret, c->difference, sizeof(c->difference));
	read_spaces(c, ret);
	read_modes(c, ret);
	read_limits(c, ret);
	read_project(c, ret);
	if (!ret->row[FACT_processes_left].known && c->after)
		fact_num(ret, FACT_processes_left, 0, "engine: State.Running");
	if (c->changes_from)
		fact_num(ret, FACT_root_changed, c->changes, "%s", c->changes_from);
	fact_text(ret, FACT_engine_account,
		  c->violated ? c->difference
		  : c->after  ? "as asked"
			      : "not given",
		  "engine: inspect, before the start and after the end");
}
