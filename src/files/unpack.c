/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the stream, possibly between clone and exec and possibly from a hostile writer: no allocation, no locks, no
 * trust.  One folder is kept open, the one that the last entry was made in, because streams come in the order of a
 * walk; every other folder is reached from dir again, without links.  Names are single components that were checked, so
 * everything is created in that folder and nowhere else, and O_EXCL, mkdir and link creation only create what is new.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "files/beneath.h"
#include "files/overlay.h"
#include "files/pack.h"
#include "files/pack_format.h"

struct unpacker {
	int dir, in;
	const struct unpack_options *o;
	struct pack_counts *counts;
	int parent;        /* the folder of the last entry */
	size_t parent_len; /* its part of parent_path; SIZE_MAX: none is open */
	char parent_path[PACK_PATH_MAX];
	char path[PACK_PATH_MAX];
	size_t path_len;
	size_t at, len; /* what is still to be taken of block */
	char block[PACK_BLOCK];
};

/* ---- bytes ------------------------------------------------------------------------------------- */

static int next_block(struct unpacker *u)
{
	uint32_t len;
	ssize_t n = fd_read_all(u->in, &len, sizeof(len));

	if (n < 0)
		return (int)n;
	len = le32toh(len);
	if (n != sizeof(len) || len == 0 || len > sizeof(u->block))
		return -EPROTO;
	n = fd_read_all(u->in, u->block, len);
	if (n < 0)
		return (int)n;
	if ((size_t)n != len)
		return -EPROTO;
	u->at = 0;
	u->len = len;
	return 0;
}

/* Up to len bytes that are here, without copying: the number, in *ret where; -errno. */
static ssize_t take(struct unpacker *u, const char **ret, uint64_t len)
{
	size_t n;
	int rc = u->at == u->len ? next_block(u) : 0;

	if (rc < 0)
		return rc;
	n = (size_t)min_u64(len, u->len - u->at);
	*ret = u->block + u->at;
	u->at += n;
	return (ssize_t)n;
}

static int take_all(struct unpacker *u, void *dst, size_t len)
{
	char *to = dst;

	while (len > 0) {
		const char *from;
		ssize_t n = take(u, &from, len);

		if (n < 0)
			return (int)n;
		memcpy(to, from, (size_t)n);
		to += n;
		len -= (size_t)n;
	}
	return 0;
}

/* ---- entries ----------------------------------------------------------------------------------- */

/* Opens the folder that u->path is in, unless it is open already; *ret_name: the last component. */
static int open_parent(struct unpacker *u, const char **ret_name)
{
	const char *slash = strrchr(u->path, '/');
	size_t len = slash ? (size_t)(slash - u->path) : 0;

	*ret_name = slash ? slash + 1 : u->path;
	if (u->parent_len == len && memcmp(u->parent_path, u->path, len) == 0)
		return 0;
	fd_closep(&u->parent);
	memcpy(u->parent_path, u->path, len);
	u->parent_path[len] = '\0';
	u->parent = beneath_open_dir(u->dir, u->parent_path);
	u->parent_len = u->parent < 0 ? SIZE_MAX : len;
	return u->parent < 0 ? u->parent : 0;
}

static bool owned(const struct unpacker *u)
{
	return u->o->uid != UINT32_MAX || u->o->gid != UINT32_MAX;
}

