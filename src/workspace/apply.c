/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving changes over to the project: all of them or none.
 *
 *	check   every path of the project that is to change is still what the run saw
 *	stage   new files and links are made, complete, in a folder ".brig-apply-<id>" at the project's top
 *	commit  what goes is moved into that folder, what comes is moved out of it, what is replaced changes places:
 *	        nothing but renames within one file system, new folders and permission bits, each of which is noted
 *	        with what undoes it, and is undone in reverse when a later one fails
 *	clear   the folder goes, with what was deleted and replaced
 *
 * A brig that is killed while it commits leaves that folder behind with the old files in it.
 *
 * Everything is reached beneath the descriptor of the project's folder, without links.  Files belong to whom the file
 * that they replace belonged to, or to the owner of the project's folder; setuid, setgid and sticky bits do not exist
 * here.  What the policy hides, and .git, is never written, whatever the changeset says.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "workspace/internal.h"

enum undo_kind { UNDO_RENAME, UNDO_EXCHANGE, UNDO_RMDIR, UNDO_MODE };

struct undo {
	enum undo_kind kind;
	size_t row;
	bool from_staging; /* of a rename: what was moved came from there */
	unsigned mode;
};

struct apply {
	const struct keeper *keeper;
	const struct changeset *set;
	int root;
	struct stat owner; /* of the project's folder */
	int staging;
	char staging_name[96];
	struct undo *undo; /* at most three for each row */
	size_t n_undo;
	struct brig_error *err;
};

static bool is_skipped(const struct apply *a, const struct kept_row *r)
{
	const char *path = r->change.path;

	return r->skip != SKIP_NOT || path_has_git(path) || paths_cover(&a->set->hidden, path);
}

static int moved_on(const struct apply *a, const char *path)
{
	return err_set(
		a->err, BRIG_E_REFUSED, 0,
		"'%.200s' of the project is no longer what the run saw: nothing was applied. Look at the difference "
		"with 'brig workspace diff %s', then run again or discard the changes",
		path, a->set->id);
}

static int trouble(const struct apply *a, int sys, const char *what, const char *path)
{
	return err_set(a->err, BRIG_E_SYSTEM, sys, "cannot %s '%.200s' of the project; nothing was applied", what,
		       path);
}

/* ---- check ------------------------------------------------------------------------------------- */

static int check(const struct apply *a)
{
	uint64_t budget = BEFORE_BYTES_MAX;

	for (size_t i = 0; i < a->set->n; i++) {
		const struct kept_row *r = &a->set->row[i];
		struct before now;

		if (is_skipped(a, r))
			continue;
		if (before_look(a->root, r->change.path, &budget, &now) < 0 || !before_same(&r->before, &now))
			return moved_on(a, r->change.path);
	}
	return 0;
}

/* ---- stage ------------------------------------------------------------------------------------- */

static const char *staged_name(char dst[32], const char *what, size_t row)
{
	(void)snprintf(dst, 32, "%s-%zu", what, row);
	return dst;
}

/* Whose it is to be. */
static struct stat owner_for(const struct apply *a, const char *path)
{
	struct stat st;
	AUTO_FD fd = beneath_look(a->root, path, &st);

	return fd >= 0 && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) ? st : a->owner;
}

static int give_to(int fd, const struct stat *owner)
{
	return geteuid() == 0 && fchown(fd, owner->st_uid, owner->st_gid) < 0 ? -errno : 0;
}

static int stage_file(const struct apply *a, const struct kept_row *r, const char *name)
{
	const struct stat owner = owner_for(a, r->change.path);
	AUTO_FD from = keeper_content(a->keeper, r->change.sha256);
	AUTO_FD to = FD_NONE;
	uint8_t hash[SHA256_LEN];
	uint64_t size;
	int rc;

	if (from < 0)
		return fd_move(&from);
	to = beneath_create(a->staging, name, 0600);
	if (to < 0)
		return fd_move(&to);
	rc = copy_hashed(from, to, r->change.size, &size, hash);
	if (rc == 0 && memcmp(hash, r->change.sha256, SHA256_LEN) != 0)
		rc = -EBADMSG;
	if (rc == 0)
		rc = give_to(to, &owner);
	if (rc == 0 && fchmod(to, r->change.mode & 0777) < 0)
		rc = -errno;
	return rc;
}

