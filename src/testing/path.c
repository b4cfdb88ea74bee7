/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a caller's path of tests: "./tests", "tests/", ".", or an absolute path. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "files/beneath.h"
#include "testing/internal.h"

/* Makes an absolute path relative to the project; resolves links in both. */
static int below_project(int project, const char *path, char *dst, size_t size, struct brig_error *err)
{
	char link[40], top[PATH_MAX], real[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", project);
	n = readlink(link, top, sizeof(top) - 1);
	if (n < 0 || !realpath(path, real))
		return err_set(err, BRIG_E_REFUSED, errno, "there are no tests at '%.200s'", path);
	top[n] = '\0';
	if (strncmp(real, top, (size_t)n) != 0 || (real[n] != '/' && real[n] != '\0'))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.200s' is outside the workspace, which is '%.200s'; --workspace names another", path,
			       top);
	return str_copy(dst, size, real[n] ? real + n + 1 : "") ? 0 : err_nomem(err);
}

/* Removes "." and empty components, in place. */
static void drop_idle_parts(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		size_t len = strcspn(from, "/");
		bool idle = len == 0 || (len == 1 && *from == '.');

		if (!idle) {
			if (to > path)
				*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len + (from[len] == '/');
	}
	*to = '\0';
}

int tests_clean_path(int project, const char *path, char *dst, size_t size, struct brig_error *err)
{
	char file[PATH_MAX], below[PATH_MAX];
	const char *one = strstr(path, "::"); /* pytest: a single test of the file follows */
	size_t len = one ? (size_t)(one - path) : strlen(path);
	int rc;

	if (path[0] == '-' || len >= sizeof(file) || strlen(path) >= size)
		return err_set(err, BRIG_E_REFUSED, 0, "'%.80s' is no path of tests", path);
	memcpy(file, path, len);
	file[len] = '\0';
	if (file[0] == '/') {
		rc = below_project(project, file, below, sizeof(below), err);
		if (rc < 0)
			return rc;
		memcpy(file, below, sizeof(file));
	}
	drop_idle_parts(file);
	if (*file && !beneath_is_path(file, strlen(file)))
		return err_set(err, BRIG_E_REFUSED, 0, "'%.80s' is no path below the workspace: write it without '..'",
			       path);
	if (snprintf(dst, size, "%s%s", file, one && *file ? one : "") >= (int)size)
		return err_set(err, BRIG_E_REFUSED, 0, "'%.80s' is no path of tests", path);
	return 0;
}
