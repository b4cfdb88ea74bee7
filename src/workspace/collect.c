/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program made of its workspace, compared with the project.
 *
 * The view is walked once: everything in it that the project does not have in the same form is an addition or a
 * modification.  Deletions are what the project has and the view does not, looked for where they can be: everywhere if
 * the view is the complete tree, and in the upper layer of an overlay below whiteouts (a character device 0/0), in
 * folders marked opaque and below what has taken a folder's place.
 *
 * The program is dead by then, but it chose every name, size and type, so: nothing is followed, and only folders and
 * regular files are opened (INV-8); a file's size is charged before its bytes are read; and when a limit is reached the
 * rest is only counted, the changes are incomplete, and none of them is kept.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/overlay.h"
#include "files/walk.h"
#include "workspace/git.h"

struct collector {
	const struct collect_ask *ask;
	int project, view;
	struct keeper *keeper; /* NULL: contents are hashed, not kept */
	struct changeset set, git;
	uint64_t bytes_left;  /* of changed files */
	uint64_t before_left; /* of the project's */
	uint64_t dropped;
	bool incomplete, too_large;
	struct brig_error *err;
	int rc;
};

/* ---- what is no change of the program's -------------------------------------------------------- */

static bool is_ours(const struct collect_ask *a, const char *path)
{
	for (size_t i = 0; i < a->n_ours; i++)
		if (str_eq(path, a->ours[i]))
			return true;
	return false;
}

static bool is_passed_over(const struct collector *c, const char *path)
{
	const struct workspace *w = c->ask->workspace;

	return is_ours(c->ask, path) || paths_cover(&w->hidden, path) || paths_cover(&w->git, path) ||
	       is_tool_cache(path);
}

/* ---- rows -------------------------------------------------------------------------------------- */

/* Whether it, or a folder that it is in, has a name that the policy hides. */
static bool has_hidden_name(const struct collector *c, const char *path, bool is_dir)
{
	char part[PATH_MAX];

	if (!str_copy(part, sizeof(part), path))
		return true;
	for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
		bool hides;

		*slash = '\0';
		hides = workspace_hides(c->ask->set, part, true);
		*slash = '/';
		if (hides)
			return true;
	}
	return workspace_hides(c->ask->set, path, is_dir);
}

/* What a row says by itself; changeset_judge() looks at them together. */
static enum skip skip_for(const struct collector *c, const struct kept_row *row)
{
	const char *path = row->change.path;

	if (path_has_git(path))
		return SKIP_GIT;
	if (has_hidden_name(c, path, row->change.type == CHANGE_DIR))
		return SKIP_SECRET;
	if (row->change.kind == CHANGE_DELETED)
		return row->before.kind == BEFORE_OTHER ? SKIP_SPECIAL : SKIP_NOT;
	return row->change.type == CHANGE_SPECIAL ? SKIP_SPECIAL : SKIP_NOT;
}

static void count(struct collector *c, enum change_kind kind)
{
	uint64_t *const counters[] = { &c->set.added, &c->set.modified, &c->set.deleted };

	++*counters[kind];
}

static bool is_full(const struct collector *c)
{
	return c->set.n >= c->ask->set->changes_limit;
}

/* Takes target over. */
static void add_row(struct collector *c, const struct change *change, const struct before *before, char *target)
{
	struct kept_row row = { .change = *change, .before = *before, .target = target };

	row.change.path = strdup(change->path);
	if (!row.change.path) {
		free(target);
		c->rc = err_nomem(c->err);
		return;
	}
	row.skip = skip_for(c, &row);
	if (!changeset_add(&c->set, &row))
		c->rc = err_nomem(c->err);
}

static void drop_row(struct collector *c)
{
	c->dropped++;
	c->incomplete = true;
}

/* ---- deletions --------------------------------------------------------------------------------- */

static const enum change_type type_of_before[BEFORE_KIND_COUNT] = { [BEFORE_FILE] = CHANGE_FILE,
								    [BEFORE_DIR] = CHANGE_DIR,
								    [BEFORE_LINK] = CHANGE_LINK,
								    [BEFORE_OTHER] = CHANGE_SPECIAL };

static bool is_in_view(const struct collector *c, const char *path)
{
	struct stat st;
	AUTO_FD fd = beneath_look(c->view, path, &st);

	return fd >= 0 && (c->ask->view->whole || !overlay_is_gone(&st));
}

static void add_deleted(struct collector *c, const char *path)
{
	struct before before;
	struct change change = { .path = (char *)(uintptr_t)path, .kind = CHANGE_DELETED };

	count(c, CHANGE_DELETED);
	if (is_full(c)) {
		drop_row(c);
		return;
	}
	if (before_look(c->project, path, &c->before_left, &before) < 0 || before.kind == BEFORE_NOTHING)
		return;
	change.type = type_of_before[before.kind];
	change.mode = before.mode;
	change.size = before.kind == BEFORE_FILE ? before.size : 0;
	add_row(c, &change, &before, NULL);
}

