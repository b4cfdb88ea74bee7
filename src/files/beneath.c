/* SPDX-License-Identifier: Apache-2.0 */
#include "files/beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

/* O_NONBLOCK: a FIFO that was put in place of a file does not hold us up; O_NOCTTY: nor does a terminal become ours. */
static int open_beneath(int root, const char *path, uint64_t flags, mode_t mode)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	int fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int beneath_look(int root, const char *path, struct stat *st)
{
	AUTO_FD fd = open_beneath(root, path, O_PATH | O_NOFOLLOW, 0);

	if (fd >= 0 && st && fstat(fd, st) < 0)
		return -errno;
	return fd_move(&fd);
}

int beneath_open_dir(int root, const char *path)
{
	return open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0);
}

/* Checked before it is opened: opening a device may have side effects.  What was opened is checked again. */
int beneath_open_file(int root, const char *path, struct stat *st)
{
	struct stat own;
	AUTO_FD seen = beneath_look(root, path, &own);
	AUTO_FD fd = FD_NONE;

	if (seen < 0)
		return fd_move(&seen);
	if (S_ISLNK(own.st_mode))
		return -ELOOP;
	if (!S_ISREG(own.st_mode))
		return -EINVAL;
	fd = open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd_move(&fd);
	if (fstat(fd, &own) < 0)
		return -errno;
	if (!S_ISREG(own.st_mode))
		return -EINVAL;
	if (st)
		*st = own;
	return fd_move(&fd);
}

int beneath_create(int root, const char *path, mode_t mode)
{
	return open_beneath(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY, mode);
}

/* Copies the part of path before its last slash: "" if there is none. */
static int parent_of(const char *path, char parent[PATH_MAX], const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(parent, path, len);
	parent[len] = '\0';
	*ret_name = slash ? slash + 1 : path;
	return 0;
}

int beneath_open_parent(int root, const char *path, const char **ret_name)
{
	char parent[PATH_MAX];
	int rc = parent_of(path, parent, ret_name);

	return rc < 0 ? rc : beneath_open_dir(root, parent);
}

/* Goes down by descriptors, each folder from the one before it. */
int beneath_make_dirs(int root, const char *path)
{
	AUTO_FD dir = beneath_open_dir(root, "");

	while (dir >= 0 && *path) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		int next;

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + (path[len] == '/');
		if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = beneath_open_dir(dir, name);
		fd_closep(&dir);
		dir = next;
	}
	return dir < 0 ? fd_move(&dir) : 0;
}

bool beneath_is_path(const char *path, size_t len)
{
	size_t begin = 0;

	if (len == 0 || len >= PATH_MAX || memchr(path, '\0', len))
		return false;
	for (size_t i = 0; i <= len; i++) {
		size_t n = i - begin;

		if (i < len && path[i] != '/')
			continue;
		if (n == 0 || n > NAME_MAX || (n == 1 && path[begin] == '.') ||
		    (n == 2 && path[begin] == '.' && path[begin + 1] == '.'))
			return false;
		begin = i + 1;
	}
	return true;
}
