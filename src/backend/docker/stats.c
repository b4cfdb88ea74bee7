/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a running container.  The engine's own numbers come once a second and a second late, so with a local
 * engine they are read from the container's cgroups, which its /proc entry names; otherwise the engine is asked.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "backend/docker/cell.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/proc.h"

#define CGROUPS "/sys/fs/cgroup"

static int open_group(const char *controllers, const char *path)
{
	char full[1024];

	if ((size_t)snprintf(full, sizeof(full), "%s/%s%s", CGROUPS, controllers, path) >= sizeof(full))
		return FD_NONE;
	return open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool visit_group(char *line, void *arg)
{
	struct cell *c = arg;
	struct cgroup_line g;

	if (!proc_parse_cgroup(line, &g) || strstr(g.path, "..") || !strstr(g.path, c->id))
		return true;
	if (g.id == 0 && access(CGROUPS "/cgroup.controllers", F_OK) == 0) {
		c->v2 = true;
		c->memory = open_group("", g.path);
		return false;
	}
	if (proc_list_has(g.controllers, ',', "memory") && c->memory < 0)
		c->memory = open_group(g.controllers, g.path);
	if (proc_list_has(g.controllers, ',', "cpuacct") && c->cpu < 0)
		c->cpu = open_group(g.controllers, g.path);
	if (proc_list_has(g.controllers, ',', "pids") && c->pids < 0)
		c->pids = open_group(g.controllers, g.path);
	return true;
}

static uint64_t number(int dir, const char *file)
{
	uint64_t n = 0;

	if (dir >= 0)
		(void)fd_get_u64_at(dir, file, &n);
	return n;
}

/* The number after a word at the beginning of a line. */
static uint64_t number_of(int dir, const char *file, const char *word)
{
	char text[4096];
	size_t len = strlen(word);

	if (dir < 0 || fd_get_at(dir, file, text, sizeof(text)) <= 0)
		return 0;
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, word, len) == 0 && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
	return 0;
}

static uint64_t group_cpu_ns(struct cell *c)
{
	return c->v2 ? number_of(c->memory, "cpu.stat", "usage_usec") * 1000 : number(c->cpu, "cpuacct.usage");
}

void stats_open(struct cell *c, uint64_t pid)
{
	char path[48];

	if (!c->host->local || pid == 0 || pid > INT32_MAX)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%llu/cgroup", (unsigned long long)pid);
	(void)proc_each_line(path, visit_group, c);
	c->cpu_base_ns = group_cpu_ns(c);
}

void stats_close(struct cell *c)
{
	http_call_close(MOVE_PTR(c->asking));
	fd_closep(&c->memory);
	fd_closep(&c->cpu);
	fd_closep(&c->pids);
}

/* One request at a time, without waiting for the answer: the watcher has other work. */
static void query_engine(struct cell *c)
{
	struct brig_error ignored = BRIG_ERROR_INIT;
	int rc;

	if (c->no_stats || c->stopped || !c->pump.go_sent)
		return;
	rc = c->asking ? engine_stats_step(c->asking, &c->stats, &ignored)
		       : engine_stats_begin(c->host->engine, c->id, &c->asking, &ignored);
	c->no_stats = rc < 0;
	if (rc != 0)
		http_call_close(MOVE_PTR(c->asking));
}

int stats_sample(struct cell *c, struct sample *ret)
{
	if (c->memory < 0) {
		query_engine(c);
		ret->cpu_ms = c->stats.cpu_ns / NS_PER_MS;
		ret->memory_bytes = c->stats.memory_bytes;
		ret->pids = c->stats.pids;
		return c->stats.memory_limit > 0 ? 0 : -ENODATA;
	}
	ret->cpu_ms = stats_cpu_ns(c) / NS_PER_MS;
	ret->memory_bytes = number(c->memory, c->v2 ? "memory.current" : "memory.usage_in_bytes");
	ret->pids = number(c->v2 ? c->memory : c->pids, "pids.current");
	return 0;
}

uint64_t stats_cpu_ns(struct cell *c)
{
	uint64_t now;

	if (c->memory < 0)
		query_engine(c);
	now = c->memory < 0 ? c->stats.cpu_ns : group_cpu_ns(c);
	c->cpu_seen_ns = max_u64(c->cpu_seen_ns, now > c->cpu_base_ns ? now - c->cpu_base_ns : 0);
	return c->cpu_seen_ns;
}

uint64_t stats_oom_kills(struct cell *c)
{
	uint64_t now = c->v2 ? number_of(c->memory, "memory.events", "oom_kill")
			     : number_of(c->memory, "memory.oom_control", "oom_kill");

	c->oom_seen = max_u64(c->oom_seen, now);
	return c->oom_seen;
}
