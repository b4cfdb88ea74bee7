/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of one changeset, in the state folder:
 *
 *	workspaces/<id>/head.json    which project, when, how many: what a list needs
 *	workspaces/<id>/rows.json    every change, and what stood there before
 *	workspaces/<id>/git.json     the same of the project's repository, if commits, branches or tags are new
 *	workspaces/<id>/<sha256>     contents, under their hashes
 *
 * It is made under another name (".new-<id>") and gets its own when it is complete, so what can be found is complete.
 * A process that creates or uses one holds a lock on its folder; one under a temporary name that is not locked was left
 * by a brig that was killed, and is removed by the next one that keeps something.
 *
 * All that can be found together stay below a ceiling (room.c).  A process that finishes one holds a lock on the parent
 * folder from counting until it is renamed: of several runs that end at the same time each counts the ones before it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "workspace/internal.h"
#include "workspace/manifest.h"

#define FOLDER           "workspaces"
#define UNFINISHED       ".new-"
#define HEAD_FILE        "head.json"
#define ROWS_FILE        "rows.json"
#define GIT_FILE         "git.json"
#define HEAD_MAX         (64 * 1024)
#define ROWS_MAX         (256 * MiB)
#define LOCK_PATIENCE_NS (10 * NS_PER_SEC)
#define DAY_NS           (86400 * NS_PER_SEC)
#define BLOCK            512 /* what st_blocks counts in */

/* ---- removing ---------------------------------------------------------------------------------- */

/* Empties a folder that has no folders in it. */
static void empty_folder(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d) {
		fd_closep(&copy);
		return;
	}
	while ((e = readdir(d)))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			(void)unlinkat(dir, e->d_name, 0);
	(void)closedir(d);
}

int keeper_drop(struct keeper *k)
{
	int rc = 0;

	if (k->dir.fd >= 0) {
		empty_folder(k->dir.fd);
		if (unlinkat(k->all.fd, k->name, AT_REMOVEDIR) < 0)
			rc = -errno;
	}
	keeper_close(k);
	return rc;
}

void keeper_close(struct keeper *k)
{
	statedir_close(&k->dir);
	statedir_close(&k->all);
}

/* ---- making ------------------------------------------------------------------------------------ */

static bool is_id(const char *id)
{
	size_t len = strlen(id);

	return len > 0 && len < 64 && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

int keeper_begin(struct keeper *k, const struct statedir *state, const char *id, struct brig_error *err)
{
	int rc = statedir_open_sub(state, FOLDER, true, &k->all, err);

	if (rc < 0)
		return rc;
	(void)snprintf(k->name, sizeof(k->name), UNFINISHED "%s", id);
	rc = statedir_open_sub(&k->all, k->name, true, &k->dir, err);
	if (rc < 0)
		return rc;
	rc = fd_lock(k->dir.fd, LOCK_EX, LOCK_PATIENCE_NS);
	return rc < 0 ? statedir_trouble(err, -rc, "cannot lock", k->dir.path, NULL) : 0;
}

static uint64_t disk_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * BLOCK;
}

