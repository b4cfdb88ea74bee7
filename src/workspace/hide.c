/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of a project a cell must not see, and which of them are git's own.
 *
 * What is hidden is a file, not a name.  The tree is searched by name before each run, because a file that is not found
 * here is visible; whatever has a hidden name is a secret under each of its names:
 *
 *   links        what a hidden name links to is hidden in its place (a cell cannot put anything over a link).  It is
 *                looked up twice, as links mean different things in the two places: by the kernel from here, and as the
 *                cell will see it, where the project is /workspace (resolve.c).
 *   hard links   every other name of the same file is hidden too.  Only then is the tree walked a second time, and each
 *                file of it asked for its number.
 *   folders      a folder of secrets (.ssh) is hidden as a whole, and what it links to, too.  A folder that the policy
 *                names (workspace_hide) may be hidden because it is large: links in it are not secrets.
 *
 * workspace_show is the last word for each name.
 *
 * Only folders are opened, and those few files whose names do not tell; of 10 000 files that takes some milliseconds.
 * Not entered are objects, refs and logs of .git, in which git alone gives names.
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
#include "workspace/resolve.h"
#include "workspace/secrets.h"

#define HIDDEN_MAX 1024 /* each is a mount in the cell */
#define GIT_MAX    256

/* ---- names ------------------------------------------------------------------------------------- */

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

/* ---- what was found ---------------------------------------------------------------------------- */

/* A hidden file that has further names. */
struct twin {
	dev_t dev;
	ino_t ino;
};

struct scan {
	struct workspace *w;
	struct brig_error *err;
	int rc;
	struct twin *twin; /* heap; in order during the second walk */
	size_t n_twins, cap_twins;
	struct path_list further; /* names of twins */
	/* Hidden folders that are still to be looked into: of secrets, whose links are followed, and others. */
	struct path_list secret, large;
	uint64_t entries; /* looked at in hidden and linked folders */
	bool wild;        /* the policy hides paths by patterns, which a linked folder may make of other paths */
	bool cut;
};

static int note(struct scan *s, struct path_list *l, size_t max, const char *path)
{
	if (l->n == max)
		return err_set(s->err, BRIG_E_REFUSED, 0,
			       "the workspace has more than %zu files that must be hidden or are git's ('%.120s' is "
			       "one): name "
			       "those that programs may see in workspace_show, or folders in workspace_hide",
			       max, path);
	return paths_add(l, path) ? 0 : err_nomem(s->err);
}

static int remember_twin(struct scan *s, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || st->st_nlink < 2)
		return 0;
	if (s->n_twins == s->cap_twins) {
		size_t more = s->cap_twins ? 2 * s->cap_twins : 16;
		struct twin *bigger = reallocarray(s->twin, more, sizeof(*bigger));

		if (!bigger)
			return err_nomem(s->err);
		s->twin = bigger;
		s->cap_twins = more;
	}
	s->twin[s->n_twins++] = (struct twin){ .dev = st->st_dev, .ino = st->st_ino };
	return 0;
}

/* st is what is at path, and no link.  follow: it is a folder, and what links in it lead to is as secret as they are. */
static int hide(struct scan *s, const char *path, const struct stat *st, bool follow)
{
	int rc = note(s, &s->w->hidden, HIDDEN_MAX, path);

	if (rc < 0 || !S_ISDIR(st->st_mode))
		return rc < 0 ? rc : remember_twin(s, st);
	return paths_add(follow ? &s->secret : &s->large, path) ? 0 : err_nomem(s->err);
}

/* ---- links ------------------------------------------------------------------------------------- */

/* What a link with a hidden name leads to, if that is a secret: its own name, or what is in it, may say otherwise. */
static bool is_secret_target(const struct scan *s, const char *link, const char *target, bool is_dir)
{
	const struct settings *set = s->w->set;
	enum secret_when when = secret_by_name(link, is_dir);

	if (matches_one(&set->workspace_show, target, is_dir))
		return false;
	if (matches_one(&set->workspace_hide, link, is_dir) || when == SECRET_ALWAYS)
		return true;
	return when != SECRET_NEVER && secret_in_file(s->w->fd, target, when);
}

