/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees that were hashed since boot, and their state at that time.
 *
 *	packages/seen/HASH    a record: which tree, which boot, and a digest of the state of every entry
 *
 * Hashing a set of packages takes milliseconds per megabyte.  A verified tree need not be hashed again as long as it is
 * not written to, and the kernel tells us that: it sets an inode's ctime at each change of content, name, owner or
 * permission, and has no call to set it to something else.  So a use of a tree compares the state of its entries (path,
 * device, inode, kind, permissions, owner, links, size, mtime, ctime) with that of the last hash, and everything is
 * hashed as before if a single one differs, if there is no sound record, or if the machine was started since.
 *
 * A change within one tick of the file system's clock would leave the ctime as it was: a tree that was changed less
 * than SETTLED_NS before it was looked at gets no record.  Nor does one on a file system whose times are kept
 * elsewhere.
 *
 * Not noticed before the next boot, or `brig cache verify`, which always hashes: bytes that change below the file
 * system (a disk that fails, a write to the device), and changes by someone who may set the clock back.  A record can
 * be forged by the owner of the state folder, who could as well put another tree there, with the right name.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "base/fd.h"
#include "store/internal.h"

#define FOLDER      "seen"
#define SETTLED_NS  (2 * NS_PER_SEC)
#define BOOT_ID_LEN 36

static const char record_magic[8] = { 'b', 'r', 'i', 'g', 's', 'e', 'n', '1' };

struct record {
	char magic[8];
	char boot[40];
	unsigned char tree[STORE_HASH_LEN];
	unsigned char state[STORE_HASH_LEN];
	unsigned char sum[STORE_HASH_LEN]; /* of all that: a torn record is none */
};

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NS_PER_SEC + (uint64_t)t->tv_nsec;
}

void tree_state_begin(struct tree_state *s)
{
	*s = (struct tree_state){ .began_ns = clock_wall_ns() };
	sha256_begin(&s->hash);
}

/* Every member has a fixed size but the path, whose length comes first. */
void tree_state_add(struct tree_state *s, const char *path, const struct stat *st)
{
	const uint64_t words[] = {
		strlen(path),        st->st_dev,          st->st_ino,   st->st_mode,
		st->st_uid,          st->st_gid,          st->st_nlink, (uint64_t)st->st_size,
		ns_of(&st->st_mtim), ns_of(&st->st_ctim),
	};

	sha256_add(&s->hash, words, sizeof(words));
	sha256_add(&s->hash, path, strlen(path));
	s->newest_ns = max_u64(s->newest_ns, ns_of(&st->st_ctim));
}

static bool make_record(const unsigned char tree[STORE_HASH_LEN], const unsigned char state[STORE_HASH_LEN],
			struct record *ret)
{
	*ret = (struct record){ .boot = "" };
	memcpy(ret->magic, record_magic, sizeof(ret->magic));
	memcpy(ret->tree, tree, sizeof(ret->tree));
	memcpy(ret->state, state, sizeof(ret->state));
	if (fd_get_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", ret->boot, sizeof(ret->boot)) < BOOT_ID_LEN)
		return false; /* without it nothing is known to be of this boot */
	sha256(ret, offsetof(struct record, sum), ret->sum);
	return true;
}

static int open_folder(const struct store *s, bool make)
{
	struct stat st;
	AUTO_FD dir = FD_NONE;

	if (make && mkdirat(s->dir.fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = openat(s->dir.fd, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (fstat(dir, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	return fd_move(&dir);
}

bool tree_seen_is(const struct store *s, const unsigned char tree[STORE_HASH_LEN],
		  const unsigned char state[STORE_HASH_LEN])
{
	AUTO_FD dir = open_folder(s, false), fd = FD_NONE;
	char name[STORE_HEX_LEN + 1];
	struct record found, wanted;
	uint64_t size = 0, used;
	const char *why;

	store_hex(tree, name);
	if (dir < 0 || !make_record(tree, state, &wanted))
		return false;
	fd = store_open_file(dir, name, O_RDONLY, &size, &used, &why);
	return fd >= 0 && size == sizeof(found) && fd_read_all(fd, &found, sizeof(found)) == sizeof(found) &&
	       memcmp(&found, &wanted, sizeof(found)) == 0;
}

/* Where times are what another machine or a program says they are. */
static bool times_are_the_kernels(int root)
{
	static const unsigned long others[] = { NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
						FUSE_SUPER_MAGIC, V9FS_MAGIC,      CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC };
	struct statfs fs;

	if (fstatfs(root, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if ((unsigned long)fs.f_type == others[i])
			return false;
	return true;
}

void tree_seen_note(const struct store *s, int root, const unsigned char tree[STORE_HASH_LEN], struct tree_state *state)
{
	AUTO_FD dir = FD_NONE, fd = FD_NONE;
	unsigned char digest[STORE_HASH_LEN];
	char name[STORE_HEX_LEN + 1];
	struct record r;

	sha256_end(&state->hash, digest);
	if (s->read_only || state->newest_ns + SETTLED_NS > state->began_ns || !times_are_the_kernels(root) ||
	    !make_record(tree, digest, &r))
		return;
	dir = open_folder(s, true);
	if (dir < 0)
		return;
	store_hex(tree, name);
	store_remove(dir, name);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && fd_write_all(fd, &r, sizeof(r)) < 0)
		store_remove(dir, name);
}

void tree_seen_forget(const struct store *s, const char *name)
{
	AUTO_FD dir = open_folder(s, false);

	if (dir >= 0)
		store_remove(dir, name);
}
