/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of a project a cell must not see, and which it may only read.
 *
 * The whole tree is looked through by name before each run, because a file that is not found here is shown.  Only
 * folders are opened, and those few files whose names do not tell; of 10 000 files that takes some milliseconds.  Not
 * entered are folders that are hidden as a whole, and objects, refs and logs of .git, in which git alone gives names.
 */
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

int hide_find(struct workspace *w, struct brig_error *err)
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
