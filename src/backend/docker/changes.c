/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed in a container's root.  The engine can report it (`docker diff`), but compares the whole tree with the
 * image for that, which takes some hundred milliseconds.  With the overlay driver all changes are in one directory,
 * which the engine names; if it is readable it is read, otherwise the engine is asked.  Entries are only counted,
 * nothing is opened.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "base/str.h"

#define DEPTH_MAX 32
#define COUNT_MAX 100000 /* counting further makes no difference */

/* The writable places and everything below, and mount points that engine and runtime create. */
static bool is_expected(const struct cell *c, const char *path)
{
	size_t len = strlen(path);
	static const char *const places[] = { PLAN_WORKSPACE, "/tmp", "/dev", "/proc", "/sys" };
	static const char *const targets[] = {
		"/etc",  "/etc/hosts",         "/etc/resolv.conf", "/etc/hostname", "/etc/mtab",
		"/run",  "/run/.containerenv", "/.dockerenv",      "/var",          "/var/tmp",
		"/.brig"
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t n = strlen(places[i]);

		if (strncmp(path, places[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		if (str_eq(path, targets[i]))
			return true;
	/* The parents of the shown tree's mount point, and the mount point itself. */
	return c->pump.folder && strncmp(c->pump.folder->target, path, len) == 0 &&
	       (c->pump.folder->target[len] == '/' || c->pump.folder->target[len] == '\0');
}

struct walk {
	const struct cell *cell;
	uint64_t changes;
	uint64_t seen;
	char path[4096];
};

static bool walk_dir(struct walk *w, int parent, const char *name, size_t len, unsigned depth);

static bool walk_entry(struct walk *w, int dir, const char *name, size_t len, unsigned depth)
{
	size_t n = strlen(name);
	struct stat st;

	if (len + 1 + n >= sizeof(w->path) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || ++w->seen > COUNT_MAX)
		return false;
	w->path[len] = '/';
	memcpy(w->path + len + 1, name, n + 1);
	if (!is_expected(w->cell, w->path))
		w->changes++;
	return !S_ISDIR(st.st_mode) || walk_dir(w, dir, name, len + 1 + n, depth + 1);
}

/* false: unknown. */
static bool walk_dir(struct walk *w, int parent, const char *name, size_t len, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool good = d && depth < DEPTH_MAX;

	if (!d && fd >= 0)
		(void)close(fd);
	while (good && (e = readdir(d)))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			good = walk_entry(w, fd, e->d_name, len, depth);
	if (d)
		(void)closedir(d);
	w->path[len] = '\0';
	return good;
}

static bool read_upper(struct cell *c)
{
	const char *upper = answer_text(c->after, "GraphDriver.Data.UpperDir");
	struct walk w = { .cell = c };

	if (!c->host->local || !upper || upper[0] != '/' || !walk_dir(&w, AT_FDCWD, upper, 0, 0))
		return false;
	c->changes = w.changes;
	c->changes_from = "the overlay's upper directory";
	return true;
}

static int count_change(void *arg, enum engine_change kind UNUSED, const char *path)
{
	struct cell *c = arg;

	if (!is_expected(c, path))
		c->changes++;
	return 0;
}

void changes_count(struct cell *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (c->after && read_upper(c))
		return;
	c->changes = 0;
	if (engine_changes(c->host->engine, c->id, count_change, c, &err) == 0)
		c->changes_from = "engine: changes of the root";
}
