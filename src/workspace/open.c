/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project becomes a workspace: is it one, and where.
 * Which of its files are secrets, and which may only be read, is found by hide.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "workspace/internal.h"

/* ---- is it a project --------------------------------------------------------------------------- */

static const struct place {
	const char *path;
	bool below;
} places[] = {
#define PLACE(path, below) { path, below },
#include "workspace/places.def"
};

/* Whether path is folder, or below it. */
static bool is_in(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (len == 1)
		return true; /* the root */
	return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool is_system(const char *path)
{
	const struct place *best = &places[0];

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (is_in(path, places[i].path) && strlen(places[i].path) >= strlen(best->path))
			best = &places[i];
	return best->below || str_eq(best->path, path);
}

static bool is_home(const char *path)
{
	const char *home = secure_getenv("HOME");
	char real[PATH_MAX];

	return home && realpath(home, real) && str_eq(real, path);
}

/* The path without links, also if its last parts are not there yet: those are compared by name. */
static bool real_or_future(const char *path, char real[PATH_MAX])
{
	char part[PATH_MAX], found[PATH_MAX];
	const char *rest;

	if (!str_copy(part, sizeof(part), path))
		return false;
	while (!realpath(*part ? part : ".", found)) {
		char *slash = strrchr(part, '/');

		if (errno != ENOENT || !*part)
			return false;
		if (slash)
			slash[slash == part] = '\0';
		else
			*part = '\0';
	}
	rest = path + strlen(part);
	while (*rest == '/')
		rest++;
	return (size_t)snprintf(real, PATH_MAX, "%s%s%s", found, *rest ? "/" : "", rest) < PATH_MAX;
}

static int check_place(const char *path, const char *state, struct brig_error *err)
{
	char real[PATH_MAX];

	if (is_system(path))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.200s' is a folder of the system, not a project: name the project's own folder",
			       path);
	if (is_home(path))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"'%.200s' is a home folder, which holds more than a project: name the project's own folder",
			path);
	if (state && *state && real_or_future(state, real) && (is_in(real, path) || is_in(path, real)))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"brig keeps its state in '%.150s', which must not share a folder with the workspace '%.150s': "
			"name another one with --state or $BRIG_STATE",
			real, path);
	return 0;
}

/* ---- open and close ---------------------------------------------------------------------------- */

static int open_folder(struct workspace *w, const char *path, const char *state, struct brig_error *err)
{
	char link[48];
	ssize_t n;

	w->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->fd < 0)
		return err_set(err, BRIG_E_REFUSED, errno, "cannot open the workspace '%.200s'", path);
	/* The path of what was opened, whatever the name has become meanwhile. */
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", w->fd);
	n = readlink(link, w->path, sizeof(w->path) - 1);
	if (n <= 0 || w->path[0] != '/')
		return err_set(err, BRIG_E_REFUSED, 0, "cannot find out where the workspace '%.200s' is", path);
	w->path[n] = '\0';
	return check_place(w->path, state, err);
}

int workspace_open(const char *path, const char *state, const struct settings *set, struct workspace **ret,
		   struct brig_error *err)
{
	struct workspace *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return err_nomem(err);
	w->set = set;
	rc = open_folder(w, path, state, err);
	if (rc == 0)
		rc = hide_find(w, err);
	if (rc < 0) {
		workspace_close(w);
		return rc;
	}
	w->plan = (struct plan_workspace){
		.fd = w->fd,
		.path = w->path,
		.read_only = set->workspace_mode == WORKSPACE_RO,
		.hidden = (const char *const *)w->hidden.item,
		.n_hidden = w->hidden.n,
		.sealed = (const char *const *)w->sealed.item,
		.n_sealed = w->sealed.n,
	};
	*ret = w;
	return 0;
}

void workspace_close(struct workspace *w)
{
	if (!w)
		return;
	fd_closep(&w->fd);
	paths_release(&w->hidden);
	paths_release(&w->sealed);
	free(w);
}

const struct plan_workspace *workspace_plan(const struct workspace *w)
{
	return &w->plan;
}

static bool same_bytes(int fd, const char *data, size_t len)
{
	char piece[16384];
	size_t at = 0;
	ssize_t n;

	while ((n = fd_read_all(fd, piece, sizeof(piece))) > 0) {
		if ((size_t)n > len - at || memcmp(piece, data + at, (size_t)n) != 0)
			return false;
		at += (size_t)n;
	}
	return n == 0 && at == len;
}

enum workspace_name workspace_at_top(const struct workspace *w, const char *name, const void *data, size_t len)
{
	struct stat st;
	AUTO_FD seen = beneath_look(w->fd, name, &st);
	AUTO_FD fd = FD_NONE;

	if (seen == -ENOENT)
		return WORKSPACE_ABSENT;
	if (seen < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != len || paths_cover(&w->hidden, name))
		return WORKSPACE_OTHER;
	fd = beneath_open_file(w->fd, name, NULL);
	return fd >= 0 && same_bytes(fd, data, len) ? WORKSPACE_SAME : WORKSPACE_OTHER;
}
