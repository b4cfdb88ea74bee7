/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory in which a program of the direct backend works: /tmp/brig-direct-<id>, with the workspace, a directory
 * for temporary files and its owner's pid.
 *
 * Its creator holds a lock on the directory until it is removed; the kernel releases the lock when the last process
 * that holds it dies, so a directory that can be locked has no owner.  Creating and locking are not atomic: a reaper
 * that runs in between finds a directory without an owner and removes it, while it holds the lock.  So the creator,
 * once it has the lock, checks whether the directory still exists, and creates it again if not.
 *
 * A program may leave arbitrarily deep trees.  Removing them follows no link, opens two directories at a time, and
 * instead of descending moves deeper directories up to the top.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "backend/direct/direct.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"

#define PLACE       "/tmp"
#define PREFIX      "brig-direct-"
#define MAKE_TRIES  16
#define REMOVED_MAX 10000000 /* entries of one directory; a program's own limits are far below */
#define FOLDERS_MAX 4096     /* examined by one ps or reap */

/* ---- removing -------------------------------------------------------------------------------- */

struct removal {
	int top;
	uint64_t moved;   /* number for a unique name */
	uint64_t touched; /* counted to bound the work if something adds entries meanwhile */
};

/* A stream over a directory without taking its descriptor. */
static DIR *open_stream(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d && copy >= 0)
		(void)close(copy);
	return d;
}

static bool is_dots(const char *name)
{
	return str_eq(name, ".") || str_eq(name, "..");
}

