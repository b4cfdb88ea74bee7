/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a pool and its claimers meet: a directory that only one user can access, with the pool's socket in it and, in
 * claims/, one small file for each container that was handed out. Labels cannot be changed, so those of a claimed
 * container still name the pool; the file says which process has it now.  It is written before the container is handed
 * out and removed after the container, so `brig reap` never removes a container of a live run, and always removes one
 * of a dead run.  A process may be killed between removing a container and its record, or be told that the removal is
 * in progress already: such records are removed by reap.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/docker/answer.h"
#include "backend/docker/pool.h"
#include "base/fd.h"
#include "base/str.h"

int pool_place(char dst[POOL_PATH_MAX])
{
	const char *base = secure_getenv("XDG_RUNTIME_DIR");
	int n;

	if (base && base[0] == '/')
		n = snprintf(dst, POOL_PATH_MAX, "%s/brig", base);
	else if (geteuid() == 0)
		n = snprintf(dst, POOL_PATH_MAX, "/run/brig");
	else
		return -ENOENT;
	return n < 0 || n >= POOL_PATH_MAX ? -ENAMETOOLONG : 0;
}

/* A directory of this user that others can neither write to nor read. */
static int open_own(int dir, const char *path, uint64_t uid)
{
	AUTO_FD fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == uid && (st.st_mode & 077) == 0 ? fd_move(&fd) : -EPERM;
}

int pool_place_open(const char *path, bool make)
{
	AUTO_FD place = FD_NONE;

	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	place = open_own(AT_FDCWD, path, geteuid());
	if (place >= 0 && make && mkdirat(place, "claims", 0700) < 0 && errno != EEXIST)
		return -errno;
	return fd_move(&place);
}

static const char *record_name(char dst[ENGINE_ID_LEN + 16], const char *container)
{
	(void)snprintf(dst, ENGINE_ID_LEN + 16, "claims/%.*s", ENGINE_ID_LEN, container);
	return dst;
}

int pool_record_write(int place, const char *container, pid_t pid)
{
	char name[ENGINE_ID_LEN + 16], text[64];
	uint64_t start = owner_start_time(pid);
	AUTO_FD fd = FD_NONE;
	int n = snprintf(text, sizeof(text), "%d %llu", (int)pid, (unsigned long long)start);

	if (start == 0 || !answer_is_id(container))
		return -ESRCH;
	fd = openat(place, record_name(name, container), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd_write_all(fd, text, (size_t)n);
}

void pool_record_remove(int place, const char *container)
{
	char name[ENGINE_ID_LEN + 16];

	if (place >= 0 && answer_is_id(container))
		(void)unlinkat(place, record_name(name, container), 0);
}

void pool_record_forget(const json_t *row, const char *container)
{
	const char *path = json_string_value(json_object_get(json_object_get(row, "Labels"), LABEL_POOL));
	AUTO_FD place = path && path[0] == '/' ? open_own(AT_FDCWD, path, geteuid()) : FD_NONE;

	pool_record_remove(place, container);
}

bool pool_record_read(const char *path, uint64_t uid, const char *container, uint64_t *ret_pid, uint64_t *ret_start)
{
	char name[ENGINE_ID_LEN + 16], text[64], *space;
	AUTO_FD place = path[0] == '/' ? open_own(AT_FDCWD, path, uid) : FD_NONE;

	if (place < 0 || !answer_is_id(container) ||
	    fd_get_at(place, record_name(name, container), text, sizeof(text)) <= 0)
		return false;
	space = strchr(text, ' ');
	if (!space)
		return false;
	*space = '\0';
	return str_to_u64(text, ret_pid) && str_to_u64(space + 1, ret_start) && *ret_pid > 0 && *ret_pid < INT32_MAX;
}

static bool is_listed(const json_t *list, const char *container)
{
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row) if (str_eq(answer_text_or(row, "Id", ""), container) &&
					     !owner_is_ghost(row)) return true;
	return false;
}

/* Whether the claimer is gone; a record that cannot be read is being written. */
static bool is_deserted(const char *path, const char *container)
{
	uint64_t pid, start;

	return pool_record_read(path, geteuid(), container, &pid, &start) && owner_start_time((pid_t)pid) != start;
}

void pool_records_sweep(const json_t *list)
{
	char path[POOL_PATH_MAX];
	AUTO_FD place = pool_place(path) < 0 ? FD_NONE : pool_place_open(path, /* make= */ false);
	int claims = place < 0 ? FD_NONE : open_own(place, "claims", geteuid());
	DIR *dir = claims < 0 ? NULL : fdopendir(claims);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (answer_is_id(entry->d_name) && !is_listed(list, entry->d_name) && is_deserted(path, entry->d_name))
			pool_record_remove(place, entry->d_name);
	if (dir)
		(void)closedir(dir);
	else
		fd_closep(&claims);
}
