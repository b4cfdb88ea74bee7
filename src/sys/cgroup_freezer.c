/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group in which processes of a cell can be frozen while others of it go on.
 *
 * It is empty until somebody pauses: who pauses freezes the group first and then moves processes into it, where each stops as it comes.
 * So nothing is spent on it when a process starts, which on cgroup v2 would be milliseconds (cgroup_v1.c has the numbers).
 *
 *	v1	a group of the cell's name in the hierarchy of the freezer.  What is frozen there does not die either, not even with its pid
 *		namespace: whoever ends a cell thaws it (cgroup_thaw())
 *	v2	a child of the cell's own group, without controllers, so that all limits are still those of the cell.  Frozen processes can
 *		be killed.  Before Linux 5.16 the mover's own rights count, not those of who opened the file: then there is none
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "sys/cgroup_internal.h"
#include "sys/proc.h"

#define CHILD    "programs"
#define V1_PLACE "/sys/fs/cgroup/freezer"
#define V1_STATE "freezer.state"
#define V2_STATE "cgroup.freeze"
#define V2_FROM  516 /* Linux, major times 100 and minor */
#define PROCS    "cgroup.procs"

struct own_freezer {
	char path[CGROUP_PATH_MAX];
	bool found;
};

static bool visit_own(char *line, void *arg)
{
	struct own_freezer *own = arg;
	struct cgroup_line l;

	if (!proc_parse_cgroup(line, &l) || !proc_list_has(l.controllers, ',', "freezer"))
		return true;
	own->found = str_copy(own->path, sizeof(own->path), l.path);
	return false;
}

/* Only where it usually is: a host that has it elsewhere has cgroup v2, or stops by signals. */
void cgroup_find_freezer(struct cgroup_host *h)
{
	struct own_freezer own = { .found = false };
	struct cgroup_tree *tree = &h->freezer;
	struct statfs fs;
	AUTO_FD dir = FD_NONE;

	tree->dir = FD_NONE;
	if (proc_each_line("/proc/self/cgroup", visit_own, &own) < 0 || !own.found || strstr(own.path, "/.."))
		return;
	if (snprintf(tree->path, sizeof(tree->path), V1_PLACE "%.900s", str_eq(own.path, "/") ? "" : own.path) < 0)
		return;
	dir = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstatfs(dir, &fs) < 0 || fs.f_type != CGROUP_SUPER_MAGIC || (fs.f_flags & ST_RDONLY) ||
	    faccessat(dir, ".", W_OK, AT_EACCESS) < 0)
		return;
	tree->ops = &cgroup_v1_ops;
	tree->dir = fd_move(&dir);
}

void cgroup_freezer_close(struct cgroup_freezer *f)
{
	fd_closep(&f->procs);
	fd_closep(&f->state);
	fd_closep(&f->events);
}

static int open_files(int dir, const char *state, const char *events, struct cgroup_freezer *ret)
{
	int rc = 0;

	ret->procs = openat(dir, PROCS, O_RDWR | O_CLOEXEC);
	ret->state = openat(dir, state, O_RDWR | O_CLOEXEC);
	if (events)
		ret->events = openat(dir, events, O_RDONLY | O_CLOEXEC);
	if (ret->procs < 0 || ret->state < 0 || (events && ret->events < 0))
		rc = -errno;
	if (rc < 0)
		cgroup_freezer_close(ret);
	return rc;
}

static int make_v1(struct cgroup *cg, struct cgroup_freezer *ret)
{
	struct cgroup_leaf *leaf = &cg->freezer;
	int rc;

	if (mkdirat(leaf->parent, leaf->name, 0755) < 0) {
		rc = -errno;
		fd_closep(&leaf->parent); /* what is not ours is not removed */
		return rc;
	}
	leaf->dir = openat(leaf->parent, leaf->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	rc = leaf->dir < 0 ? -errno : open_files(leaf->dir, V1_STATE, NULL, ret);
	ret->version = 1;
	(void)snprintf(ret->source, sizeof(ret->source), "%.60s/%.50s/" V1_STATE, leaf->path, leaf->name);
	return rc;
}

static bool is_new_enough(void)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       major * 100 + minor >= V2_FROM;
}

static int make_v2(const struct cgroup_leaf *leaf, struct cgroup_freezer *ret)
{
	AUTO_FD dir = FD_NONE;

	if (!is_new_enough())
		return -ENOTSUP;
	if (mkdirat(leaf->dir, CHILD, 0755) < 0)
		return -errno;
	dir = openat(leaf->dir, CHILD, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ret->version = 2;
	(void)snprintf(ret->source, sizeof(ret->source), "%.50s/%.40s/" CHILD "/" V2_STATE, leaf->path, leaf->name);
	return dir < 0 ? -errno : open_files(dir, V2_STATE, "cgroup.events", ret);
}

int cgroup_make_freezer(struct cgroup *cg, struct cgroup_freezer *ret)
{
	*ret = (struct cgroup_freezer)CGROUP_FREEZER_INIT;
	if (cg->freezer.parent >= 0)
		return make_v1(cg, ret);
	for (size_t i = 0; i < cg->n_leaves; i++)
		if (cg->leaf[i].ops == &cgroup_v2_ops && cg->leaf[i].dir >= 0)
			return make_v2(&cg->leaf[i], ret);
	return -ENOTSUP;
}

void cgroup_thaw(const struct cgroup *cg)
{
	if (cg->freezer.dir >= 0)
		cgroup_thaw_leaf(&cg->freezer);
}

void cgroup_thaw_leaf(const struct cgroup_leaf *leaf)
{
	if (leaf->dir >= 0 && leaf->ops == &cgroup_v1_ops)
		(void)fd_put_at(leaf->dir, V1_STATE, "THAWED"); /* of other hierarchies there is no such file */
}

void cgroup_remove_programs(const struct cgroup_leaf *leaf)
{
	if (leaf->dir >= 0 && leaf->ops == &cgroup_v2_ops)
		(void)unlinkat(leaf->dir, CHILD, AT_REMOVEDIR);
}

int cgroup_count_programs(const struct cgroup_leaf *leaf, int (*count)(const struct cgroup_leaf *leaf))
{
	struct cgroup_leaf below = *leaf;
	AUTO_FD dir = leaf->dir >= 0 && leaf->ops == &cgroup_v2_ops
			      ? openat(leaf->dir, CHILD, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			      : FD_NONE;

	below.dir = dir;
	return dir < 0 ? 0 : count(&below);
}
