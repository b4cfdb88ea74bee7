/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that were requested by pattern: listed, hashed and, if there is a folder for them, copied.  Only regular files;
 * a link that matches is not followed but counted as dropped, like everything beyond the caps.  What is copied appears
 * in the folder under its own path, complete or not at all.
 *
 * The folder is the caller's and may be a repository or anything else that tools read: existing files are replaced only
 * on request, no name begins with a dot, and none is git's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/folder.h"
#include "files/foreign.h"
#include "files/glob.h"
#include "files/tar.h"
#include "files/walk.h"
#include "workspace/internal.h"

struct fetch {
	const struct artifacts_ask *ask;
	struct artifacts *ret;
	uint64_t bytes_left;
	uint64_t inline_left; /* of contents in the result */
	struct stat owner;    /* of the folder they go to */
	struct brig_error *err;
	int rc;
};

static bool is_wanted(const struct artifacts_ask *a, const char *path)
{
	for (size_t i = 0; i < a->n_ours; i++)
		if (str_eq(path, a->ours[i]))
			return false;
	for (size_t i = 0; i < a->n_patterns; i++)
		if (glob_matches(a->pattern[i], path, false))
			return true;
	return false;
}

static void note_matches(const struct artifacts_ask *a, const char *path)
{
	for (size_t i = 0; a->matched && i < a->n_patterns; i++)
		a->matched[i] |= glob_matches(a->pattern[i], path, false);
}

static int by_path(const void *key, const void *row)
{
	return strcmp(key, ((const struct change *)row)->path);
}

/* With a project only what the run changed is its product. */
static bool is_product(const struct artifacts_ask *a, const char *path)
{
	const struct change *c;

	if (!a->changes)
		return true;
	if (a->changes->n == 0)
		return false;
	c = bsearch(path, a->changes->row, a->changes->n, sizeof(*a->changes->row), by_path);
	return c && c->kind != CHANGE_DELETED;
}

/* ---- copying ----------------------------------------------------------------------------------- */

enum refusal { REFUSED_NOT, REFUSED_HIDDEN, REFUSED_GIT, REFUSED_EXISTS };
static const char *const why_not[] = {
	[REFUSED_HIDDEN] = "names that begin with a dot are not copied",
	[REFUSED_GIT] = "nothing is copied into a folder that git takes for its own, or that would become one",
	[REFUSED_EXISTS] = "there is something of that name already; --overwrite replaces files",
};

static void say_why(const struct fetch *f, const char *path, enum refusal why)
{
	if (f->ask->not_copied)
		path_say(f->ask->not_copied, path, why_not[why]);
}

/* Whether one of the folders on the way is git's, or would be with what comes into it. */
static bool is_gits(int out, const char *path)
{
	char folder[PATH_MAX] = "", name[NAME_MAX + 1];

	for (const char *p = path; *p;) {
		size_t len = strcspn(p, "/");

		if (len >= sizeof(name))
			return true;
		memcpy(name, p, len);
		name[len] = '\0';
		if (git_folder(git_marks_in(out, folder) | git_mark(name)))
			return true;
		(void)snprintf(folder, sizeof(folder), "%.*s", (int)(p + len - path), path);
		p += len + (p[len] == '/');
	}
	return false;
}

static enum refusal refusal_of(const struct fetch *f, const char *path)
{
	if (path_has_git(path))
		return REFUSED_GIT;
	if (path_has_hidden(path))
		return REFUSED_HIDDEN;
	return is_gits(f->ask->out->fd, path) ? REFUSED_GIT : REFUSED_NOT;
}

static int fill_file(struct fetch *f, int from, int to, unsigned mode, struct artifact *one)
{
	int rc = copy_hashed(from, to, f->bytes_left, &one->size, one->sha256);

	if (rc == 0 && geteuid() == 0 && fchown(to, f->owner.st_uid, f->owner.st_gid) < 0)
		rc = -errno;
	if (rc == 0 && fchmod(to, mode & 0111 ? 0755 : 0644) < 0)
		rc = -errno;
	return rc;
}

