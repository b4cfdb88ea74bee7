/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project in a container.  No mount of the host is shown there: an engine may be elsewhere, and its mounts know neither
 * our ids nor our walls.  So the project travels as a stream of files/pack.h, without what is hidden, into the tmpfs of the
 * workspace, which is larger by as much; and when everybody in the container is dead, init sends the whole workspace back
 * the same way.  It is unpacked into a file system in memory that nobody else can reach and that is gone with its
 * descriptor, however brig ends.
 *
 * What differs from a native cell: hidden files are not there at all, instead of being empty.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/docker/cell.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/private_fs.h"

#define RECORD_MAX 512 /* head and path of one entry in a stream, on average */

/* A tmpfs is memory of the container: a project that leaves the program none is refused now, not killed later. */
static int check_size(const struct cell *c, struct brig_error *err)
{
	uint64_t memory = c->plan->limits.memory_bytes;
	char size[32], max[32];

	if (c->project.room <= memory / 2)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the workspace takes %s of memory in a container, which is more than half of mem_limit (%s): raise "
		"mem_limit, or hide what is not needed with workspace_hide",
		str_bytes(size, sizeof(size), c->project.room), str_bytes(max, sizeof(max), memory));
}

int project_pack(struct cell *c, struct brig_error *err)
{
	const struct plan_workspace *w = c->plan->workspace;
	const struct pack_caps caps = { .entries = 1000000, .bytes = c->plan->limits.memory_bytes / 2 };
	AUTO_FD file = FD_NONE;
	struct pack_counts counts;
	off_t len;
	int rc;

	if (!w)
		return 0;
	if (w->n_hidden > WIRE_HIDDEN_MAX)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the workspace has more than %d files that are hidden, too many to watch over in a "
			       "container: name "
			       "folders instead of files in workspace_hide, or use the native backend",
			       WIRE_HIDDEN_MAX);
	file = memfd_create("brig-project", MFD_CLOEXEC);
	if (file < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a file in memory for the workspace");
	rc = pack_tree(w->fd, &caps, plan_workspace_hides, (void *)(uintptr_t)w, file, &counts, err);
	if (rc < 0)
		return rc;
	len = lseek(file, 0, SEEK_CUR);
	c->project = (struct project_out){
		.len = (size_t)len, .entries = counts.entries, .bytes = counts.bytes, .room = counts.room
	};
	rc = check_size(c, err);
	if (rc < 0)
		return rc;
	c->project.data = mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, file, 0);
	if (c->project.data == MAP_FAILED) {
		c->project.data = NULL;
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot read the packed workspace");
	}
	return 0;
}

void project_release(struct cell *c)
{
	if (c->project.data)
		(void)munmap((void *)(uintptr_t)c->project.data, c->project.len);
	c->project.data = NULL;
}

struct pack_caps tree_caps(const struct cell *c)
{
	const struct limits *l = &c->plan->limits;

	return (struct pack_caps){ .entries = l->inodes + c->project.entries,
				   .bytes = l->disk_bytes + max_u64(c->project.room, c->project.bytes) };
}

bool tree_take(struct cell *c, const char *body, size_t len)
{
	struct pack_caps caps = tree_caps(c);

	if (!c->plan->wants_view || c->tree.ended)
		return false;
	/* Long names, which the program chose: what is kept until then is a part of the tree. */
	c->tree.cut |= len > caps.bytes + caps.entries * RECORD_MAX - c->tree.len;
	if (c->tree.cut)
		return true;
	if (c->tree.fd < 0)
		c->tree.fd = memfd_create("brig-workspace", MFD_CLOEXEC);
	c->tree.len += len;
	return c->tree.fd >= 0 && fd_write_all(c->tree.fd, body, len) == 0;
}

bool tree_take_end(struct cell *c, const char *body, size_t len)
{
	if (c->tree.ended)
		return false;
	c->tree.ended = true;
	return wire_get_number(body, len, &c->tree.sys);
}

int docker_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err)
{
	const struct unpack_options o = {
		.caps = tree_caps(c), .uid = UINT32_MAX, .gid = UINT32_MAX, .readable = true
	};
	AUTO_FD dir = FD_NONE;
	struct pack_counts counts;
	bool in_part;
	int rc;

	if (!c->tree.ended)
		return err_set(err, BRIG_E_SYSTEM, 0,
			       "the container ended before it could give its workspace back: nothing of it is known");
	if ((c->tree.sys && c->tree.sys != E2BIG) || c->tree.fd < 0 || lseek(c->tree.fd, 0, SEEK_SET) < 0)
		return err_set(err, BRIG_E_SYSTEM, (int)c->tree.sys,
			       "the container could not give its workspace back: it is larger than its memory");
	dir = private_fs(o.caps.bytes + MiB, o.caps.entries + 16);
	if (dir < 0)
		return err_set(err, BRIG_E_SYSTEM, -dir,
			       "cannot make a file system in memory for the workspace's contents");
	rc = unpack_tree(dir, c->tree.fd, &o, &counts);
	in_part = c->tree.sys == E2BIG || c->tree.cut || rc == -ENOSPC;
	if (rc < 0 && rc != -ENOSPC && !c->tree.cut)
		return err_set(err, BRIG_E_SYSTEM, -rc,
			       "the workspace that the container gave back cannot be unpacked");
	*ret = (struct workspace_view){ .fd = fd_move(&dir), .whole = true, .in_part = in_part };
	return 0;
}

/* ---- names of what is left ------------------------------------------------------------------------------- */

bool left_wanted(const struct cell *c)
{
	return !c->plan->workspace && !c->plan->wants_view && str_eq(c->plan->step, "run");
}

bool left_take(struct cell *c, const char *body, size_t len)
{
	return left_wanted(c) && buf_add(&c->left, body, len) == len;
}

void docker_left(struct cell *c, backend_left_fn each, void *arg)
{
	const char *data = c->left.data, *path;
	size_t len = c->left.len;
	uint64_t size;

	while (wire_left_next(&data, &len, &size, &path))
		each(arg, path, size);
}
