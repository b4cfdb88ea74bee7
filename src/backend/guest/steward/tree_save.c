/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the stream (tree.h).  The first error ends the walk; descriptors are closed on the way out. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/guest/steward/tree.h"
#include "base/fd.h"

#define BUCKETS    4096
#define MAPPED_MIN (128 * 1024)
#define MAPPED_MAX TREE_RUN_MAX
#define NAMES_MAX  100000 /* of files with several links: those beyond are saved as separate files */

/* A file with several links, and the first path under which it was found. */
struct named {
	struct named *next;
	dev_t dev;
	ino_t ino;
	char path[];
};

struct saver {
	int out, rc; /* rc: the first error */
	dev_t dev;
	const struct tree_counts *most;
	struct tree_counts *counts;
	struct named *named[BUCKETS];
	size_t n_named;
	unsigned n_closed;   /* enclosing directories without search permission for their owner */
	char path[PATH_MAX]; /* of the directory being walked, with a trailing slash; "": the top */
	size_t path_len;
	size_t len; /* bytes in block */
	char block[TREE_PIECE], piece[TREE_PIECE];
};

/* ---- bytes ------------------------------------------------------------------------------------- */

static void fail(struct saver *s, int rc)
{
	if (s->rc == 0)
		s->rc = rc;
}

static void flush(struct saver *s)
{
	int rc = s->len > 0 && s->rc == 0 ? fd_write_all(s->out, s->block, s->len) : 0;

	s->len = 0;
	if (rc < 0)
		fail(s, rc);
}

static void put(struct saver *s, const void *data, size_t len)
{
	const char *from = data;

	while (len > 0 && s->rc == 0) {
		size_t n = len < sizeof(s->block) - s->len ? len : sizeof(s->block) - s->len;

		memcpy(s->block + s->len, from, n);
		s->len += n;
		from += n;
		len -= n;
		if (s->len == sizeof(s->block))
			flush(s);
	}
}

static void put_head(struct saver *s, enum tree_type type, const struct stat *st, const char *name, uint64_t size)
{
	const struct tree_head head = { .type = (uint32_t)type,
					.mode = st->st_mode & 07777,
					.name_len = (uint32_t)strlen(name),
					.mtime = st->st_mtim.tv_sec,
					.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
					.size = size };

	put(s, &head, sizeof(head));
	put(s, name, head.name_len);
}

/* ---- names ------------------------------------------------------------------------------------- */

/* The path under which this file was found before; NULL: first occurrence, which is remembered. */
static const char *find_named(struct saver *s, const struct stat *st, const char *name)
{
	struct named **bucket = &s->named[st->st_ino % BUCKETS], *n;
	size_t len = strlen(name);

	for (n = *bucket; n; n = n->next)
		if (n->ino == st->st_ino && n->dev == st->st_dev)
			return n->path;
	/*
	 * A link target in a closed directory could not be resolved when loading, so the next path counts as the first
	 * one.
	 */
	if (s->n_closed > 0 || s->n_named == NAMES_MAX || !(n = malloc(sizeof(*n) + s->path_len + len + 1)))
		return NULL;
	n->dev = st->st_dev;
	n->ino = st->st_ino;
	memcpy(n->path, s->path, s->path_len);
	memcpy(n->path + s->path_len, name, len + 1);
	n->next = *bucket;
	*bucket = n;
	s->n_named++;
	return NULL;
}

static void forget_named(struct saver *s)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (s->named[i]) {
			struct named *n = s->named[i];

			s->named[i] = n->next;
			free(n);
		}
}

/* ---- one entry --------------------------------------------------------------------------------- */

/*
 * Opens an entry that the program owns even if its mode forbids that.  *ret_lent: the mode was changed and must be
 * restored after reading.  No other process runs that could see the change or replace the entry.
 */
static int open_entry(int dir, const char *name, const struct stat *st, mode_t needed, bool *ret_lent)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, fd;

	*ret_lent = (st->st_mode & needed) != needed && st->st_uid == geteuid() &&
		    fchmodat(dir, name, (st->st_mode & 07777) | needed, 0) == 0;
	fd = openat(dir, name, flags | (S_ISDIR(st->st_mode) ? O_DIRECTORY : 0));
	if (fd < 0 && *ret_lent)
		(void)!fchmodat(dir, name, st->st_mode & 07777, 0);
	return fd;
}

static bool count(struct saver *s, uint64_t bytes, uint64_t entries)
{
	if (entries > s->most->entries - s->counts->entries || bytes > s->most->bytes - s->counts->bytes) {
		fail(s, -E2BIG);
		return false;
	}
	s->counts->entries += entries;
	s->counts->bytes += bytes;
	return true;
}

/*
 * Writes a long run directly from the file's mapped pages, without copying it: a page that is gone makes write() fail
 * and raises no signal.  Returns how far it came; the rest must be read.
 */
static off_t save_mapped(struct saver *s, int fd, off_t at, off_t end)
{
	const off_t page = (off_t)sysconf(_SC_PAGESIZE);

	while (s->rc == 0 && end - at >= MAPPED_MIN) {
		off_t from = at - at % page;
		size_t len = (size_t)min_u64((uint64_t)(end - from), MAPPED_MAX), n = len - (size_t)(at - from);
		const struct tree_run run = { .offset = (uint64_t)at, .len = n };
		char *pages = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, from);
		int rc;

		if (pages == MAP_FAILED)
			return at;
		if (count(s, n, 0)) {
			put(s, &run, sizeof(run));
			flush(s);
			rc = s->rc < 0 ? 0 : fd_write_all(s->out, pages + (at - from), n);
			if (rc < 0)
				fail(s, rc);
		}
		(void)munmap(pages, len);
		at += (off_t)n;
	}
	return at;
}

