/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving changes over to the project: all of them or none.
 *
 *	lock    the project's folder, against every other apply
 *	check   every path of the project that is to change is still what the run saw
 *	stage   new files, links and folders are made, complete, in a folder ".brig-apply-<id>" at the project's top
 *	commit  what goes is moved into that folder, what comes is moved out of it, what is replaced changes places:
 *	        nothing but renames within one file system, and permission bits, each of which is noted with what undoes
 *	        it, and is undone in reverse when a later one fails
 *	clear   the folder goes, with what was deleted and replaced
 *
 * The lock keeps out other brigs, not editors.  So what a rename has brought into the staging folder is checked again
 * there, where no other process has a name for it: if it is not what check saw, everything is undone.  Nothing is
 * unlinked that was not checked, and no name that was not created here.
 *
 * A brig that is killed while it commits leaves that folder behind with the old files in it; the next apply of the same
 * changes says so.
 *
 * Everything is reached beneath the descriptor of the project's folder, without links.  Permissions are set by the
 * descriptor of a folder that is known to be the one that was seen or made.  Files get the owner of the file that they
 * replace, or the owner of the project's folder.  What the policy hides, and .git, is never written, whatever the
 * changeset says; except what git_take() accepts, on request.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/folder.h"
#include "files/foreign.h"
#include "workspace/git.h"

enum undo_kind { UNDO_RENAME, UNDO_EXCHANGE, UNDO_MODE };

struct undo {
	enum undo_kind kind;
	size_t row;
	bool from_staging; /* of a rename: what was moved came from there */
	unsigned mode;
};

/* What is in the staging folder for a row, and is removed at the end: what was seen of it there. */
struct staged {
	bool is_new, is_old; /* "new-<row>" and "old-<row>" are names that were given */
	bool is_seen;        /* it was a file of the project's, of this size and time */
	uint64_t size;
	int64_t mtime_ns;
	struct folder_id dir; /* of a folder: the one that was seen in the project, or made */
};

struct apply {
	const struct keeper *keeper;
	const struct changeset *set;
	int root;
	struct stat owner; /* of the project's folder */
	int staging;
	char staging_name[96];
	struct staged *staged; /* for each row */
	struct undo *undo;     /* at most three for each row */
	size_t n_undo;
	uint64_t budget; /* bytes of the project's files that may still be hashed */
	struct brig_error *err;
};