static int stage_link(const struct apply *a, const struct kept_row *r, const char *name)
{
	const struct stat owner = owner_for(a, r->change.path);
	char leads_to[PATH_MAX];

	if (!path_of_link(r->change.path, r->target, leads_to, sizeof(leads_to)))
		return -EXDEV; /* collected as one that is skipped: the changeset was changed */
	if (symlinkat(r->target, a->staging, name) < 0)
		return -errno;
	if (geteuid() == 0 && fchownat(a->staging, name, owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int stage(struct apply *a)
{
	if (mkdirat(a->root, a->staging_name, 0700) < 0)
		return trouble(a, errno, "make the folder", a->staging_name);
	a->staging = beneath_open_dir(a->root, a->staging_name);
	if (a->staging < 0)
		return trouble(a, -a->staging, "open the folder", a->staging_name);
	for (size_t i = 0; i < a->set->n; i++) {
		const struct kept_row *r = &a->set->row[i];
		char name[32];
		int rc = 0;

		if (is_skipped(a, r) || r->change.kind == CHANGE_DELETED)
			continue;
		if (r->change.type == CHANGE_FILE)
			rc = stage_file(a, r, staged_name(name, "new", i));
		else if (r->change.type == CHANGE_LINK)
			rc = stage_link(a, r, staged_name(name, "new", i));
		if (rc == -EBADMSG)
			return err_set(a->err, BRIG_E_REFUSED, 0,
				       "the kept content of '%.200s' is not what the run left: discard these changes",
				       r->change.path);
		if (rc < 0)
			return trouble(a, -rc, "prepare", r->change.path);
	}
	return 0;
}

/* ---- commit ------------------------------------------------------------------------------------ */

static void note(struct apply *a, struct undo u)
{
	a->undo[a->n_undo++] = u;
}

/* Between a path of the project and a name of the staging folder.  -errno. */
static int move(const struct apply *a, const char *path, const char *staged, bool from_staging, unsigned flags)
{
	const char *name;
	AUTO_FD parent = beneath_open_parent(a->root, path, &name);
	int rc;

	if (parent < 0)
		return fd_move(&parent);
	rc = from_staging ? renameat2(a->staging, staged, parent, name, flags)
			  : renameat2(parent, name, a->staging, staged, flags);
	return rc < 0 ? -errno : 0;
}

/* Whether what is left in a folder stays by rule: hidden files and .git.  Anything else has come since. */
static int check_leftovers(const struct apply *a, const char *path, bool *ret_empty)
{
	int fd = beneath_open_dir(a->root, path);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int rc = 0;

	*ret_empty = true;
	if (!d) {
		fd_closep(&fd);
		return moved_on(a, path);
	}
	while (rc == 0 && (e = readdir(d))) {
		char below[PATH_MAX];

		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		*ret_empty = false;
		if ((size_t)snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= sizeof(below) ||
		    (!path_has_git(below) && !paths_cover(&a->set->hidden, below)))
			rc = moved_on(a, path);
	}
	(void)closedir(d);
	return rc;
}

/* Whether the row takes something away before anything new can be there. */
static bool clears_first(const struct kept_row *r)
{
	if (r->change.kind == CHANGE_DELETED)
		return true;
	return r->before.kind != BEFORE_NOTHING && (r->before.kind == BEFORE_DIR) != (r->change.type == CHANGE_DIR);
}

static int clear_row(struct apply *a, size_t i)
{
	const struct kept_row *r = &a->set->row[i];
	bool empty = true;
	char name[32];
	int rc = r->before.kind == BEFORE_DIR ? check_leftovers(a, r->change.path, &empty) : 0;

	if (rc < 0)
		return rc;
	if (!empty) /* it stays, for what must not be touched in it */
		return r->change.kind == CHANGE_DELETED ? 0 : moved_on(a, r->change.path);
	rc = move(a, r->change.path, staged_name(name, "old", i), false, 0);
	if (rc < 0)
		return trouble(a, -rc, "remove", r->change.path);
	note(a, (struct undo){ .kind = UNDO_RENAME, .row = i });
	return 0;
}

static int make_dir(struct apply *a, size_t i)
{
	const char *path = a->set->row[i].change.path, *name;
	AUTO_FD parent = beneath_open_parent(a->root, path, &name);
	AUTO_FD fd = FD_NONE;
	int rc;

	if (parent < 0 || mkdirat(parent, name, 0700) < 0)
		return trouble(a, parent < 0 ? -parent : errno, "make the folder", path);
	note(a, (struct undo){ .kind = UNDO_RMDIR, .row = i });
	fd = beneath_open_dir(parent, name);
	rc = fd < 0 ? fd : give_to(fd, &a->owner);
	return rc < 0 ? trouble(a, -rc, "make the folder", path) : 0;
}

/* Into an empty place. */
static int place_new(struct apply *a, size_t i)
{
	const char *path = a->set->row[i].change.path;
	char name[32];
	int rc = move(a, path, staged_name(name, "new", i), true, RENAME_NOREPLACE);

	if (rc == -EINVAL) { /* a file system that cannot promise that it is empty */
		AUTO_FD there = beneath_look(a->root, path, NULL);

		rc = there >= 0 ? -EEXIST : move(a, path, name, true, 0);
	}
	if (rc == 0)
		note(a, (struct undo){ .kind = UNDO_RENAME, .row = i, .from_staging = true });
	return rc;
}

/* A file or link comes: it changes places with the one that is there, or takes an empty place. */
static int place_row(struct apply *a, size_t i)
{
	const struct kept_row *r = &a->set->row[i];
	bool replaces = r->change.kind == CHANGE_MODIFIED && !clears_first(r);
	char name[32];
	int rc = replaces ? move(a, r->change.path, staged_name(name, "new", i), true, RENAME_EXCHANGE) : -EINVAL;

	if (rc == 0) {
		note(a, (struct undo){ .kind = UNDO_EXCHANGE, .row = i });
		return 0;
	}
	if (rc == -EINVAL && replaces) { /* a file system without exchange: in two steps */
		rc = clear_row(a, i);
		if (rc < 0)
			return rc;
	} else if (replaces) {
		return trouble(a, -rc, "write", r->change.path);
	}
	rc = place_new(a, i);
	if (rc == -EEXIST)
		return moved_on(a, r->change.path);
	return rc < 0 ? trouble(a, -rc, "write", r->change.path) : 0;
}

static int set_dir_mode(struct apply *a, size_t i)
{
	const struct kept_row *r = &a->set->row[i];
	AUTO_FD fd = beneath_open_dir(a->root, r->change.path);

	if (fd < 0 || fchmod(fd, r->change.mode & 0777) < 0)
		return trouble(a, fd < 0 ? -fd : errno, "set the permissions of", r->change.path);
	if (r->before.kind == BEFORE_DIR)
		note(a, (struct undo){ .kind = UNDO_MODE, .row = i, .mode = r->before.mode });
	return 0;
}

static int commit(struct apply *a)
{
	const struct changeset *set = a->set;
	int rc = 0;

	for (size_t i = set->n; i-- > 0 && rc == 0;) /* what is in a folder before the folder */
		if (!is_skipped(a, &set->row[i]) && clears_first(&set->row[i]))
			rc = clear_row(a, i);
	for (size_t i = 0; i < set->n && rc == 0; i++) {
		const struct kept_row *r = &set->row[i];

		if (is_skipped(a, r) || r->change.kind == CHANGE_DELETED)
			continue;
		if (r->change.type != CHANGE_DIR)
			rc = place_row(a, i);
		else if (r->before.kind != BEFORE_DIR)
			rc = make_dir(a, i);
	}
	for (size_t i = set->n; i-- > 0 && rc == 0;)
		if (!is_skipped(a, &set->row[i]) && set->row[i].change.kind != CHANGE_DELETED &&
		    set->row[i].change.type == CHANGE_DIR)
			rc = set_dir_mode(a, i);
	return rc;
}

/* ---- undo and clear ---------------------------------------------------------------------------- */

static int undo_one(const struct apply *a, const struct undo *u)
{
	const char *path = a->set->row[u->row].change.path, *name;
	char staged[32];
	AUTO_FD fd = FD_NONE;

	switch (u->kind) {
	case UNDO_RENAME:
		(void)staged_name(staged, u->from_staging ? "new" : "old", u->row);
		return move(a, path, staged, !u->from_staging, RENAME_NOREPLACE);
	case UNDO_EXCHANGE:
		return move(a, path, staged_name(staged, "new", u->row), true, RENAME_EXCHANGE);
	case UNDO_RMDIR:
		fd = beneath_open_parent(a->root, path, &name);
		return fd < 0 ? fd_move(&fd) : unlinkat(fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	case UNDO_MODE:
		fd = beneath_open_dir(a->root, path);
		return fd < 0 ? fd_move(&fd) : fchmod(fd, u->mode) < 0 ? -errno : 0;
	}
	return -EINVAL;
}

/* False: not everything is as it was, and the staging folder must stay. */
static bool undo_all(struct apply *a)
{
	bool ok = true;

	while (a->n_undo > 0) {
		const struct undo *u = &a->undo[--a->n_undo];

		if (undo_one(a, u) < 0 && ok) {
			struct brig_error why = *a->err;

			ok = false;
			(void)err_set(a->err, BRIG_E_SYSTEM, 0,
				      "'%.120s' could not be put back: what is missing of the project is in its folder "
				      "'%s' (%.200s)",
				      a->set->row[u->row].change.path, a->staging_name, why.msg);
		}
	}
	return ok;
}

static void clear_staging(struct apply *a)
{
	int copy = a->staging < 0 ? -1 : openat(a->staging, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, "..") && unlinkat(a->staging, e->d_name, 0) < 0)
			(void)unlinkat(a->staging, e->d_name, AT_REMOVEDIR);
	if (d)
		(void)closedir(d);
	fd_closep(&a->staging);
	(void)unlinkat(a->root, a->staging_name, AT_REMOVEDIR);
}

/* ---- the whole --------------------------------------------------------------------------------- */

static int apply_rows(struct apply *a)
{
	int rc = check(a);

	if (rc < 0)
		return rc;
	a->undo = calloc(3 * a->set->n + 1, sizeof(*a->undo));
	if (!a->undo)
		return err_nomem(a->err);
	rc = stage(a);
	if (rc == 0)
		rc = commit(a);
	if (rc == 0 || undo_all(a))
		clear_staging(a);
	fd_closep(&a->staging);
	free(a->undo);
	return rc < 0 ? -a->err->code : 0;
}

static void name_skipped(const struct apply *a, struct buf *ret)
{
	for (size_t i = 0; i < a->set->n; i++) {
		const struct kept_row *r = &a->set->row[i];

		if (is_skipped(a, r))
			(void)buf_addf(ret, "%s: %s\n", r->change.path, skip_reason[r->skip ? r->skip : SKIP_SECRET]);
	}
}

static int apply_to_project(const struct keeper *k, const struct changeset *set, struct buf *ret_skipped,
			    struct brig_error *err)
{
	struct brig_error own = BRIG_ERROR_INIT;
	struct apply a = { .keeper = k, .set = set, .staging = FD_NONE, .err = err ? err : &own };
	AUTO_FD root = open(set->project, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (root < 0 || fstat(root, &a.owner) < 0)
		return err_set(err, BRIG_E_REFUSED, errno, "cannot open the project '%.200s'", set->project);
	a.root = root;
	(void)snprintf(a.staging_name, sizeof(a.staging_name), ".brig-apply-%s", set->id);
	rc = apply_rows(&a);
	if (rc == 0 && ret_skipped)
		name_skipped(&a, ret_skipped);
	return rc;
}

int changeset_apply(const struct statedir *state, const char *id, struct buf *ret_skipped, struct brig_error *err)
{
	struct changeset set = { .row = NULL };
	AUTO_KEEPER k = KEEPER_INIT;
	int rc = keeper_open(&k, state, id, err);

	if (rc == 0)
		rc = keeper_read(&k, &set, true, err);
	if (rc == 0)
		rc = apply_to_project(&k, &set, ret_skipped, err);
	if (rc == 0)
		(void)keeper_drop(&k);
	changeset_release(&set);
	return rc;
}

int changeset_discard(const struct statedir *state, const char *id, struct brig_error *err)
{
	AUTO_KEEPER k = KEEPER_INIT;
	int rc = keeper_open(&k, state, id, err);

	if (rc < 0)
		return rc;
	rc = keeper_drop(&k);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot remove the changes of '%.40s'", id) : 0;
}
