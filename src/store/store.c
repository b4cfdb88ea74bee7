/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the store works.
 *
 *	store/lock            empty; locks of writers and claims of keys (lock.c)
 *	store/index/KEY       one record each: key -> hash of the content, size, age (entry.c)
 *	store/content/HASH    the bytes themselves, named by their SHA-256
 *	store/new             what a writer is writing
 *
 * Package sets are kept the same way in a folder of their own, "packages", where a content is a tree (tree.c).
 *
 * Writing: within the writer's lock, "new" is written whole and renamed, first the content, then the record that names
 * it.  A writer that is killed leaves at most "new", which the next one replaces, or a content without a record, which
 * the next one removes.  There is no fsync: what a power failure corrupts is detected by its hash and rebuilt again.
 *
 * Reading needs no lock.  Nothing is trusted: each file must be a regular one, ours, with one name, closed to others,
 * of the size that the record says, and the hash of all bytes must be the one that the record says.  A lookup that
 * fails may have raced with a writer between two renames, so it is repeated under the writer's lock; if it fails there
 * too, the entry is damaged and removed.  The entry's time of modification is its time of use.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "store/internal.h"

#define NEW_NAME "new"

/* ---- opening ---------------------------------------------------------------------------------- */

static const char *const folder_of[] = { [STORE_BYTES] = "store", [STORE_TREES] = "packages" };

static int open_parts(struct store *s, const struct statedir *state, bool make, struct brig_error *err)
{
	const char *why = "";
	uint64_t size, used;
	int rc = statedir_open_sub(state, folder_of[s->form], make, &s->dir, err);

	if (rc == 0)
		rc = statedir_open_sub(&s->dir, "index", make, &s->index, err);
	if (rc == 0)
		rc = statedir_open_sub(&s->dir, "content", make, &s->content, err);
	if (rc < 0)
		return rc;
	s->lock = store_open_file(s->dir.fd, "lock", O_RDWR | O_CREAT, &size, &used, &why);
	s->read_only = s->lock == -EROFS || s->lock == -EACCES;
	if (s->lock < 0 && !s->read_only)
		return err_set(err, BRIG_E_SYSTEM, -s->lock, "cannot use the lock of the cache, %s/lock%s%s",
			       s->dir.path, *why ? ", which is " : "", why);
	return 0;
}

int store_open(const struct statedir *state, enum store_form form, bool make, const struct store_limits *limits,
	       struct store **ret, struct brig_error *err)
{
	struct store *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(err);
	*s = (struct store){ .form = form,
			     .dir = STATEDIR_INIT,
			     .index = STATEDIR_INIT,
			     .content = STATEDIR_INIT,
			     .lock = FD_NONE,
			     .limits = *limits };
	rc = open_parts(s, state, make, err);
	if (rc < 0)
		store_close(s);
	else
		*ret = s;
	return rc;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	store_release(s);
	fd_closep(&s->lock);
	statedir_close(&s->content);
	statedir_close(&s->index);
	statedir_close(&s->dir);
	free(s);
}

const struct cache_events *store_events(const struct store *s)
{
	return &s->events;
}

/* ---- files ------------------------------------------------------------------------------------ */

static const char *what_is_wrong(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "not a regular file";
	if (st->st_uid != geteuid())
		return "owned by someone else";
	if (st->st_nlink != 1)
		return "linked from another place";
	if (st->st_mode & 077)
		return "open to others";
	return NULL;
}

int store_open_file(int dir, const char *name, int flags, uint64_t *size, uint64_t *used_ns, const char **why)
{
	AUTO_FD fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO || errno == ENODEV)) {
		*why = errno == ELOOP ? "a symbolic link" : "not a regular file";
		return -EUCLEAN;
	}
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	*why = what_is_wrong(&st);
	if (*why)
		return -EUCLEAN;
	*why = "";
	*size = (uint64_t)st.st_size;
	*used_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	return fd_move(&fd);
}

void store_remove(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) < 0 && (errno == EISDIR || errno == EPERM))
		(void)unlinkat(dir, name, AT_REMOVEDIR);
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* Opens and reads the record of a key.  The descriptor, -ENOENT, or -EUCLEAN with *why. */
static int open_record(const struct store *s, const struct store_key *key, struct store_entry *e, uint64_t *used_ns,
		       const char **why)
{
	unsigned char bytes[STORE_RECORD_SIZE];
	char name[STORE_HEX_LEN + 1];
	AUTO_FD fd = FD_NONE;
	uint64_t size = 0;

	store_hex(key->hash, name);
	fd = store_open_file(s->index.fd, name, s->read_only ? O_RDONLY : O_RDWR, &size, used_ns, why);
	if (fd == -EACCES || fd == -EROFS)
		fd = store_open_file(s->index.fd, name, O_RDONLY, &size, used_ns, why);
	if (fd < 0)
		return fd;
	if (size != sizeof(bytes) || pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) ||
	    !store_entry_decode(bytes, sizeof(bytes), e)) {
		*why = "not a whole record of the index";
		return -EUCLEAN;
	}
	if (memcmp(e->key.hash, key->hash, STORE_HASH_LEN) != 0 ||
	    (*key->kind && strcmp(e->key.kind, key->kind) != 0)) {
		*why = "the record of another key";
		return -EUCLEAN;
	}
	return fd_move(&fd);
}

