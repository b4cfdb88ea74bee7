/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the file that a path names, and its path in the workspace.  Only paths are computed here: the library
 * compares the file's content with the file in the project, opened beneath the project's own descriptor.
 */
#include "cli/source.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#define MANIFEST_MAX (1 * MiB)

static const struct entry {
	const char *language, *file;
} entries[] = {
#define ENTRY(language, file) { language, file },
#include "cli/entries.def"
};

static bool is_there(const char *dir, const char *file)
{
	char path[PATH_MAX];
	struct stat st;

	return (size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) < sizeof(path) && stat(path, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

/* "main" of a package.json, without "./"; false: none, or not a file in the directory. */
static bool read_main(const char *dir, char ret[PATH_MAX])
{
	char path[PATH_MAX], text[16384];
	AUTO_BUF manifest = BUF_INIT(MANIFEST_MAX);
	AUTO_FD fd = FD_NONE;
	const char *named;
	struct stat st;
	json_t *root;
	ssize_t n;
	bool ok;

	if ((size_t)snprintf(path, sizeof(path), "%s/package.json", dir) >= sizeof(path))
		return false;
	fd = file_open(path, 0, &st);
	while (fd >= 0 && (n = fd_read_all(fd, text, sizeof(text))) > 0)
		(void)buf_add(&manifest, text, (size_t)n);
	if (fd < 0 || manifest.full || manifest.no_memory || manifest.len == 0)
		return false;
	root = json_loadb(manifest.data, manifest.len, 0, NULL);
	named = json_string_value(json_object_get(root, "main"));
	while (named && strncmp(named, "./", 2) == 0)
		named += 2;
	ok = named && *named && *named != '/' && !strstr(named, "..") && str_copy(ret, PATH_MAX, named) &&
	     is_there(dir, ret);
	json_decref(root);
	return ok;
}

/* The only entry file of the directory. */
static int find_entry(const char *dir, char ret[PATH_MAX], struct brig_error *err)
{
	const char *language = NULL;

	if (read_main(dir, ret))
		language = "JavaScript";
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		const struct entry *e = &entries[i];

		if ((language && str_eq(language, e->language)) || !is_there(dir, e->file))
			continue;
		if (language)
			return err_set(err, BRIG_E_USAGE, 0,
				       "'%.200s' has more than one program: %.100s and %s; name the file to run, with "
				       "--workspace %.200s",
				       dir, ret, e->file, dir);
		language = e->language;
		(void)str_copy(ret, PATH_MAX, e->file);
	}
	if (language)
		return 0;
	return err_set(err, BRIG_E_USAGE, 0,
		       "'%.200s' is a folder without main.py, __main__.py, index.js, index.ts, main.go or another file "
		       "that a program begins in: name the file to run, with --workspace %.200s",
		       dir, dir);
}

/* Compares resolved paths, so links on the way to either do not matter. */
static void place_in(const char *workspace, struct source *s)
{
	char top[PATH_MAX], file[PATH_MAX];
	size_t len;

	if (!realpath(workspace, top) || !realpath(s->file, file))
		return;
	len = str_eq(top, "/") ? 0 : strlen(top);
	if (strncmp(file, top, len) == 0 && file[len] == '/')
		(void)str_copy(s->in_workspace, sizeof(s->in_workspace), file + len + 1);
}

int source_find(const char *path, const char *workspace, struct source *ret, struct brig_error *err)
{
	char entry[PATH_MAX] = "";
	struct stat st;
	int rc;

	*ret = (struct source){ .file = "" };
	if (!str_copy(ret->file, sizeof(ret->file), path))
		return err_set(err, BRIG_E_USAGE, ENAMETOOLONG, "'%.80s...'", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		rc = find_entry(path, entry, err);
		if (rc < 0)
			return rc;
		if ((size_t)snprintf(ret->file, sizeof(ret->file), "%s/%s", path, entry) >= sizeof(ret->file))
			return err_set(err, BRIG_E_USAGE, ENAMETOOLONG, "'%.80s...'", path);
		if (!workspace)
			(void)str_copy(ret->workspace, sizeof(ret->workspace), path);
	}
	if (workspace || ret->workspace[0])
		place_in(workspace ? workspace : ret->workspace, ret);
	return 0;
}
