/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations for the owner, from inside and with the rights of the cell's programs: links resolve as they do for
 * these, so never out of the cell. Relative paths begin in the workspace, which is the working directory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/guest/steward/inside.h"
#include "base/fd.h"

#define WALK_FDS   16
#define COPY_PIECE 65536

/* Creates missing directories before the last component. */
int files_make_folders(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(part))
		return len ? -ENAMETOOLONG : -ENOENT;
	memcpy(part, path, len + 1);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* ---- one file ---------------------------------------------------------------------------------- */

/* Refuses FIFOs and devices, and does not block on them. */
static int open_regular(const char *path, int flags, mode_t mode)
{
	AUTO_FD fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	return fd_move(&fd);
}

void files_open(struct steward *s)
{
	static const int flags[] = { [STEWARD_OPEN_READ] = O_RDONLY,
				     [STEWARD_OPEN_WRITE] = O_WRONLY | O_CREAT | O_TRUNC,
				     [STEWARD_OPEN_APPEND] = O_WRONLY | O_CREAT | O_APPEND };
	const int64_t how = s->asked.head.number[0], done = 0;
	const char *path = s->asked.word[0];
	AUTO_FD fd = FD_NONE;

	if (how < 0 || how > STEWARD_OPEN_APPEND) {
		steward_done(s, EINVAL);
		return;
	}
	fd = open_regular(path, flags[how], (mode_t)s->asked.head.number[1] & 0777);
	if (fd == -ENOENT && how != STEWARD_OPEN_READ) {
		int rc = files_make_folders(path, 0755); /* if they cannot be created, neither can it */

		fd = rc < 0 ? rc : open_regular(path, flags[how], (mode_t)s->asked.head.number[1] & 0777);
	}
	if (fd < 0)
		steward_done(s, -fd);
	else
		steward_tell(s, STEWARD_DONE, s->asked.head.tag, &done, 1, NULL, 0, fd);
}

static int tell_entry(const struct steward *s, const char *path)
{
	char target[PATH_MAX] = "";
	struct stat st, behind = { .st_mode = 0 };
	const char *const words[] = { path, target };

	if (lstat(path, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode) && stat(path, &behind) == 0)
		(void)!realpath(path, target);
	steward_tell(s, STEWARD_ENTRY, s->asked.head.tag,
		     (const int64_t[]){ st.st_mode, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_uid,
					st.st_gid, behind.st_mode },
		     7, words, ARRAY_LEN(words), FD_NONE);
	return 0;
}

void files_stat(struct steward *s)
{
	steward_done(s, -tell_entry(s, s->asked.word[0]));
}

/* ---- directories ------------------------------------------------------------------------------- */

struct listing {
	const struct steward *s;
	int64_t left;
	bool more;
};

static void list_folder(struct listing *l, const char *path, int64_t depth);

static void list_one(struct listing *l, const char *folder, const struct dirent *e, int64_t depth)
{
	char path[PATH_MAX];
	const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
	struct stat st;

	if (snprintf(path, sizeof(path), "%s%s%s", folder, slash, e->d_name) >= (int)sizeof(path))
		return;
	if (l->left-- <= 0) {
		l->more = true;
		return;
	}
	if (tell_entry(l->s, path) == 0 && depth > 1 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
		list_folder(l, path, depth - 1);
}

static void list_folder(struct listing *l, const char *path, int64_t depth)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir && !l->more && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			list_one(l, path, e, depth);
	if (dir)
		(void)closedir(dir);
}

void files_list(struct steward *s)
{
	const int64_t *number = s->asked.head.number;
	struct listing l = { .s = s, .left = number[1] };
	const char *path = s->asked.word[0];
	int64_t done[2] = { 0 };
	struct stat st;

	if (number[0] < 1 || number[0] > STEWARD_DEPTH_MAX || number[1] < 0 || number[1] > STEWARD_ENTRIES_MAX ||
	    !*path) {
		steward_done(s, EINVAL);
		return;
	}
	if (stat(path, &st) < 0) {
		steward_done(s, errno);
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		steward_done(s, ENOTDIR);
		return;
	}
	list_folder(&l, path, number[0]);
	done[1] = l.more;
	steward_tell(s, STEWARD_DONE, s->asked.head.tag, done, ARRAY_LEN(done), NULL, 0, FD_NONE);
}