/* Reads and hashes what was opened.  NULL, or what is wrong. */
static const char *read_whole(int fd, const struct store_entry *e, struct buf *ret)
{
	unsigned char hash[STORE_HASH_LEN];
	struct sha256 h;
	char piece[16384];
	uint64_t left = e->size;

	sha256_begin(&h);
	while (left > 0) {
		ssize_t n = fd_read_all(fd, piece, min_u64(sizeof(piece), left));

		if (n <= 0)
			return "shorter than what was kept, or unreadable";
		sha256_add(&h, piece, (size_t)n);
		if (ret && buf_add(ret, piece, (size_t)n) < (size_t)n)
			return "more than memory holds";
		left -= (uint64_t)n;
	}
	sha256_end(&h, hash);
	return memcmp(hash, e->content, sizeof(hash)) == 0 ? NULL : "not the bytes that were kept";
}

static int look_at_bytes(const struct store *s, const struct store_entry *e, struct buf *ret, const char **why)
{
	char name[STORE_HEX_LEN + 1];
	size_t before = ret ? ret->len : 0;
	AUTO_FD fd = FD_NONE;
	uint64_t size = 0, used;

	store_hex(e->content, name);
	fd = store_open_file(s->content.fd, name, O_RDONLY, &size, &used, why);
	if (fd < 0) {
		if (fd != -EUCLEAN)
			*why = fd == -ENOENT ? "without its content" : "unreadable";
		return STORE_DAMAGED;
	}
	*why = size == e->size ? read_whole(fd, e, ret) : "not of the size that was kept";
	if (*why && ret)
		ret->len = before; /* a byte that was not verified is not handed out */
	return *why ? STORE_DAMAGED : STORE_HIT;
}

static int look_at_content(const struct store *s, const struct store_entry *e, const struct store_take *take,
			   const char **why)
{
	if (s->form == STORE_TREES)
		return store_tree_look(s, e, take ? take->tree : NULL, why);
	return look_at_bytes(s, e, take ? take->bytes : NULL, why);
}

/* A record from the future was made under another clock: how old it is cannot be known. */
static bool is_too_old(const struct store *s, uint64_t created_ns)
{
	uint64_t now = clock_wall_ns(), slack = 3600 * NS_PER_SEC;

	return created_ns > now ? created_ns - now > slack : now - created_ns > s->limits.ttl_ns;
}

int store_look(const struct store *s, const struct store_key *key, const struct store_take *take,
	       struct store_info *info, int *fd, const char **why)
{
	const struct buf *room = take ? take->bytes : NULL;
	AUTO_FD record = FD_NONE;
	struct store_entry e;
	uint64_t used = 0;
	int answer;

	record = open_record(s, key, &e, &used, why);
	if (record == -ENOENT)
		return STORE_MISS;
	if (record < 0) {
		if (record != -EUCLEAN)
			*why = "unreadable";
		return STORE_DAMAGED;
	}
	*info = (struct store_info){
		.key = e.key,
		.created_ns = e.created_ns,
		.used_ns = used,
		.size = e.size,
		.hits = e.hits,
		.pinned = e.pinned,
	};
	memcpy(info->content, e.content, sizeof(info->content));
	if (!e.pinned && is_too_old(s, e.created_ns))
		return STORE_EXPIRED;
	if (room && e.size > room->max - min_u64(room->max, room->len))
		return STORE_MISS; /* nothing is wrong with it: this caller has no use for that much */
	answer = look_at_content(s, &e, take, why);
	if (answer == STORE_HIT && fd)
		*fd = fd_move(&record);
	return answer;
}

/* The kernel stamps files with a clock that ticks slowly: two uses in one tick would have no order. */
static void stamp(int fd)
{
	struct timespec now[2];

	(void)clock_gettime(CLOCK_REALTIME, &now[0]);
	now[1] = now[0];
	(void)futimens(fd, now);
}

/* Statistics and the order of eviction, never more: two uses at the same moment may count as one. */
static void note_use(struct store *s, int record, struct store_info *info)
{
	uint64_t hits = info->hits + 1;

	s->events.hit++;
	info->hits = hits;
	if (s->read_only)
		return;
	if (pwrite(record, &hits, sizeof(hits), (off_t)store_entry_hits_offset) == sizeof(hits))
		stamp(record);
}

bool store_drop_content(const struct store *s, const char *name, bool force)
{
	if (s->form == STORE_TREES)
		return store_tree_drop(s, name, force);
	store_remove(s->content.fd, name);
	return true;
}

/* The entry goes; its content, if no other entry has it, with the next writer. */
static void drop(struct store *s, const struct store_key *key, const struct store_info *info, int answer)
{
	char name[STORE_HEX_LEN + 1];

	store_hex(key->hash, name);
	store_remove(s->index.fd, name);
	if (answer != STORE_DAMAGED || info->size == 0)
		return;
	store_hex(info->content, name);
	(void)store_drop_content(s, name, true);
}

