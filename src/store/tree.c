/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents that are trees: the output of an installation, mounted in cells as it is.
 *
 *	packages/content/HASH    the tree itself, named by the hash of its list
 *	packages/new-ID          one that is being copied in; locked by its writer
 *	packages/old             one that is being removed
 *
 * The list of a tree has, in the order of the walk, each entry's kind, permission bits, path, size and SHA-256 (of a
 * link: of where it leads).  It is never stored: checking a tree rebuilds it from the files, and unless its hash is the
 * name the tree is damaged.  So a changed byte, a lost or an additional file, a changed permission and a changed link
 * are all treated alike, and there is no second file that could be changed to match.  A tree that was not written to
 * since it was checked need not be read again (seen.c).
 *
 * What comes in was written by an untrusted program.  It is read beneath one descriptor, nothing is followed or waited
 * for (INV-8), and only folders, regular files and links are taken, but none of git's: files as 0444 or 0555, folders
 * as 0555, so that the ids of every cell can read them and nothing in it is setuid.  Links are those that link_stays()
 * lets pass: no chain of them leaves the tree.
 *
 * Users of a tree hold a shared lock on its folder; eviction tries an exclusive one and leaves the tree alone if it
 * fails.  Copying in takes as long as it takes and happens without the writer's lock; publishing is one rename within
 * it.  As everywhere in the store there is no fsync: what a power failure corrupts is detected by its hash.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/foreign.h"
#include "files/walk.h"
#include "store/internal.h"

#define PIECE       (64 * KiB)
#define ENTRIES_MAX 4000000 /* of a tree that is ours already; what comes in has the caller's ceiling */
#define NEW_PREFIX  "new-"
#define OLD_NAME    "old"

void store_tree_close(struct store_tree *t)
{
	fd_closep(&t->fd);
}

/* ---- the list ---------------------------------------------------------------------------------- */

struct sum {
	struct sha256 hash;
	uint64_t files, bytes;
};

static void sum_begin(struct sum *s)
{
	*s = (struct sum){ .files = 0 };
	sha256_begin(&s->hash);
}

/* Every member has a fixed size but the path, whose length comes first: no two lists give the same bytes. */
static void sum_add(struct sum *s, char kind, unsigned mode, const char *path, uint64_t size,
		    const uint8_t digest[SHA256_LEN])
{
	const uint64_t head[] = { (uint64_t)kind, mode, strlen(path), size };

	sha256_add(&s->hash, head, sizeof(head));
	sha256_add(&s->hash, path, strlen(path));
	sha256_add(&s->hash, digest, SHA256_LEN);
	s->files += kind != 'd';
	s->bytes += size;
}

static void sum_folder(struct sum *s, const char *path)
{
	static const uint8_t nothing[SHA256_LEN];

	sum_add(s, 'd', 0555, path, 0, nothing);
}

static void sum_link(struct sum *s, const char *path, const char *target)
{
	uint8_t digest[SHA256_LEN];

	sha256(target, strlen(target), digest);
	sum_add(s, 'l', 0, path, strlen(target), digest);
}

/* Where a link leads; false: too long, or it cannot be read. */
static bool read_link(const struct walk_entry *e, char *dst, size_t size)
{
	ssize_t n = readlinkat(e->dir, e->name, dst, size);

	if (n <= 0 || (size_t)n >= size)
		return false;
	dst[n] = '\0';
	return true;
}

/* Hashes a file and, if to is one, copies it there.  0 or -errno; *ret_size is what was read, at most max + 1. */
static int pass_file(int from, int to, char *piece, uint64_t max, uint64_t *ret_size, uint8_t digest[SHA256_LEN])
{
	struct sha256 h;
	uint64_t size = 0;
	ssize_t n;

	*ret_size = 0;
	sha256_begin(&h);
	while ((n = fd_read_all(from, piece, PIECE)) > 0) {
		int rc = to >= 0 ? fd_write_all(to, piece, (size_t)n) : 0;

		if (rc < 0)
			return rc;
		sha256_add(&h, piece, (size_t)n);
		size += (uint64_t)n;
		if (size > max)
			break;
	}
	if (n < 0)
		return (int)n;
	sha256_end(&h, digest);
	*ret_size = size;
	return 0;
}