/* A complete tree was packed: what cannot be read, and what is no file, folder or link, was not in it. */
static bool was_left_out(const struct collector *c, const struct walk_entry *e)
{
	AUTO_FD fd = FD_NONE;

	if (!c->ask->view->whole || S_ISDIR(e->st->st_mode) || S_ISLNK(e->st->st_mode))
		return false;
	fd = beneath_open_file(e->dir, e->name, NULL);
	return fd < 0;
}

struct deletion_walk {
	struct collector *c;
	const char *prefix; /* the folder's path in the project; "": all of it */
};

static enum walk_next consider_deleted(void *arg, const struct walk_entry *e)
{
	const struct deletion_walk *d = arg;
	char path[PATH_MAX];
	size_t len = strlen(d->prefix);

	if (len + 1 + strlen(e->path) >= sizeof(path)) {
		d->c->incomplete = true;
		return WALK_SKIP;
	}
	memcpy(path, d->prefix, len);
	if (len > 0)
		path[len++] = '/';
	memcpy(path + len, e->path, strlen(e->path) + 1);
	if (is_passed_over(d->c, path))
		return WALK_SKIP;
	if (!is_in_view(d->c, path) && !was_left_out(d->c, e))
		add_deleted(d->c, path);
	return d->c->rc < 0 ? WALK_STOP : WALK_ON;
}

/* What the project has below a folder and the view has not. */
static void find_deleted(struct collector *c, const char *prefix)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX };
	struct deletion_walk d = { .c = c, .prefix = prefix };
	AUTO_FD dir = beneath_open_dir(c->project, prefix);
	struct walk_outcome out;

	if (dir < 0)
		return; /* it is no folder, or not there */
	if (walk_tree(dir, &caps, consider_deleted, &d, &out, c->err) < 0 || out.cut)
		c->incomplete = true;
}

/* ---- additions and modifications --------------------------------------------------------------- */

static bool same_content(const struct walk_entry *e, int project, const char *path)
{
	char ours[16 * 1024], theirs[16 * 1024];
	AUTO_FD a = beneath_open_file(e->dir, e->name, NULL);
	AUTO_FD b = beneath_open_file(project, path, NULL);
	ssize_t n, m;

	if (a < 0 || b < 0)
		return false;
	do {
		n = fd_read_all(a, ours, sizeof(ours));
		m = fd_read_all(b, theirs, sizeof(theirs));
		if (n != m || n < 0 || memcmp(ours, theirs, (size_t)n) != 0)
			return false;
	} while ((size_t)n == sizeof(ours));
	return true;
}

/* The staged file as it was: no change, even if the project's owner has changed the original meanwhile. */
static bool is_covering(const struct collector *c, const struct walk_entry *e)
{
	const struct covering *v = &c->ask->covering;
	AUTO_FD fd = FD_NONE;

	if (!v->name || !str_eq(e->path, v->name) || !S_ISREG(e->st->st_mode) || (e->st->st_mode & 0777) != v->mode ||
	    (uint64_t)e->st->st_size != v->len)
		return false;
	fd = beneath_open_file(e->dir, e->name, NULL);
	return fd >= 0 && same_bytes(fd, v->data, v->len);
}

/* A file that was written again as it was is no change. */
static bool same_file(struct collector *c, const struct walk_entry *e)
{
	struct stat st;
	AUTO_FD fd = beneath_look(c->project, e->path, &st);

	if (fd < 0 || !S_ISREG(st.st_mode) || st.st_size != e->st->st_size ||
	    foreign_mode(e->st->st_mode, st.st_mode) != (st.st_mode & 0777))
		return false;
	if ((uint64_t)st.st_size > c->bytes_left) {
		/* Written again, or a hole of that size: reading would tell, but takes more than is allowed. */
		return false;
	}
	return same_content(e, c->project, e->path);
}

static int open_and_keep(struct collector *c, const struct walk_entry *e, struct change *change)
{
	AUTO_FD fd = beneath_open_file(e->dir, e->name, NULL);
	uint64_t size;
	int rc;

	if (fd < 0)
		return fd;
	rc = c->keeper ? keeper_add(c->keeper, fd, c->bytes_left, &size, change->sha256)
		       : copy_hashed(fd, -1, c->bytes_left, &size, change->sha256);
	if (rc == -EDQUOT) { /* none of it will be kept: from here on contents are only hashed */
		c->keeper = NULL;
		c->too_large = c->incomplete = true;
	} else if (rc < 0) {
		return rc;
	}
	c->bytes_left -= size;
	change->size = size;
	change->hashed = true;
	return 0;
}