/* The mode last: changing the owner may take bits away. */
static int finish(const struct unpacker *u, int fd, unsigned mode)
{
	struct stat st;

	if (u->o->readable) {
		if (fstat(fd, &st) < 0)
			return -errno;
		mode |= S_ISDIR(st.st_mode) ? 0500 : 0400;
	}
	if (owned(u) && fchown(fd, u->o->uid, u->o->gid) < 0)
		return -errno;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int unpack_dir(struct unpacker *u, const struct pack_head *h)
{
	AUTO_FD fd = FD_NONE;
	const char *name;
	int rc = open_parent(u, &name);

	if (rc < 0)
		return rc;
	if (mkdirat(u->parent, name, 0700) < 0)
		return -errno;
	fd = beneath_open_dir(u->parent, name);
	return fd < 0 ? fd_move(&fd) : finish(u, fd, h->mode);
}

static bool is_zero(const char *data, size_t len)
{
	return len == 0 || (data[0] == '\0' && memcmp(data, data + 1, len - 1) == 0);
}

static int copy_content(struct unpacker *u, int fd, uint64_t left)
{
	uint64_t at = 0, end = left;

	while (left > 0) {
		const char *from;
		ssize_t n = take(u, &from, left);
		int rc = 0;

		if (n < 0)
			return (int)n;
		if (is_zero(from, (size_t)n)) {
			if (lseek(fd, (off_t)(at + (uint64_t)n), SEEK_SET) < 0)
				return -errno;
		} else {
			rc = fd_write_all(fd, from, (size_t)n);
		}
		if (rc < 0)
			return rc;
		at += (uint64_t)n;
		left -= (uint64_t)n;
	}
	return end > 0 && ftruncate(fd, (off_t)end) < 0 ? -errno : 0;
}

static int unpack_file(struct unpacker *u, const struct pack_head *h)
{
	AUTO_FD fd = FD_NONE;
	const char *name;
	int rc = open_parent(u, &name);

	if (rc < 0)
		return rc;
	fd = beneath_create(u->parent, name, 0600);
	if (fd < 0)
		return fd_move(&fd);
	rc = copy_content(u, fd, h->content_len);
	return rc < 0 ? rc : finish(u, fd, h->mode);
}

static int unpack_link(struct unpacker *u, const struct pack_head *h)
{
	char target[PACK_PATH_MAX];
	const char *name;
	int rc;

	if (h->content_len == 0 || h->content_len >= sizeof(target))
		return -EPROTO;
	rc = take_all(u, target, (size_t)h->content_len);
	if (rc < 0)
		return rc;
	target[h->content_len] = '\0';
	if (strlen(target) != h->content_len)
		return -EPROTO;
	rc = open_parent(u, &name);
	if (rc < 0)
		return rc;
	if (symlinkat(target, u->parent, name) < 0)
		return -errno;
	if (owned(u) && fchownat(u->parent, name, u->o->uid, u->o->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int unpack_mode(struct unpacker *u, const struct pack_head *h)
{
	AUTO_FD fd = beneath_open_dir(u->dir, u->path);

	return fd < 0 ? fd_move(&fd) : finish(u, fd, h->mode);
}

/* Both marks are such that everybody may make them (whiteouts from Linux 5.8 on). */
static int unpack_gone(struct unpacker *u, const struct pack_head *h UNUSED)
{
	const char *name;
	int rc = u->o->caps.upper ? open_parent(u, &name) : -EPROTO;

	if (rc < 0)
		return rc;
	return mknodat(u->parent, name, S_IFCHR | 0600, makedev(0, 0)) < 0 ? -errno : 0;
}

static int unpack_opaque(struct unpacker *u, const struct pack_head *h UNUSED)
{
	AUTO_FD fd = u->o->caps.upper ? beneath_open_dir(u->dir, u->path) : -EPROTO;

	if (fd < 0)
		return fd_move(&fd);
	return fsetxattr(fd, OVERLAY_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

/* ---- the tree ---------------------------------------------------------------------------------- */

static const struct {
	uint8_t type;
	bool counts, has_content;
	int (*make)(struct unpacker *u, const struct pack_head *h);
} kinds[] = {
	{ PACK_DIR, true, false, unpack_dir },   { PACK_FILE, true, true, unpack_file },
	{ PACK_LINK, true, true, unpack_link },  { PACK_MODE, false, false, unpack_mode },
	{ PACK_GONE, true, false, unpack_gone }, { PACK_OPAQUE, false, false, unpack_opaque },
};

static int count(struct unpacker *u, const struct pack_head *h)
{
	struct pack_counts *c = u->counts;

	if (c->entries == u->o->caps.entries || h->content_len > u->o->caps.bytes - c->bytes ||
	    h->content_len > INT64_MAX)
		return -E2BIG;
	c->entries++;
	c->bytes += h->content_len;
	return 0;
}

static int take_path(struct unpacker *u, const struct pack_head *h)
{
	int rc;

	if (h->path_len >= sizeof(u->path))
		return -EPROTO;
	rc = take_all(u, u->path, h->path_len);
	if (rc < 0)
		return rc;
	u->path[h->path_len] = '\0';
	u->path_len = h->path_len;
	return beneath_is_path(u->path, u->path_len) ? 0 : -EPROTO;
}

static int take_entry(struct unpacker *u, const struct pack_head *h)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		int rc;

		if (kinds[i].type != h->type)
			continue;
		if (h->content_len && !kinds[i].has_content)
			return -EPROTO;
		rc = kinds[i].counts ? count(u, h) : 0;
		if (rc == 0)
			rc = take_path(u, h);
		return rc < 0 ? rc : kinds[i].make(u, h);
	}
	return -EPROTO;
}

/* The end must be the end of its block, and say what was counted here. */
static int take_end(struct unpacker *u, const struct pack_head *h)
{
	uint64_t numbers[2];
	int rc;

	if (h->path_len || h->content_len != sizeof(numbers) || h->mode)
		return -EPROTO;
	rc = take_all(u, numbers, sizeof(numbers));
	if (rc < 0)
		return rc;
	if (u->at != u->len || le64toh(numbers[0]) != u->counts->entries || le64toh(numbers[1]) != u->counts->bytes)
		return -EPROTO;
	return 0;
}

/* 1: that was the end. */
static int take_record(struct unpacker *u)
{
	struct pack_head h;
	int rc = take_all(u, &h, sizeof(h));

	if (rc < 0)
		return rc;
	h = pack_head_swap(h);
	if (h.zero || (h.mode & ~0777))
		return -EPROTO;
	if (h.type != PACK_END_RECORD)
		return take_entry(u, &h);
	rc = take_end(u, &h);
	return rc < 0 ? rc : 1;
}

int unpack_tree(int dir, int in, const struct unpack_options *o, struct pack_counts *ret)
{
	struct unpacker u = { .dir = dir, .in = in, .o = o, .counts = ret, .parent = FD_NONE, .parent_len = SIZE_MAX };
	int rc = 0;

	*ret = (struct pack_counts){ .entries = 0 };
	while (rc == 0)
		rc = take_record(&u);
	fd_closep(&u.parent);
	return rc < 0 ? rc : 0;
}