/* ---- looking at a tree of ours ------------------------------------------------------------------ */

struct look {
	bool reads; /* files; otherwise only the state counts */
	struct sum sum;
	struct tree_state state;
	char *piece;
	const char *why; /* NULL: nothing is wrong so far */
};

static const char *look_at_file(struct look *l, const struct walk_entry *e)
{
	AUTO_FD fd = FD_NONE;
	uint8_t digest[SHA256_LEN];
	uint64_t size;

	if (e->st->st_nlink != 1)
		return "a tree with a file that is linked from another place";
	if (!l->reads) {
		l->sum.files++;
		l->sum.bytes += (uint64_t)e->st->st_size;
		return NULL;
	}
	fd = beneath_open_file(e->dir, e->name, NULL);
	if (fd < 0 || pass_file(fd, -1, l->piece, UINT64_MAX - PIECE, &size, digest) < 0)
		return "a tree with a file that cannot be read";
	sum_add(&l->sum, 'f', e->st->st_mode & 07777, e->path, size, digest);
	return NULL;
}

static enum walk_next look_at_entry(void *arg, const struct walk_entry *e)
{
	struct look *l = arg;
	char target[PATH_MAX];

	tree_state_add(&l->state, e->path, e->st); /* before it is read: a later change is seen by the next look */
	if (e->st->st_uid != geteuid())
		l->why = "a tree with something that is owned by someone else";
	else if (S_ISREG(e->st->st_mode))
		l->why = look_at_file(l, e);
	else if (S_ISDIR(e->st->st_mode) && (e->st->st_mode & 07777) == 0555)
		sum_folder(&l->sum, e->path);
	else if (S_ISLNK(e->st->st_mode) && read_link(e, target, sizeof(target)))
		sum_link(&l->sum, e->path, target);
	else
		l->why = "a tree with something that was not kept";
	return l->why ? WALK_STOP : WALK_ON;
}

/* NULL, or what is wrong. */
static const char *look_at_tree(int root, bool reads, struct look *ret)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX };
	struct brig_error err = BRIG_ERROR_INIT;
	struct walk_outcome outcome;
	struct stat st;

	*ret = (struct look){ .reads = reads, .piece = malloc(PIECE) };
	sum_begin(&ret->sum);
	tree_state_begin(&ret->state);
	if (!ret->piece)
		ret->why = "more than memory holds";
	else if (fstat(root, &st) < 0 || walk_tree(root, &caps, look_at_entry, ret, &outcome, &err) < 0 ||
		 outcome.cut || outcome.vanished)
		ret->why = ret->why ? ret->why : "a tree that cannot be read";
	else
		tree_state_add(&ret->state, "", &st);
	free(MOVE_PTR(ret->piece));
	return ret->why;
}

static const char *sum_of_tree(int root, struct look *ret, uint8_t hash[SHA256_LEN])
{
	const char *why = look_at_tree(root, /* reads= */ true, ret);

	sha256_end(&ret->sum.hash, hash);
	return why;
}

/* Whether nothing of it has changed since it was hashed. */
static bool is_unchanged(const struct store *s, int root, const struct store_entry *e, struct look *ret)
{
	unsigned char state[STORE_HASH_LEN];

	if (look_at_tree(root, /* reads= */ false, ret))
		return false;
	sha256_end(&ret->state.hash, state);
	return tree_seen_is(s, e->content, state);
}

static int open_tree_folder(const struct store *s, const char *name)
{
	int fd = openat(s->content.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The folder's path as the kernel knows it: the state folder may have been given as a relative one. */
static bool path_of(int fd, char *dst, size_t size)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, dst, size);
	if (n <= 0 || (size_t)n >= size)
		return false;
	dst[n] = '\0';
	return dst[0] == '/';
}