static void add_file(struct collector *c, const struct walk_entry *e, struct change *change,
		     const struct before *before)
{
	/* The size first: a hole of a terabyte is not read to learn that it is too much. */
	int rc = change->size > c->bytes_left ? -EFBIG : open_and_keep(c, e, change);

	if (rc == -EFBIG || rc == -EACCES || rc == -ENOENT || rc == -ELOOP || rc == -EINVAL || rc == -EPERM) {
		c->incomplete = true; /* it is listed, without its hash */
	} else if (rc < 0) {
		c->rc = err_set(c->err, BRIG_E_SYSTEM, -rc, "cannot keep the changed file '%.200s'", change->path);
		return;
	}
	c->set.bytes += change->size;
	add_row(c, change, before, NULL);
}

static void add_link(struct collector *c, const struct walk_entry *e, struct change *change,
		     const struct before *before)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target));
	char *copy;

	if (n <= 0 || (size_t)n >= sizeof(target)) {
		c->incomplete = true;
		return;
	}
	sha256(target, (size_t)n, change->sha256);
	change->hashed = true;
	change->size = (uint64_t)n;
	if (before->kind == BEFORE_LINK && before->hashed && memcmp(before->sha256, change->sha256, SHA256_LEN) == 0)
		return;
	copy = strndup(target, (size_t)n);
	if (!copy) {
		c->rc = err_nomem(c->err);
		return;
	}
	count(c, change->kind);
	add_row(c, change, before, copy);
}

static enum change_type type_of(const struct stat *st)
{
	return S_ISREG(st->st_mode)   ? CHANGE_FILE
	       : S_ISDIR(st->st_mode) ? CHANGE_DIR
	       : S_ISLNK(st->st_mode) ? CHANGE_LINK
				      : CHANGE_SPECIAL;
}

/* The project's kind, cheaply; contents are hashed only when something is known to have changed. */
static enum before_kind kind_in_project(const struct collector *c, const char *path, unsigned *ret_mode)
{
	struct stat st;
	AUTO_FD fd = beneath_look(c->project, path, &st);

	if (fd < 0)
		return BEFORE_NOTHING;
	*ret_mode = st.st_mode & 0777;
	return S_ISREG(st.st_mode)   ? BEFORE_FILE
	       : S_ISDIR(st.st_mode) ? BEFORE_DIR
	       : S_ISLNK(st.st_mode) ? BEFORE_LINK
				     : BEFORE_OTHER;
}

static bool is_unchanged(struct collector *c, const struct walk_entry *e)
{
	unsigned mode = 0;

	if (S_ISREG(e->st->st_mode))
		return is_covering(c, e) || same_file(c, e);
	if (S_ISDIR(e->st->st_mode))
		return kind_in_project(c, e->path, &mode) == BEFORE_DIR && mode == foreign_mode(e->st->st_mode, mode);
	if (c->ask->view->whole && !S_ISLNK(e->st->st_mode)) /* a project's own FIFO: its copy is not packed */
		return kind_in_project(c, e->path, &mode) == BEFORE_OTHER;
	return false;
}

static unsigned mode_for(const struct change *c, unsigned wanted, const struct before *before)
{
	bool same_kind = type_of_before[before->kind] == c->type && before->kind != BEFORE_NOTHING;

	return foreign_mode(wanted, same_kind ? before->mode : 0);
}

static void add_present(struct collector *c, const struct walk_entry *e)
{
	struct change change = { .path = (char *)(uintptr_t)e->path,
				 .type = type_of(e->st),
				 .size = S_ISREG(e->st->st_mode) ? (uint64_t)e->st->st_size : 0 };
	struct before before;
	unsigned mode;

	if (is_full(c)) {
		count(c, kind_in_project(c, e->path, &mode) == BEFORE_NOTHING ? CHANGE_ADDED : CHANGE_MODIFIED);
		drop_row(c);
		return;
	}
	if (before_look(c->project, e->path, &c->before_left, &before) < 0) {
		c->incomplete = true;
		return;
	}
	change.kind = before.kind == BEFORE_NOTHING ? CHANGE_ADDED : CHANGE_MODIFIED;
	change.mode = mode_for(&change, e->st->st_mode, &before);
	if (change.type == CHANGE_LINK) {
		add_link(c, e, &change, &before);
		return;
	}
	count(c, change.kind);
	if (change.type == CHANGE_FILE)
		add_file(c, e, &change, &before);
	else
		add_row(c, &change, &before, NULL);
}

static enum walk_next consider_present(void *arg, const struct walk_entry *e)
{
	struct collector *c = arg;
	bool is_dir = S_ISDIR(e->st->st_mode), upper = !c->ask->view->whole;
	unsigned mode;