static bool is_skipped(const struct apply *a, const struct kept_row *r)
{
	const char *path = r->change.path;

	return r->skip != SKIP_NOT || (!r->git && path_has_git(path)) || paths_cover(&a->set->hidden, path);
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

/* A folder whose permissions are going to change must be the one that the run saw: another may have its name. */
static int note_folder(struct apply *a, size_t i)
{
	const struct kept_row *r = &a->set->row[i];
	struct folder_id *id = &a->staged[i].dir;
	AUTO_FD fd = beneath_look(a->root, r->change.path, NULL);
	int rc = fd < 0 ? fd : folder_id_of(fd, id);

	return rc < 0 ? rc : r->change.type != CHANGE_DIR || id->inode == r->before.inode ? 0 : -ESTALE;
}

static int check(struct apply *a)
{
	for (size_t i = 0; i < a->set->n; i++) {
		const struct kept_row *r = &a->set->row[i];
		struct before now;

		if (is_skipped(a, r))
			continue;
		if (before_look(a->root, r->change.path, &a->budget, &now) < 0 || !before_same(&r->before, &now))
			return moved_on(a, r->change.path);
		if (now.kind == BEFORE_DIR && note_folder(a, i) < 0)
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

/* Whatever the changeset says. */
static unsigned mode_of(const struct kept_row *r)
{
	bool same_kind = (r->change.type == CHANGE_FILE && r->before.kind == BEFORE_FILE) ||
			 (r->change.type == CHANGE_DIR && r->before.kind == BEFORE_DIR);

	return foreign_mode(r->change.mode, same_kind ? r->before.mode : 0);
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
	if (rc == 0 && fchmod(to, mode_of(r)) < 0)
		rc = -errno;
	return rc;
}

static int stage_link(const struct apply *a, const struct kept_row *r, const char *name)
{
	const struct stat owner = owner_for(a, r->change.path);

	if (symlinkat(r->target, a->staging, name) < 0)
		return -errno;
	if (geteuid() == 0 && fchownat(a->staging, name, owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* Created where it cannot be replaced; permissions that lock us out are set at the end. */
static int stage_folder(const struct apply *a, struct folder_id *ret, const char *name)
{
	AUTO_FD fd = FD_NONE;
	int rc;

	if (mkdirat(a->staging, name, 0700) < 0)
		return -errno;
	fd = beneath_open_dir(a->staging, name);
	rc = fd < 0 ? fd : give_to(fd, &a->owner);
	return rc < 0 ? rc : folder_id_of(fd, ret);
}

static int make_staging(struct apply *a)
{
	struct stat st;

	if (mkdirat(a->root, a->staging_name, 0700) < 0) {
		if (errno != EEXIST)
			return trouble(a, errno, "make the folder", a->staging_name);
		return err_set(a->err, BRIG_E_REFUSED, 0,
			       "the project has a folder '%s': an apply of these changes was killed, and files that it "
			       "was moving are in it. Move them back or remove the folder, then apply again",
			       a->staging_name);
	}
	a->staging = beneath_open_dir(a->root, a->staging_name);
	if (a->staging < 0)
		return trouble(a, -a->staging, "open the folder", a->staging_name);
	/*
	 * Anyone who may write to the project can have replaced it: with their own, in which they could replace each
	 * file that is created there, or with one that is not empty.
	 */
	if (fstat(a->staging, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 077 ||
	    folder_is_empty(a->staging) != 1)
		return moved_on(a, a->staging_name);
	return 0;
}

/* Makes what comes, complete but for its place.  -errno; -EBADMSG: it is not what the run left. */
static int stage_row(struct apply *a, size_t i)
{
	const struct kept_row *r = &a->set->row[i];
	char name[32];

	if (r->change.type == CHANGE_DIR && r->before.kind == BEFORE_DIR)
		return 0;
	(void)staged_name(name, "new", i);
	a->staged[i].is_new = true;
	return r->change.type == CHANGE_FILE   ? stage_file(a, r, name)
	       : r->change.type == CHANGE_LINK ? stage_link(a, r, name)
	       : r->change.type == CHANGE_DIR  ? stage_folder(a, &a->staged[i].dir, name)
					       : -EINVAL;
}

static int stage(struct apply *a)
{
	int rc = make_staging(a);

	for (size_t i = 0; i < a->set->n && rc == 0; i++) {
		const struct kept_row *r = &a->set->row[i];

		if (is_skipped(a, r) || r->change.kind == CHANGE_DELETED)
			continue;
		rc = stage_row(a, i);
		if (rc == -EBADMSG)
			return err_set(a->err, BRIG_E_REFUSED, 0,
				       "the kept content of '%.200s' is not what the run left: discard these changes",
				       r->change.path);
		if (rc < 0)
			return trouble(a, -rc, "prepare", r->change.path);
	}
	return rc;
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

/* Whether something that is left in a folder stays by rule: hidden files, git's, what is not moved over. */
static bool stays(const struct apply *a, const char *path)
{
	const struct kept_row *r = changeset_find(a->set, path);

	return (path_has_git(path) && !(r && r->git)) || paths_cover(&a->set->hidden, path) || (r && is_skipped(a, r));
}

/* Of a folder that is to go.  What does not stay by rule has come since. */
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
		    !stays(a, below))
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

/*
 * Whether what a rename has brought into the staging folder is what check saw: if the project was written to in
 * between, it is not, and is moved back.
 */
static int look_again(struct apply *a, size_t i, const char *name)
{
	const struct kept_row *r = &a->set->row[i];
	struct staged *s = &a->staged[i];
	struct before now;
	AUTO_FD dir = FD_NONE;

	if (before_look(a->staging, name, &a->budget, &now) < 0 || !before_same(&r->before, &now))
		return moved_on(a, r->change.path);
	s->is_seen = now.kind == BEFORE_FILE;
	s->size = now.size;
	s->mtime_ns = now.mtime_ns;
	if (now.kind != BEFORE_DIR)
		return 0;
	dir = beneath_open_dir(a->staging, name);
	return dir >= 0 && folder_is_empty(dir) == 1 ? 0 : moved_on(a, r->change.path);
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
	a->staged[i].is_old = true;
	return look_again(a, i, name);
}

/*
 * Where the file system cannot rename into a place only if it is empty: a link does the same for files, and a folder
 * takes the place of nothing but an empty one.
 */
static int place_without_flags(struct apply *a, size_t i, const char *staged)
{
	const struct change *c = &a->set->row[i].change;
	const char *name;
	AUTO_FD parent = beneath_open_parent(a->root, c->path, &name);

	if (parent < 0)
		return fd_move(&parent);
	if (c->type == CHANGE_DIR)
		return renameat(a->staging, staged, parent, name) < 0 ? -errno : 0;
	if (linkat(a->staging, staged, parent, name, 0) < 0)
		return errno == EPERM ? -EOPNOTSUPP : -errno;
	return unlinkat(a->staging, staged, 0) < 0 ? -errno : 0;
}

/* Into an empty place. */
static int place_new(struct apply *a, size_t i)
{
	const char *path = a->set->row[i].change.path;
	char name[32];
	int rc = move(a, path, staged_name(name, "new", i), true, RENAME_NOREPLACE);

	if (rc == -EINVAL)
		rc = place_without_flags(a, i, name);
	if (rc == 0)
		note(a, (struct undo){ .kind = UNDO_RENAME, .row = i, .from_staging = true });
	return rc;
}

/* Something comes: it changes places with what is there, or takes an empty place. */
static int place_row(struct apply *a, size_t i)
{
	const struct kept_row *r = &a->set->row[i];
	bool replaces = r->change.kind == CHANGE_MODIFIED && !clears_first(r);
	char name[32] = "";
	int rc = replaces ? move(a, r->change.path, staged_name(name, "new", i), true, RENAME_EXCHANGE) : -EINVAL;

	if (rc == 0) {
		note(a, (struct undo){ .kind = UNDO_EXCHANGE, .row = i });
		return look_again(a, i, name);
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

/* The folder that was seen or made, and no other that has its name now; -errno. */
static int open_known(const struct apply *a, size_t i)
{
	AUTO_FD fd = beneath_open_dir(a->root, a->set->row[i].change.path);
	struct folder_id id;

	if (fd < 0 || folder_id_of(fd, &id) < 0)
		return fd < 0 ? fd_move(&fd) : -errno;
	return folder_id_same(&id, &a->staged[i].dir, true) ? fd_move(&fd) : -ESTALE;
}

static int set_dir_mode(struct apply *a, size_t i)
{
	const struct kept_row *r = &a->set->row[i];
	AUTO_FD fd = open_known(a, i);
	struct stat st;

	if (fd == -ESTALE || fd == -ELOOP || fd == -ENOTDIR || fd == -ENOENT)
		return moved_on(a, r->change.path);
	if (fd < 0 || fstat(fd, &st) < 0 || fchmod(fd, (st.st_mode & 07000) | mode_of(r)) < 0)
		return trouble(a, fd < 0 ? -fd : errno, "set the permissions of", r->change.path);
	if (r->before.kind == BEFORE_DIR)
		note(a, (struct undo){ .kind = UNDO_MODE, .row = i, .mode = st.st_mode & 07777 });
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
		if (r->change.type != CHANGE_DIR || r->before.kind != BEFORE_DIR)
			rc = place_row(a, i);
	}
	for (size_t i = set->n; i-- > 0 && rc == 0;)
		if (!is_skipped(a, &set->row[i]) && set->row[i].change.kind != CHANGE_DELETED &&
		    set->row[i].change.type == CHANGE_DIR)
			rc = set_dir_mode(a, i);
	return rc;
}

/* ---- undo and clear ---------------------------------------------------------------------------- */

/* What is taken back must be what was put there: if it was written to meanwhile, that must not be lost. */
static int undo_coming(const struct apply *a, size_t i, const char *staged, unsigned flags)
{
	const struct change *c = &a->set->row[i].change;
	uint64_t budget = c->size;
	struct before now;
	int rc = move(a, c->path, staged, flags == RENAME_EXCHANGE, flags);

	if (rc < 0 || c->type != CHANGE_FILE)
		return rc;
	rc = before_look(a->staging, staged, &budget, &now);
	return rc < 0 ? rc : now.hashed && memcmp(now.sha256, c->sha256, SHA256_LEN) == 0 ? 0 : -ESTALE;
}

static int undo_one(const struct apply *a, const struct undo *u)
{
	const char *path = a->set->row[u->row].change.path;
	char staged[32];
	AUTO_FD fd = FD_NONE;

	switch (u->kind) {
	case UNDO_RENAME:
		if (u->from_staging)
			return undo_coming(a, u->row, staged_name(staged, "new", u->row), 0);
		return move(a, path, staged_name(staged, "old", u->row), true, RENAME_NOREPLACE);
	case UNDO_EXCHANGE:
		return undo_coming(a, u->row, staged_name(staged, "new", u->row), RENAME_EXCHANGE);
	case UNDO_MODE:
		fd = open_known(a, u->row);
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

		if (undo_one(a, u) == 0) {
			a->staged[u->row].is_seen = false; /* what is in the staging folder is ours again */
		} else if (ok) {
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

/* Whether a project file is as it was when it was checked: a process that had it open may have written to it. */
static bool is_as_seen(const struct apply *a, size_t i, const char *name)
{
	const struct staged *s = &a->staged[i];
	struct stat st;

	if (!s->is_seen)
		return true;
	return fstatat(a->staging, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (uint64_t)st.st_size == s->size &&
	       (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_SEC + st.st_mtim.tv_nsec == s->mtime_ns;
}

static void clear_name(struct apply *a, size_t i, const char *what)
{
	char name[32];

	(void)staged_name(name, what, i);
	if (is_as_seen(a, i, name) && unlinkat(a->staging, name, 0) < 0)
		(void)unlinkat(a->staging, name, AT_REMOVEDIR);
}

/* Only names that were given here.  False: something is left that must not go, and the folder with it. */
static bool clear_staging(struct apply *a)
{
	if (a->staging < 0)
		return true;
	for (size_t i = a->set->n; i-- > 0;) {
		if (a->staged[i].is_new)
			clear_name(a, i, "new");
		if (a->staged[i].is_old)
			clear_name(a, i, "old");
	}
	fd_closep(&a->staging);
	return unlinkat(a->root, a->staging_name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static int apply_rows(struct apply *a, bool *ret_cleared)
{
	int rc = check(a);

	if (rc == 0)
		rc = stage(a);
	if (rc == 0)
		rc = commit(a);
	if (rc == 0 || undo_all(a))
		*ret_cleared = clear_staging(a);
	fd_closep(&a->staging);
	return rc < 0 ? -a->err->code : 0;
}

static void name_skipped(const struct apply *a, struct buf *ret)
{
	for (size_t i = 0; i < a->set->n; i++) {
		const struct kept_row *r = &a->set->row[i];

		if (is_skipped(a, r))
			path_say(ret, r->change.path, skip_reason[r->skip ? r->skip : SKIP_SECRET]);
	}
}

static int apply_locked(struct apply *a, struct buf *ret_skipped)
{
	bool cleared = true;
	int rc;

	a->staged = calloc(a->set->n + 1, sizeof(*a->staged));
	a->undo = calloc(3 * a->set->n + 1, sizeof(*a->undo));
	rc = a->staged && a->undo ? apply_rows(a, &cleared) : err_nomem(a->err);
	free(a->staged);
	free(a->undo);
	if (rc == 0 && ret_skipped)
		name_skipped(a, ret_skipped);
	if (rc == 0 && ret_skipped && !cleared)
		(void)buf_addf(ret_skipped,
			       "%s: files that were written to while they were being replaced are still in it\n",
			       a->staging_name);
	return rc;
}

static int apply_to_project(const struct keeper *k, struct changeset *set, const struct folder *project,
			    struct buf *ret_skipped, struct brig_error *err)
{
	struct brig_error own = BRIG_ERROR_INIT;
	struct apply a = { .keeper = k,
			   .set = set,
			   .root = project->fd,
			   .staging = FD_NONE,
			   .budget = 2 * BEFORE_BYTES_MAX, /* each is looked at twice */
			   .err = err ? err : &own };
	AUTO_FD lock = FD_NONE;
	int rc = folder_lock(project, &lock, a.err);

	if (rc == 0)
		rc = changeset_judge(set, project->fd, a.err);
	if (rc < 0)
		return rc;
	if (fstat(a.root, &a.owner) < 0)
		return err_set(a.err, BRIG_E_SYSTEM, errno, "cannot look at the project '%.200s'", project->path);
	(void)snprintf(a.staging_name, sizeof(a.staging_name), STAGING_PREFIX "%s", set->id);
	return apply_locked(&a, ret_skipped);
}

int changeset_apply(const struct statedir *state, const char *id, const struct folder *held, bool with_git,
		    struct buf *ret_skipped, struct brig_error *err)
{
	struct changeset set = { .row = NULL };
	AUTO_FOLDER project = FOLDER_INIT;
	AUTO_KEEPER k = KEEPER_INIT;
	int rc = keeper_open(&k, state, id, err);

	if (rc == 0)
		rc = keeper_read(&k, &set, true, err);
	if (rc == 0)
		rc = changeset_project(&set, held, state->path, &project, err);
	if (rc == 0 && with_git)
		rc = git_take(&k, project.fd, &set, err);
	if (rc == 0)
		rc = apply_to_project(&k, &set, &project, ret_skipped, err);
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