/* Removes an entry of a subdirectory of the top, or moves it up. */
static int remove_or_raise(struct removal *r, int dir, const char *name)
{
	char raised[32];

	if (unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	(void)!fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW); /* moving a directory writes to its ".." */
	(void)snprintf(raised, sizeof(raised), ".raised-%llu", (unsigned long long)r->moved++);
	return renameat2(dir, name, r->top, raised, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

static int empty_dir(struct removal *r, const char *name)
{
	AUTO_FD dir = FD_NONE;
	DIR *d;
	int rc = 0;

	(void)!fchmodat(r->top, name, 0700, AT_SYMLINK_NOFOLLOW);
	dir = openat(r->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	d = open_stream(dir);
	if (!d)
		return -errno;
	for (struct dirent *e; rc == 0 && (e = readdir(d));)
		if (!is_dots(e->d_name))
			rc = ++r->touched > REMOVED_MAX ? -EFBIG : remove_or_raise(r, dir, e->d_name);
	(void)closedir(d);
	if (rc == 0 && unlinkat(r->top, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY)
		rc = -errno;
	return rc;
}

/* One pass over the top; 1: there may be more. */
static int empty_top(struct removal *r)
{
	DIR *d = open_stream(r->top);
	int rc = 0;

	if (!d)
		return -errno;
	for (struct dirent *e; rc >= 0 && (e = readdir(d));) {
		if (is_dots(e->d_name))
			continue;
		if (++r->touched > REMOVED_MAX)
			rc = -EFBIG;
		else if (unlinkat(r->top, e->d_name, 0) < 0 && unlinkat(r->top, e->d_name, AT_REMOVEDIR) < 0)
			rc = empty_dir(r, e->d_name) < 0 ? -EBUSY : 1;
	}
	(void)closedir(d);
	return rc;
}

static int remove_folder(int top, const char *path)
{
	struct removal r = { .top = top };
	int rc;

	do {
		rc = empty_top(&r);
	} while (rc > 0);
	if (rc == 0 && unlinkat(AT_FDCWD, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
		rc = -errno;
	return rc;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Creates a directory of that name that we own, and locks it.  A descriptor or -errno. */
static int make_locked(const char *path, mode_t mode)
{
	for (int i = 0; i < MAKE_TRIES; i++) {
		AUTO_FD dir = FD_NONE;
		struct stat st;

		if (mkdir(path, mode) < 0)
			return -errno;
		dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0 && errno == ENOENT)
			continue;
		if (dir < 0 || flock(dir, LOCK_EX) < 0 || fstat(dir, &st) < 0)
			return -errno;
		if (st.st_nlink > 0)
			return fchmod(dir, mode) < 0 ? -errno : fd_move(&dir);
	}
	return -EBUSY;
}

/* The directories on the way may be a project's: links are not followed. */
static int write_file(int dir, const struct plan_file *f, uid_t uid, gid_t gid)
{
	AUTO_FD fd = beneath_create(dir, f->name, f->mode);
	int rc;

	if (fd < 0)
		return fd_move(&fd);
	rc = fd_write_all(fd, f->data, f->len);
	if (rc == 0 && fchown(fd, uid, gid) < 0)
		rc = -errno;
	return rc == 0 && fchmod(fd, f->mode) < 0 ? -errno : rc;
}

static int note_owner(int dir)
{
	char pid[16];
	struct plan_file note = { .name = "owner", .data = pid, .mode = 0600 };

	note.len = (size_t)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return write_file(dir, &note, geteuid(), getegid());
}

int scratch_make(struct scratch *s, const char *id, struct brig_error *err)
{
	int rc;

	(void)snprintf(s->path, sizeof(s->path), PLACE "/" PREFIX "%s", id);
	(void)snprintf(s->work, sizeof(s->work), PLACE "/" PREFIX "%s/work", id);
	(void)snprintf(s->temp, sizeof(s->temp), PLACE "/" PREFIX "%s/tmp", id);
	/* Root's program has another id and needs search permission; the contents belong to the program alone. */
	s->lock = make_locked(s->path, geteuid() == 0 ? 0711 : 0700);
	if (s->lock < 0) {
		rc = s->lock;
		s->path[0] = '\0'; /* nothing of ours to remove */
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot make the scratch folder " PLACE "/" PREFIX "%s", id);
	}
	rc = note_owner(s->lock);
	if (rc == 0 && (mkdirat(s->lock, "work", 0700) < 0 || mkdirat(s->lock, "tmp", 0700) < 0))
		rc = -errno;
	if (rc == 0) {
		s->dir = openat(s->lock, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = s->dir < 0 ? -errno : 0;
	}
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot fill the scratch folder %s", s->path) : 0;
}

/* In a cell the user has a name, with which git commits unless the repository sets one; an unused id has none. */
static int name_for_git(int dir, uid_t uid, gid_t gid)
{
	static const char text[] = "[user]\n\tname = sandbox\n";

	return write_file(
		dir,
		&(struct plan_file){ .name = "tmp/.gitconfig", .data = text, .len = sizeof(text) - 1, .mode = 0644 },
		uid, gid);
}

int scratch_fill(const struct scratch *s, const struct plan *plan, uid_t uid, gid_t gid, struct brig_error *err)
{
	uid_t keeper = plan->workspace && plan->workspace->read_only ? geteuid() : uid; /* see project.c */
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < plan->n_files; i++)
		rc = write_file(s->dir, &plan->files[i], keeper, gid);
	if (rc == 0 && plan->workspace)
		rc = name_for_git(s->lock, uid, gid);
	if (rc == 0 && (fchown(s->dir, uid, gid) < 0 || fchownat(s->lock, "tmp", uid, gid, AT_SYMLINK_NOFOLLOW) < 0))
		rc = -errno;
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot put the program into %s", s->work) : 0;
}

int scratch_remove(struct scratch *s)
{
	int rc = 0;

	fd_closep(&s->dir);
	if (s->path[0])
		rc = remove_folder(s->lock, s->path);
	s->path[0] = '\0';
	fd_closep(&s->lock);
	return rc;
}

/* ---- directories of other runs ----------------------------------------------------------------- */

static void describe(int dir, const char *name, const struct stat *st, struct cell_entry *e)
{
	struct timespec now;
	char text[16];
	uint64_t pid;

	*e = (struct cell_entry){ .owner = 0 };
	(void)str_copy(e->id, sizeof(e->id), name + strlen(PREFIX));
	(void)snprintf(e->name, sizeof(e->name), PLACE "/%.80s", name);
	if (fd_get_at(dir, "owner", text, sizeof(text)) > 0 && str_to_u64(text, &pid) && pid <= INT32_MAX)
		e->owner = (pid_t)pid;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec > st->st_mtim.tv_sec)
		e->age_ms = (uint64_t)(now.tv_sec - st->st_mtim.tv_sec) * 1000;
}

struct visit {
	bool reap;
	cell_entry_fn each;
	void *arg;
	struct brig_error *err;
};

/* Locked while it is examined and removed; if it is just being created, its creator then creates it again. */
static int visit_folder(const struct visit *v, int place, const char *name)
{
	AUTO_FD dir = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct cell_entry e;
	struct stat st;
	int rc;

	/* Only our own: any user can create a directory of that name in /tmp. */
	if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid())
		return 0;
	e.orphan = flock(dir, LOCK_EX | LOCK_NB) == 0;
	if (e.orphan && (fstat(dir, &st) < 0 || st.st_nlink == 0))
		return 0;
	rc = e.orphan;
	describe(dir, name, &st, &e);
	e.orphan = rc;
	if (!v->reap)
		return v->each(v->arg, &e);
	if (!e.orphan)
		return 0;
	rc = remove_folder(dir, e.name);
	if (rc < 0)
		return err_set(v->err, BRIG_E_SYSTEM, -rc, "cannot remove %s", e.name);
	return v->each(v->arg, &e);
}

static bool is_ours(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strlen(name + strlen(PREFIX)) == RUN_ID_LEN;
}

static int visit_all(const struct visit *v)
{
	DIR *d = opendir(PLACE);
	size_t seen = 0;
	int rc = 0;

	if (!d)
		return err_set(v->err, BRIG_E_SYSTEM, errno, "cannot look into " PLACE);
	for (struct dirent *e; rc >= 0 && seen < FOLDERS_MAX && (e = readdir(d));)
		if (is_ours(e->d_name)) {
			seen++;
			rc = visit_folder(v, dirfd(d), e->d_name);
		}
	(void)closedir(d);
	return rc < 0 ? rc : 0;
}

int scratch_list(const struct settings *set UNUSED, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return visit_all(&(struct visit){ .each = each, .arg = arg, .err = err });
}

int scratch_reap(const struct settings *set UNUSED, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return visit_all(&(struct visit){ .reap = true, .each = each, .arg = arg, .err = err });
}
