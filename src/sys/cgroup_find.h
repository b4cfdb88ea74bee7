/* SPDX-License-Identifier: Apache-2.0 */
/* Existing groups, whoever created them: for finding what was left behind. */
#ifndef SYS_CGROUP_FIND_H
#define SYS_CGROUP_FIND_H

#include "base/util.h"

struct cgroup_found {
	const char *name; /* of the group */
	const char *path; /* of the directory that holds it */
	int parent;       /* the same, open */
	bool v2;
};

/*
 * Every group in any mounted hierarchy whose name begins with the prefix; a cell has one per hierarchy.  Groups inside
 * a found one are not looked for.  A negative value from visit stops the walk and is returned.  0 or -errno.
 */
int cgroup_find(const char *prefix, int (*visit)(void *arg, const struct cgroup_found *found), void *arg);
/* What cgroup_mark() has put on it, "" if nothing.  Written by the owner of the group: trust it no further than that.
 */
void cgroup_found_mark(const struct cgroup_found *found, char *dst, size_t size);
/* Kills what is inside a found group and removes it.  0, or -EBUSY if it is still there at deadline_ns. */
int cgroup_found_remove(const struct cgroup_found *found, uint64_t deadline_ns);

#endif