static int open_target(const struct fetch *f, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	int rc = 0;

	if (slash) {
		(void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		rc = beneath_make_dirs(f->ask->out->fd, folder);
	}
	return rc < 0 ? rc : beneath_open_parent(f->ask->out->fd, path, ret_name);
}

/* -EEXIST: there is something, and it stays. */
static int copy_to_folder(struct fetch *f, int from, unsigned mode, struct artifact *one)
{
	struct folder_file file = FOLDER_FILE_INIT;
	const char *name;
	AUTO_FD parent = open_target(f, one->path, &name);
	int rc;

	if (parent < 0)
		return fd_move(&parent);
	if (!f->ask->overwrite && faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST; /* found again when it is given its name; but this costs no copy */
	rc = folder_file_begin(parent, &file);
	if (rc == 0)
		rc = fill_file(f, from, file.fd, mode, one);
	if (rc == 0)
		rc = folder_file_name(&file, parent, name, f->ask->overwrite);
	folder_file_drop(&file, parent);
	return rc;
}

/* ---- one file ---------------------------------------------------------------------------------- */

/* Troubles of the folder, not of the file: those end it. */
static bool is_fatal(const struct fetch *f, int rc)
{
	/* An archive without its end is invalid. */
	return (f->ask->archive && rc < 0 && rc != -EFBIG) || rc == -ENOSPC || rc == -EDQUOT || rc == -EROFS ||
	       rc == -EIO;
}

/* The reader of the archive decides where its contents go: no name is refused. */
static int archive_file(struct fetch *f, int fd, const struct stat *st, struct artifact *one)
{
	int rc = copy_hashed(fd, -1, f->bytes_left, &one->size, one->sha256);

	if (rc < 0)
		return rc;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return tar_put_file(f->ask->archive, one->path, st->st_mode, one->size, fd, f->ask->cancel_fd);
}

static int copy_or_hash(struct fetch *f, int fd, const struct stat *st, struct artifact *one)
{
	if (f->ask->archive)
		return archive_file(f, fd, st, one);

	enum refusal why = f->ask->out ? refusal_of(f, one->path) : REFUSED_NOT;
	int rc = why != REFUSED_NOT ? -EPERM
		 : f->ask->out      ? copy_to_folder(f, fd, st->st_mode, one)
				    : copy_hashed(fd, -1, f->bytes_left, &one->size, one->sha256);

	if (rc == -EEXIST)
		why = REFUSED_EXISTS;
	if (why != REFUSED_NOT)
		say_why(f, one->path, why);
	return rc;
}

/* The content that was just copied, again; a file that cannot be read twice goes without. */
static void take_content(struct fetch *f, int fd, struct artifact *one)
{
	char *content;

	if (one->size > f->inline_left || lseek(fd, 0, SEEK_SET) < 0)
		return;
	content = malloc(one->size + 1);
	if (content && fd_read_all(fd, content, one->size) == (ssize_t)one->size) {
		one->content = content;
		f->inline_left -= one->size;
	} else {
		free(content);
	}
}

/* A regular file that is not fetched. */
static void lose(struct artifacts *a)
{
	a->dropped++;
	a->lost++;
}

static void fetch_file(struct fetch *f, const struct walk_entry *e)
{
	struct artifact one = { .path = (char *)(uintptr_t)e->path };
	struct stat st;
	AUTO_FD fd = FD_NONE;
	int rc;

	if (f->ret->n >= f->ask->set->artifacts_limit || (uint64_t)e->st->st_size > f->bytes_left) {
		lose(f->ret);
		return;
	}
	fd = beneath_open_file(e->dir, e->name, &st);
	one.may_execute = fd >= 0 && (st.st_mode & 0111);
	rc = fd < 0 ? fd : copy_or_hash(f, fd, &st, &one);
	if (is_fatal(f, rc)) {
		f->rc = err_set(f->err, BRIG_E_SYSTEM, -rc, "cannot copy the artifact '%.200s'", e->path);
	} else if (rc < 0) {
		lose(f->ret);
	} else {
		f->bytes_left -= one.size;
		if (f->ask->inline_bytes)
			take_content(f, fd, &one);
		if (!artifacts_add(f->ret, &one))
			f->rc = err_nomem(f->err);
	}
}

static enum walk_next consider(void *arg, const struct walk_entry *e)
{
	struct fetch *f = arg;

	if (S_ISDIR(e->st->st_mode) || !is_wanted(f->ask, e->path) || !is_product(f->ask, e->path))
		return WALK_ON;
	note_matches(f->ask, e->path);
	if (S_ISREG(e->st->st_mode))
		fetch_file(f, e);
	else
		f->ret->dropped++;
	return f->rc < 0 ? WALK_STOP : WALK_ON;
}

int workspace_artifacts(const struct artifacts_ask *ask, struct artifacts *ret, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX };
	struct fetch f = { .ask = ask,
			   .ret = ret,
			   .bytes_left = ask->set->artifacts_size,
			   .inline_left = ask->inline_bytes,
			   .err = err };
	AUTO_FD lock = FD_NONE;
	struct walk_outcome out;
	int rc = ask->out ? folder_lock(ask->out, &lock, err) : 0;

	if (rc < 0)
		return rc;
	if (ask->out && fstat(ask->out->fd, &f.owner) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot look at the folder for artifacts");
	rc = walk_tree(ask->view->fd, &caps, consider, &f, &out, err);
	if (rc < 0)
		return err_wrap(err, "cannot look for artifacts");
	ret->dropped += out.cut;
	ret->lost += out.cut;
	if (f.rc == 0 && ask->archive) {
		rc = tar_put_end(ask->archive, ask->cancel_fd);
		if (rc < 0)
			return err_set(err, BRIG_E_SYSTEM, -rc, "cannot write the archive of artifacts");
	}
	return f.rc;
}

/* ---- what nobody asked for --------------------------------------------------------------------- */

#define LEFT_MAX     20   /* that are named */
#define LEFT_ENTRIES 1000 /* that are looked at: the line is a reminder, no inventory */

static bool is_passed_over(const struct left_ask *ask, const char *path, const char *name)
{
	for (size_t i = 0; i < ask->n_ours; i++)
		if (str_eq(path, ask->ours[i]))
			return true;
	return *name == '.' || is_tool_cache(path);
}

static bool add_left(const struct left_ask *ask, const char *path, uint64_t size)
{
	struct artifact one = { .path = (char *)(uintptr_t)path, .size = size };

	if (ask->ret->n < LEFT_MAX)
		return artifacts_add(ask->ret, &one);
	ask->ret->dropped++;
	return true;
}

static enum walk_next consider_left(void *arg, const struct walk_entry *e)
{
	const struct left_ask *ask = arg;

	if (is_passed_over(ask, e->path, e->name))
		return WALK_SKIP;
	if (S_ISREG(e->st->st_mode) && !add_left(ask, e->path, (uint64_t)e->st->st_size))
		return WALK_STOP;
	return WALK_ON;
}

void workspace_left(int dir, const struct left_ask *ask)
{
	const struct walk_caps caps = { .entries = LEFT_ENTRIES };
	struct brig_error err = BRIG_ERROR_INIT;
	struct walk_outcome out;

	(void)walk_tree(dir, &caps, consider_left, (void *)(uintptr_t)ask, &out, &err);
}

void workspace_left_one(const struct left_ask *ask, const char *path, uint64_t size)
{
	char part[WALK_PATH_MAX];
	const char *at = path, *slash;

	do {
		slash = strchr(at, '/');
		if (snprintf(part, sizeof(part), "%.*s", slash ? (int)(slash - path) : (int)strlen(path), path) >=
			    (int)sizeof(part) ||
		    is_passed_over(ask, part, at))
			return;
		at = slash ? slash + 1 : NULL;
	} while (at);
	(void)add_left(ask, path, size);
}
