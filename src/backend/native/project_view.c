/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program changed in a project, for the process that requested the cell to read when the cell is dead.
 *
 * Root reads the scratch space through the descriptor that init sent: an overlay's upper layer, or the whole copy.  An
 * ordinary user cannot: the files belong to ids that are the user's only by newuidmap, with modes that the program
 * chose.  So a child enters the cell's user namespace, which exists as long as we hold a descriptor of it, and in which
 * its creator has all capabilities, and packs the tree.  We unpack it into a file system that is mounted nowhere and
 * disappears with its last descriptor, so nothing is left even if we are killed. There the owner can read every file,
 * whatever mode the program gave it.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "backend/native/cell.h"
#include "backend/native/project_view.h"
#include "files/pack.h"
#include "sys/proc.h"
#include "sys/private_fs.h"

/* Sparse files are packed with their holes, which take no room on disk. */
#define SPARSE_ROOM (1 * GiB)
/* Exit status of a carrier that packed only what the caps or the walk permit. */
#define CARRIER_IN_PART 2

/* Whether the view is the whole scratch space: a copied project, or a workspace that began empty. */
static bool is_whole(const struct project_rest *r)
{
	return r->way == PROJECT_STREAM || (r->way == PROJECT_NONE && r->plan->wants_view);
}

bool project_view_needs_carrier(const struct project_rest *r)
{
	return is_whole(r) && geteuid() != 0;
}

static struct project_rest rest_of(const struct cell *c)
{
	return (struct project_rest){ .plan = c->spec.plan,
				      .way = c->project.way,
				      .copy_bytes = c->project.copy_bytes,
				      .copy_inodes = c->project.copy_inodes,
				      .workspace = c->handed[HANDED_WORKSPACE],
				      .upper = c->handed[HANDED_UPPER],
				      .user_ns = c->handed[HANDED_NS_USER] };
}

bool cell_project_needs(const struct cell *c, enum handed_fd which)
{
	const struct project_rest r = rest_of(c);

	return (which == HANDED_UPPER && c->project.way == PROJECT_LOWER) ||
	       (which == HANDED_NS_USER && project_view_needs_carrier(&r));
}

/* ---- the carrier ---------------------------------------------------------------------------------- */

/* Has every capability over the dead cell's namespace, and thus over its files, and none elsewhere. */
static _Noreturn void carrier_main(const struct project_rest *r, const struct pack_caps *caps, int out)
{
	struct brig_error err = { .code = 0 };
	struct pack_counts counts;

	if (setns(r->user_ns, CLONE_NEWUSER) < 0)
		_exit(1);
	if (pack_tree(r->workspace, caps, NULL, NULL, out, &counts, &err) == 0)
		_exit(counts.cut ? CARRIER_IN_PART : 0);
	_exit(1);
}

/*
 * The program determines how much there is to carry, so too much is a result and not a failure: *ret_in_part.  Hard
 * links are unpacked as separate files, which may exceed the room.
 */
static int carry(const struct project_rest *r, int to, const struct pack_caps *caps, bool *ret_in_part)
{
	const struct unpack_options options = { .caps = *caps, .uid = UINT32_MAX, .gid = UINT32_MAX, .readable = true };
	struct pack_counts counts;
	int ends[2], rc, status = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* fork(), not a bare clone: packing allocates, and the caller may have threads. */
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		carrier_main(r, caps, ends[1]);
	}
	rc = pid < 0 ? -errno : 0;
	(void)close(ends[1]);
	if (rc == 0)
		rc = unpack_tree(to, ends[0], &options, &counts);
	(void)close(ends[0]); /* ends a carrier that still writes */
	if (pid > 0)
		status = proc_wait(pid);
	*ret_in_part = rc == -ENOSPC || (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == CARRIER_IN_PART);
	return rc == -ENOSPC ? 0 : rc;
}

static int view_by_carrier(const struct project_rest *r, bool *ret_in_part, struct brig_error *err)
{
	const struct limits *l = &r->plan->limits;
	uint64_t bytes = l->disk_bytes + r->copy_bytes, inodes = l->inodes + r->copy_inodes + 16;
	const struct pack_caps caps = { .entries = inodes, .bytes = bytes + SPARSE_ROOM, .in_part = true };
	AUTO_FD own = private_fs(bytes, inodes);
	int rc = own < 0 ? own : carry(r, own, &caps, ret_in_part);

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "what the program left in its workspace cannot be read back");
	return fd_move(&own);
}

int project_view(const struct project_rest *r, struct workspace_view *ret, struct brig_error *err)
{
	bool whole = is_whole(r);
	int from = whole ? r->workspace : r->upper;
	bool in_part = false;
	int fd;

	if ((r->way == PROJECT_NONE && !whole) || from < 0)
		return err_set(err, BRIG_E_INTERNAL, 0, "there is no workspace to be read back");
	if (project_view_needs_carrier(r)) {
		fd = view_by_carrier(r, &in_part, err);
	} else {
		fd = fcntl(from, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot hold the workspace");
	}
	if (fd < 0)
		return fd;
	*ret = (struct workspace_view){ .fd = fd, .whole = whole, .in_part = in_part };
	return 0;
}

int cell_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err)
{
	const struct project_rest r = rest_of(c);

	if (c->tasks_left != 0)
		return err_set(err, BRIG_E_INTERNAL, 0, "there is no workspace to be read back: the cell is not dead");
	return project_view(&r, ret, err);
}