/* Saves the data between at and end: one run for each piece that was read, since the file may have been truncated. */
static void save_run(struct saver *s, int fd, off_t at, off_t end)
{
	at = save_mapped(s, fd, at, end);
	while (at < end && s->rc == 0) {
		size_t want = (size_t)min_u64((uint64_t)(end - at), sizeof(s->piece));
		ssize_t n = pread(fd, s->piece, want, at);
		const struct tree_run run = { .offset = (uint64_t)at, .len = (uint64_t)n };

		if (n < 0)
			fail(s, -errno);
		if (n <= 0 || !count(s, (uint64_t)n, 0))
			return;
		put(s, &run, sizeof(run));
		put(s, s->piece, (size_t)n);
		at += n;
	}
}

static void save_data(struct saver *s, int fd, const struct stat *st)
{
	const struct tree_run last = { .len = 0 };
	bool is_dense = (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size;
	off_t at = 0, size = st->st_size;

	if (is_dense) {
		save_run(s, fd, 0, size);
		at = size;
	}
	while (at < size && s->rc == 0) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		data = data < 0 ? at : data; /* the file system does not report holes: treat all of it as data */
		hole = lseek(fd, data, SEEK_HOLE);
		hole = hole < 0 || hole > size ? size : hole;
		save_run(s, fd, data, hole);
		at = hole > at ? hole : size;
	}
	put(s, &last, sizeof(last));
}

static void save_file(struct saver *s, int dir, const char *name, const struct stat *st)
{
	const char *before = st->st_nlink > 1 ? find_named(s, st, name) : NULL;
	bool lent;
	AUTO_FD fd = FD_NONE;

	if (before) {
		put_head(s, TREE_OTHER, st, name, strlen(before));
		put(s, before, strlen(before));
		return;
	}
	fd = open_entry(dir, name, st, 0400, &lent);
	if (fd < 0) {
		s->counts->entries--;
		s->counts->left_out++;
		return;
	}
	put_head(s, TREE_FILE, st, name, (uint64_t)st->st_size);
	save_data(s, fd, st);
	if (lent)
		(void)!fchmod(fd, st->st_mode & 07777);
}

static void save_link(struct saver *s, int dir, const char *name, const struct stat *st)
{
	ssize_t n = readlinkat(dir, name, s->piece, PATH_MAX);

	if (n <= 0) {
		fail(s, n < 0 ? -errno : -EIO);
		return;
	}
	put_head(s, TREE_LINK, st, name, (uint64_t)n);
	put(s, s->piece, (size_t)n);
}

/* ---- directories ------------------------------------------------------------------------------- */

static void save_folder(struct saver *s, int fd, int depth);

static void save_below(struct saver *s, int dir, const char *name, const struct stat *st, int depth)
{
	size_t was = s->path_len, len = strlen(name);
	bool lent;
	int fd;

	if (depth == TREE_DEPTH_MAX || was + len + 2 > sizeof(s->path)) {
		fail(s, -ENAMETOOLONG);
		return;
	}
	fd = open_entry(dir, name, st, 0500, &lent);
	if (fd < 0) {
		s->counts->entries--;
		s->counts->left_out++;
		return;
	}
	put_head(s, TREE_FOLDER, st, name, 0);
	memcpy(s->path + was, name, len);
	s->path[was + len] = '/';
	s->path_len = was + len + 1;
	s->n_closed += (st->st_mode & S_IXUSR) == 0;
	save_folder(s, fd, depth + 1);
	s->n_closed -= (st->st_mode & S_IXUSR) == 0;
	s->path_len = was;
	put_head(s, TREE_UP, st, "", 0);
	if (lent)
		(void)!fchmodat(dir, name, st->st_mode & 07777, 0);
}

static void save_entry(struct saver *s, int dir, const char *name, int depth)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		fail(s, -errno);
		return;
	}
	/*
	 * Skips other file systems, which are not part of the workspace; sockets, which have no peer elsewhere; and
	 * devices.
	 */
	if (st.st_dev != s->dev || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
		s->counts->left_out++;
		return;
	}
	if (!count(s, 0, 1))
		return;
	if (S_ISDIR(st.st_mode))
		save_below(s, dir, name, &st, depth);
	else if (S_ISREG(st.st_mode))
		save_file(s, dir, name, &st);
	else if (S_ISLNK(st.st_mode))
		save_link(s, dir, name, &st);
	else
		put_head(s, TREE_FIFO, &st, name, 0);
}

/* Takes the descriptor. */
static void save_folder(struct saver *s, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		fail(s, -errno);
		(void)close(fd);
		return;
	}
	while (s->rc == 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			save_entry(s, fd, e->d_name, depth);
	(void)closedir(dir);
}

int tree_save(int folder, int out, const struct tree_counts *most, struct tree_counts *ret)
{
	struct saver *s = calloc(1, sizeof(*s));
	struct stat st;
	int rc, fd;

	*ret = (struct tree_counts){ .entries = 0 };
	if (!s)
		return -ENOMEM;
	s->out = out;
	s->most = most;
	s->counts = ret;
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		rc = -errno;
		fd_closep(&fd);
		free(s);
		return rc;
	}
	s->dev = st.st_dev;
	save_folder(s, fd, 0);
	put_head(s, TREE_END, &st, "", ret->entries);
	flush(s);
	rc = s->rc;
	forget_named(s);
	free(s);
	return rc;
}
