/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/statedir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

#define ROOT_STATE  "/var/lib/brig"
#define OTHERS_MASK (S_IWGRP | S_IWOTH)

/* ---- what went wrong, and what to do ----------------------------------------------------------- */

static const struct {
	int sys;
	const char *advice;
} advices[] = {
	{ ENOENT, "it is made by the first run; name another with --state or $BRIG_STATE" },
	{ EACCES, "give this user access, or name another folder with --state or $BRIG_STATE" },
	{ EPERM, "give this user access, or name another folder with --state or $BRIG_STATE" },
	{ EROFS, "mount it writable, or name another folder with --state or $BRIG_STATE" },
	{ ENOSPC, "make room on that disk, or name another folder with --state or $BRIG_STATE" },
	{ EDQUOT, "make room within the quota, or name another folder with --state or $BRIG_STATE" },
	{ ELOOP, "a link stands where brig keeps its own: find out who put it there, then remove it" },
	{ ENOTDIR, "something else stands where a folder should: find out who put it there, then remove it" },
	{ ETIMEDOUT, "another brig holds its lock: see what it is doing, and try again" },
	{ EFBIG, "it is larger than anything brig writes there: find out who changed it" },
};

int statedir_trouble(struct brig_error *err, int sys, const char *what, const char *path, const char *name)
{
	const char *advice = "see to that disk, or name another folder with --state or $BRIG_STATE";
	bool refused = sys == ENOENT || sys == ELOOP || sys == ENOTDIR;

	for (size_t i = 0; i < ARRAY_LEN(advices); i++)
		if (advices[i].sys == sys)
			advice = advices[i].advice;
	(void)err_set(err, refused ? BRIG_E_REFUSED : BRIG_E_SYSTEM, 0, "%s '%.200s%s%.60s': %s; %s", what, path,
		      name ? "/" : "", name ? name : "", strerrordesc_np(sys) ?: "unknown error", advice);
	if (err)
		err->sys = sys;
	return refused ? -BRIG_E_REFUSED : -BRIG_E_SYSTEM;
}

/* Ours, and not open to others. */
static int check_owner(const struct stat *st, const char *path, const char *name, struct brig_error *err)
{
	const char *slash = name ? "/" : "";

	if (!name)
		name = "";
	if (st->st_uid != geteuid())
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"'%.200s%s%.60s' belongs to user %u and brig runs as %u: what another user can change proves "
			"nothing. Give it to this user, or name another folder with --state or $BRIG_STATE",
			path, slash, name, (unsigned)st->st_uid, (unsigned)geteuid());
	if (st->st_mode & OTHERS_MASK)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"'%.200s%s%.60s' can be written by others (mode %04o): run 'chmod go-w' on it, and check what "
			"it holds",
			path, slash, name, (unsigned)st->st_mode & 07777);
	return 0;
}

/* ---- where it is ------------------------------------------------------------------------------- */

static int path_put(char *dst, size_t size, const char *base, const char *tail, struct brig_error *err)
{
	if ((size_t)snprintf(dst, size, "%s%s", base, tail) >= size)
		return err_set(err, BRIG_E_USAGE, 0, "the state folder's path has more than %zu bytes", size - 1);
	return 0;
}

int statedir_path(const char *wanted, char *dst, size_t size, struct brig_error *err)
{
	const char *base;

	if (!wanted || !*wanted)
		wanted = secure_getenv("BRIG_STATE");
	if (wanted && *wanted)
		return path_put(dst, size, wanted, "", err);
	if (geteuid() == 0)
		return path_put(dst, size, ROOT_STATE, "", err);
	base = secure_getenv("XDG_STATE_HOME");
	if (base && *base == '/')
		return path_put(dst, size, base, "/brig", err);
	base = secure_getenv("HOME");
	if (base && *base == '/')
		return path_put(dst, size, base, "/.local/state/brig", err);
	return err_set(
		err, BRIG_E_REFUSED, ENOENT,
		"no place for the state folder: neither $HOME nor $XDG_STATE_HOME is set; name one with --state or "
		"$BRIG_STATE");
}

/* ---- folders ----------------------------------------------------------------------------------- */

/* The descriptor of a checked folder, or negative. */
static int open_checked(int parent, const char *name, const char *path, struct brig_error *err)
{
	AUTO_FD fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int rc;

	if (fd < 0) {
		int sys = errno;

		/* With O_DIRECTORY a link is reported like anything else that is not a directory. */
		if (sys == ENOTDIR && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			sys = ELOOP;
		return statedir_trouble(err, sys, "cannot open the folder", path, NULL);
	}
	if (fstat(fd, &st) < 0)
		return statedir_trouble(err, errno, "cannot look at the folder", path, NULL);
	rc = check_owner(&st, path, NULL, err);
	return rc < 0 ? rc : fd_move(&fd);
}

/* Creates all missing directories of the path. */
static int make_parents(const char *path, struct brig_error *err)
{
	char part[STATEDIR_PATH_MAX];
	size_t len = strlen(path);

	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return statedir_trouble(err, errno, "cannot make the folder", part, NULL);
	}
	return 0;
}

