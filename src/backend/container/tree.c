/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project in a container.  No host directory is mounted there: an engine may run elsewhere, and its mounts have
 * neither our id maps nor our confinement.  So the project is sent as a stream of files/pack.h, without hidden files,
 * into the tmpfs of the workspace, which is enlarged accordingly; when all processes but init are dead, init sends the
 * whole workspace back the same way.  It is unpacked into a file system in memory that no other process can reach, and
 * that disappears with its descriptor, however brig ends.
 *
 * Packages are sent the same way, into their own tmpfs of exactly their size; they are not sent back.
 *
 * Unlike in a native cell, hidden files do not exist at all, instead of being empty.
 */
#include "backend/container/pump.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "sys/private_fs.h"

#define RECORD_MAX 512 /* average size of an entry's head and path in a stream */

/*
 * A tmpfs is charged to the container's memory: trees that leave none to the program are refused now, instead of killed
 * later.
 */
static int check_size(const struct pump *p, struct brig_error *err)
{
	uint64_t memory = p->plan->limits.memory_bytes, room = p->project.room + p->shown.room;
	char size[32], max[32];

	if (room <= memory / 2)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the %s take%s %s of memory in a container, which is more than half of mem_limit (%s): raise "
		"mem_limit%s",
		!p->shown.room    ? "workspace"
		: p->project.room ? "workspace and packages"
				  : "packages",
		p->shown.room ? "" : "s", str_bytes(size, sizeof(size), room), str_bytes(max, sizeof(max), memory),
		p->project.room ? ", or hide what is not needed with workspace_hide" : ", or use the native backend");
}

/* Packs a tree into memory, for p->project or p->shown. */
static int pack_out(struct pump *p, int dir, pack_skip_fn skip, void *arg, struct project_out *ret,
		    struct brig_error *err)
{
	const struct pack_caps caps = { .entries = 1000000, .bytes = p->plan->limits.memory_bytes / 2 };
	AUTO_FD file = memfd_create("brig-tree", MFD_CLOEXEC);
	struct pack_counts counts;
	off_t len;
	int rc;

	if (file < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a file in memory for the container's files");
	rc = pack_tree(dir, &caps, skip, arg, file, &counts, err);
	if (rc < 0)
		return rc;
	len = lseek(file, 0, SEEK_CUR);
	*ret = (struct project_out){
		.len = (size_t)len, .entries = counts.entries, .bytes = counts.bytes, .room = counts.room
	};
	rc = check_size(p, err);
	if (rc < 0)
		return rc;
	ret->data = mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, file, 0);
	if (ret->data == MAP_FAILED) {
		ret->data = NULL;
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot read the packed files");
	}
	return 0;
}

/* Hidden paths, and a directory that is replaced by a link. */
static bool is_left_out(void *arg, const char *path, bool is_dir)
{
	const struct pump *p = arg;

	return plan_workspace_hides((void *)(uintptr_t)p->plan->workspace, path, is_dir) ||
	       (p->linked && str_eq(path, p->linked->target + strlen(PLAN_WORKSPACE "/")));
}

int project_pack(struct pump *p, struct brig_error *err)
{
	const struct plan_workspace *w = p->plan->workspace;

	if (!w)
		return 0;
	if (w->n_hidden > WIRE_HIDDEN_MAX)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the workspace has more than %d files that are hidden, too many to watch over in a "
			       "container: name "
			       "folders instead of files in workspace_hide, or use the native backend",
			       WIRE_HIDDEN_MAX);
	return pack_out(p, w->fd, is_left_out, p, &p->project, err);
}

/* Packages consist of one tree and at most one link in the workspace that leads into it. */
static bool find_binds(struct pump *p)
{
	static const char workspace[] = PLAN_WORKSPACE "/";

	for (size_t i = 0; i < p->plan->n_binds; i++) {
		const struct plan_bind *b = &p->plan->binds[i];
		bool inside = strncmp(b->target, workspace, strlen(workspace)) == 0;

		if (inside && b->same_as && !p->linked)
			p->linked = b;
		else if (strncmp(b->target, WIRE_SHOWN_TOP, strlen(WIRE_SHOWN_TOP)) == 0 && !p->folder)
			p->folder = b;
		else
			return false;
	}
	return true;
}

