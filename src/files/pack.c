/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the stream.  The walk gives names and sizes; a file's length is announced before its bytes, so a file that
 * turns out shorter ends the packing (it is being changed), while of one that grew only the announced bytes are sent.
 * Small files are read before they are announced and are therefore always consistent.
 */
#include "files/pack.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/overlay.h"
#include "files/pack_format.h"
#include "files/walk.h"

#define OWNER_ALL 0700
#define PAGE      (4 * KiB)
#define LOOKED_AT 1000000 /* entries that do not travel */

struct packer {
	int out; /* negative: only measure */
	const struct pack_caps *caps;
	pack_skip_fn skip;
	void *arg;
	struct pack_counts *counts;
	struct brig_error *err;
	int rc;
	/* Folders whose owner may not write in them: their modes follow at the end. */
	struct closed {
		char *path;
		unsigned mode;
	} * closed;
	size_t n_closed, cap_closed;
	size_t len; /* bytes waiting in block */
	char block[sizeof(uint32_t) + PACK_BLOCK];
	char piece[PACK_BLOCK];
};

/* ---- bytes ------------------------------------------------------------------------------------- */

static int send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == ENOTSOCK)
			return fd_write_all(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int flush(struct packer *p)
{
	uint32_t len = htole32((uint32_t)p->len);
	int rc;

	if (p->len == 0)
		return 0;
	memcpy(p->block, &len, sizeof(len));
	rc = send_all(p->out, p->block, sizeof(len) + p->len);
	p->len = 0;
	return rc < 0 ? err_set(p->err, BRIG_E_SYSTEM, -rc, "cannot hand the tree over") : 0;
}

static int put(struct packer *p, const void *data, size_t len)
{
	const char *from = data;

	while (len > 0) {
		size_t n = (size_t)min_u64(len, PACK_BLOCK - p->len);
		int rc;

		memcpy(p->block + sizeof(uint32_t) + p->len, from, n);
		p->len += n;
		from += n;
		len -= n;
		rc = p->len == PACK_BLOCK ? flush(p) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int put_head(struct packer *p, enum pack_type type, unsigned mode, const char *path, uint64_t content_len)
{
	struct pack_head h = pack_head_swap((struct pack_head){ .type = (uint8_t)type,
								.mode = (uint16_t)(mode & 0777),
								.path_len = (uint32_t)strlen(path),
								.content_len = content_len });
	int rc = put(p, &h, sizeof(h));

	return rc < 0 ? rc : put(p, path, strlen(path));
}

/* ---- entries ----------------------------------------------------------------------------------- */

static int too_much(const struct packer *p, const char *path)
{
	char text[32];

	return err_set(
		p->err, BRIG_E_REFUSED, 0,
		"the folder has more than %llu entries or %s (at '%s'): raise disk_limit and inodes_limit, or name "
		"what is not needed in workspace_hide",
		(unsigned long long)p->caps->entries, str_bytes(text, sizeof(text), p->caps->bytes), path);
}

#define LEAVE_OUT 1 /* this entry and what is below it: there is no room for it */

/* Counts an entry with so many bytes, if the caps have room for it: 0, LEAVE_OUT or negative. */
static int count(struct packer *p, const char *path, uint64_t bytes)
{
	struct pack_counts *c = p->counts;

	if (c->entries == p->caps->entries || bytes > p->caps->bytes - c->bytes) {
		c->cut = p->caps->in_part;
		return c->cut ? LEAVE_OUT : too_much(p, path);
	}
	c->entries++;
	c->bytes += bytes;
	c->room += (bytes + PAGE - 1) / PAGE * PAGE;
	return 0;
}

static int remember_closed(struct packer *p, const char *path, unsigned mode)
{
	if (p->n_closed == p->cap_closed) {
		size_t more = p->cap_closed ? 2 * p->cap_closed : 16;
		struct closed *bigger = reallocarray(p->closed, more, sizeof(*bigger));

		if (!bigger)
			return err_nomem(p->err);
		p->closed = bigger;
		p->cap_closed = more;
	}
	p->closed[p->n_closed] = (struct closed){ .path = strdup(path), .mode = mode };
	if (!p->closed[p->n_closed].path)
		return err_nomem(p->err);
	p->n_closed++;
	return 0;
}

static int pack_dir(struct packer *p, const struct walk_entry *e)
{
	unsigned mode = e->st->st_mode & 0777;
	int rc = count(p, e->path, 0);

	if (rc != 0 || p->out < 0)
		return rc;
	if ((mode & OWNER_ALL) != OWNER_ALL)
		rc = remember_closed(p, e->path, mode);
	if (rc == 0)
		rc = put_head(p, PACK_DIR, mode | OWNER_ALL, e->path, 0);
	return rc == 0 && p->caps->upper && overlay_is_opaque(e->dir, e->name) ? put_head(p, PACK_OPAQUE, 0, e->path, 0)
									       : rc;
}

static int pack_gone(struct packer *p, const struct walk_entry *e)
{
	int rc = count(p, e->path, 0);

	return rc != 0 || p->out < 0 ? rc : put_head(p, PACK_GONE, 0, e->path, 0);
}

static int leave_out(struct packer *p)
{
	p->counts->left_out++;
	return 0;
}

static int pack_link(struct packer *p, const struct walk_entry *e)
{
	ssize_t n = readlinkat(e->dir, e->name, p->piece, PACK_PATH_MAX);
	int rc;

	if (n <= 0 || n >= PACK_PATH_MAX)
		return leave_out(p);
	rc = count(p, e->path, (uint64_t)n);
	if (rc != 0 || p->out < 0)
		return rc;
	rc = put_head(p, PACK_LINK, 0777, e->path, (uint64_t)n);
	return rc < 0 ? rc : put(p, p->piece, (size_t)n);
}

static int pack_rest(struct packer *p, const struct walk_entry *e, int fd, uint64_t left)
{
	while (left > 0) {
		ssize_t n = fd_read_all(fd, p->piece, (size_t)min_u64(left, sizeof(p->piece)));
		int rc;

		if (n <= 0)
			return err_set(p->err, BRIG_E_SYSTEM, n < 0 ? (int)-n : 0,
				       "'%s' %s while it was read; run again", e->path,
				       n < 0 ? "could not be read further" : "became shorter");
		rc = put(p, p->piece, (size_t)n);
		if (rc < 0)
			return rc;
		left -= (uint64_t)n;
	}
	return 0;
}

static int pack_file(struct packer *p, const struct walk_entry *e)
{
	struct stat st = *e->st;
	uint64_t size;
	ssize_t first;
	AUTO_FD fd = FD_NONE;
	int rc;

	if (p->out < 0)
		return count(p, e->path, (uint64_t)st.st_size);
	fd = beneath_open_file(e->dir, e->name, &st);
	first = fd < 0 ? -1 : fd_read_all(fd, p->piece, sizeof(p->piece));
	if (first < 0)
		return leave_out(p);
	size = (size_t)first < sizeof(p->piece) ? (uint64_t)first : max_u64((uint64_t)st.st_size, (uint64_t)first);
	rc = count(p, e->path, size);
	if (rc == 0)
		rc = put_head(p, PACK_FILE, st.st_mode, e->path, size);
	if (rc == 0)
		rc = put(p, p->piece, (size_t)first);
	return rc != 0 ? rc : pack_rest(p, e, fd, size - (uint64_t)first);
}

static enum walk_next pack_entry(void *arg, const struct walk_entry *e)
{
	struct packer *p = arg;
	bool is_dir = S_ISDIR(e->st->st_mode);

	if (p->skip && p->skip(p->arg, e->path, is_dir))
		return WALK_SKIP;
	if (is_dir)
		p->rc = pack_dir(p, e);
	else if (S_ISREG(e->st->st_mode))
		p->rc = pack_file(p, e);
	else if (S_ISLNK(e->st->st_mode))
		p->rc = pack_link(p, e);
	else if (p->caps->upper && overlay_is_gone(e->st))
		p->rc = pack_gone(p, e);
	else
		p->rc = leave_out(p);
	return p->rc < 0 ? WALK_STOP : p->rc == LEAVE_OUT ? WALK_SKIP : WALK_ON;
}

/* ---- the tree ---------------------------------------------------------------------------------- */

static int put_end(struct packer *p)
{
	uint64_t numbers[] = { htole64(p->counts->entries), htole64(p->counts->bytes) };
	int rc = 0;

	while (p->n_closed > 0 && rc == 0) { /* inner ones first: an outer one may not be entered afterwards */
		struct closed *c = &p->closed[--p->n_closed];

		rc = put_head(p, PACK_MODE, c->mode, c->path, 0);
		free(c->path);
	}
	if (rc == 0)
		rc = put_head(p, PACK_END_RECORD, 0, "", sizeof(numbers));
	if (rc == 0)
		rc = put(p, numbers, sizeof(numbers));
	return rc < 0 ? rc : flush(p);
}

static int walk_and_pack(struct packer *p, int dir)
{
	/* Names of what is skipped or left out are looked at, too, and are not counted against our cap. */
	const struct walk_caps caps = { .entries = max_u64(p->caps->entries, p->caps->entries + LOOKED_AT) };
	struct walk_outcome out;
	int rc = walk_tree(dir, &caps, pack_entry, p, &out, p->err);

	if (rc < 0)
		return rc;
	if (p->rc < 0)
		return p->rc;
	p->counts->cut |= out.cut;
	if (out.cut && !p->caps->in_part)
		return err_set(
			p->err, BRIG_E_REFUSED, 0,
			"the folder has more than %llu entries, more than %d levels or paths of more than %d bytes: "
			"name what is not needed in workspace_hide",
			(unsigned long long)caps.entries, WALK_DEPTH_MAX, WALK_PATH_MAX - 1);
	p->counts->left_out += out.vanished + out.unreadable;
	return p->out < 0 ? 0 : put_end(p);
}

static int pack(int dir, const struct pack_caps *caps, pack_skip_fn skip, void *arg, int out, struct pack_counts *ret,
		struct brig_error *err)
{
	struct packer *p = malloc(sizeof(*p));
	int rc;

	*ret = (struct pack_counts){ .entries = 0 };
	if (!p)
		return err_nomem(err);
	*p = (struct packer){ .out = out, .caps = caps, .skip = skip, .arg = arg, .counts = ret, .err = err };
	rc = walk_and_pack(p, dir);
	while (p->n_closed > 0)
		free(p->closed[--p->n_closed].path);
	free(p->closed);
	free(p);
	return rc;
}

int pack_tree(int dir, const struct pack_caps *caps, pack_skip_fn skip, void *arg, int out, struct pack_counts *ret,
	      struct brig_error *err)
{
	return pack(dir, caps, skip, arg, out, ret, err);
}

int pack_measure(int dir, const struct pack_caps *caps, pack_skip_fn skip, void *arg, struct pack_counts *ret,
		 struct brig_error *err)
{
	return pack(dir, caps, skip, arg, FD_NONE, ret, err);
}