int statedir_open(const char *wanted, bool make, struct statedir *ret, struct brig_error *err)
{
	struct statedir d = STATEDIR_INIT;
	struct brig_error first = BRIG_ERROR_INIT;
	size_t len;
	int rc = statedir_path(wanted, d.path, sizeof(d.path), err);

	if (rc < 0)
		return rc;
	for (len = strlen(d.path); len > 1 && d.path[len - 1] == '/'; len--)
		d.path[len - 1] = '\0'; /* "link/" would be followed */
	d.fd = open_checked(AT_FDCWD, d.path, d.path, &first);
	if (d.fd < 0 && first.sys == ENOENT && make) {
		rc = make_parents(d.path, err);
		if (rc < 0)
			return rc;
		d.fd = open_checked(AT_FDCWD, d.path, d.path, &first);
	}
	if (d.fd < 0) {
		if (err)
			*err = first;
		return -first.code;
	}
	*ret = d;
	return 0;
}

int statedir_open_sub(const struct statedir *parent, const char *name, bool make, struct statedir *ret,
		      struct brig_error *err)
{
	struct statedir d = STATEDIR_INIT;

	if ((size_t)snprintf(d.path, sizeof(d.path), "%s/%s", parent->path, name) >= sizeof(d.path))
		return err_set(err, BRIG_E_USAGE, 0, "the state folder's path is too long");
	if (make && mkdirat(parent->fd, name, 0700) < 0 && errno != EEXIST)
		return statedir_trouble(err, errno, "cannot make the folder", d.path, NULL);
	d.fd = open_checked(parent->fd, name, d.path, err);
	if (d.fd < 0)
		return d.fd;
	*ret = d;
	return 0;
}

int statedir_open_if_there(const struct statedir *parent, const char *name, struct statedir *ret,
			   struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	int rc = statedir_open_sub(parent, name, false, ret, &why);

	if (rc == 0)
		return 1;
	if (why.sys == ENOENT)
		return 0;
	if (err)
		*err = why;
	return rc;
}

void statedir_close(struct statedir *d)
{
	fd_closep(&d->fd);
}

/* ---- files ------------------------------------------------------------------------------------- */

int statedir_open_file(const struct statedir *d, const char *name, int flags, struct brig_error *err)
{
	/* Without O_NONBLOCK a FIFO planted there would hold us up. */
	AUTO_FD fd = openat(d->fd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	struct stat st;
	int rc;

	if (fd < 0)
		return statedir_trouble(err, errno, "cannot open", d->path, name);
	if (fstat(fd, &st) < 0)
		return statedir_trouble(err, errno, "cannot look at", d->path, name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.200s/%.60s' is not a regular file: find out who put it there, then remove it",
			       d->path, name);
	rc = check_owner(&st, d->path, name, err);
	return rc < 0 ? rc : fd_move(&fd);
}

ssize_t statedir_read(const struct statedir *d, const char *name, void *dst, size_t size, struct brig_error *err)
{
	AUTO_FD fd = statedir_open_file(d, name, O_RDONLY, err);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = fd_read_all(fd, dst, size);
	if (n >= 0 && (size_t)n == size)
		n = -EFBIG;
	if (n < 0)
		return statedir_trouble(err, (int)-n, "cannot read", d->path, name);
	((char *)dst)[n] = '\0';
	return n;
}

int statedir_replace(const struct statedir *d, const char *name, const void *data, size_t len, struct brig_error *err)
{
	char temp[80];
	AUTO_FD fd = FD_NONE;
	int rc;

	/* One name, because callers hold a lock.  What a killed writer left is overwritten. */
	(void)snprintf(temp, sizeof(temp), "%.60s.new", name);
	fd = statedir_open_file(d, temp, O_WRONLY | O_CREAT | O_TRUNC, err);
	if (fd < 0)
		return fd;
	rc = fd_write_all(fd, data, len);
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (rc == 0 && renameat(d->fd, temp, d->fd, name) < 0)
		rc = -errno;
	if (rc < 0) {
		(void)unlinkat(d->fd, temp, 0);
		return statedir_trouble(err, -rc, "cannot write", d->path, name);
	}
	(void)fsync(d->fd);
	return 0;
}
