/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project becomes a workspace: is it one, which of its files are secrets, which may only be read.
 *
 * The whole tree is looked through by name before each run, because a file that is not found here is shown.  Only
 * folders are opened, and those few files whose names do not tell; of 10 000 files that takes some milliseconds.  Not
 * entered are folders that are hidden as a whole, and objects, refs and logs of .git, in which git alone gives names.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/glob.h"
#include "files/walk.h"
#include "workspace/internal.h"
#include "workspace/secrets.h"

#define HIDDEN_MAX 1024 /* each is a mount in the cell */
#define SEALED_MAX 256
#define LINKS_MAX  8 /* links that lead to links */

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

/* ---- what is hidden ---------------------------------------------------------------------------- */

static bool matches_one(const struct setting_list *patterns, const char *path, bool is_dir)
{
	for (const char *p = NULL; (p = setting_list_next(patterns, p));)
		if (glob_matches(p, path, is_dir))
			return true;
	return false;
}

bool workspace_hides(const struct settings *set, const char *path, bool is_dir)
{
	if (matches_one(&set->workspace_show, path, is_dir))
		return false;
	return secret_by_name(path, is_dir) == SECRET_ALWAYS || matches_one(&set->workspace_hide, path, is_dir);
}

struct scan {
	struct workspace *w;
	struct brig_error *err;
	int rc;
};

static int note(struct scan *s, struct path_list *l, size_t max, const char *path)
{
	if (l->n == max)
		return err_set(
			s->err, BRIG_E_REFUSED, 0,
			"the workspace has more than %zu files that must be hidden or sealed ('%.120s' is one): name "
			"those that programs may see in workspace_show, or folders in workspace_hide",
			max, path);
	return paths_add(l, path) ? 0 : err_nomem(s->err);
}

/* What a hidden name links to is hidden in its place: a cell cannot put anything over a link. */
static int hide_link(struct scan *s, const char *path)
{
	char at[PATH_MAX], target[PATH_MAX], next[PATH_MAX];
	struct stat st = { .st_mode = S_IFLNK };

	(void)str_copy(at, sizeof(at), path);
	for (int i = 0; S_ISLNK(st.st_mode); i++) {
		AUTO_FD fd = beneath_look(s->w->fd, at, &st);
		ssize_t n;

		if (fd < 0)
			return 0; /* outside, or nothing: there is nothing to see in the cell */
		if (!S_ISLNK(st.st_mode))
			break;
		n = readlinkat(fd, "", target, sizeof(target) - 1);
		if (n <= 0 || i == LINKS_MAX)
			return 0;
		target[n] = '\0';
		if (!path_of_link(at, target, next, sizeof(next)) || !*next)
			return 0;
		(void)str_copy(at, sizeof(at), next);
	}
	return note(s, &s->w->hidden, HIDDEN_MAX, at);
}

static bool must_hide(const struct scan *s, const struct walk_entry *e, bool is_dir)
{
	const struct settings *set = s->w->set;
	enum secret_when when;

	if (matches_one(&set->workspace_show, e->path, is_dir))
		return false;
	if (matches_one(&set->workspace_hide, e->path, is_dir))
		return true;
	when = secret_by_name(e->path, is_dir);
	return when != SECRET_NEVER && secret_in_file(e->dir, e->name, when);
}

/* Thousands of names that git makes of hashes and branches. */
static bool is_git_store(const char *path, const char *name)
{
	return (str_eq(name, "objects") || str_eq(name, "refs") || str_eq(name, "logs")) && path_has_git(path);
}

static enum walk_next consider(void *arg, const struct walk_entry *e)
{
	struct scan *s = arg;
	bool is_dir = S_ISDIR(e->st->st_mode);
	bool hide = must_hide(s, e, is_dir);

	if (hide && S_ISLNK(e->st->st_mode))
		s->rc = hide_link(s, e->path);
	else if (hide)
		s->rc = note(s, &s->w->hidden, HIDDEN_MAX, e->path);
	else if (str_eq(e->name, ".git") && (is_dir || S_ISREG(e->st->st_mode)))
		s->rc = note(s, &s->w->sealed, SEALED_MAX, e->path);
	if (s->rc < 0)
		return WALK_STOP;
	return is_dir && (hide || is_git_store(e->path, e->name)) ? WALK_SKIP : WALK_ON;
}

static int find_hidden(struct workspace *w, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX, .kinds_only = true };
	struct scan s = { .w = w, .err = err };
	struct walk_outcome out;
	int rc = walk_tree(w->fd, &caps, consider, &s, &out, err);

	if (rc < 0)
		return err_wrap(err, "workspace '%.200s'", w->path);
	if (s.rc < 0)
		return s.rc;
	if (out.cut)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"workspace '%.200s' has more than %d files, or folders nested deeper than %d: what must be "
			"hidden cannot be found in it; name a smaller folder",
			w->path, ENTRIES_MAX, WALK_DEPTH_MAX);
	paths_sort(&w->hidden);
	paths_prune(&w->hidden);
	paths_sort(&w->sealed);
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
		rc = find_hidden(w, err);
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
