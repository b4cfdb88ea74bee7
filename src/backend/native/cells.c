/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native cells of other brig processes, found by the names of their cgroups:
 *
 *	brig-<run id>-<owner's pid>-<boot time in ms>-<owner's pid namespace>
 *
 * A cell's processes die with their supervisor, and its janitor removes the groups; only if both are killed at once
 * does anything stay here.  The name is sufficient to tell: a process with that pid that is older than the cell is its
 * owner, a younger one has reused the pid.  The name costs nothing, and unlike a lock or a file it cannot be separated
 * from the group.  Pids of another pid namespace mean nothing here: such cells are listed, but not removed.
 *
 * A keeper's waiting cells are created before their run is known, and the keeper is their owner.  Their groups have a
 * mark: "waiting", and from the claim the run's id and the pid of the keeper's caller.  The mark determines how a cell
 * is listed and which process `brig kill` signals; the owner, and whether the cell is an orphan, still follow from the
 * name.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/native/cell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/cgroup_find.h"

#define PREFIX     "brig-"
#define REMOVAL_NS (5 * NS_PER_SEC)

static uint64_t boot_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / NS_PER_MS;
}

static unsigned long long own_pid_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

void cell_group_id(const char *id, pid_t owner, char dst[CELL_GROUP_ID_MAX])
{
	(void)snprintf(dst, CELL_GROUP_ID_MAX, "%.16s-%d-%llu-%llu", id, (int)owner, (unsigned long long)boot_ms(),
		       own_pid_ns());
}

static bool is_run_id(const char *word)
{
	return strlen(word) == RUN_ID_LEN && strspn(word, "abcdefghijklmnopqrstuvwxyz234567") == RUN_ID_LEN;
}

bool cell_group_parse(const char *name, char id[RUN_ID_LEN + 1], uint64_t ret[3])
{
	char text[CELL_GROUP_ID_MAX], *rest, *word;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || !str_copy(text, sizeof(text), name + strlen(PREFIX)))
		return false;
	rest = text;
	word = strsep(&rest, "-");
	if (!is_run_id(word))
		return false;
	(void)str_copy(id, RUN_ID_LEN + 1, word);
	for (int i = 0; i < 3; i++) {
		word = strsep(&rest, "-");
		if (!word || !str_to_u64(word, &ret[i]))
			return false;
	}
	return !rest && ret[0] > 0 && ret[0] <= INT32_MAX;
}

/* When a process was started, in ms since boot; false if it does not exist or is dead. */
static bool started_at(uint64_t pid, uint64_t *ret)
{
	char path[48], text[1024], *after;
	unsigned long long ticks;
	int threads;

	(void)snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	after = strrchr(text, ')');
	if (!after || after[1] != ' ' ||
	    sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu", &threads,
		   &ticks) != 2)
		return false;
	/*
	 * A zombie.  A thread group whose leader has exited before the other threads looks the same, except for their
	 * number.
	 */
	if ((after[2] == 'Z' || after[2] == 'X') && threads <= 1)
		return false;
	*ret = ticks * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK);
	return true;
}

/* Which cells were visited: a cell has a group in each hierarchy. */
struct visit {
	bool reap;
	cell_entry_fn each;
	void *arg;
	struct brig_error *err;
	char (*seen)[RUN_ID_LEN + 1];
	size_t n_seen, room;
	uint64_t now_ms, pid_ns;
};

static int is_new(struct visit *v, const char *id)
{
	for (size_t i = 0; i < v->n_seen; i++)
		if (str_eq(v->seen[i], id))
			return 0;
	if (v->n_seen == v->room) {
		size_t room = v->room ? 2 * v->room : 64;
		void *grown = realloc(v->seen, room * sizeof(*v->seen));

		if (!grown)
			return err_nomem(v->err);
		v->seen = grown;
		v->room = room;
	}
	(void)str_copy(v->seen[v->n_seen++], RUN_ID_LEN + 1, id);
	return 1;
}

/* The caller must be older than the cell, as its keeper is: a younger process has reused the pid. */
static void read_mark(const struct cgroup_found *found, uint64_t made_ms, struct cell_entry *e)
{
	char mark[CELL_MARK_MAX], *pid = mark, *id;
	uint64_t caller, since;

	cgroup_found_mark(found, mark, sizeof(mark));
	id = strsep(&pid, " ");
	e->waiting = str_eq(id, CELL_MARK_WAITING) && !pid;
	if (!is_run_id(id) || !pid || !str_to_u64(pid, &caller))
		return;
	(void)str_copy(e->id, sizeof(e->id), id);
	if (e->owner > 0 && caller > 0 && caller <= INT32_MAX && started_at(caller, &since) && since <= made_ms)
		e->owner = (pid_t)caller;
}

static void describe(const struct visit *v, const struct cgroup_found *found, const uint64_t owner[3],
		     struct cell_entry *e)
{
	uint64_t since;

	(void)snprintf(e->name, sizeof(e->name), "%.90s", found->name);
	e->age_ms = v->now_ms > owner[1] ? v->now_ms - owner[1] : 0;
	if (owner[2] == v->pid_ns) {
		e->owner = (pid_t)owner[0];
		e->orphan = !started_at(owner[0], &since) || since > owner[1];
	}
	read_mark(found, owner[1], e);
}

/* An ordinary user may remove only own orphans. */
static bool may_remove(const struct cgroup_found *found)
{
	struct stat st;

	return geteuid() == 0 ||
	       (fstatat(found->parent, found->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid());
}

static int visit_group(void *arg, const struct cgroup_found *found)
{
	struct visit *v = arg;
	struct cell_entry e = { .owner = 0 };
	char made_as[RUN_ID_LEN + 1];
	uint64_t owner[3];
	int rc;

	if (!cell_group_parse(found->name, made_as, owner))
		return 0;
	(void)str_copy(e.id, sizeof(e.id), made_as);
	describe(v, found, owner, &e);
	if (v->reap && (!e.orphan || !may_remove(found)))
		return 0;
	if (v->reap && cgroup_found_remove(found, clock_now_ns() + REMOVAL_NS) < 0)
		return err_set(v->err, BRIG_E_SYSTEM, EBUSY, "cannot remove the control group %.200s/%s", found->path,
			       found->name);
	rc = is_new(v, made_as); /* by its name: the mark may change between two of its groups */
	return rc > 0 ? v->each(v->arg, &e) : rc;
}

static int visit_all(struct visit *v)
{
	int rc;

	v->now_ms = boot_ms();
	v->pid_ns = own_pid_ns();
	rc = cgroup_find(PREFIX, visit_group, v);
	free(v->seen);
	if (rc < 0 && v->err && v->err->code == 0)
		return err_set(v->err, BRIG_E_SYSTEM, -rc, "cannot look through the control groups");
	return rc;
}

int native_list(const struct settings *set UNUSED, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return visit_all(&(struct visit){ .each = each, .arg = arg, .err = err });
}

int native_reap(const struct settings *set UNUSED, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return visit_all(&(struct visit){ .reap = true, .each = each, .arg = arg, .err = err });
}
