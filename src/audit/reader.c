/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - the lines of all log files, oldest first, through one buffer.
 *
 * It looks at what was there when it began: entries that come in meanwhile are left to the next reader.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "audit/log.h"
#include "base/fd.h"

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Calls fn with the number of each log file, in no order. */
static int each_file(const struct statedir *dir, int (*fn)(void *arg, uint32_t number), void *arg,
		     struct brig_error *err)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *item;
	uint32_t number;
	int rc = 0;

	if (!list) {
		int sys = errno;

		fd_closep(&fd);
		return statedir_trouble(err, sys, "cannot list", dir->path, NULL);
	}
	while (rc == 0 && (item = readdir(list)))
		if (log_number(item->d_name, &number))
			rc = fn(arg, number);
	(void)closedir(list);
	return rc < 0 ? err_nomem(err) : 0;
}

static int take_highest(void *arg, uint32_t number)
{
	uint32_t *highest = arg;

	if (number > *highest)
		*highest = number;
	return 0;
}

int log_last_file(const struct statedir *dir, uint32_t *ret, struct brig_error *err)
{
	*ret = 0;
	return each_file(dir, take_highest, ret, err);
}

static int collect_number(void *arg, uint32_t number)
{
	struct reader *r = arg;
	uint32_t *more;

	if (r->n_files == READER_FILE_MAX)
		return 0;
	if ((r->n_files & (r->n_files - 1)) == 0) {
		more = realloc(r->file, (r->n_files ? 2 * r->n_files : 1) * sizeof(*more));
		if (!more)
			return -1;
		r->file = more;
	}
	r->file[r->n_files++] = number;
	return 0;
}

static int list_files(struct reader *r, struct brig_error *err)
{
	int rc;

	r->n_files = 0;
	rc = each_file(&r->dir, collect_number, r, err);
	if (rc == 0 && r->n_files)
		qsort(r->file, r->n_files, sizeof(*r->file), compare_numbers);
	return rc;
}

int reader_open(const struct statedir *state, struct reader *r, struct brig_error *err)
{
	int rc;

	*r = (struct reader){ .dir = STATEDIR_INIT, .fd = FD_NONE };
	rc = statedir_open_sub(state, AUDIT_DIR, false, &r->dir, err);
	if (rc < 0)
		return rc;
	r->buf = malloc(READER_BUF);
	rc = r->buf ? list_files(r, err) : err_nomem(err);
	if (rc < 0)
		reader_close(r);
	return rc;
}

void reader_close(struct reader *r)
{
	fd_closep(&r->fd);
	statedir_close(&r->dir);
	free(r->file);
	free(r->buf);
	r->file = NULL;
	r->buf = NULL;
}

/* Head and size of the last file belong together: both are read under the writers' lock. */
int reader_snapshot(struct reader *r, const struct log_key *key, struct head *head, enum head_state *ret_state,
		    struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	AUTO_FD fd = statedir_open_file(&r->dir, AUDIT_HEAD, O_RDONLY, &local);
	AUTO_FD last = FD_NONE;
	char name[LOG_NAME_MAX];
	struct stat st;
	int rc = 0;

	if (fd < 0 && local.sys != ENOENT) {
		if (err)
			*err = local;
		return fd;
	}
	if (fd >= 0)
		rc = fd_lock(fd, LOCK_SH, AUDIT_PATIENCE);
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot lock", r->dir.path, AUDIT_HEAD);
	*ret_state = fd < 0 ? HEAD_EMPTY : head_read(fd, key, head);
	rc = list_files(r, err);
	if (rc < 0 || r->n_files == 0)
		return rc;
	r->last_file = r->file[r->n_files - 1];
	log_name(name, r->last_file);
	last = statedir_open_file(&r->dir, name, O_RDONLY, err);
	if (last < 0)
		return last;
	r->snapshot = fstat(last, &st) == 0;
	r->last_size = r->snapshot ? (uint64_t)st.st_size : 0;
	return 0;
}

uint32_t reader_file(const struct reader *r)
{
	return r->at ? r->file[r->at - 1] : 0;
}

/* The next file; 1, 0 at the end, negative. */
static int open_next(struct reader *r, struct brig_error *err)
{
	char name[LOG_NAME_MAX];

	fd_closep(&r->fd);
	if (r->at == r->n_files)
		return 0;
	log_name(name, r->file[r->at]);
	r->fd = statedir_open_file(&r->dir, name, O_RDONLY, err);
	if (r->fd < 0)
		return r->fd;
	(void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	r->left = r->snapshot && r->file[r->at] == r->last_file ? r->last_size : UINT64_MAX;
	r->at++;
	r->line_no = 0;
	r->have = r->used = 0;
	return 1;
}

/* More bytes behind those that are there; the count, or -errno. */
static ssize_t refill(struct reader *r)
{
	ssize_t n;

	memmove(r->buf, r->buf + r->used, r->have - r->used);
	r->have -= r->used;
	r->used = 0;
	do {
		n = read(r->fd, r->buf + r->have, (size_t)min_u64(READER_BUF - r->have, r->left));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->have += (size_t)n;
	r->left -= (uint64_t)n;
	return n;
}

/* Passes over the rest of a line that is too long. */
static int skip_rest(struct reader *r, struct brig_error *err)
{
	char name[LOG_NAME_MAX];

	for (;;) {
		char *end = memchr(r->buf + r->used, '\n', r->have - r->used);
		ssize_t n;

		if (end) {
			r->used = (size_t)(end - r->buf) + 1;
			return 0;
		}
		r->used = r->have;
		n = refill(r);
		if (n < 0) {
			log_name(name, reader_file(r));
			return statedir_trouble(err, (int)-n, "cannot read", r->dir.path, name);
		}
		if (n == 0)
			return 0;
	}
}

static int give(struct reader *r, size_t len, size_t step, const char **ret_line, size_t *ret_len)
{
	*ret_line = r->buf + r->used;
	*ret_len = len;
	r->used += step;
	r->line_no++;
	return 1;
}

/* A line of the file that is open; 0: it has no more. */
static int next_here(struct reader *r, const char **ret_line, size_t *ret_len, struct brig_error *err)
{
	size_t seen = 0;

	for (;;) {
		const char *from = r->buf + r->used, *end = memchr(from + seen, '\n', r->have - r->used - seen);
		ssize_t n;

		if (end && (size_t)(end - from) < AUDIT_ENTRY_MAX)
			return give(r, (size_t)(end - from), (size_t)(end - from) + 1, ret_line, ret_len);
		seen = r->have - r->used;
		if (end || seen >= AUDIT_ENTRY_MAX) {
			r->oversized = true;
			return give(r, AUDIT_ENTRY_MAX, AUDIT_ENTRY_MAX, ret_line, ret_len);
		}
		n = refill(r);
		if (n < 0)
			return statedir_trouble(err, (int)-n, "cannot read", r->dir.path, "a log file");
		if (n == 0 && seen == 0)
			return 0;
		if (n == 0) {
			r->torn = true;
			return give(r, seen, seen, ret_line, ret_len);
		}
	}
}

int reader_next(struct reader *r, const char **ret_line, size_t *ret_len, struct brig_error *err)
{
	int rc;

	r->torn = false;
	if (r->oversized) {
		r->oversized = false;
		rc = skip_rest(r, err);
		if (rc < 0)
			return rc;
	}
	for (;;) {
		rc = r->fd < 0 ? 0 : next_here(r, ret_line, ret_len, err);
		if (rc != 0)
			return rc;
		rc = open_next(r, err);
		if (rc <= 0)
			return rc;
	}
}
