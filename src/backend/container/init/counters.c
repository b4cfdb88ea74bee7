/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container's own cgroup, as seen from inside: with a cgroup namespace the engine mounts it read-only at
 * /sys/fs/cgroup.  These are the kernel's values, so an engine that ignored a limit is detected.
 */
#include <fcntl.h>
#include <string.h>

#include "backend/container/init/inside.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "model/facts.h"

#define V1(path) "/sys/fs/cgroup/" path
#define V2(file) "/sys/fs/cgroup/" file

/* The first number of a file, or the one after word at the beginning of a line; "max" is UINT64_MAX. */
static bool read_value(const char *path, const char *word, uint64_t *ret)
{
	char text[1024];
	const char *at = text;
	size_t len = strlen(word);

	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	for (; len > 0; at++) {
		if (strncmp(at, word, len) == 0 && at[len] == ' ') {
			at += len + 1;
			break;
		}
		at = strchr(at, '\n');
		if (!at)
			return false;
	}
	if (strncmp(at, "max", 3) == 0) {
		*ret = UINT64_MAX;
		return true;
	}
	if (*at < '0' || *at > '9')
		return false;
	for (*ret = 0; *at >= '0' && *at <= '9'; at++)
		*ret = *ret * 10 + (uint64_t)(*at - '0');
	return true;
}

static bool is_v2(void)
{
	return access(V2("cgroup.controllers"), F_OK) == 0;
}

static void say(struct inside *in, enum fact_id id, uint64_t value, const char *source)
{
	struct wire_fact f = { .id = id, .num = value, .text = "", .source = source };

	wire_put_fact(&in->out, &f);
}

/* Without swap no limit on it is needed.  /proc/swaps is not used: it may be masked, and then looks empty. */
static bool has_swap(void)
{
	char text[4096];
	const char *at = text;
	uint64_t kilobytes = 1;

	if (fd_get_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0)
		return true;
	at = strstr(text, "\nSwapTotal:");
	if (!at)
		return true;
	at += strlen("\nSwapTotal:");
	at += strspn(at, " ");
	if (*at >= '0' && *at <= '9')
		for (kilobytes = 0; *at >= '0' && *at <= '9'; at++)
			kilobytes = kilobytes * 10 + (uint64_t)(*at - '0');
	return kilobytes > 0;
}

#define NO_SWAP "init: SwapTotal of /proc/meminfo"

/*
 * If the container's own limit is too high, a cgroup above it may have one, which is determined by trying.  Not at the
 * end: processes may be left that are not reaped yet, and the result from the start cannot have changed.
 */
static void say_pids(struct inside *in, uint64_t n, bool ended)
{
	if (!(in->job.flags & WIRE_IN_POD) || n <= in->job.pids)
		say(in, FACT_pids_max, n, "init: pids.max");
	else if (!ended)
		processes_try(in);
}

static void say_cpu(struct inside *in, const char *path, uint64_t quota, uint64_t period)
{
	if (quota == UINT64_MAX || period == 0)
		say(in, FACT_cpu_quota_percent, UINT64_MAX, path);
	else
		say(in, FACT_cpu_quota_percent, (quota * 100 + period - 1) / period, path);
}

/* v2 has quota and period on one line: "max 100000". */
static void say_v2_cpu(struct inside *in)
{
	char text[64], *space;
	uint64_t quota = UINT64_MAX, period = 0;

	if (fd_get_at(AT_FDCWD, V2("cpu.max"), text, sizeof(text)) <= 0)
		return;
	space = strchr(text, ' ');
	if (!space)
		return;
	*space = '\0';
	(void)str_to_u64(text, &quota);
	(void)str_to_u64(space + 1, &period);
	say_cpu(in, "init: cpu.max", quota, period);
}

/*
 * The largest number after word in the lines of a file, one for each disk; the engine limits only disks that it was
 * asked to.  False: there is no such line.
 */
