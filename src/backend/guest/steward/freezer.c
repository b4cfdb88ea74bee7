/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops and continues all other processes of the cell.
 *
 * With the kernel's freezer, if the supervisor created a cgroup for it (sys/cgroup_freezer.c) and sent us its files:
 * the group is frozen first, then every process except init and this one is moved into it, where it stops on arrival.
 * A process missed by a pass was created by one that had not been moved yet; a pass that finds no process outside is
 * complete.  Programs do not notice, and processes that they stopped themselves stay stopped. Processes stay in the
 * group when it is thawed, so the next pause finds them there.
 *
 * Otherwise by signals (process.c), which a parent could notice.
 *
 * On cgroup v1 frozen processes cannot die: to kill one, the group is thawed for as long as that takes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/guest/steward/inside.h"
#include "base/fd.h"

#define PASSES_MAX     120
#define PASS_MOST_NS   (20 * NS_PER_MS)
#define LINE_MAX_BYTES 1024

void freezer_take(struct steward *s)
{
	struct steward_message *m = &s->asked;

	if (s->freezer.version || m->head.number[0] < 1 || m->head.number[0] > 2 ||
	    m->n_fds != (size_t)m->head.number[0] + 1)
		return;
	s->freezer.version = (unsigned)m->head.number[0];
	s->freezer.procs = fd_move(&m->fds[0]);
	s->freezer.state = fd_move(&m->fds[1]);
	if (s->freezer.version == 2)
		s->freezer.events = fd_move(&m->fds[2]);
}

static int set_state(const struct steward *s, bool frozen)
{
	static const char *const words[2][2] = { { "THAWED", "FROZEN" }, { "0", "1" } };
	const char *word = words[s->freezer.version - 1][frozen];

	return pwrite(s->freezer.state, word, strlen(word), 0) < 0 ? -errno : 0;
}

static bool is_frozen(const struct steward *s)
{
	char text[256];
	ssize_t n = pread(s->freezer.version == 2 ? s->freezer.events : s->freezer.state, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return s->freezer.version == 2 ? strstr(text, "frozen 1") != NULL : strncmp(text, "FROZEN", 6) == 0;
}

/* The line of a process's cgroup file for the hierarchy of the freezer; false: none, or the process is gone. */
static bool read_line(const struct steward *s, const char *pid, char *dst, size_t size)
{
	char path[48], text[4096];
	const char *name = s->freezer.version == 2 ? "0::" : ":freezer:", *at;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/cgroup", pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0 || !(at = strstr(text, name)))
		return false;
	len = strcspn(at, "\n");
	if (len >= size)
		return false;
	memcpy(dst, at, len);
	dst[len] = '\0';
	return true;
}

/*
 * Every process of the cell is either in the group or where we are.  The group's own list is not used: on v1 it may be
 * a second old.
 */
static bool is_member(const struct steward *s, const char *pid)
{
	char own[LINE_MAX_BYTES], its[LINE_MAX_BYTES];

	return read_line(s, "self", own, sizeof(own)) && read_line(s, pid, its, sizeof(its)) && strcmp(own, its) != 0;
}

/* Dead processes are in no list and cannot be moved. */
static bool is_dead(pid_t pid)
{
	char path[48], text[1024];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return true;
	at = strrchr(text, ')');
	return at && at[1] == ' ' && strchr("ZX", at[2]);
}

static int move_in(const struct steward *s, pid_t pid)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", (int)pid);

	return pwrite(s->freezer.procs, text, (size_t)len, 0) < 0 ? -errno : 0;
}

/* Returns how many live processes were outside; negative: one cannot be moved. */
static int move_others_in(const struct steward *s)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	int n = 0, rc = dir ? 0 : -EIO;

	while (rc >= 0 && (e = readdir(dir))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid <= 1 || pid == getpid() || is_member(s, e->d_name) || is_dead(pid))
			continue;
		n++;
		rc = move_in(s, pid);
		rc = rc == -ESRCH || is_dead(pid) ? 0 : rc;
	}
	if (dir)
		(void)closedir(dir);
	return rc < 0 ? rc : n;
}

static int freeze(const struct steward *s)
{
	int rc = set_state(s, true), outside = 1;

	for (uint64_t passes = 0; rc == 0 && passes < PASSES_MAX; passes++) {
		const struct timespec rest = { .tv_nsec = (long)min_u64(passes * NS_PER_MS / 4, PASS_MOST_NS) };

		outside = move_others_in(s);
		if (outside == 0 && is_frozen(s))
			return 0;
		rc = outside < 0 ? outside : 0;
		(void)nanosleep(&rest, NULL);
	}
	(void)set_state(s, false);
	return rc < 0 ? rc : -EAGAIN;
}

int others_stop(const struct steward *s)
{
	return s->freezer.version ? freeze(s) : process_stop_others();
}

void others_continue(const struct steward *s)
{
	if (s->freezer.version)
		(void)set_state(s, false);
	else
		process_continue_others();
}

void others_stop_one(const struct steward *s, pid_t pid)
{
	if (s->freezer.version)
		(void)move_in(s, pid);
	else
		(void)kill(pid, SIGSTOP);
}

void others_let_die(const struct steward *s, pid_t pid)
{
	const struct timespec rest = { .tv_nsec = NS_PER_MS / 4 };

	if (s->freezer.version != 1 || !s->is_paused)
		return;
	(void)set_state(s, false);
	for (int i = 0; i < PASSES_MAX && !is_dead(pid); i++)
		(void)nanosleep(&rest, NULL);
	(void)freeze(s);
}
