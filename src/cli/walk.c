/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

/* What tools fetched or made: it is third-party code, and there is a lot of it. */
static const char *const left_out[] = {
	".git",   ".hg",         ".svn",  "node_modules", "build", "dist",
	"vendor", "__pycache__", ".venv", "venv",         ".tox",  ".cache",
};

struct names {
	char **item;
	size_t n, cap;
};

static void names_release(struct names *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i]);
	free(list->item);
}

static bool names_add(struct names *list, const char *name)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 32;
		char **item = reallocarray(list->item, cap, sizeof(*item));

		if (!item)
			return false;
		list->item = item;
		list->cap = cap;
	}
	list->item[list->n] = strdup(name);
	return list->item[list->n] && ++list->n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_left_out(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		if (str_eq(left_out[i], name))
			return true;
	return false;
}

/* Reads the names through a descriptor of its own. */
static int list_names(int dir, struct names *ret)
{
	AUTO_FD own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;

	if (!stream)
		return -errno;
	(void)fd_move(&own);
	while ((entry = readdir(stream)) != NULL)
		if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, "..") && !names_add(ret, entry->d_name)) {
			(void)closedir(stream);
			return -ENOMEM;
		}
	(void)closedir(stream);
	if (ret->n > 0)
		qsort(ret->item, ret->n, sizeof(*ret->item), by_name);
	return 0;
}

static int walk_folder(struct walk *w, int dir, const char *path, unsigned depth, struct brig_error *err);

static int visit_folder(struct walk *w, int dir, const char *name, const char *path, unsigned depth,
			struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;

	if (is_left_out(name))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || depth == WALK_DEPTH_MAX) {
		w->trouble(w->user, path, fd < 0 ? errno : ELOOP);
		return 0;
	}
	return walk_folder(w, fd, path, depth + 1, err);
}

static int visit_file(struct walk *w, int dir, const char *name, const char *path, struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;
	struct stat st;

	if (!w->wants(w->user, name))
		return 0;
	if (w->n_files++ == WALK_FILES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "there are more than %d files: check the folders one by one",
			       WALK_FILES_MAX);
	/* Not blocking: the file may have become a pipe since it was checked. */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		w->trouble(w->user, path, errno);
		return 0;
	}
	return S_ISREG(st.st_mode) ? w->file(w->user, fd, path) : 0;
}

static int walk_folder(struct walk *w, int dir, const char *path, unsigned depth, struct brig_error *err)
{
	CLEANUP(names_release)
	struct names list = { 0 };
	int rc = list_names(dir, &list);

	if (rc < 0)
		w->trouble(w->user, path, -rc);
	for (size_t i = 0; rc >= 0 && i < list.n; i++) {
		AUTO_BUF full = BUF_INIT(64 * KiB);
		const char *name = list.item[i];
		size_t len = strlen(path);
		struct stat st;

		buf_addf(&full, "%s%s%s", path, len && path[len - 1] == '/' ? "" : "/", name);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			w->trouble(w->user, buf_str(&full), errno);
		else if (S_ISDIR(st.st_mode))
			rc = visit_folder(w, dir, name, buf_str(&full), depth, err);
		else if (S_ISREG(st.st_mode))
			rc = visit_file(w, dir, name, buf_str(&full), err);
	}
	return rc < 0 && err->code ? rc : 0;
}

int walk_sources(struct walk *w, int dir, const char *path, struct brig_error *err)
{
	return walk_folder(w, dir, path, 0, err);
}
