/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host user ids a cell's processes have.
 *
 *   root             two unused ids, computed from the number that the kernel gave to the cell's user namespace.  No
 *                    two existing namespaces have the same number, whatever pid namespace or container their brig is
 *                    in, so no two living cells share an id, and there is no allocator that could leak or hand out an
 *                    id twice.  Inside a container with a small id map: ids from the upper half of its largest extent
 *   ordinary user    two ids of the user's range in /etc/subuid, computed likewise.  newuidmap(1) maps them: the pair
 *                    for each cell, or once the whole range for all cells (range_ns.c), in which case we write the
 *                    pairs ourselves
 *   without a range  the user's own id for both, the only one that the kernel permits; id_separation is then missing
 *
 * If a range has fewer pairs than the kernel has numbers in use, numbers wrap around: two cells of one user, or of one
 * such container, may then have the same pair.  In root's own range a number beyond the end is refused.
 *
 * Host id 0 is never mapped: files that uid 0 may open by plain permissions, such as most sysctls, would be accessible.
 */
#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/native/cell.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/caps.h"
#include "sys/proc.h"

/* systemd's table of reserved user ids leaves 0x70000000-0x7ffdffff unused. */
#define HOST_ID_BASE  0x70000000u
#define HOST_ID_PAIRS 0x07ff0000u
#define NEWUIDMAP     "/usr/bin/newuidmap"
#define NEWGIDMAP     "/usr/bin/newgidmap"

struct id_range {
	char user[64], uid[16]; /* the file may have either */
	uint64_t start, count;
};

/* "name-or-uid:start:count"; the first range of the user is used. */
static bool visit_range(char *line, void *arg)
{
	struct id_range *r = arg;
	char *start = strchr(line, ':'), *count;

	if (!start)
		return true;
	*start++ = '\0';
	count = strchr(start, ':');
	if (!count || (!str_eq(line, r->user) && !str_eq(line, r->uid)))
		return true;
	*count++ = '\0';
	if (!str_to_u64(start, &r->start) || !str_to_u64(count, &r->count))
		r->count = 0;
	return false;
}

static bool find_range(const char *file, struct id_range *ret)
{
	char text[4096];
	struct passwd pw, *found = NULL;

	*ret = (struct id_range){ .count = 0 };
	if (getpwuid_r(geteuid(), &pw, text, sizeof(text), &found) != 0 || !found)
		return false; /* newuidmap requires an account, too */
	(void)str_copy(ret->user, sizeof(ret->user), found->pw_name);
	(void)snprintf(ret->uid, sizeof(ret->uid), "%u", geteuid());
	return proc_each_line(file, visit_range, ret) >= 0 && ret->count >= 2 && ret->start > 0 &&
	       ret->start + ret->count <= UINT32_MAX;
}

/* The largest extent of /proc/self/uid_map, which is where unused ids are. */
struct extent {
	uint64_t start, count;
};

static bool visit_extent(char *line, void *arg)
{
	struct extent *best = arg;
	unsigned long long start, outside, count;

	if (sscanf(line, "%llu %llu %llu", &start, &outside, &count) == 3 && count > best->count)
		*best = (struct extent){ start, count };
	return true;
}

static struct idmap find_direct(void)
{
	struct extent best = { 0, 0 };

	(void)proc_each_line("/proc/self/uid_map", visit_extent, &best);
	if (best.start == 0 && best.count > HOST_ID_BASE + HOST_ID_PAIRS * 2)
		return (struct idmap){ IDMAP_DIRECT, HOST_ID_BASE, HOST_ID_BASE, HOST_ID_PAIRS };
	if (best.count >= 4096) { /* the lower half may have users of the container */
		uint64_t first = best.start + best.count / 2;

		return (struct idmap){ IDMAP_DIRECT, first, first, best.count / 4 };
	}
	return (struct idmap){ .kind = IDMAP_NONE };
}

static struct idmap find_subordinate(void)
{
	struct id_range uids, gids;

	if (access(NEWUIDMAP, X_OK) < 0 || access(NEWGIDMAP, X_OK) < 0 || !find_range("/etc/subuid", &uids) ||
	    !find_range("/etc/subgid", &gids))
		return (struct idmap){ .kind = IDMAP_OWN };
	return (struct idmap){ IDMAP_SUBORDINATE, uids.start, gids.start, min_u64(uids.count, gids.count) / 2 };
}

struct idmap idmap_find(void)
{
	return geteuid() == 0 ? find_direct() : find_subordinate();
}

/* The host id of this cell's init; the payload's is the next one. */
static uint64_t first_of(const struct cell *c, uint64_t first)
{
	return first + 2 * c->id_pair;
}

void idmap_of_program(const struct cell *c, uint64_t *ret_uid, uint64_t *ret_gid)
{
	*ret_uid = first_of(c, c->host->ids.first_uid) + 1;
	*ret_gid = first_of(c, c->host->ids.first_gid) + 1;
}

uint64_t idmap_of_init(const struct cell *c)
{
	return first_of(c, c->host->ids.first_uid);
}

/*
 * Files are still opened with our own id: init, which inherits it, must open the host's trees as we would.  Changing
 * root's effective id clears the effective capabilities, which are restored: on some hosts only privileged processes
 * may create user namespaces.
 */