static bool read_largest(const char *path, const char *word, uint64_t *ret)
{
	char text[4096];
	const char *line = text, *end;
	size_t len = strlen(word);
	bool any = false;

	*ret = 0;
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	for (; line && *line; line = end ? end + 1 : NULL) {
		const char *at = strstr(line, word);
		uint64_t n = 0;

		end = strchr(line, '\n');
		if (!at || (end && at > end))
			continue;
		at += len;
		any = true;
		if (*at < '0' || *at > '9')
			n = UINT64_MAX;
		for (; *at >= '0' && *at <= '9'; at++)
			n = n * 10 + (uint64_t)(*at - '0');
		*ret = max_u64(*ret, n);
	}
	return any;
}

static void say_disk_io(struct inside *in, const char *read_file, const char *read_word, const char *write_file,
			const char *write_word, const char *source)
{
	uint64_t in_bps, out_bps;

	if (read_largest(read_file, read_word, &in_bps) && read_largest(write_file, write_word, &out_bps))
		say(in, FACT_disk_io_bps, max_u64(in_bps, out_bps), source);
}

static void say_v2(struct inside *in, bool ended)
{
	uint64_t n;

	if (read_value(V2("memory.max"), "", &n)) {
		say(in, FACT_memory_max, n, "init: memory.max");
		say(in, FACT_socket_memory_max, n, "init: memory.max");
	}
	if (read_value(V2("memory.swap.max"), "", &n))
		say(in, FACT_swap_max, n, "init: memory.swap.max");
	else if (!has_swap())
		say(in, FACT_swap_max, 0, NO_SWAP);
	if (read_value(V2("pids.max"), "", &n))
		say_pids(in, n, ended);
	say_v2_cpu(in);
	say_disk_io(in, V2("io.max"), " rbps=", V2("io.max"), " wbps=", "init: io.max");
}

static void say_v1(struct inside *in, bool ended)
{
	uint64_t n, both, period;

	if (read_value(V1("memory/memory.limit_in_bytes"), "", &n)) {
		say(in, FACT_memory_max, n, "init: memory.limit_in_bytes");
		if (read_value(V1("memory/memory.memsw.limit_in_bytes"), "", &both) && (both <= n || has_swap()))
			say(in, FACT_swap_max, both - min_u64(n, both), "init: memory.memsw.limit_in_bytes");
		else if (!has_swap())
			say(in, FACT_swap_max, 0, NO_SWAP);
	}
	if (read_value(V1("memory/memory.kmem.tcp.limit_in_bytes"), "", &n))
		say(in, FACT_socket_memory_max, n, "init: memory.kmem.tcp.limit_in_bytes");
	if (read_value(V1("pids/pids.max"), "", &n))
		say_pids(in, n, ended);
	/* -1 does not begin with a digit, so it reads as no quota. */
	if (read_value(V1("cpu/cpu.cfs_period_us"), "", &period))
		say_cpu(in, "init: cpu.cfs_quota_us", read_value(V1("cpu/cpu.cfs_quota_us"), "", &n) ? n : UINT64_MAX,
			period);
	say_disk_io(in, V1("blkio/blkio.throttle.read_bps_device"), " ", V1("blkio/blkio.throttle.write_bps_device"),
		    " ", "init: blkio.throttle.read_bps_device");
}

void counters_say_limits(struct inside *in, bool ended)
{
	if (is_v2())
		say_v2(in, ended);
	else
		say_v1(in, ended);
}

uint64_t counters_cpu_ns(void)
{
	uint64_t n = 0;

	if (read_value(V2("cpu.stat"), "usage_usec", &n))
		return n * 1000;
	(void)read_value(V1("cpuacct/cpuacct.usage"), "", &n);
	return n;
}

void counters_read(struct wire_exit *ret)
{
	bool v2 = is_v2();
	const struct {
		const char *path, *word;
		uint64_t *to;
	} rows[] = {
		{ v2 ? V2("memory.peak") : V1("memory/memory.max_usage_in_bytes"), "", &ret->memory_peak },
		{ v2 ? V2("memory.events") : V1("memory/memory.oom_control"), "oom_kill", &ret->oom_kills },
		{ v2 ? V2("pids.peak") : V1("pids/pids.peak"), "", &ret->pids_peak },
		{ v2 ? V2("pids.events") : V1("pids/pids.events"), "max", &ret->pids_refused },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t n;

		if (read_value(rows[i].path, rows[i].word, &n))
			*rows[i].to = n;
	}
}