int store_tree_look(const struct store *s, const struct store_entry *e, struct store_tree *ret, const char **why)
{
	unsigned char hash[STORE_HASH_LEN];
	char name[STORE_HEX_LEN + 1];
	AUTO_FD fd = FD_NONE;
	struct look look = { .reads = false };
	struct stat st;

	store_hex(e->content, name);
	fd = open_tree_folder(s, name);
	*why = NULL;
	if (fd < 0)
		*why = fd == -ENOENT ? "without its content" : "not a folder";
	else if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		*why = "being removed";
	else if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 022)
		*why = "open to others";
	else if (!ret || !is_unchanged(s, fd, e, &look))
		*why = sum_of_tree(fd, &look, hash);
	if (!*why && ((look.reads && memcmp(hash, e->content, sizeof(hash)) != 0) || look.sum.bytes != e->size))
		*why = "not the tree that was kept";
	if (!*why && ret && !path_of(fd, ret->path, sizeof(ret->path)))
		*why = "in a place that has no name";
	if (*why)
		return STORE_DAMAGED;
	if (look.reads)
		tree_seen_note(s, fd, e->content, &look.state);
	if (ret) {
		ret->files = look.sum.files;
		ret->bytes = look.sum.bytes;
		fd_closep(&ret->fd);
		ret->fd = fd_move(&fd);
	}
	return STORE_HIT;
}

/* ---- removing ---------------------------------------------------------------------------------- */

/* Files go at once; folders are made writable, and go when the walk is through, the deepest first. */
static enum walk_next remove_entry(void *arg, const struct walk_entry *e)
{
	struct buf *folders = arg;

	if (!S_ISDIR(e->st->st_mode)) {
		(void)unlinkat(e->dir, e->name, 0);
		return WALK_ON;
	}
	(void)buf_add(folders, e->path, strlen(e->path) + 1);
	return fchmodat(e->dir, e->name, 0700, 0) < 0 ? WALK_SKIP : WALK_ON;
}

static void remove_tree(int dir, const char *name)
{
	const struct walk_caps caps = { .entries = UINT64_MAX };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF folders = BUF_INIT(256 * MiB);
	struct walk_outcome outcome;
	AUTO_FD root = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	size_t end;

	if (root < 0) {
		store_remove(dir, name);
		return;
	}
	(void)fchmod(root, 0700);
	(void)walk_tree(root, &caps, remove_entry, &folders, &outcome, &err);
	for (end = folders.len; end > 0;) {
		size_t begin = end - 1;

		while (begin > 0 && folders.data[begin - 1])
			begin--;
		(void)unlinkat(root, folders.data + begin, AT_REMOVEDIR);
		end = begin;
	}
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

bool store_tree_drop(const struct store *s, const char *name, bool force)
{
	AUTO_FD fd = open_tree_folder(s, name);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && !force)
		return false;
	tree_seen_forget(s, name);
	if (fd < 0) {
		store_remove(s->content.fd, name);
		return true;
	}
	remove_tree(s->dir.fd, OLD_NAME);
	if (renameat(s->content.fd, name, s->dir.fd, OLD_NAME) == 0)
		remove_tree(s->dir.fd, OLD_NAME);
	else
		remove_tree(s->content.fd, name);
	return true;
}