void files_mkdir(struct steward *s)
{
	const char *path = s->asked.word[0];
	mode_t mode = (mode_t)s->asked.head.number[0] & 0777;
	int rc = files_make_folders(path, mode);

	if (rc == 0 && mkdir(path, mode) < 0)
		rc = -errno;
	steward_done(s, -rc);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	(void)flag;
	(void)at;
	return remove(path) < 0 && errno != ENOENT ? errno : 0;
}

static int remove_all(const char *path)
{
	int rc = nftw(path, remove_one, WALK_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

	return rc < 0 ? -errno : -rc;
}

static int copy_file(const char *from, const char *to)
{
	AUTO_FD source = open_regular(from, O_RDONLY | O_NOFOLLOW, 0);
	AUTO_FD copy = FD_NONE;
	static char piece[COPY_PIECE];
	struct stat st;
	ssize_t n = 0;
	int rc = 0;

	if (source < 0)
		return source;
	if (fstat(source, &st) < 0)
		return -errno;
	copy = open_regular(to, O_WRONLY | O_CREAT | O_TRUNC, st.st_mode & 0777);
	if (copy < 0)
		return copy;
	while (rc == 0 && (n = read(source, piece, sizeof(piece))) > 0)
		rc = fd_write_all(copy, piece, (size_t)n);
	return rc == 0 && n < 0 ? -errno : rc;
}

static int copy_link(const char *from, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlink(target, to) < 0 ? -errno : 0;
}

/* For the nftw() callback: source and destination. */
static const char *copied_from, *copied_to;

static int copy_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	char to[PATH_MAX];

	(void)flag;
	(void)at;
	if (snprintf(to, sizeof(to), "%s%s", copied_to, path + strlen(copied_from)) >= (int)sizeof(to))
		return ENAMETOOLONG;
	if (S_ISDIR(st->st_mode)) /* writable for us, whatever its mode was */
		return mkdir(to, (st->st_mode & 0777) | 0700) < 0 ? errno : 0;
	return S_ISLNK(st->st_mode) ? -copy_link(path, to) : -copy_file(path, to);
}

/*
 * The workspace and /tmp are separate mounts: to move between them, a file is copied, and a directory with all that it
 * contains.  An existing destination is replaced as by rename(2): a file by a file, an empty directory by a directory.
 */
static int copy_over(const char *from, const char *to)
{
	struct stat st;
	int rc;

	if (lstat(from, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) && rmdir(to) < 0 && errno != ENOENT)
		return -errno;
	if (S_ISLNK(st.st_mode) && unlink(to) < 0 && errno != ENOENT)
		return -errno;
	copied_from = from;
	copied_to = to;
	rc = nftw(from, copy_one, WALK_FDS, FTW_PHYS | FTW_MOUNT);
	rc = rc < 0 ? -errno : -rc;
	if (rc < 0) /* no room: the source stays */
		(void)remove_all(to);
	else
		rc = remove_all(from);
	return rc;
}

static int move(const char *from, const char *to)
{
	int rc = rename(from, to) < 0 ? -errno : 0;

	return rc == -EXDEV ? copy_over(from, to) : rc;
}

void files_move(struct steward *s)
{
	const char *from = s->asked.word[0], *to = s->asked.word[1];
	int rc = move(from, to);
	struct stat st;

	if (rc == -ENOENT && lstat(from, &st) == 0) {
		rc = files_make_folders(to, 0755);
		rc = rc < 0 ? rc : move(from, to);
	}
	steward_done(s, -rc);
}

void files_remove(struct steward *s)
{
	steward_done(s, -remove_all(s->asked.word[0]));
}
