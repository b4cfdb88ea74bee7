/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of this host, in every hierarchy, by their names. */
#ifndef TESTS_LEAK_CGROUPS_H
#define TESTS_LEAK_CGROUPS_H

#include <dirent.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

#define CGROUPS_DEPTH 6

typedef int (*cgroup_name_fn)(const char *name, const void *arg);

static long count_cgroups_below(const char *path, int depth, cgroup_name_fn counts, const void *arg)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	long n = 0;

	while (dir && (entry = readdir(dir))) {
		char below[4096];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		n += counts(entry->d_name, arg);
		if (depth > 0 && snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) < (int)sizeof(below))
			n += count_cgroups_below(below, depth - 1, counts, arg);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Those whose names count. */
static long count_cgroups(cgroup_name_fn counts, const void *arg)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	long n = 0;

	while (f && (m = getmntent(f)))
		if (!strncmp(m->mnt_type, "cgroup", 6))
			n += count_cgroups_below(m->mnt_dir, CGROUPS_DEPTH, counts, arg);
	if (f)
		endmntent(f);
	return n;
}

#endif
