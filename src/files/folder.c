/* SPDX-License-Identifier: Apache-2.0 */
#include "files/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "files/beneath.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u
#endif
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000u /* Linux 6.8: a number that no later mount gets */
#endif
#define LINKS_MAX        40 /* that a path may pass, as in the kernel */
#define LOCK_PATIENCE_NS (10 * NS_PER_SEC)
#define TEMP_PREFIX      ".brig-"
#define TEMP_RANDOM      16 /* characters of 5 bits */

/* ---- which one it is --------------------------------------------------------------------------- */

/* The birth time of a lower layer's folder changes when something in it is first changed, although it stays the same
 * folder. */
static bool has_lasting_birth(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type != OVERLAYFS_SUPER_MAGIC;
}

int folder_id_of(int fd, struct folder_id *ret)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_INO | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE,
		  &st) < 0)
		return -errno;
	*ret = (struct folder_id){ .device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor, .inode = st.stx_ino };
	if (st.stx_mask & STATX_BTIME && has_lasting_birth(fd))
		ret->born_ns = (int64_t)st.stx_btime.tv_sec * (int64_t)NS_PER_SEC + st.stx_btime.tv_nsec;
	if (st.stx_mask & (STATX_MNT_ID | STATX_MNT_ID_UNIQUE))
		ret->mount = st.stx_mnt_id;
	return 0;
}

bool folder_id_same(const struct folder_id *a, const struct folder_id *b, bool with_mount)
{
	return a->device == b->device && a->inode == b->inode && a->born_ns == b->born_ns &&
	       (!with_mount || a->mount == b->mount);
}

bool folder_boot(char dst[FOLDER_BOOT_LEN + 1])
{
	return fd_get_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", dst, FOLDER_BOOT_LEN + 1) == FOLDER_BOOT_LEN;
}

/* ---- opening and locking ----------------------------------------------------------------------- */

static int open_without_links(const char *path)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* A path that is gone step by step, because of the links in it. */
struct way {
	int at; /* the folder that is reached, O_PATH */
	char rest[PATH_MAX];
	uid_t owner[LINKS_MAX]; /* of the links that were passed */
	size_t n;
};

/* Puts where a link leads in front of the rest; from the root, if it says so. */
static int pass_link(struct way *w, int link, const struct stat *st, const char *rest)
{
	char target[PATH_MAX], longer[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

	if (n <= 0 || w->n == LINKS_MAX)
		return n < 0 ? -errno : -ELOOP;
	target[n] = '\0';
	if ((size_t)snprintf(longer, sizeof(longer), "%s/%s", target, rest) >= sizeof(longer))
		return -ENAMETOOLONG;
	w->owner[w->n++] = st->st_uid;
	(void)str_copy(w->rest, sizeof(w->rest), longer);
	return 0;
}

static int go_step(struct way *w)
{
	size_t len = strcspn(w->rest, "/");
	const char *rest = w->rest + len + strspn(w->rest + len, "/");
	char name[NAME_MAX + 1];
	AUTO_FD seen = FD_NONE;
	struct stat st;
	int rc;

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->rest, len);
	name[len] = '\0';
	if (len == 0) /* a slash at the beginning */
		(void)str_copy(name, sizeof(name), "/");
	seen = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (seen < 0 || fstat(seen, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return pass_link(w, seen, &st, rest);
	rc = S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	memmove(w->rest, rest, strlen(rest) + 1);
	fd_closep(&w->at);
	w->at = fd_move(&seen);
	return rc;
}

/*
 * Anyone who may write to a folder can plant a link there at any moment that leads us to what only we may write.  So a
 * link is followed only if it is ours, root's, or belongs to the owner of the folder that it leads to.
 */
static int open_through_links(const char *path)
{
	struct way w = { .at = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	AUTO_FD fd = FD_NONE;
	struct stat st = { .st_uid = (uid_t)-1 };
	int rc = w.at < 0 ? -errno : str_copy(w.rest, sizeof(w.rest), path) ? 0 : -ENAMETOOLONG;

	while (rc == 0 && *w.rest)
		rc = go_step(&w);
	if (rc == 0) {
		fd = openat(w.at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		rc = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	}
	fd_closep(&w.at);
	for (size_t i = 0; i < w.n && rc == 0; i++)
		if (w.owner[i] != geteuid() && w.owner[i] != 0 && w.owner[i] != st.st_uid)
			rc = -EXDEV;
	return rc < 0 ? rc : fd_move(&fd);
}

/* The path of what was opened, whatever the name has become meanwhile. */
static bool path_of(int fd, char dst[PATH_MAX])
{
	char link[48];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, dst, PATH_MAX - 1);
	if (n <= 0 || *dst != '/')
		return false;
	dst[n] = '\0';
	return true;
}

int folder_open(const char *path, const char *what, bool no_links, struct folder *ret, struct brig_error *err)
{
	AUTO_FD fd = open_without_links(path);

	if (fd == -ELOOP && no_links)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"the path of the %s '%.200s' leads through a link now, which it did not: somebody has put "
			"another folder in its place",
			what, path);
	if (fd == -ELOOP)
		fd = open_through_links(path);
	if (fd == -EXDEV)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"the path of the %s '%.200s' leads through a link of somebody else's to a folder that is not "
			"theirs: name the folder itself",
			what, path);
	if (fd < 0)
		return err_set(err, BRIG_E_REFUSED, -fd, "cannot open the %s '%.200s'", what, path);
	if (folder_id_of(fd, &ret->id) < 0 || !path_of(fd, ret->path))
		return err_set(err, BRIG_E_REFUSED, errno, "cannot find out where the %s '%.200s' is", what, path);
	ret->fd = fd_move(&fd);
	return 0;
}

int folder_again(const struct folder *f, struct folder *ret, struct brig_error *err)
{
	AUTO_FD fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || folder_id_of(fd, &ret->id) < 0 || !path_of(fd, ret->path))
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot find out where '%.200s' is now", f->path);
	ret->fd = fd_move(&fd);
	return 0;
}

