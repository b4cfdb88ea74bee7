/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.c - a file to which runs append, each with one write under a lock.
 *
 *	head     "brigspl1", a random mark (8 bytes), a random key (16 bytes)
 *	record   the mark, the record's length (8 bytes), its checksum under the key (8 bytes), the record
 *
 * A writer that is killed, or a full disk, can leave a partial record.  The writer itself truncates what did not fit; a
 * partial record that was left stays, and the reader continues at the next mark with a valid checksum.  Both are
 * random, which makes that safe: records contain text that programs chose, but no program has seen mark and key, so
 * none can print something that would be taken for a record inside a partial one.
 *
 * The importer first renames the spool.  A writer that already had it open sees, when it gets the lock, that the name
 * now refers to another file, and opens that one.  So no run waits for a database, and nothing is written where it
 * would not be found.
 */
#include "history/spool.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "sys/crypto.h"

#define HEAD_MAGIC  "brigspl1"
#define ASIDE_COUNT 9
/* Bytes that may be summed needlessly: marks in the wrong places, one in each of which a long record seems to begin,
 * must not take for ever. */
#define VAIN_MAX (256 * MiB)

struct spool_head {
	char magic[8];
	uint64_t mark;
	uint8_t key[SHORT_HASH_KEY_LEN];
};

struct record_head {
	uint64_t mark;
	uint64_t len;
	uint64_t sum;
};
static_assert(sizeof(struct spool_head) == SPOOL_HEAD, "the spool's head has another size");
static_assert(sizeof(struct record_head) == SPOOL_RECORD, "a record's head has another size");