int idmap_act_as(uint64_t uid)
{
	const uid_t own = geteuid();

	if (syscall(SYS_setresuid, -1, uid, -1) < 0)
		return -errno;
	(void)setfsuid(own);
	/* Changing ids makes us undumpable, and init would inherit that. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	return caps_use_permitted();
}

void idmap_act_as_ourselves(uid_t own)
{
	if (syscall(SYS_setresuid, -1, own, -1) < 0)
		abort(); /* cannot fail: it is the saved id */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

int idmap_pair(const struct idmap *ids, uint64_t number, uint64_t *ret)
{
	if (ids->pairs == 0 || (number >= ids->pairs && ids->pairs == HOST_ID_PAIRS))
		return -ERANGE;
	*ret = number % ids->pairs;
	return 0;
}

static int choose_pair(struct cell *c)
{
	uint64_t number;
	int rc = proc_ns_number(c->init_pid, "user", &number);

	return rc < 0 ? rc : idmap_pair(&c->host->ids, number, &c->id_pair);
}

static int write_map(pid_t pid, const char *name, const char *map)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fd_put_at(AT_FDCWD, path, map);
}

static int write_pair(pid_t pid, const char *name, uint32_t inside, uint64_t first)
{
	char map[96];

	(void)snprintf(map, sizeof(map), "0 %llu 1\n%u %llu 1\n", (unsigned long long)first, inside,
		       (unsigned long long)first + 1);
	return write_map(pid, name, map);
}

static int map_direct(const struct cell *c)
{
	const struct idmap *ids = &c->host->ids;
	int rc = write_pair(c->init_pid, "gid_map", c->spec.plan->gid, first_of(c, ids->first_gid));

	return rc < 0 ? rc : write_pair(c->init_pid, "uid_map", c->spec.plan->uid, first_of(c, ids->first_uid));
}

/* A line of a map. */
struct id_row {
	uint64_t inside, outside, count;
};
#define ROWS_MAX 2

/* The helper is set-uid and checks the rows itself.  *ret is for await_helper(). */
static int start_helper(const char *helper, pid_t pid, const struct id_row rows[ROWS_MAX], pid_t *ret)
{
	char words[1 + 3 * ROWS_MAX][24];
	char *argv[2 + ARRAY_LEN(words)] = { (char *)(uintptr_t)helper };

	(void)snprintf(words[0], sizeof(words[0]), "%d", pid);
	for (size_t i = 0; i < ROWS_MAX; i++) {
		const uint64_t numbers[] = { rows[i].inside, rows[i].outside, rows[i].count };

		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			(void)snprintf(words[1 + 3 * i + k], sizeof(words[0]), "%llu", (unsigned long long)numbers[k]);
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		argv[1 + i] = words[i];
	return -posix_spawn(ret, helper, NULL, NULL, argv, (char *[]){ NULL });
}

static int await_helper(pid_t helper)
{
	int status = proc_wait(helper);

	if (status < 0)
		return status;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

/* In parallel: each is a program to execute, and the maps are independent. */
static int run_helpers(pid_t pid, const struct id_row gids[ROWS_MAX], const struct id_row uids[ROWS_MAX])
{
	pid_t of_gids, of_uids;
	int rc = start_helper(NEWGIDMAP, pid, gids, &of_gids), other;

	if (rc < 0)
		return rc;
	other = start_helper(NEWUIDMAP, pid, uids, &of_uids);
	rc = await_helper(of_gids);
	if (other == 0)
		other = await_helper(of_uids);
	return rc < 0 ? rc : other;
}

static int map_subordinate(const struct cell *c)
{
	const uint64_t gid = first_of(c, c->host->ids.first_gid), uid = first_of(c, c->host->ids.first_uid);
	const struct id_row gids[] = { { 0, gid, 1 }, { c->spec.plan->gid, gid + 1, 1 } };
	const struct id_row uids[] = { { 0, uid, 1 }, { c->spec.plan->uid, uid + 1, 1 } };

	return run_helpers(c->init_pid, gids, uids);
}

int idmap_write_range(const struct idmap *ids, pid_t pid)
{
	const struct id_row gids[] = { { getegid(), getegid(), 1 },
				       { ids->first_gid, ids->first_gid, 2 * ids->pairs } };
	const struct id_row uids[] = { { geteuid(), geteuid(), 1 },
				       { ids->first_uid, ids->first_uid, 2 * ids->pairs } };

	return run_helpers(pid, gids, uids);
}

static int map_own(const struct cell *c)
{
	char map[64];
	int rc = write_map(c->init_pid, "setgroups", "deny"); /* the kernel requires this before gid_map */

	(void)snprintf(map, sizeof(map), "%u %u 1\n", c->spec.plan->gid, getegid());
	if (rc == 0)
		rc = write_map(c->init_pid, "gid_map", map);
	(void)snprintf(map, sizeof(map), "%u %u 1\n", c->spec.plan->uid, geteuid());
	return rc < 0 ? rc : write_map(c->init_pid, "uid_map", map);
}

int idmap_write(struct cell *c)
{
	static int (*const write_kind[])(const struct cell *) = {
		[IDMAP_OWN] = map_own,
		[IDMAP_SUBORDINATE] = map_subordinate,
		[IDMAP_DIRECT] = map_direct,
	};
	enum idmap_kind kind = c->host->ids.kind;
	int rc = kind == IDMAP_NONE ? -EPERM : kind == IDMAP_OWN ? 0 : choose_pair(c);

	return rc < 0 ? rc : write_kind[kind](c);
}
