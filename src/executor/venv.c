/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter in a virtual environment is a link to one of the host, which may not be in the cell; so the cell's own
 * python3 is told where the packages are.
 */
#include "executor/venv.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "files/beneath.h"
#include "model/plan.h"

/* "python3.11": the folder of lib that packages of a version are in. */
static bool is_version(const char *name)
{
	static const char front[] = "python3.";

	return strncmp(name, front, strlen(front)) == 0 && strlen(name) < strlen(front) + 4 &&
	       name[strlen(front)] != '\0' &&
	       strspn(name + strlen(front), "0123456789") == strlen(name + strlen(front));
}

static bool find_version(int project, const char *folder, char dst[16])
{
	char path[64];
	DIR *dir;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/lib", folder);
	fd = beneath_open_dir(project, path);
	dir = fd < 0 ? NULL : fdopendir(fd);
	*dst = '\0';
	if (!dir && fd >= 0)
		(void)close(fd);
	if (!dir)
		return false;
	for (const struct dirent *e; !*dst && (e = readdir(dir));)
		if (is_version(e->d_name))
			(void)snprintf(dst, 16, "%.15s", e->d_name);
	(void)closedir(dir);
	return *dst;
}

bool venv_find(const struct workspace *project, struct venv *ret)
{
	static const char *const folders[] = { ".venv", "venv" };

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		char mark[64], version[16];
		unsigned mode;

		(void)snprintf(mark, sizeof(mark), "%s/pyvenv.cfg", folders[i]);
		if (workspace_at(project, mark, NULL, 0, &mode) == WORKSPACE_ABSENT ||
		    !find_version(workspace_plan(project)->fd, folders[i], version))
			continue;
		(void)snprintf(ret->text[0], sizeof(ret->text[0]), "VIRTUAL_ENV=" PLAN_WORKSPACE "/%s", folders[i]);
		(void)snprintf(ret->text[1], sizeof(ret->text[1]),
			       "PYTHONPATH=" PLAN_WORKSPACE "/%s/lib/%s/site-packages", folders[i], version);
		(void)snprintf(ret->text[2], sizeof(ret->text[2]),
			       "PATH=" PLAN_WORKSPACE "/%s/bin:/usr/local/bin:/usr/bin:/bin:/run/brig/bin", folders[i]);
		for (size_t k = 0; k < ARRAY_LEN(ret->text); k++)
			ret->env[k] = ret->text[k];
		return true;
	}
	return false;
}
