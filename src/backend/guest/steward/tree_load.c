/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the stream (tree.h), which a program of another cell may have written: names must be single components,
 * directories are entered as they are created and never through links, depth and lengths are checked.  The cell's own
 * limits bound what is written.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "backend/guest/steward/tree.h"
#include "base/fd.h"

struct loader {
	int in;
	int folder[TREE_DEPTH_MAX + 1]; /* the first is the caller's */
	size_t depth;
	struct tree_counts *counts;
	bool ended;
	struct tree_head head;
	char name[NAME_MAX + 1];
	size_t at, len; /* unread part of block */
	char block[TREE_PIECE], text[PATH_MAX];
};

/* ---- bytes ------------------------------------------------------------------------------------- */

/* Refills the empty block. */
static int more(struct loader *l)
{
	ssize_t got;

	do
		got = read(l->in, l->block, sizeof(l->block));
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got < 0 ? -errno : -EPROTO;
	l->at = 0;
	l->len = (size_t)got;
	return 0;
}

static int take(struct loader *l, void *dst, size_t len)
{
	char *to = dst;

	while (len > 0) {
		int rc = l->at == l->len ? more(l) : 0;
		size_t n;

		if (rc < 0)
			return rc;
		n = len < l->len - l->at ? len : l->len - l->at;
		memcpy(to, l->block + l->at, n);
		l->at += n;
		to += n;
		len -= n;
	}
	return 0;
}

/* Reads a path or a link target into text. */
static int take_text(struct loader *l)
{
	int rc = l->head.size == 0 || l->head.size >= PATH_MAX ? -EPROTO : take(l, l->text, (size_t)l->head.size);

	if (rc < 0)
		return rc;
	l->text[l->head.size] = '\0';
	return strlen(l->text) == l->head.size ? 0 : -EPROTO;
}

/* ---- entries ----------------------------------------------------------------------------------- */

static int finish_times(const struct loader *l, int fd)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
					   { .tv_sec = l->head.mtime, .tv_nsec = l->head.mtime_ns } };

	return futimens(fd, times) < 0 ? -errno : 0;
}

/* A kernel or a filter may refuse set-id bits to programs; the file then has none. */
static int finish(const struct loader *l, int fd)
{
	if (fchmod(fd, l->head.mode) < 0 && fchmod(fd, l->head.mode & 01777) < 0)
		return -errno;
	return finish_times(l, fd);
}

