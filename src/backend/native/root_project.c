/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a project in the cell's workspace, in cell init; project.c has the supervisor's part, which chooses one of two
 * ways and sends it with REPORT_PROJECT:
 *
 *   PROJECT_LOWER    an overlay.  The lower layer is the project, a read-only mount on which its owner is the program;
 *                    the upper layer, in the scratch space and so under the disk limit, is what the program changes
 *   PROJECT_STREAM   a copy in the scratch space, which is larger by exactly the size of the copy
 *
 * Then masks: an empty file or directory of ours over each hidden path.  No process in the cell can move, remove or
 * replace a mount point, or reach what is below it.  The empty objects are in the skeleton's own /tmp, where the cell's
 * /tmp covers them; each hidden path has one of its own, so that a watch on that directory shows which one was opened.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "backend/native/cell_spec.h"
#include "base/fd.h"
#include "files/beneath.h"
#include "files/pack.h"
#include "sys/mnt.h"

/* Of an overlay: the upper directory, the work directory and the one in it, the whiteout; minus "workspace". */
#define OVERLAY_INODES 3
/* Of every scratch space: its root and the three directories in it. */
#define SCRATCH_INODES 4

/* Instead of snprintf, which takes locks. */
static void put_u64(char dst[24], uint64_t n)
{
	char digits[24];
	size_t len = 0;

	do {
		digits[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	for (size_t i = 0; i < len; i++)
		dst[i] = digits[len - 1 - i];
	dst[len] = '\0';
}

int root_take_project(struct cell_build *b)
{
	struct project_build *p = &b->project;
	struct received r;
	int rc;

	if (!b->spec->plan->workspace)
		return 0;
	rc = report_receive(b->spec->ctl, /* wait= */ true, &r);
	if (rc <= 0)
		return rc < 0 ? rc : -ESRCH;
	if (r.report.kind != REPORT_PROJECT || r.n_fds != 1)
		return -EPROTO;
	p->way = (enum project_way)r.report.value;
	p->source = r.fds[0];
	p->copy_bytes = r.report.blocks;
	p->copy_inodes = r.report.inodes;
	p->own_inodes = p->way == PROJECT_LOWER ? OVERLAY_INODES : 0;
	/* While it can still be opened. */
	p->masks = openat(b->root, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return p->masks < 0 ? -errno : 0;
}

void root_scratch_room(const struct cell_build *b, struct scratch_room *ret)
{
	const struct limits *l = &b->spec->plan->limits;
	const struct project_build *p = &b->project;

	put_u64(ret->size, l->disk_bytes + p->copy_bytes);
	put_u64(ret->inodes, l->inodes + SCRATCH_INODES + (p->way == PROJECT_LOWER ? OVERLAY_INODES : p->copy_inodes));
}

/* ---- overlay ------------------------------------------------------------------------------------- */

/*
 * Creates the directories above a covering file in the upper layer: an overlay merges them with the project's
 * directories of the same names, and uses the upper one's mode and owner.
 */
static int make_way_above(struct cell_build *b, const char *path)
{
	const struct plan *plan = b->spec->plan;
	char part[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t len = (size_t)(slash - path);
		AUTO_FD below = FD_NONE;
		struct stat st;

		if (len >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, len);
		part[len] = '\0';
		below = beneath_look(b->project.source, part, &st);
		if (below < 0)
			return fd_move(&below);
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
		if (mkdirat(b->project.upper, part, 0700) < 0 ||
		    fchmodat(b->project.upper, part, st.st_mode & 0777, 0) < 0 ||
		    fchownat(b->project.upper, part, plan->uid, plan->gid, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return 0;
}

static int make_layers(struct cell_build *b)
{
	const struct plan *plan = b->spec->plan;
	static const char *const names[] = { "lower", "upper", "work" };
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (mkdirat(b->scratch, names[i], 0700) < 0)
			return -errno;
	b->project.upper = openat(b->scratch, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (b->project.upper < 0)
		return -errno;
	/* It determines owner and mode of the overlay's root. */
	if (fchmod(b->project.upper, 0755) < 0 || fchown(b->project.upper, plan->uid, plan->gid) < 0)
		return -errno;
	/* A file that covers one of the project is created before the overlay, so the covered one is never visible. */
	if (plan->workspace->covered)
		rc = make_way_above(b, plan->workspace->covered);
	return rc < 0 ? rc : root_stage_files_in(b, b->project.upper, /* covering= */ true);
}

/*
 * Paths are relative to the scratch space, since an overlay's options are visible in the cell.  So are mounts, and the
 * project's own would reveal its path on the host; it is detached once the overlay has its private clone.
 */
static int show_overlay(struct cell_build *b)
{
	static const struct mount_param params[] = {
		{ "source", "project" }, { "lowerdir+", "lower" }, { "upperdir", "upper" },
		{ "workdir", "work" },   { "userxattr", NULL },
	};
	AUTO_FD tree = FD_NONE;
	int rc = make_layers(b);

	if (rc == 0)
		rc = mount_attach(b->project.source, b->scratch, "lower");
	if (rc < 0)
		return rc;
	if (fchdir(b->scratch) < 0)
		return -errno;
	tree = mount_new("overlay", params, ARRAY_LEN(params), b->spec->plan->workspace_exec ? 0 : MNT_NOEXEC);
	if (tree < 0)
		return tree;
	rc = mount_detach("lower");
	if (rc == 0 && unlinkat(b->scratch, "lower", AT_REMOVEDIR) < 0)
		rc = -errno;
	if (rc == 0)
		rc = mount_attach(tree, b->root, "workspace");
	return rc < 0 ? rc : root_open_workspace(b);
}

/* ---- copy ---------------------------------------------------------------------------------------- */

/* Changes init's effective ids, and with them its capabilities, or changes them back. */
static int act_as(const struct cell_build *b, uid_t uid, gid_t gid)
{
	if (!b->spec->two_ids)
		return 0;
	/*
	 * Back: the user id first, which gives the right to change the group.  Direct system calls, see
	 * guest_set_ids().
	 */
	if (uid == 0 && syscall(SYS_setresuid, -1, 0, -1) < 0)
		return -errno;
	if (syscall(SYS_setresgid, -1, gid, -1) < 0 || syscall(SYS_setresuid, -1, uid, -1) < 0)
		return -errno;
	/* Every change of ids resets both, see take_ids. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/*
 * INV-1: runs with the program's ids and without effective capabilities, although the stream comes from the supervisor.
 */
static int unpack(struct cell_build *b)
{
	const struct plan *plan = b->spec->plan;
	const struct unpack_options options = {
		.caps = { .entries = b->project.copy_inodes, .bytes = b->project.copy_bytes },
		.uid = UINT32_MAX,
		.gid = UINT32_MAX,
	};
	struct pack_counts counts;
	int rc = act_as(b, plan->uid, plan->gid), back;

	if (rc < 0)
		return rc;
	rc = unpack_tree(b->workspace, b->project.source, &options, &counts);
	back = act_as(b, 0, 0);
	return rc < 0 ? rc : back;
}

/* The size of the copy is now known exactly; the program gets its limits on top of it and no more. */
static int fit_scratch(struct cell_build *b)
{
	struct project_build *p = &b->project;
	struct scratch_room room;
	const struct mount_param params[] = { { "size", room.size }, { "nr_inodes", room.inodes } };
	struct statfs st;

	if (fstatfs(b->scratch, &st) < 0)
		return -errno;
	p->copy_bytes = (uint64_t)(st.f_blocks - st.f_bfree) * (uint64_t)st.f_bsize;
	p->copy_inodes = (uint64_t)(st.f_files - st.f_ffree);
	p->copy_inodes -= min_u64(p->copy_inodes, SCRATCH_INODES);
	p->own_bytes = p->copy_bytes;
	p->own_inodes = p->copy_inodes;
	root_scratch_room(b, &room);
	return mount_reconfigure(b->scratch, params, ARRAY_LEN(params));
}

static int show_copy(struct cell_build *b)
{
	const struct plan *plan = b->spec->plan;
	int rc = root_show_scratch(b, "copy", "workspace", 0755, plan->workspace_exec ? 0 : MNT_NOEXEC);

	if (rc == 0)
		rc = root_open_workspace(b);
	if (rc == 0 && fchown(b->workspace, plan->uid, plan->gid) < 0)
		rc = -errno;
	if (rc == 0)
		rc = unpack(b);
	return rc < 0 ? rc : fit_scratch(b);
}

int root_show_project(struct cell_build *b)
{
	switch (b->project.way) {
	case PROJECT_NONE:
		return 0;
	case PROJECT_LOWER:
		return show_overlay(b);
	case PROJECT_STREAM:
		return show_copy(b);
	}
	return -EPROTO;
}

/* ---- masks --------------------------------------------------------------------------------------- */

static int make_empty(int dir, const char *name, bool is_dir, mode_t mode)
{
	if (!is_dir)
		return root_write_file(dir, name, mode, "", 0);
	return mkdirat(dir, name, mode) < 0 || fchmodat(dir, name, mode, 0) < 0 ? -errno : 0;
}

/* Opens the path to be covered.  A copy does not contain it, so a placeholder is created. */
static int open_hidden(struct cell_build *b, const char *path, enum hidden_kind kind)
{
	if (b->project.way == PROJECT_STREAM && kind != HIDDEN_GONE) {
		const char *name;
		AUTO_FD parent = beneath_open_parent(b->workspace, path, &name);
		int rc = parent < 0 ? parent : make_empty(parent, name, kind == HIDDEN_DIR, 0755);

		if (rc < 0)
			return rc;
	}
	return beneath_look(b->workspace, path, NULL);
}

static int hide(struct cell_build *b, size_t i)
{
	AUTO_FD target = FD_NONE, tree = FD_NONE;
	struct stat st;
	char name[24];
	int rc;

	target = open_hidden(b, b->spec->plan->workspace->hidden[i], b->spec->hidden[i]);
	/* It is inside another hidden directory, or does not exist. */
	if (target == -EXDEV || target == -ENOENT)
		return 0;
	if (target < 0)
		return fd_move(&target);
	if (fstat(target, &st) < 0)
		return -errno;
	put_u64(name, i);
	rc = make_empty(b->project.masks, name, S_ISDIR(st.st_mode), S_ISDIR(st.st_mode) ? 0555 : 0444);
	if (rc < 0)
		return rc;
	tree = mount_copy(b->project.masks, name, MNT_RO | MNT_NOEXEC);
	return tree < 0 ? tree : mount_attach(tree, target, "");
}

/* ---- protected files ------------------------------------------------------------------------------- */

#define HELD_DEPTH 64

/*
 * A file that is a read-only mount cannot be written, replaced or removed; but the directory that it is in could be
 * renamed and another put in its place.  So each directory on the way becomes a mount of itself, writable: a mount
 * point cannot be renamed.  The paths are sorted by directory, and the directories on the way to the last one are kept
 * open.
 */
struct way {
	const char *path;       /* the previous file */
	size_t end[HELD_DEPTH]; /* length of the path up to each open directory */
	int fd[HELD_DEPTH];
	size_t n;
};

static void way_shorten(struct way *w, size_t n)
{
	while (w->n > n)
		(void)close(w->fd[--w->n]);
}

/* How many open directories path shares with the previous one. */
static size_t way_shared(const struct way *w, const char *path)
{
	size_t n = 0;

	while (n < w->n && strncmp(w->path, path, w->end[n]) == 0 && path[w->end[n]] == '/')
		n++;
	return n;
}

/* One component.  Returns the mount's own fd, below which no mount is crossed. */
static int hold_folder(int parent, const char *name)
{
	AUTO_FD target = beneath_look(parent, name, NULL), tree = FD_NONE;
	int rc;

	if (target < 0)
		return fd_move(&target);
	tree = mount_copy(target, "", MNT_RECURSIVE);
	rc = tree < 0 ? tree : mount_attach(tree, target, "");
	return rc < 0 ? rc : fd_move(&tree);
}

/* Opens the directories up to the file's own; *ret_name is its name there. */
static int way_to(struct cell_build *b, struct way *w, const char *path, const char **ret_name)
{
	size_t start;

	way_shorten(w, way_shared(w, path));
	w->path = path;
	start = w->n ? w->end[w->n - 1] + 1 : 0;
	for (const char *slash; (slash = strchr(path + start, '/')); start = w->end[w->n - 1] + 1) {
		int parent = w->n ? w->fd[w->n - 1] : b->workspace, fd;
		char name[256];
		size_t len = (size_t)(slash - path) - start;

		if (w->n == HELD_DEPTH || len >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path + start, len);
		name[len] = '\0';
		fd = hold_folder(parent, name);
		if (fd < 0)
			return fd;
		w->fd[w->n] = fd;
		w->end[w->n++] = start + len;
	}
	*ret_name = path + start;
	return 0;
}

static int hold(struct cell_build *b, struct way *w, const char *path)
{
	AUTO_FD target = FD_NONE, tree = FD_NONE;
	const char *name;
	int rc = way_to(b, w, path, &name);

	/* It is hidden and thus cannot be changed, or is gone by now. */
	if (rc == -EXDEV || rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	target = beneath_look(w->n ? w->fd[w->n - 1] : b->workspace, name, NULL);
	if (target == -EXDEV || target == -ENOENT)
		return 0;
	tree = target < 0 ? target : mount_copy(target, "", MNT_RO);
	return tree < 0 ? tree : mount_attach(tree, target, "");
}

static int hold_files(struct cell_build *b)
{
	const struct plan_workspace *p = b->spec->plan->workspace;
	struct way w = { .path = "" };
	int rc = 0;

	for (size_t i = 0; i < p->n_held && rc == 0; i++)
		rc = hold(b, &w, p->held[i]);
	way_shorten(&w, 0);
	return rc;
}

int root_mask_project(struct cell_build *b)
{
	const struct plan_workspace *w = b->spec->plan->workspace;
	int rc = 0;

	if (!w)
		return 0;
	for (size_t i = 0; i < w->n_hidden && rc == 0; i++)
		rc = hide(b, i);
	if (rc == 0)
		rc = hold_files(b);
	if (rc == 0 && w->read_only)
		rc = mount_restrict(b->workspace, MNT_RO);
	return rc;
}