static int settle(struct store *s, const struct store_key *key, int answer, const char *why, struct brig_error *err)
{
	char name[STORE_HEX_LEN + 1];

	switch (answer) {
	case STORE_MISS:
		s->events.miss++;
		break;
	case STORE_EXPIRED:
		s->events.expired++;
		break;
	case STORE_DAMAGED:
		s->events.damaged++;
		store_hex(key->hash, name);
		(void)err_set(err, BRIG_E_SYSTEM, 0, "the entry %.12s of the cache is %s; it is dropped", name, why);
		break;
	default:
		break;
	}
	return answer;
}

int store_find(struct store *s, const struct store_key *key, bool is_use, const struct store_take *take,
	       struct store_info *info, struct brig_error *err)
{
	struct store_info seen = { .size = 0 };
	AUTO_FD record = FD_NONE;
	const char *why = "";
	int answer = store_look(s, key, take, &seen, &record, &why);

	if (answer != STORE_HIT && answer != STORE_MISS && !s->read_only) {
		int rc = store_writer_lock(s, err);

		if (rc < 0)
			return rc;
		seen = (struct store_info){ .size = 0 };
		answer = store_look(s, key, take, &seen, &record, &why);
		if (answer == STORE_DAMAGED || answer == STORE_EXPIRED)
			drop(s, key, &seen, answer);
		store_writer_unlock(s);
	}
	if (take && take->bytes && take->bytes->no_memory)
		return err_nomem(err);
	if (answer == STORE_HIT && is_use)
		note_use(s, record, &seen);
	if (info)
		*info = seen;
	return settle(s, key, answer, why, err);
}

int store_get(struct store *s, const struct store_key *key, struct buf *ret, struct store_info *info,
	      struct brig_error *err)
{
	const struct store_take take = { .bytes = ret };

	return store_find(s, key, true, &take, info, err);
}

int store_get_tree(struct store *s, const struct store_key *key, bool is_new, struct store_tree *ret,
		   struct store_info *info, struct brig_error *err)
{
	const struct store_take take = { .tree = ret };

	return store_find(s, key, !is_new, &take, info, err);
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* Writes "new" and gives it its name.  0 or -errno. */
static int publish(const struct store *s, int dir, const char *name, const void *data, size_t len)
{
	AUTO_FD fd = FD_NONE;
	int rc;

	store_remove(s->dir.fd, NEW_NAME);
	fd = openat(s->dir.fd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, data, len);
	stamp(fd);
	if (rc == 0 && renameat(s->dir.fd, NEW_NAME, dir, name) < 0) {
		store_remove(dir, name); /* a directory was planted there */
		rc = renameat(s->dir.fd, NEW_NAME, dir, name) < 0 ? -errno : 0;
	}
	if (rc < 0)
		store_remove(s->dir.fd, NEW_NAME);
	return rc;
}

int store_read_record(const struct store *s, const struct store_key *key, struct store_entry *ret)
{
	const char *why = "";
	uint64_t used;
	AUTO_FD fd = open_record(s, key, ret, &used, &why);

	return fd < 0 ? fd : 0;
}

int store_write_record(struct store *s, const struct store_entry *e, struct brig_error *err)
{
	unsigned char bytes[STORE_RECORD_SIZE];
	char name[STORE_HEX_LEN + 1];
	int rc;

	store_entry_encode(e, bytes);
	store_hex(e->key.hash, name);
	rc = publish(s, s->index.fd, name, bytes, sizeof(bytes));
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot write to the index of the cache") : 0;
}

int store_publish_record(struct store *s, const struct store_key *key, const unsigned char content[STORE_HASH_LEN],
			 uint64_t size, struct brig_error *err)
{
	struct store_entry e = { .key = *key, .created_ns = clock_wall_ns(), .size = size };
	int rc;

	memcpy(e.content, content, sizeof(e.content));
	rc = store_write_record(s, &e, err);
	if (rc < 0)
		return rc;
	s->events.stored++;
	return STORE_STORED;
}

static int publish_both(struct store *s, const struct store_key *key, const void *data, size_t len,
			struct brig_error *err)
{
	unsigned char hash[STORE_HASH_LEN];
	char name[STORE_HEX_LEN + 1];
	int rc;

	sha256(data, len, hash);
	store_hex(hash, name);
	rc = publish(s, s->content.fd, name, data, len);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot write %zu bytes to the cache", len);
	return store_publish_record(s, key, hash, len, err);
}

int store_put(struct store *s, const struct store_key *key, const void *data, size_t len, struct brig_error *err)
{
	struct store_care care = { .entries = 0 };
	int rc;

	if (len > s->limits.bytes / 4)
		return STORE_TOO_LARGE;
	rc = store_writer_lock(s, err);
	if (rc == 0) {
		rc = store_make_room(s, len, false, &care, err);
		if (rc == 0)
			rc = publish_both(s, key, data, len, err);
		store_writer_unlock(s);
	}
	if (rc < 0)
		s->events.failed++;
	return rc;
}