/* The list is not in order yet. */
static bool is_noted(const struct path_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->item[i], path))
			return true;
	return false;
}

static int hide_target(struct scan *s, const char *link, const char *target, bool certain)
{
	struct stat st;
	AUTO_FD fd = beneath_look(s->w->fd, target, &st);

	if (fd < 0 || S_ISLNK(st.st_mode) || is_noted(&s->w->hidden, target))
		return 0; /* gone meanwhile; or known, as all of a ring of links is after one round */
	if (!certain && !is_secret_target(s, link, target, S_ISDIR(st.st_mode)))
		return 0;
	if (certain && matches_one(&s->w->set->workspace_show, target, S_ISDIR(st.st_mode)))
		return 0;
	if (!*target)
		return err_set(
			s->err, BRIG_E_REFUSED, 0,
			"'%.200s' has the name of a secret and leads to the whole workspace: remove that link, or "
			"name it in workspace_show",
			link);
	return hide(s, target, &st, S_ISDIR(st.st_mode) && secret_by_name(link, true) == SECRET_ALWAYS);
}

/* path: a link, or one that has links on its way.  certain: whatever it leads to is hidden. */
static int hide_link(struct scan *s, const char *path, bool certain)
{
	char here[PATH_MAX], there[PATH_MAX];
	struct stat st;
	bool is_here = resolve_on_host(s->w->fd, path, here, &st);
	bool is_there = resolve_in_cell(s->w->fd, path, there);
	/* Also what lies outside may have a name in the project. */
	int rc = is_here ? hide_target(s, path, here, certain) : remember_twin(s, &st);

	if (rc == 0 && is_there && !(is_here && str_eq(here, there)))
		rc = hide_target(s, path, there, certain);
	return rc; /* outside, or nothing: there is nothing to see in the cell */
}

struct through {
	struct scan *s;
	const char *link;
};

/* A folder under another name: what the table says of "<link>/config.json" is said of the file that this leads to. */
static int hide_through(void *arg, const char *rest)
{
	const struct through *t = arg;
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", t->link, rest) >= sizeof(path))
		return 0;
	return matches_one(&t->s->w->set->workspace_show, path, false) ? 0 : hide_link(t->s, path, false);
}

/* Patterns of the policy that are plain paths: they may have links on their way, which no walk follows. */
static int hide_named(struct scan *s)
{
	int rc = 0;

	for (const char *p = NULL; rc == 0 && (p = setting_list_next(&s->w->set->workspace_hide, p));) {
		size_t len = strlen(p);
		char path[PATH_MAX];

		if (!strchr(p, '/') || strpbrk(p, "*?[\\") || len >= sizeof(path))
			continue;
		memcpy(path, p, len + 1);
		if (path[len - 1] == '/')
			path[len - 1] = '\0';
		rc = hide_link(s, path + (*path == '/'), true);
	}
	return rc;
}

struct alias {
	struct scan *s;
	const char *link, *target;
};

static enum walk_next consider_alias(void *arg, const struct walk_entry *e)
{
	const struct alias *a = arg;
	struct scan *s = a->s;
	bool is_dir = S_ISDIR(e->st->st_mode);
	char alias[PATH_MAX], real[PATH_MAX];

	s->entries++;
	if ((size_t)snprintf(alias, sizeof(alias), "%s/%s", a->link, e->path) >= sizeof(alias) ||
	    (size_t)snprintf(real, sizeof(real), "%s%s%s", a->target, *a->target ? "/" : "", e->path) >= sizeof(real) ||
	    !matches_one(&s->w->set->workspace_hide, alias, is_dir) ||
	    matches_one(&s->w->set->workspace_show, alias, is_dir))
		return WALK_ON;
	s->rc = S_ISLNK(e->st->st_mode) ? hide_link(s, real, true) : hide_target(s, alias, real, true);
	return s->rc < 0 ? WALK_STOP : is_dir ? WALK_SKIP : WALK_ON;
}

