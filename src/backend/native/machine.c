/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files below /proc and /sys that describe the machine to a program: ours, with the cell's limits and nothing about
 * the host beyond what uname(2) tells.  Runtimes size their pools and heaps by them.
 *
 * They are written once, before the clone, and do not change: a cell's machine has just booted, is idle and has all of
 * its memory free. root_mount_proc() mounts them.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#include "backend/native/cell.h"

const char *const machine_names[MACHINE_FILES] = {
	"cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems",
};

#define TEXT_MAX ((size_t)16 * 1024)

__attribute__((format(printf, 2, 3))) static void add(struct machine *m, const char *format, ...)
{
	size_t room = TEXT_MAX - m->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(m->text + m->len, room, format, args);
	va_end(args);
	m->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* As many CPUs as the quota can keep busy, at most those that exist. */
static unsigned count_cpus(const struct limits *l)
{
	uint64_t n = (l->cpu_percent + 99) / 100;
	cpu_set_t there;

	if (sched_getaffinity(0, sizeof(there), &there) == 0)
		n = min_u64(n, (uint64_t)CPU_COUNT(&there));
	return n < 1 ? 1 : (unsigned)min_u64(n, MACHINE_CPUS_MAX);
}

/* For readers of /sys: glibc, lscpu and Java. */
static void describe_cpu_list(struct machine *m, const struct limits *l)
{
	unsigned n = count_cpus(l);

	if (n == 1)
		(void)snprintf(m->cpus, sizeof(m->cpus), "0\n");
	else
		(void)snprintf(m->cpus, sizeof(m->cpus), "0-%u\n", n - 1);
}

static void add_cpuinfo(struct machine *m, const struct limits *l)
{
	for (unsigned i = 0, n = count_cpus(l); i < n; i++)
		add(m,
		    "processor\t: %u\nvendor_id\t: unknown\nmodel name\t: cpu of a cell\ncpu MHz\t\t: 1000.000\n"
		    "physical id\t: 0\nsiblings\t: %u\ncore id\t\t: %u\ncpu cores\t: %u\n\n",
		    i, n, i, n);
}

static void add_meminfo(struct machine *m, const struct limits *l)
{
	static const char *const full[] = { "MemTotal", "MemFree", "MemAvailable" };
	static const char *const none[] = { "Buffers",  "Cached", "SwapCached", "Active", "Inactive", "SwapTotal",
					    "SwapFree", "Dirty",  "Mapped",     "Shmem",  "Slab",     "SReclaimable" };
	uint64_t bytes = l->memory_bytes;
	struct sysinfo host;

	if (sysinfo(&host) == 0)
		bytes = min_u64(bytes, (uint64_t)host.totalram * host.mem_unit);
	for (size_t i = 0; i < ARRAY_LEN(full); i++)
		add(m, "%s: %llu kB\n", full[i], (unsigned long long)(bytes / KiB));
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		add(m, "%s: 0 kB\n", none[i]);
}

static void add_stat(struct machine *m, const struct limits *l)
{
	unsigned n = count_cpus(l);

	add(m, "cpu  0 0 0 %u 0 0 0 0 0 0\n", 100 * n);
	for (unsigned i = 0; i < n; i++)
		add(m, "cpu%u 0 0 0 100 0 0 0 0 0 0\n", i);
	add(m, "intr 0\nctxt 0\nbtime %lld\nprocesses 2\nprocs_running 1\nprocs_blocked 0\n",
	    (long long)time(NULL) - 1);
}

static void add_loadavg(struct machine *m, const struct limits *l UNUSED)
{
	add(m, "0.00 0.00 0.00 1/2 2\n");
}

/* The clocks of the cell's time namespace start at one second. */
static void add_uptime(struct machine *m, const struct limits *l UNUSED)
{
	add(m, "1.00 1.00\n");
}

static void add_version(struct machine *m, const struct limits *l UNUSED)
{
	struct utsname u;

	if (uname(&u) == 0)
		add(m, "%s version %s %s\n", u.sysname, u.release, u.version);
}

static void add_filesystems(struct machine *m, const struct limits *l UNUSED)
{
	add(m, "nodev\tproc\nnodev\ttmpfs\nnodev\toverlay\n");
}

int machine_describe(struct machine *m, const struct limits *l)
{
	static void (*const writers[MACHINE_FILES])(struct machine *, const struct limits *) = {
		add_cpuinfo, add_meminfo, add_stat, add_loadavg, add_uptime, add_version, add_filesystems,
	};
	char *all;

	m->len = 0;
	m->text = malloc(TEXT_MAX);
	if (!m->text)
		return -ENOMEM;
	describe_cpu_list(m, l);
	for (size_t i = 0; i < MACHINE_FILES; i++) {
		writers[i](m, l);
		m->end[i] = m->len;
	}
	all = realloc(m->text, m->len);
	m->text = all ? all : m->text;
	return 0;
}