void folder_close(struct folder *f)
{
	fd_closep(&f->fd);
}

/* Through a separate descriptor: locks belong to the open file description, and the run's is shared. */
int folder_lock(const struct folder *f, int *ret_fd, struct brig_error *err)
{
	AUTO_FD fd = beneath_open_dir(f->fd, "");
	int rc = fd < 0 ? fd : fd_lock(fd, LOCK_EX, LOCK_PATIENCE_NS);

	if (rc == -ETIMEDOUT)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "somebody else has locked '%.200s' for writing, for longer than %llu seconds: wait for "
			       "them, then try again",
			       f->path, (unsigned long long)(LOCK_PATIENCE_NS / NS_PER_SEC));
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot lock '%.200s'", f->path);
	*ret_fd = fd_move(&fd);
	return 0;
}

int folder_is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), empty = 1;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!d) {
		int rc = -errno;

		fd_closep(&copy);
		return rc;
	}
	while (empty && (e = readdir(d)))
		empty = str_eq(e->d_name, ".") || str_eq(e->d_name, "..");
	(void)closedir(d);
	return empty;
}

/* ---- new files --------------------------------------------------------------------------------- */

static int random_name(char dst[32])
{
	(void)str_copy(dst, 32, TEMP_PREFIX);
	return id_random(dst + strlen(TEMP_PREFIX), TEMP_RANDOM);
}

int folder_file_begin(int dir, struct folder_file *ret)
{
	int rc;

	*ret = (struct folder_file)FOLDER_FILE_INIT;
	ret->fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (ret->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
		return -errno;
	rc = random_name(ret->name);
	if (rc == 0) {
		rc = beneath_create(dir, ret->name, 0600);
		ret->fd = rc;
	}
	if (rc < 0)
		ret->name[0] = '\0';
	return rc < 0 ? rc : 0;
}

/* The file without a name gets one, unless there is something under it. */
static int link_unnamed(int fd, int dir, const char *name)
{
	char self[48];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Into a place that must be empty; file systems that cannot promise that with a rename do with a link. */
static int move_to_empty(struct folder_file *f, int dir, const char *name)
{
	if (renameat2(dir, f->name, dir, name, RENAME_NOREPLACE) == 0) {
		f->name[0] = '\0';
		return 0;
	}
	if (errno != EINVAL)
		return -errno;
	return linkat(dir, f->name, dir, name, 0) < 0 ? -errno : 0; /* folder_file_drop takes the first name away */
}

int folder_file_name(struct folder_file *f, int dir, const char *name, bool replace)
{
	int rc = 0;

	if (!replace)
		return *f->name ? move_to_empty(f, dir, name) : link_unnamed(f->fd, dir, name);
	if (!*f->name) {
		char own[32];

		rc = random_name(own);
		if (rc == 0)
			rc = link_unnamed(f->fd, dir, own);
		if (rc == 0)
			(void)str_copy(f->name, sizeof(f->name), own);
	}
	if (rc == 0 && renameat(dir, f->name, dir, name) < 0)
		rc = -errno;
	if (rc == 0)
		f->name[0] = '\0';
	return rc;
}

void folder_file_drop(struct folder_file *f, int dir)
{
	if (*f->name)
		(void)unlinkat(dir, f->name, 0);
	f->name[0] = '\0';
	fd_closep(&f->fd);
}