int shown_pack(struct pump *p, struct brig_error *err)
{
	AUTO_FD dir = FD_NONE;

	if (!find_binds(p))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"a container can be given one folder of the host besides its workspace, and more are asked "
			"for: use the native backend");
	if (!p->folder)
		return 0;
	dir = open(p->folder->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", p->folder->source);
	return pack_out(p, dir, NULL, NULL, &p->shown, err);
}

static void release(struct project_out *o)
{
	if (o->data)
		(void)munmap((void *)(uintptr_t)o->data, o->len);
	o->data = NULL;
}

void project_release(struct pump *p)
{
	release(&p->project);
	release(&p->shown);
}

struct pack_caps tree_caps(const struct pump *p)
{
	const struct limits *l = &p->plan->limits;

	return (struct pack_caps){ .entries = l->inodes + p->project.entries,
				   .bytes = l->disk_bytes + max_u64(p->project.room, p->project.bytes) };
}

bool tree_take(struct pump *p, const char *body, size_t len)
{
	struct pack_caps caps = tree_caps(p);

	if (!p->plan->wants_view || p->tree.ended)
		return false;
	/* The program may choose long names: then only a part of the tree is kept. */
	p->tree.cut |= len > caps.bytes + caps.entries * RECORD_MAX - p->tree.len;
	if (p->tree.cut)
		return true;
	if (p->tree.fd < 0)
		p->tree.fd = memfd_create("brig-workspace", MFD_CLOEXEC);
	p->tree.len += len;
	return p->tree.fd >= 0 && fd_write_all(p->tree.fd, body, len) == 0;
}

bool tree_take_end(struct pump *p, const char *body, size_t len)
{
	if (p->tree.ended)
		return false;
	p->tree.ended = true;
	return wire_get_number(body, len, &p->tree.sys);
}

int container_cell_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err)
{
	const struct pump *p = pump_of(c);
	const struct unpack_options o = {
		.caps = tree_caps(p), .uid = UINT32_MAX, .gid = UINT32_MAX, .readable = true
	};
	AUTO_FD dir = FD_NONE;
	struct pack_counts counts;
	bool in_part;
	int rc;

	if (!p->tree.ended)
		return err_set(err, BRIG_E_SYSTEM, 0,
			       "the container ended before it could give its workspace back: nothing of it is known");
	if ((p->tree.sys && p->tree.sys != E2BIG) || p->tree.fd < 0 || lseek(p->tree.fd, 0, SEEK_SET) < 0)
		return err_set(err, BRIG_E_SYSTEM, (int)p->tree.sys,
			       "the container could not give its workspace back: it is larger than its memory");
	dir = private_fs(o.caps.bytes + MiB, o.caps.entries + 16);
	if (dir < 0)
		return err_set(err, BRIG_E_SYSTEM, -dir,
			       "cannot make a file system in memory for the workspace's contents");
	rc = unpack_tree(dir, p->tree.fd, &o, &counts);
	in_part = p->tree.sys == E2BIG || p->tree.cut || rc == -ENOSPC;
	if (rc < 0 && rc != -ENOSPC && !p->tree.cut)
		return err_set(err, BRIG_E_SYSTEM, -rc,
			       "the workspace that the container gave back cannot be unpacked");
	*ret = (struct workspace_view){ .fd = fd_move(&dir), .whole = true, .in_part = in_part };
	return 0;
}

/* ---- names of what is left ------------------------------------------------------------------------------- */

bool left_wanted(const struct pump *p)
{
	return !p->plan->workspace && !p->plan->wants_view && str_eq(p->plan->step, "run");
}

bool left_take(struct pump *p, const char *body, size_t len)
{
	return left_wanted(p) && buf_add(&p->left, body, len) == len;
}

void container_cell_left(struct cell *c, backend_left_fn each, void *arg)
{
	const struct pump *p = pump_of(c);
	const char *data = p->left.data, *path;
	size_t len = p->left.len;
	uint64_t size;

	while (wire_left_next(&data, &len, &size, &path))
		each(arg, path, size);
}

/* ---- what an installer left --------------------------------------------------------------------------- */

/* A subdirectory of what an installer's cell has left. */
int container_cell_open_folder(struct cell *c, const char *name)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct workspace_view view = { .fd = FD_NONE };
	int fd;

	if (container_cell_workspace(c, &view, &err) < 0)
		return -EIO;
	fd = view.in_part ? -E2BIG : beneath_open_dir(view.fd, name);
	fd_closep(&view.fd);
	return fd;
}