static bool is_head(const struct spool_head *h)
{
	return memcmp(h->magic, HEAD_MAGIC, sizeof(h->magic)) == 0;
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* Whether the name still stands for the file that we have locked. */
static int is_current(const struct statedir *d, int fd, struct stat *ret)
{
	struct stat named;

	if (fstat(fd, ret) < 0)
		return -errno;
	if (fstatat(d->fd, SPOOL_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return named.st_ino == ret->st_ino && named.st_dev == ret->st_dev;
}

/* The spool, open and locked; *ret_size is its size.  kept: NULL, or where it may be open already, which is taken. */
static int open_locked(const struct statedir *d, int flags, int *kept, uint64_t *ret_size, struct brig_error *err)
{
	for (int tries = 0; tries < 100; tries++) {
		AUTO_FD fd = kept ? fd_move(kept) : FD_NONE;
		struct stat st = { .st_size = 0 };
		int rc;

		if (fd < 0)
			fd = statedir_open_file(d, SPOOL_NAME, O_RDWR | O_APPEND | flags, err);
		if (fd < 0)
			return fd;
		rc = fd_lock(fd, LOCK_EX, SPOOL_PATIENCE);
		if (rc == 0)
			rc = is_current(d, fd, &st);
		if (rc < 0)
			return statedir_trouble(err, -rc, "cannot lock", d->path, SPOOL_NAME);
		if (rc == 0)
			continue; /* it has just been taken */
		*ret_size = (uint64_t)st.st_size;
		return fd_move(&fd);
	}
	return statedir_trouble(err, EBUSY, "cannot hold", d->path, SPOOL_NAME);
}

int spool_set_aside(const struct statedir *d, const char *name, char *ret_name, size_t size, struct brig_error *err)
{
	int rc = -EEXIST;

	for (unsigned i = 1; rc == -EEXIST && i <= ASIDE_COUNT; i++) {
		unsigned flags = i < ASIDE_COUNT ? RENAME_NOREPLACE : 0;

		(void)snprintf(ret_name, size, "%s.bad-%u", name, i);
		rc = renameat2(d->fd, name, d->fd, ret_name, flags) < 0 ? -errno : 0;
	}
	return rc == 0 ? 0 : statedir_trouble(err, -rc, "cannot set aside", d->path, name);
}

static int begin_spool(int fd, struct spool_head *head)
{
	int rc = 0;

	memcpy(head->magic, HEAD_MAGIC, sizeof(head->magic));
	rc = crypto_random(&head->mark, sizeof(*head) - offsetof(struct spool_head, mark));
	if (rc == 0 && ftruncate(fd, 0) < 0) /* the piece of a head that a killed writer left */
		rc = -errno;
	if (rc == 0)
		rc = fd_write_all(fd, head, sizeof(*head));
	if (rc < 0)
		(void)!ftruncate(fd, 0);
	return rc;
}

/* Reads the head, or makes one for a spool that has none yet.  1: it is no spool of ours. */
static int get_head(int fd, uint64_t *size, struct spool_head *head)
{
	int rc;

	if (*size < sizeof(*head)) {
		rc = begin_spool(fd, head);
		*size = sizeof(*head);
		return rc;
	}
	if (pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head))
		return -EIO;
	return is_head(head) ? 0 : 1;
}

static int write_record(int fd, uint64_t size, const struct buf *record)
{
	ssize_t n = write(fd, record->data, record->len);
	int rc = n < 0 ? -errno : -ENOSPC;

	if (n == (ssize_t)record->len)
		return 0;
	/* If this fails too, the reader will pass over the piece. */
	(void)!ftruncate(fd, (off_t)size);
	return rc;
}

void spool_record_begin(struct buf *record)
{
	static const struct record_head none;

	buf_add(record, &none, sizeof(none));
}

static void seal(struct buf *record, const struct spool_head *head)
{
	struct record_head h = { .mark = head->mark, .len = record->len - sizeof(h) };

	h.sum = short_hash(head->key, record->data + sizeof(h), h.len);
	memcpy(record->data, &h, sizeof(h));
}

static int spool_full(const struct statedir *d, struct brig_error *err)
{
	return err_set(err, BRIG_E_SYSTEM, ENOSPC,
		       "'%.200s/%s' is full: 'brig history' brings it into the database, or says what is in the way",
		       d->path, SPOOL_NAME);
}

/* Closing it would unlock it, too; a child that has a copy of the descriptor does not. */
static void keep_open(int *kept, int *fd)
{
	if (kept && flock(*fd, LOCK_UN) == 0)
		*kept = fd_move(fd);
}

int spool_append(const struct statedir *d, int *kept, struct buf *record, struct spool_outcome *ret,
		 struct brig_error *err)
{
	struct spool_head head;
	int rc = 1;

	*ret = (struct spool_outcome){ 0 };
	if (record->no_memory)
		return err_nomem(err);
	for (int tries = 0; rc == 1 && tries < 2; tries++) {
		uint64_t size;
		AUTO_FD fd = open_locked(d, O_CREAT, kept, &size, err);

		if (fd < 0)
			return fd;
		if (size + record->len > SPOOL_MAX || record->full)
			return spool_full(d, err);
		rc = get_head(fd, &size, &head);
		if (rc == 1 && spool_set_aside(d, SPOOL_NAME, ret->aside, sizeof(ret->aside), err) < 0)
			return -BRIG_E_SYSTEM;
		if (rc == 0) {
			seal(record, &head);
			rc = write_record(fd, size, record);
		}
		ret->due = rc == 0 && (size + record->len) / SPOOL_INGEST != size / SPOOL_INGEST;
		if (rc == 0)
			keep_open(kept, &fd);
	}
	return rc == 0 ? 0 : statedir_trouble(err, rc < 0 ? -rc : EBUSY, "cannot write", d->path, SPOOL_NAME);
}

/* ---- taking ------------------------------------------------------------------------------------ */

int spool_take(const struct statedir *d, bool *ret, struct brig_error *err)
{
	struct brig_error none = BRIG_ERROR_INIT;
	AUTO_FD fd = FD_NONE;
	uint64_t size = 0;

	*ret = false;
	if (faccessat(d->fd, SPOOL_TAKEN_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		*ret = true; /* a process was killed in between: first that one */
		return 0;
	}
	fd = open_locked(d, 0, NULL, &size, &none);
	if (fd < 0 && none.sys == ENOENT)
		return 0;
	if (fd < 0) {
		if (err)
			*err = none;
		return fd;
	}
	if (size <= SPOOL_HEAD)
		return 0;
	if (renameat(d->fd, SPOOL_NAME, d->fd, SPOOL_TAKEN_NAME) < 0)
		return statedir_trouble(err, errno, "cannot take", d->path, SPOOL_NAME);
	*ret = true;
	return 0;
}

/* ---- reading ----------------------------------------------------------------------------------- */

struct scan {
	const char *data;
	size_t len;
	struct spool_head head;
	size_t vain; /* bytes summed for nothing */
};

/* The length of the record at this place, its head not included; SIZE_MAX if there is none. */
static size_t record_at(struct scan *s, size_t at)
{
	struct record_head h;
	size_t left = s->len - at;

	if (left < sizeof(h))
		return SIZE_MAX;
	memcpy(&h, s->data + at, sizeof(h));
	if (h.mark != s->head.mark || h.len > left - sizeof(h) || s->vain > VAIN_MAX)
		return SIZE_MAX;
	if (short_hash(s->head.key, s->data + at + sizeof(h), h.len) == h.sum)
		return h.len;
	s->vain += h.len;
	return SIZE_MAX;
}

/* The next mark behind a place where no record begins. */
static size_t next_mark(const struct scan *s, size_t at)
{
	const char *found = memmem(s->data + at + 1, s->len - at - 1, &s->head.mark, sizeof(s->head.mark));

	return found ? (size_t)(found - s->data) : s->len;
}

int spool_scan(const void *data, size_t len, int (*fn)(void *arg, const void *record, size_t len), void *arg,
	       struct spool_report *ret)
{
	struct scan s = { .data = data, .len = len };
	size_t at = sizeof(s.head);

	*ret = (struct spool_report){ 0 };
	if (len >= sizeof(s.head))
		memcpy(&s.head, data, sizeof(s.head));
	if (len < sizeof(s.head) || !is_head(&s.head)) {
		ret->damaged_bytes = len;
		return 0;
	}
	while (at < len) {
		size_t n = record_at(&s, at), from = at;
		int rc;

		if (n == SIZE_MAX) {
			at = next_mark(&s, at);
			ret->damaged_bytes += at - from;
			continue;
		}
		rc = fn(arg, s.data + at + sizeof(struct record_head), n);
		if (rc < 0)
			return rc;
		ret->records++;
		at += sizeof(struct record_head) + n;
	}
	return 0;
}
