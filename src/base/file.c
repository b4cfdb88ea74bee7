/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

const char *file_kind(mode_t mode)
{
	static const struct {
		mode_t kind;
		const char *name;
	} kinds[] = {
		{ S_IFREG, "a regular file" },     { S_IFDIR, "a directory" },    { S_IFIFO, "a FIFO" },
		{ S_IFCHR, "a character device" }, { S_IFBLK, "a block device" }, { S_IFSOCK, "a socket" },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if ((mode & S_IFMT) == kinds[i].kind)
			return kinds[i].name;
	return "something else";
}

/* The number of the open descriptor that a path stands for. */
static bool is_stream(const char *path, int *ret)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t n;

	if (str_eq(path, "/dev/stdin")) {
		*ret = STDIN_FILENO;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		size_t len = strlen(folders[i]);

		if (strncmp(path, folders[i], len) == 0 && str_to_u64(path + len, &n) && n <= INT32_MAX) {
			*ret = (int)n;
			return true;
		}
	}
	return false;
}

/* It is already open, so nothing blocks here: the process that passed it holds, or has closed, the other end. */
static int open_stream(int of, struct stat *st)
{
	int fd = fcntl(of, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) == 0 && !S_ISDIR(st->st_mode))
		return fd;
	(void)close(fd);
	return -EINVAL;
}

int file_open(const char *path, unsigned also, struct stat *st)
{
	AUTO_FD look = FD_NONE;
	char again[48];
	int fd, stream;

	*st = (struct stat){ 0 };
	if (also & FILE_STREAMS && is_stream(path, &stream))
		return open_stream(stream, st);
	look = open(path, O_PATH | O_CLOEXEC);
	if (look < 0 || fstat(look, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode) && !(also & FILE_FOLDERS && S_ISDIR(st->st_mode)) &&
	    !(also & FILE_DEVICES && S_ISCHR(st->st_mode)))
		return -EINVAL;
	/* The file that was checked, whatever the path names by now. */
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", look);
	fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