/* Compares what is in a linked folder, under the names that it has through the link, with the policy's patterns. */
static int look_through(struct scan *s, const char *link)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX - min_u64(s->entries, ENTRIES_MAX), .kinds_only = true };
	char target[PATH_MAX];
	struct alias a = { .s = s, .link = link, .target = target };
	struct walk_outcome out;
	AUTO_FD dir = FD_NONE;
	struct stat st;
	int rc;

	if (!resolve_in_cell(s->w->fd, link, target) && !resolve_on_host(s->w->fd, link, target, &st))
		return 0;
	dir = beneath_open_dir(s->w->fd, target);
	if (dir < 0)
		return 0; /* a file */
	rc = walk_tree(dir, &caps, consider_alias, &a, &out, s->err);
	s->cut |= out.cut;
	return rc < 0 ? rc : s->rc;
}

static bool has_wild_paths(const struct settings *set)
{
	for (const char *p = NULL; (p = setting_list_next(&set->workspace_hide, p));)
		if (strchr(p, '/') && strpbrk(p, "*?["))
			return true;
	return false;
}

/* ---- hidden folders ---------------------------------------------------------------------------- */

struct inside {
	struct scan *s;
	const char *path;
	bool follow;
};

static enum walk_next consider_inside(void *arg, const struct walk_entry *e)
{
	const struct inside *in = arg;
	struct scan *s = in->s;
	char path[PATH_MAX];
	struct stat st;

	s->entries++;
	if (S_ISREG(e->st->st_mode) && fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		s->rc = remember_twin(s, &st);
	else if (S_ISLNK(e->st->st_mode) && in->follow &&
		 (size_t)snprintf(path, sizeof(path), "%s/%s", in->path, e->path) < sizeof(path))
		s->rc = hide_link(s, path, true);
	return s->rc < 0 ? WALK_STOP : WALK_ON;
}

/* Files of a hidden folder may have names elsewhere. */
static int look_into(struct scan *s, const char *path, bool follow)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX - min_u64(s->entries, ENTRIES_MAX), .kinds_only = true };
	struct inside in = { .s = s, .path = path, .follow = follow };
	AUTO_FD dir = beneath_open_dir(s->w->fd, path);
	struct walk_outcome out;
	int rc;

	if (dir < 0)
		return 0; /* what cannot be read here cannot be shown, or has gone */
	rc = walk_tree(dir, &caps, consider_inside, &in, &out, s->err);
	s->cut |= out.cut;
	return rc < 0 ? rc : s->rc;
}

/* Each may add to both lists, and none is added twice. */
static int look_into_folders(struct scan *s)
{
	size_t secret = 0, large = 0;
	int rc = 0;

	while (rc == 0 && (secret < s->secret.n || large < s->large.n))
		rc = secret < s->secret.n ? look_into(s, s->secret.item[secret++], true)
					  : look_into(s, s->large.item[large++], false);
	return rc;
}

/* ---- the walk ---------------------------------------------------------------------------------- */

/* Whether the name alone, or the file's content, makes it one; of a link the name, without a look at the content. */
static bool must_hide(const struct scan *s, const struct walk_entry *e, bool is_dir)
{
	const struct settings *set = s->w->set;
	enum secret_when when;

	if (matches_one(&set->workspace_show, e->path, is_dir))
		return false;
	if (matches_one(&set->workspace_hide, e->path, is_dir))
		return true;
	when = secret_by_name(e->path, is_dir);
	if (when == SECRET_NEVER || S_ISLNK(e->st->st_mode))
		return when != SECRET_NEVER;
	return secret_in_file(e->dir, e->name, when);
}

/* Thousands of names that git makes of hashes and branches. */
static bool is_git_store(const char *path, const char *name)
{
	return (str_eq(name, "objects") || str_eq(name, "refs") || str_eq(name, "logs")) && path_has_git(path);
}

static int hide_entry(struct scan *s, const struct walk_entry *e)
{
	struct stat st;

	if (S_ISLNK(e->st->st_mode))
		return hide_link(s, e->path, false);
	if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st = *e->st; /* the kind; it may be there again later */
	return hide(s, e->path, &st, S_ISDIR(st.st_mode) && secret_by_name(e->path, true) == SECRET_ALWAYS);
}