static int load_folder(struct loader *l)
{
	int dir = l->folder[l->depth], fd;

	if (l->depth == TREE_DEPTH_MAX)
		return -EPROTO;
	if (mkdirat(dir, l->name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, l->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	l->folder[++l->depth] = fd;
	return 0;
}

static int load_up(struct loader *l)
{
	int rc = l->depth == 0 ? -EPROTO : finish(l, l->folder[l->depth]);

	if (l->depth > 0)
		fd_closep(&l->folder[l->depth--]);
	return rc;
}

/* Writes the bytes of a run, as far as they are in the block. */
static int load_run(struct loader *l, int fd, const struct tree_run *run)
{
	uint64_t at = run->offset, left = run->len;

	while (left > 0) {
		int rc = l->at == l->len ? more(l) : 0;
		size_t n = (size_t)min_u64(left, l->len - l->at);

		if (rc == 0)
			rc = fd_write_all_at(fd, l->block + l->at, n, at);
		if (rc < 0)
			return rc;
		l->at += n;
		at += n;
		left -= n;
	}
	return 0;
}

/* *ret_end: end offset of the last run. */
static int load_runs(struct loader *l, int fd, uint64_t *ret_end)
{
	*ret_end = 0;
	for (;;) {
		struct tree_run run;
		int rc = take(l, &run, sizeof(run));

		if (rc < 0 || run.len == 0)
			return rc;
		if (run.len > TREE_RUN_MAX || run.offset > INT64_MAX - run.len)
			return -EPROTO;
		rc = load_run(l, fd, &run);
		if (rc < 0)
			return rc;
		*ret_end = max_u64(*ret_end, run.offset + run.len);
		l->counts->bytes += run.len;
	}
}

/*
 * Created with its mode, since tree_load() clears the umask; finish() tries the other bits, which a kernel or a filter
 * may refuse.
 */
static int load_file(struct loader *l)
{
	AUTO_FD fd = openat(l->folder[l->depth], l->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    l->head.mode & 0777);
	uint64_t end;
	int rc;

	if (fd < 0)
		return -errno;
	rc = load_runs(l, fd, &end);
	if (rc < 0)
		return rc;
	/* The file ends with a hole, which takes no room on the file system. */
	if (l->head.size > end && (l->head.size > INT64_MAX || ftruncate(fd, (off_t)l->head.size) < 0))
		return l->head.size > INT64_MAX ? -EPROTO : -errno;
	return l->head.mode & 07000 ? finish(l, fd) : finish_times(l, fd);
}

/* For entries that are not opened. */
static int finish_name(const struct loader *l)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
					   { .tv_sec = l->head.mtime, .tv_nsec = l->head.mtime_ns } };

	return utimensat(l->folder[l->depth], l->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int load_link(struct loader *l)
{
	int rc = take_text(l);

	if (rc < 0)
		return rc;
	return symlinkat(l->text, l->folder[l->depth], l->name) < 0 ? -errno : finish_name(l);
}

static int load_other(struct loader *l)
{
	int rc = take_text(l);

	if (rc < 0)
		return rc;
	return linkat(l->folder[0], l->text, l->folder[l->depth], l->name, 0) < 0 ? -errno : 0;
}

static int load_fifo(struct loader *l)
{
	int dir = l->folder[l->depth];

	/* The mode again, as the umask was applied to the first. */
	if (mkfifoat(dir, l->name, 0600) < 0 || fchmodat(dir, l->name, l->head.mode & 01777, 0) < 0)
		return -errno;
	return finish_name(l);
}

static int load_end(struct loader *l)
{
	l->ended = true;
	return l->depth == 0 && l->head.size == l->counts->entries ? 0 : -EPROTO;
}

/* ---- the stream -------------------------------------------------------------------------------- */

static const struct {
	uint32_t type;
	bool named; /* it has a name, and counts as an entry */
	int (*load)(struct loader *l);
} types[] = {
	{ TREE_FOLDER, true, load_folder }, { TREE_UP, false, load_up },      { TREE_FILE, true, load_file },
	{ TREE_LINK, true, load_link },     { TREE_OTHER, true, load_other }, { TREE_FIFO, true, load_fifo },
	{ TREE_END, false, load_end },
};

static int take_name(struct loader *l, bool named)
{
	size_t len = l->head.name_len;
	int rc;

	if (named != (len > 0) || len > NAME_MAX)
		return -EPROTO;
	rc = take(l, l->name, len);
	if (rc < 0)
		return rc;
	l->name[len] = '\0';
	if (strlen(l->name) != len || strchr(l->name, '/') || strcmp(l->name, ".") == 0 || strcmp(l->name, "..") == 0)
		return -EPROTO;
	l->counts->entries += named;
	return 0;
}

static int load_record(struct loader *l)
{
	int rc = take(l, &l->head, sizeof(l->head));

	if (rc < 0)
		return rc;
	if ((l->head.mode & ~07777U) || l->head.mtime_ns >= NS_PER_SEC)
		return -EPROTO;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (types[i].type == l->head.type) {
			rc = take_name(l, types[i].named);
			return rc < 0 ? rc : types[i].load(l);
		}
	return -EPROTO;
}

int tree_load(int folder, int in, struct tree_counts *ret)
{
	struct loader *l = calloc(1, sizeof(*l));
	mode_t mask;
	int rc = 0;

	*ret = (struct tree_counts){ .entries = 0 };
	if (!l)
		return -ENOMEM;
	l->in = in;
	l->folder[0] = folder;
	l->counts = ret;
	mask = umask(0);
	while (rc == 0 && !l->ended)
		rc = load_record(l);
	(void)umask(mask);
	while (l->depth > 0)
		fd_closep(&l->folder[l->depth--]);
	free(l);
	return rc;
}