	if (is_passed_over(c, e->path))
		return WALK_SKIP;
	if (upper && overlay_is_gone(e->st)) {
		if (kind_in_project(c, e->path, &mode) != BEFORE_NOTHING)
			add_deleted(c, e->path);
		find_deleted(c, e->path);
		return c->rc < 0 ? WALK_STOP : WALK_ON;
	}
	if (!is_unchanged(c, e))
		add_present(c, e);
	if (c->rc == 0 && upper && (!is_dir || overlay_is_opaque(e->dir, e->name)))
		find_deleted(c, e->path); /* below a folder that this replaced, or emptied */
	if (c->rc < 0)
		return WALK_STOP;
	/* A new .git is one row, whatever is in it: nothing of it is moved over. */
	return is_dir && path_has_git(e->path) ? WALK_SKIP : WALK_ON;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static int look(struct collector *c)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX };
	struct walk_outcome out;
	int rc = walk_tree(c->view, &caps, consider_present, c, &out, c->err);

	if (rc < 0)
		return err_wrap(c->err, "cannot look at what the program left");
	/* What is missing from a view in part may be there still. */
	if (c->rc == 0 && c->ask->view->whole && !c->ask->view->in_part)
		find_deleted(c, "");
	c->incomplete |= c->ask->view->in_part || out.cut || out.unreadable > 0 || out.vanished > 0;
	changeset_sort(&c->set);
	return c->rc < 0 ? c->rc : changeset_judge(&c->set, c->project, c->err);
}

static int copy_out(const struct collector *c, struct changes *ret, struct brig_error *err)
{
	ret->added = c->set.added;
	ret->modified = c->set.modified;
	ret->deleted = c->set.deleted;
	ret->bytes = c->set.bytes;
	ret->dropped = c->dropped;
	for (size_t i = 0; i < c->set.n; i++)
		if (!changes_add(ret, &c->set.row[i].change))
			return err_nomem(err);
	return 0;
}

/* Whether there is something that could be applied. */
static bool is_worth_keeping(const struct collector *c)
{
	for (size_t i = 0; i < c->set.n; i++)
		if (c->set.row[i].skip == SKIP_NOT)
			return true;
	return c->git.n > 0;
}

static int describe(struct collector *c)
{
	const struct workspace *w = c->ask->workspace;

	(void)str_copy(c->set.id, sizeof(c->set.id), c->ask->id);
	(void)str_copy(c->set.project, sizeof(c->set.project), w->path);
	c->set.folder = w->folder.id;
	if (!folder_boot(c->set.boot))
		c->set.boot[0] = '\0';
	c->set.mode = c->ask->set->workspace_mode;
	c->set.created_ns = clock_wall_ns();
	c->set.git = c->git.n > 0;
	for (size_t i = 0; i < w->hidden.n; i++)
		if (!paths_add(&c->set.hidden, w->hidden.item[i]))
			return err_nomem(c->err);
	return 0;
}

static int keep(struct collector *c, struct changes *ret)
{
	int rc = describe(c);

	if (rc == 0)
		rc = keeper_finish(c->keeper, &c->set, &c->git, &ret->forgotten, c->err);
	if (rc == 0) {
		ret->state = CHANGES_KEPT;
		ret->git = c->set.git;
	}
	if (rc > 0)
		c->too_large = c->incomplete = true;
	return rc;
}

static int collect(struct collector *c, struct changes *ret)
{
	int rc = look(c);

	if (rc == 0)
		rc = copy_out(c, ret, c->err);
	if (rc == 0 && !c->incomplete && c->keeper)
		rc = git_collect(c->ask, c->keeper, &c->git, &ret->git_lost, c->err);
	if (rc < 0)
		return rc;
	if (!c->incomplete && c->keeper && is_worth_keeping(c)) {
		rc = keep(c, ret);
		if (rc < 0)
			return rc;
	}
	ret->too_large = c->too_large;
	if (c->incomplete)
		ret->state = CHANGES_INCOMPLETE;
	return 0;
}

int workspace_collect(const struct collect_ask *ask, struct changes *ret, struct brig_error *err)
{
	AUTO_KEEPER keeper = KEEPER_INIT;
	struct collector c = { .ask = ask,
			       .project = ask->workspace->fd,
			       .view = ask->view->fd,
			       .bytes_left = ask->set->disk_limit,
			       .before_left = BEFORE_BYTES_MAX,
			       .err = err };
	int rc = 0;

	ret->known = true;
	ret->mode = ask->set->workspace_mode;
	ret->state = CHANGES_NONE;
	if (ask->state) {
		rc = keeper_begin(&keeper, ask->state, ask->id, err);
		c.keeper = &keeper;
		keeper.room = ask->set->changes_size;
	}
	if (rc == 0)
		rc = collect(&c, ret);
	if (ret->state != CHANGES_KEPT)
		(void)keeper_drop(&keeper);
	changeset_release(&c.set);
	changeset_release(&c.git);
	return rc;
}