/* The same content is kept once. */
static bool has_content(const struct keeper *k, const char *name)
{
	return faccessat(k->dir.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int keeper_add(struct keeper *k, int fd, uint64_t max, uint64_t *ret_size, uint8_t hash[SHA256_LEN])
{
	static const char temp[] = "new";
	char name[SHA256_HEX + 1];
	AUTO_FD out = openat(k->dir.fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (out < 0)
		return -errno;
	rc = copy_hashed(fd, out, max, ret_size, hash);
	if (rc == 0 && !has_content(k, hex_put(name, hash, SHA256_LEN)))
		k->bytes += disk_of(out);
	if (rc == 0 && renameat(k->dir.fd, temp, k->dir.fd, name) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(k->dir.fd, temp, 0);
	return rc == 0 && k->bytes > k->room ? -EDQUOT : rc;
}

/* Takes the document. */
static int write_json(const struct statedir *d, const char *name, json_t *doc, struct brig_error *err)
{
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	return text ? statedir_replace(d, name, text, strlen(text), err) : err_nomem(err);
}

/* Under the lock on all of them. */
static int give_name(struct keeper *k, const char *id, uint64_t *ret_forgotten, struct brig_error *err)
{
	if (!room_make(&k->all, k->room, keeper_disk(k->dir.fd), ret_forgotten))
		return 1;
	if (renameat(k->all.fd, k->name, k->all.fd, id) < 0)
		return statedir_trouble(err, errno, "cannot keep the changes in", k->dir.path, NULL);
	(void)str_copy(k->name, sizeof(k->name), id);
	return 0;
}

int keeper_finish(struct keeper *k, const struct changeset *c, const struct changeset *git, uint64_t *ret_forgotten,
		  struct brig_error *err)
{
	int rc = write_json(&k->dir, ROWS_FILE, manifest_rows(c), err);

	*ret_forgotten = 0;
	if (rc == 0 && c->git)
		rc = write_json(&k->dir, GIT_FILE, manifest_rows(git), err);
	if (rc == 0)
		rc = write_json(&k->dir, HEAD_FILE, manifest_head(c), err);
	if (rc < 0)
		return rc;
	rc = fd_lock(k->all.fd, LOCK_EX, LOCK_PATIENCE_NS);
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot lock", k->all.path, NULL);
	rc = give_name(k, c->id, ret_forgotten, err);
	(void)flock(k->all.fd, LOCK_UN);
	return rc;
}

/* ---- using ------------------------------------------------------------------------------------- */

static int no_such(const char *id, struct brig_error *err)
{
	return err_set(err, BRIG_E_REFUSED, ENOENT,
		       "no changes are kept under '%.40s': 'brig workspace list' shows those that are", id);
}

int keeper_open(struct keeper *k, const struct statedir *state, const char *id, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	int rc;

	if (!is_id(id))
		return no_such(id, err);
	rc = statedir_open_sub(state, FOLDER, false, &k->all, &why);
	if (rc == 0)
		rc = statedir_open_sub(&k->all, id, false, &k->dir, &why);
	if (rc < 0 && why.sys == ENOENT)
		return no_such(id, err);
	if (rc < 0) {
		if (err)
			*err = why;
		return rc;
	}
	(void)str_copy(k->name, sizeof(k->name), id);
	rc = fd_lock(k->dir.fd, LOCK_EX, LOCK_PATIENCE_NS);
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot lock", k->dir.path, NULL);
	/* Who held the lock before may have applied or discarded it. */
	return faccessat(k->dir.fd, HEAD_FILE, F_OK, 0) < 0 ? no_such(id, err) : 0;
}

static int read_json(const struct statedir *d, const char *name, size_t max, json_t **ret, struct brig_error *err)
{
	AUTO_FD fd = statedir_open_file(d, name, O_RDONLY, err);
	AUTO_FREE char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size > max)
		return statedir_trouble(err, EFBIG, "cannot read", d->path, name);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return err_nomem(err);
	n = fd_read_all(fd, text, (size_t)st.st_size);
	*ret = n < 0 ? NULL : json_loadb(text, (size_t)n, 0, NULL);
	if (!*ret)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.200s/%s' is damaged: discard these changes, and run the program again", d->path,
			       name);
	return 0;
}

int keeper_read(const struct keeper *k, struct changeset *ret, bool with_rows, struct brig_error *err)
{
	json_t *head = NULL, *rows = NULL;
	int rc = read_json(&k->dir, HEAD_FILE, HEAD_MAX, &head, err);

	if (rc == 0 && with_rows)
		rc = read_json(&k->dir, ROWS_FILE, ROWS_MAX, &rows, err);
	if (rc == 0 && (!manifest_read_head(head, ret) || (rows && !manifest_read_rows(rows, ret))))
		rc = err_set(
			err, BRIG_E_REFUSED, 0,
			"the changes in '%.200s' were kept by another version of brig, or are damaged: discard them",
			k->dir.path);
	json_decref(head);
	json_decref(rows);
	return rc;
}

int keeper_read_git(const struct keeper *k, struct changeset *ret, struct brig_error *err)
{
	json_t *rows = NULL;
	int rc = read_json(&k->dir, GIT_FILE, ROWS_MAX, &rows, err);

	if (rc == 0 && !manifest_read_rows(rows, ret))
		rc = err_set(err, BRIG_E_REFUSED, 0, "'%.200s/" GIT_FILE "' is damaged: apply without git, or discard",
			     k->dir.path);
	json_decref(rows);
	return rc;
}

int keeper_content(const struct keeper *k, const uint8_t hash[SHA256_LEN])
{
	struct brig_error err = BRIG_ERROR_INIT;
	char name[SHA256_HEX + 1];
	int fd = statedir_open_file(&k->dir, hex_put(name, hash, SHA256_LEN), O_RDONLY, &err);

	return fd < 0 ? (err.sys ? -err.sys : -EIO) : fd;
}

/* ---- all of them ------------------------------------------------------------------------------- */

int keeper_open_all(const struct statedir *state, struct statedir *ret, struct brig_error *err)
{
	return statedir_open_if_there(state, FOLDER, ret, err);
}

static int each_name(const struct statedir *all, const struct statedir *handed, keeper_fn each, void *arg,
		     struct brig_error *err)
{
	int copy = openat(all->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d) {
		fd_closep(&copy);
		return statedir_trouble(err, errno, "cannot read", all->path, NULL);
	}
	while (rc == 0 && (e = readdir(d)))
		if (is_id(e->d_name) || strncmp(e->d_name, UNFINISHED, strlen(UNFINISHED)) == 0)
			rc = each(arg, handed, e->d_name, err);
	(void)closedir(d);
	return rc;
}

int keeper_each_in(const struct statedir *all, keeper_fn each, void *arg, struct brig_error *err)
{
	return each_name(all, all, each, arg, err);
}

int keeper_each(const struct statedir *state, keeper_fn each, void *arg, struct brig_error *err)
{
	AUTO_STATEDIR all = STATEDIR_INIT;
	int rc = keeper_open_all(state, &all, err);

	return rc <= 0 ? rc : each_name(&all, state, each, arg, err);
}

int keeper_reach(struct keeper *k, const struct statedir *all, const char *name)
{
	struct brig_error why = BRIG_ERROR_INIT;

	k->all.fd = fcntl(all->fd, F_DUPFD_CLOEXEC, 3);
	if (k->all.fd < 0)
		return -errno;
	if (statedir_open_sub(all, name, false, &k->dir, &why) < 0)
		return why.sys ? -why.sys : -EIO;
	(void)str_copy(k->name, sizeof(k->name), name);
	return 0;
}

uint64_t keeper_made_ns(const struct statedir *dir)
{
	struct stat st;

	if (fstatat(dir->fd, HEAD_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
}

uint64_t keeper_disk(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	uint64_t bytes = disk_of(dir);
	struct dirent *e;
	struct stat st;

	if (!d) {
		fd_closep(&copy);
		return bytes;
	}
	while ((e = readdir(d)))
		if (e->d_type != DT_DIR && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)st.st_blocks * BLOCK;
	(void)closedir(d);
	return bytes;
}

/* ---- forgetting -------------------------------------------------------------------------------- */

static bool is_old(const struct statedir *d, uint64_t days)
{
	uint64_t now = clock_wall_ns(), then = keeper_made_ns(d);

	return then > 0 && now > then && now - then > days * DAY_NS;
}

/* Only what is not in use: neither finished in this moment nor about to be applied. */
static int expire_one(void *arg, const struct statedir *all, const char *name, struct brig_error *err UNUSED)
{
	const uint64_t *days = arg;
	AUTO_KEEPER k = KEEPER_INIT;

	if (keeper_reach(&k, all, name) == 0 && (*name == '.' || is_old(&k.dir, *days)) &&
	    flock(k.dir.fd, LOCK_EX | LOCK_NB) == 0)
		(void)keeper_drop(&k);
	return 0;
}

int changeset_expire(const struct statedir *state, uint64_t days, struct brig_error *err)
{
	AUTO_STATEDIR all = STATEDIR_INIT;
	int rc = keeper_open_all(state, &all, err);

	return rc <= 0 ? rc : keeper_each_in(&all, expire_one, &days, err);
}