/* A link of an ordinary name gives names to what is in the folder that it leads to. */
static int consider_link(struct scan *s, const struct walk_entry *e)
{
	int rc = secret_tails(e->name, hide_through, &(struct through){ .s = s, .link = e->path });

	return rc == 0 && s->wild ? look_through(s, e->path) : rc;
}

static enum walk_next consider(void *arg, const struct walk_entry *e)
{
	struct scan *s = arg;
	bool is_dir = S_ISDIR(e->st->st_mode);
	bool hidden = must_hide(s, e, is_dir);

	if (hidden)
		s->rc = hide_entry(s, e);
	else if (S_ISLNK(e->st->st_mode))
		s->rc = consider_link(s, e);
	else if (str_eq(e->name, ".git") && (is_dir || S_ISREG(e->st->st_mode)))
		s->rc = note(s, &s->w->git, GIT_MAX, e->path);
	if (s->rc < 0)
		return WALK_STOP;
	return is_dir && (hidden || is_git_store(e->path, e->name)) ? WALK_SKIP : WALK_ON;
}

/* ---- hard links -------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct twin *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->dev == y->dev ? 0 : x->dev < y->dev ? -1 : 1;
}

static enum walk_next consider_twin(void *arg, const struct walk_entry *e)
{
	struct scan *s = arg;
	struct twin key;
	struct stat st;

	if (S_ISDIR(e->st->st_mode))
		return paths_cover(&s->w->hidden, e->path) ? WALK_SKIP : WALK_ON;
	if (!S_ISREG(e->st->st_mode) || fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink < 2)
		return WALK_ON;
	key = (struct twin){ .dev = st.st_dev, .ino = st.st_ino };
	if (!bsearch(&key, s->twin, s->n_twins, sizeof(key), by_number) ||
	    matches_one(&s->w->set->workspace_show, e->path, false))
		return WALK_ON;
	s->rc = note(s, &s->further, HIDDEN_MAX, e->path);
	return s->rc < 0 ? WALK_STOP : WALK_ON;
}

static int find_twins(struct scan *s, struct walk_outcome *out)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX, .kinds_only = true };
	int rc;

	if (s->n_twins == 0)
		return 0;
	qsort(s->twin, s->n_twins, sizeof(*s->twin), by_number);
	rc = walk_tree(s->w->fd, &caps, consider_twin, s, out, s->err);
	if (rc == 0)
		rc = s->rc;
	for (size_t i = 0; i < s->further.n && rc == 0; i++)
		if (!paths_cover(&s->w->hidden, s->further.item[i]))
			rc = note(s, &s->w->hidden, 2 * HIDDEN_MAX, s->further.item[i]);
	return rc;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static void put_in_order(struct path_list *l)
{
	paths_sort(l);
	paths_prune(l);
}

static int find(struct scan *s)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX, .kinds_only = true };
	struct walk_outcome out, again = { .entries = 0 };
	int rc = walk_tree(s->w->fd, &caps, consider, s, &out, s->err);

	if (rc < 0)
		return err_wrap(s->err, "workspace '%.200s'", s->w->path);
	rc = s->rc < 0 ? s->rc : hide_named(s);
	if (rc == 0)
		rc = look_into_folders(s);
	if (rc < 0)
		return rc;
	put_in_order(&s->w->hidden);
	rc = find_twins(s, &again);
	if (rc < 0)
		return rc;
	if (out.cut || again.cut || s->cut)
		return err_set(
			s->err, BRIG_E_REFUSED, 0,
			"workspace '%.200s' has more than %d files, or folders nested deeper than %d: what must be "
			"hidden cannot be found in it; name a smaller folder",
			s->w->path, ENTRIES_MAX, WALK_DEPTH_MAX);
	put_in_order(&s->w->hidden);
	paths_sort(&s->w->git);
	return 0;
}

int hide_find(struct workspace *w, struct brig_error *err)
{
	struct scan s = { .w = w, .err = err, .wild = has_wild_paths(w->set) };
	int rc = find(&s);

	free(s.twin);
	paths_release(&s.further);
	paths_release(&s.secret);
	paths_release(&s.large);
	return rc;
}