void store_tree_sweep(const struct store *s)
{
	AUTO_FD fd = openat(s->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	remove_tree(s->dir.fd, OLD_NAME);
	if (!d)
		return;
	(void)fd_move(&fd);
	while ((e = readdir(d)) != NULL) {
		AUTO_FD unfinished = FD_NONE;

		if (strncmp(e->d_name, NEW_PREFIX, strlen(NEW_PREFIX)) != 0)
			continue;
		unfinished = openat(s->dir.fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (unfinished < 0 || flock(unfinished, LOCK_EX | LOCK_NB) == 0)
			remove_tree(s->dir.fd, e->d_name);
	}
	(void)closedir(d);
}

/* ---- copying in -------------------------------------------------------------------------------- */

struct import {
	struct store_import *from;
	int to;
	uint64_t max_bytes;
	char *piece;
	struct sum sum;
	struct brig_error *err;
	int rc;
};

static int no_room(const struct import *im)
{
	char text[32];

	return err_set(im->err, BRIG_E_REFUSED, 0,
		       "it is more than %s, a quarter of what package sets may take together: raise packages_size",
		       str_bytes(text, sizeof(text), im->max_bytes));
}

static int import_file(struct import *im, const struct walk_entry *e)
{
	unsigned mode = e->st->st_mode & 0111 ? 0555 : 0444;
	AUTO_FD from = beneath_open_file(e->dir, e->name, NULL), to = FD_NONE;
	uint8_t digest[SHA256_LEN];
	uint64_t size;
	int rc;

	if (from < 0)
		return err_set(im->err, BRIG_E_REFUSED, -from, "'%.200s' cannot be read", e->path);
	to = beneath_create(im->to, e->path, 0600);
	if (to < 0)
		return err_set(im->err, BRIG_E_SYSTEM, -to, "cannot write '%.200s'", e->path);
	rc = pass_file(from, to, im->piece, im->max_bytes - im->sum.bytes, &size, digest);
	if (rc == 0 && fchmod(to, mode) < 0)
		rc = -errno;
	if (rc < 0)
		return err_set(im->err, BRIG_E_SYSTEM, -rc, "cannot copy '%.200s'", e->path);
	sum_add(&im->sum, 'f', mode, e->path, size, digest);
	return im->sum.bytes > im->max_bytes ? no_room(im) : 0;
}

static int import_folder(struct import *im, const struct walk_entry *e)
{
	const char *name;
	AUTO_FD parent = beneath_open_parent(im->to, e->path, &name);

	if (parent < 0 || mkdirat(parent, name, 0700) < 0)
		return err_set(im->err, BRIG_E_SYSTEM, parent < 0 ? -parent : errno, "cannot make '%.200s'", e->path);
	sum_folder(&im->sum, e->path);
	return 0;
}

static int import_link(struct import *im, const struct walk_entry *e)
{
	char target[PATH_MAX];
	const char *name;
	AUTO_FD parent = FD_NONE;

	if (!read_link(e, target, sizeof(target)) || !link_stays(e->path, target)) {
		im->from->links_out++;
		return 0;
	}
	parent = beneath_open_parent(im->to, e->path, &name);
	if (parent < 0 || symlinkat(target, parent, name) < 0)
		return err_set(im->err, BRIG_E_SYSTEM, parent < 0 ? -parent : errno, "cannot make '%.200s'", e->path);
	sum_link(&im->sum, e->path, target);
	return im->sum.bytes > im->max_bytes ? no_room(im) : 0;
}

/* Git runs what the configuration in such a folder says, for anyone who uses git there. */
static bool is_gits(const struct import *im, const struct walk_entry *e)
{
	return path_has_git(e->name) || (S_ISDIR(e->st->st_mode) && git_folder(git_marks_in(im->from->dir, e->path)));
}

static enum walk_next import_entry(void *arg, const struct walk_entry *e)
{
	struct import *im = arg;

	if (is_gits(im, e)) {
		im->from->gits++;
		return WALK_SKIP;
	}
	if (S_ISREG(e->st->st_mode))
		im->rc = import_file(im, e);
	else if (S_ISDIR(e->st->st_mode))
		im->rc = import_folder(im, e);
	else if (S_ISLNK(e->st->st_mode))
		im->rc = import_link(im, e);
	else
		im->from->special++;
	return im->rc < 0 ? WALK_STOP : WALK_ON;
}

static enum walk_next close_folder(void *arg, const struct walk_entry *e)
{
	struct import *im = arg;

	if (S_ISDIR(e->st->st_mode) && fchmodat(e->dir, e->name, 0555, 0) < 0)
		im->rc = err_set(im->err, BRIG_E_SYSTEM, errno, "cannot close '%.200s' to writing", e->path);
	return im->rc < 0 ? WALK_STOP : WALK_ON;
}

/* Copies everything and closes it to writing. */
static int import_all(struct import *im)
{
	const struct walk_caps from_caps = { .entries = im->from->entries }, own_caps = { .entries = ENTRIES_MAX };
	struct walk_outcome outcome;
	int rc = walk_tree(im->from->dir, &from_caps, import_entry, im, &outcome, im->err);

	if (rc < 0 || im->rc < 0)
		return rc < 0 ? rc : im->rc;
	if (outcome.cut)
		return err_set(im->err, BRIG_E_REFUSED, 0, "it has more than %llu files, or paths that are too long",
			       (unsigned long long)im->from->entries);
	if (outcome.vanished)
		return err_set(im->err, BRIG_E_REFUSED, 0, "it has folders that cannot be read");
	rc = walk_tree(im->to, &own_caps, close_folder, im, &outcome, im->err);
	return rc < 0 ? rc : im->rc;
}

/* Within the writer's lock: the finished copy gets its name, unless a whole one has it already. */
static int give_name(struct store *s, const char *made, const unsigned char hash[STORE_HASH_LEN],
		     struct brig_error *err)
{
	unsigned char there[STORE_HASH_LEN];
	char name[STORE_HEX_LEN + 1];
	AUTO_FD fd = FD_NONE;
	struct look look;

	store_hex(hash, name);
	if (renameat(s->dir.fd, made, s->content.fd, name) == 0)
		return 0;
	fd = open_tree_folder(s, name);
	if (fd >= 0 && !sum_of_tree(fd, &look, there) && memcmp(there, hash, sizeof(there)) == 0)
		return 0;
	fd_closep(&fd);
	(void)store_tree_drop(s, name, true);
	if (renameat(s->dir.fd, made, s->content.fd, name) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot keep the tree as %s/%s", s->content.path, name);
	return 0;
}

static int publish_tree(struct store *s, const struct store_key *key, const char *made, struct import *im)
{
	unsigned char hash[STORE_HASH_LEN];
	struct store_care care = { .entries = 0 };
	int rc = store_writer_lock(s, im->err);

	if (rc < 0)
		return rc;
	sha256_end(&im->sum.hash, hash);
	if (im->from->expected && memcmp(hash, im->from->expected, sizeof(hash)) != 0)
		rc = err_set(im->err, BRIG_E_REFUSED, 0, "it is not the tree that its hash says");
	if (rc == 0)
		rc = store_make_room(s, im->sum.bytes, false, &care, im->err);
	if (rc == 0)
		rc = give_name(s, made, hash, im->err);
	if (rc == 0)
		rc = store_publish_record(s, key, hash, im->sum.bytes, im->err);
	store_writer_unlock(s);
	return rc;
}

/* Within the writer's lock, so that it is not taken for a left-over before it is locked. */
static int begin_copy(struct store *s, const char *made, struct import *im)
{
	int rc = store_writer_lock(s, im->err);

	if (rc < 0)
		return rc;
	if (mkdirat(s->dir.fd, made, 0700) == 0)
		im->to = openat(s->dir.fd, made, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (im->to < 0 || flock(im->to, LOCK_EX | LOCK_NB) < 0)
		rc = err_set(im->err, BRIG_E_SYSTEM, errno, "cannot make a folder in %s", s->dir.path);
	store_writer_unlock(s);
	return rc;
}

int store_scratch_begin(struct store *s, char name[STORE_SCRATCH_MAX], int *ret_fd, struct brig_error *err)
{
	struct import im = { .to = FD_NONE, .err = err };
	int rc;

	(void)str_copy(name, STORE_SCRATCH_MAX, NEW_PREFIX);
	rc = id_random(name + strlen(NEW_PREFIX), 16);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "the kernel gives no random numbers");
	rc = begin_copy(s, name, &im);
	*ret_fd = im.to;
	return rc;
}

void store_scratch_end(const struct store *s, const char *name)
{
	remove_tree(s->dir.fd, name);
}

static int import_and_publish(struct store *s, const struct store_key *key, const char *made, struct import *im)
{
	int rc = begin_copy(s, made, im);

	sum_begin(&im->sum);
	if (rc == 0)
		rc = import_all(im);
	if (rc == 0 && fchmod(im->to, 0755) < 0)
		rc = err_set(im->err, BRIG_E_SYSTEM, errno, "cannot open %s/%s to cells", s->dir.path, made);
	return rc < 0 ? rc : publish_tree(s, key, made, im);
}

int store_put_tree(struct store *s, const struct store_key *key, struct store_import *from, struct brig_error *err)
{
	struct import im = { .from = from, .to = FD_NONE, .max_bytes = s->limits.bytes / 4, .err = err };
	char made[sizeof(NEW_PREFIX) + 16] = NEW_PREFIX;
	int rc;

	im.piece = malloc(PIECE);
	if (!im.piece)
		return err_nomem(err);
	rc = id_random(made + strlen(NEW_PREFIX), 16);
	rc = rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "the kernel gives no random numbers")
		    : import_and_publish(s, key, made, &im);
	remove_tree(s->dir.fd, made); /* gone already if all went well */
	fd_closep(&im.to);
	free(im.piece);
	if (rc < 0)
		s->events.failed++;
	return rc;
}
