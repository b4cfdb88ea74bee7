/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of a process and its descendants, including children that were waited for.  Processes that were reparented,
 * because their parent exited first, are not found; the session's own CPU limit counts them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/guest/steward/inside.h"
#include "base/fd.h"

#define FAMILY_MAX 4096

struct member {
	pid_t pid, parent;
	uint64_t ms;
	bool counts;
};

/*
 * The process's CPU clock is exact, while the numbers in its stat file are multiples of 10 ms: short runs would show 0.
 */
static uint64_t own_ms(pid_t pid, uint64_t status_ms)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
		return status_ms;
	return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

/* The command name may contain anything and ends at the last parenthesis.  False: the process is gone. */
static bool read_member(const char *pid, struct member *ret)
{
	const uint64_t tick_ms = 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long used[4] = { 0 };
	char path[48], text[1024];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0 || !(at = strrchr(text, ')')))
		return false;
	*ret = (struct member){ .pid = (pid_t)atoi(pid) };
	if (sscanf(at + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &ret->parent, &used[0],
		   &used[1], &used[2], &used[3]) != 5)
		return false;
	ret->ms = own_ms(ret->pid, (used[0] + used[1]) * tick_ms) + (used[2] + used[3]) * tick_ms;
	return true;
}

static size_t read_all(struct member *all)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	size_t n = 0;

	while (dir && n < FAMILY_MAX && (e = readdir(dir)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			n += read_member(e->d_name, &all[n]);
	if (dir)
		(void)closedir(dir);
	return n;
}

static bool counts(const struct member *all, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == pid)
			return all[i].counts;
	return false;
}

/*
 * The kernel lists processes by pid, so children come after their parents unless pids have wrapped around: repeats
 * until no more are found.
 */
static uint64_t family_ms(struct member *all, size_t n, pid_t root)
{
	uint64_t ms = 0;
	bool found = true;

	while (found) {
		found = false;
		for (size_t i = 0; i < n; i++) {
			if (all[i].counts || (all[i].pid != root && !counts(all, n, all[i].parent)))
				continue;
			all[i].counts = found = true;
			ms += all[i].ms;
		}
	}
	return ms;
}

void usage_cpu(struct steward *s)
{
	static struct member all[FAMILY_MAX];
	const int64_t number[] = { 0, (int64_t)family_ms(all, read_all(all), (pid_t)s->asked.head.number[0]) };

	steward_tell(s, STEWARD_DONE, s->asked.head.tag, number, ARRAY_LEN(number), NULL, 0, FD_NONE);
}
