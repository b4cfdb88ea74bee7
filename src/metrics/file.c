/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of counters.
 *
 * It is mapped by every process that has something to count, and each number is added to with one atomic
 * instruction: no lock, no daemon, and a process that is killed between two additions leaves a file in which some
 * numbers know of its request and some do not, never one that cannot be read.
 *
 * A mapped file is dangerous in one way: touching a page that the file does not have, because it was cut or because the
 * disk is full, is SIGBUS, and a library has no business handling signals.  So the file is made whole, with every block
 * written, before it gets its name, and it never changes its size; its size is checked before it is mapped; and the
 * kernel is asked to make all pages present (MADV_POPULATE_WRITE, 5.14), which reports as an error what would be a
 * signal later.  It is mapped for microseconds.  What remains is truncation of our own file in just these.
 *
 * A file that is damaged or of another layout is renamed to metrics.old, and a new one is started.  That, and making
 * the first one, is done within a lock, and looked at once more within it.
 */
#include "metrics/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"

#define NEW_FILE      METRICS_FILE ".new"
#define OLD_FILE      METRICS_FILE ".old"
#define LOCK_FILE     METRICS_FILE ".lock"
#define LOCK_PATIENCE (10 * NS_PER_SEC) /* only for making the file */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* NULL if the open file is one of this layout; else what it is. */
static const char *check_file(const struct metrics_layout *l, int fd)
{
	struct metrics_header h;
	struct stat st;

	if (fstat(fd, &st) < 0 || pread(fd, &h, sizeof(h), 0) != sizeof(h))
		return "cut or unreadable";
	if (st.st_nlink != 1)
		return "linked from another place";
	return metrics_header_check(l, &h, (uint64_t)st.st_size);
}

/* Opens the file: the descriptor; -ENOENT; -EUCLEAN with *why; or -1 with *err. */
static int open_file(const struct statedir *dir, const struct metrics_layout *l, const char **why,
		     struct brig_error *err)
{
	struct brig_error reason = BRIG_ERROR_INIT;
	AUTO_FD fd = statedir_open_file(dir, METRICS_FILE, O_RDWR, &reason);

	if (fd < 0 && reason.sys == ENOENT)
		return -ENOENT;
	if (fd < 0) {
		*err = reason;
		return -1;
	}
	*why = check_file(l, fd);
	return *why ? -EUCLEAN : fd_move(&fd);
}

/* Writes a whole file of zeros behind a header, and gives it its name. */
static int make_file(const struct statedir *dir, const struct metrics_layout *l, struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;
	AUTO_FREE unsigned char *bytes = calloc(1, l->size);
	struct metrics_header h;
	int rc;

	if (!bytes)
		return err_nomem(err);
	metrics_header_make(l, &h);
	memcpy(bytes, &h, sizeof(h));
	(void)unlinkat(dir->fd, NEW_FILE, 0); /* of one that was killed */
	fd = statedir_open_file(dir, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL, err);
	if (fd < 0)
		return fd;
	rc = fd_write_all(fd, bytes, l->size);
	if (rc == 0 && renameat(dir->fd, NEW_FILE, dir->fd, METRICS_FILE) < 0)
		rc = -errno;
	if (rc < 0) {
		(void)unlinkat(dir->fd, NEW_FILE, 0);
		return statedir_trouble(err, -rc, "cannot write", dir->path, METRICS_FILE);
	}
	return 0;
}

/* Within the lock.  0, or 1 if an old file was set aside. */
static int renew_locked(const struct statedir *dir, const struct metrics_layout *l, struct brig_error *err)
{
	const char *why = NULL;
	AUTO_FD fd = open_file(dir, l, &why, err);
	int rc;

	if (fd >= 0)
		return 0; /* another process was faster */
	if (fd != -ENOENT && fd != -EUCLEAN)
		return -err->code;
	if (fd == -EUCLEAN && renameat(dir->fd, METRICS_FILE, dir->fd, OLD_FILE) < 0)
		return statedir_trouble(err, errno, "cannot set aside", dir->path, METRICS_FILE);
	rc = make_file(dir, l, err);
	if (rc < 0 || !why)
		return rc;
	(void)err_set(err, BRIG_E_SYSTEM, 0,
		      "the counters in '%.200s/" METRICS_FILE "' were %s; they are kept as " OLD_FILE
		      " and counting begins anew",
		      dir->path, why);
	return 1;
}

static int renew(const struct statedir *dir, const struct metrics_layout *l, struct brig_error *err)
{
	AUTO_FD lock = statedir_open_file(dir, LOCK_FILE, O_RDWR | O_CREAT, err);
	int rc;

	if (lock < 0)
		return lock;
	rc = fd_lock(lock, LOCK_EX, LOCK_PATIENCE);
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot lock", dir->path, LOCK_FILE);
	return renew_locked(dir, l, err);
}

static int map_file(const struct statedir *dir, int fd, struct metrics_map *ret, struct brig_error *err)
{
	size_t size = ret->layout.size;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return statedir_trouble(err, errno, "cannot map", dir->path, METRICS_FILE);
	/* EINVAL: a kernel that does not know it. */
	if (madvise(at, size, MADV_POPULATE_WRITE) < 0 && errno != EINVAL) {
		int sys = errno == EFAULT ? ENOSPC : errno;

		(void)munmap(at, size);
		return statedir_trouble(err, sys, "cannot write", dir->path, METRICS_FILE);
	}
	ret->at = at;
	return 0;
}

int metrics_map_open(const struct statedir *dir, struct metrics_map *ret, struct brig_error *err)
{
	const char *why = NULL;
	AUTO_FD fd = FD_NONE;
	int renewed = 0, rc;

	metrics_layout_make(&ret->layout);
	ret->at = NULL;
	fd = open_file(dir, &ret->layout, &why, err);
	if (fd == -ENOENT || fd == -EUCLEAN) {
		renewed = renew(dir, &ret->layout, err);
		if (renewed < 0)
			return renewed;
		fd = open_file(dir, &ret->layout, &why, err);
	}
	if (fd == -ENOENT || fd == -EUCLEAN)
		return statedir_trouble(err, EBUSY, "somebody keeps changing", dir->path, METRICS_FILE);
	if (fd < 0)
		return -err->code;
	rc = map_file(dir, fd, ret, err);
	return rc < 0 ? rc : renewed;
}

void metrics_map_close(struct metrics_map *m)
{
	if (m->at)
		(void)munmap(m->at, m->layout.size);
	m->at = NULL;
}
