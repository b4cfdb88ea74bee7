/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup_find.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "sys/cgroup_internal.h"
#include "sys/proc.h"

/* On a host with more groups only this many are searched: better than none. */
#define DEPTH_MAX  24
#define GROUPS_MAX 50000
#define MOUNTS_MAX 32

struct search {
	const char *prefix;
	int (*visit)(void *arg, const struct cgroup_found *found);
	void *arg;
	size_t seen;
	dev_t done[MOUNTS_MAX]; /* hierarchies, which may be mounted more than once */
	size_t n_done;
	bool v2;
	char path[CGROUP_PATH_MAX];
	int rc;
};

static int walk(struct search *s, int dir, int depth);

static int enter(struct search *s, int dir, const char *name, int depth)
{
	AUTO_FD below = FD_NONE;
	size_t len = strlen(s->path);
	int rc;

	if (depth == DEPTH_MAX || ++s->seen > GROUPS_MAX || len + strlen(name) + 2 > sizeof(s->path))
		return 0;
	below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return 0; /* gone meanwhile, or not for us to see */
	(void)snprintf(s->path + len, sizeof(s->path) - len, "/%s", name);
	rc = walk(s, below, depth + 1);
	s->path[len] = '\0';
	return rc;
}

static int walk(struct search *s, int dir, int depth)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	int rc = 0;

	if (!d && copy >= 0)
		(void)close(copy);
	if (!d)
		return 0;
	for (struct dirent *e; rc >= 0 && (e = readdir(d));) {
		const struct cgroup_found found = { .name = e->d_name, .path = s->path, .parent = dir, .v2 = s->v2 };

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (strncmp(e->d_name, s->prefix, strlen(s->prefix)) == 0)
			rc = s->visit(s->arg, &found);
		else
			rc = enter(s, dir, e->d_name, depth);
	}
	(void)closedir(d);
	return rc;
}

static bool is_new(struct search *s, const struct stat *st)
{
	for (size_t i = 0; i < s->n_done; i++)
		if (s->done[i] == st->st_dev)
			return false;
	if (s->n_done == MOUNTS_MAX)
		return false;
	s->done[s->n_done++] = st->st_dev;
	return true;
}

static bool visit_mount(char *line, void *arg)
{
	struct search *s = arg;
	struct mount_line m;
	struct stat st;
	AUTO_FD dir = FD_NONE;

	if (!proc_parse_mount(line, &m) || (!str_eq(m.fstype, "cgroup") && !str_eq(m.fstype, "cgroup2")) ||
	    !str_copy(s->path, sizeof(s->path), m.point))
		return true;
	dir = open(m.point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0 || !is_new(s, &st))
		return true;
	s->v2 = str_eq(m.fstype, "cgroup2");
	s->rc = walk(s, dir, 0);
	return s->rc >= 0;
}

int cgroup_find(const char *prefix, int (*visit)(void *arg, const struct cgroup_found *found), void *arg)
{
	struct search s = { .prefix = prefix, .visit = visit, .arg = arg };
	int rc = proc_each_line("/proc/self/mountinfo", visit_mount, &s);

	return rc < 0 ? rc : s.rc < 0 ? s.rc : 0;
}

void cgroup_found_mark(const struct cgroup_found *found, char *dst, size_t size)
{
	AUTO_FD dir = openat(found->parent, found->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = dir < 0 ? -1 : fgetxattr(dir, CGROUP_MARK, dst, size - 1);

	dst[n > 0 ? n : 0] = '\0';
}

int cgroup_found_remove(const struct cgroup_found *found, uint64_t deadline_ns)
{
	const struct cgroup one = {
		.leaf = { { .ops = found->v2 ? &cgroup_v2_ops : &cgroup_v1_ops,
			    .top = FD_NONE,
			    .parent = found->parent,
			    .dir = FD_NONE,
			    .entry = FD_NONE,
			    .name = found->name } },
		.n_leaves = 1,
		.freezer = { .top = FD_NONE, .parent = FD_NONE, .dir = FD_NONE, .entry = FD_NONE },
	};

	return cgroup_remove(&one, deadline_ns);
}
