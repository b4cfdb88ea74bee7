/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program made of a project, for the supervisor to read when the cell is dead.
 *
 * Started by root it reads the scratch space itself, by the descriptor that init handed over: an overlay's upper layer,
 * or the whole copy.  An ordinary user may not: the files belong to ids that are his only by newuidmap, with modes of
 * the program's choosing.  So a child enters the cell's user namespace, which outlives its processes while we hold its
 * descriptor and in which its maker may do everything, and packs the tree; here it is unpacked into a tmpfs that is
 * mounted nowhere.  It is made by another child, in a user namespace where the user's own id is itself, and is gone with
 * its last descriptor: whoever kills us, nothing is left.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/native/cell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "files/pack.h"
#include "sys/mnt.h"
#include "sys/proc.h"

#define HELPER_NS (10 * NS_PER_SEC)
/* Holes count in a stream, though they take no room. */
#define SPARSE_ROOM (4 * GiB)

static bool needs_carrier(const struct cell *c)
{
	return c->project.way == PROJECT_STREAM && geteuid() != 0;
}

bool cell_project_needs(const struct cell *c, enum handed_fd which)
{
	return (which == HANDED_UPPER && c->project.way == PROJECT_LOWER) ||
	       (which == HANDED_NS_USER && needs_carrier(c));
}

/* ---- a tmpfs of our own -------------------------------------------------------------------------- */

struct private_spec {
	char size[24], inodes[24], uid_map[48], gid_map[48];
	int sock;
};

/* In the child, async-signal-safe. */
static int make_private(const struct private_spec *s)
{
	const struct mount_param params[] = { { "size", s->size }, { "nr_inodes", s->inodes }, { "mode", "0700" } };
	struct report made = report_make(REPORT_PROJECT);
	int rc = fd_put_at(AT_FDCWD, "/proc/self/setgroups", "deny"), fs;

	if (rc == 0)
		rc = fd_put_at(AT_FDCWD, "/proc/self/gid_map", s->gid_map);
	if (rc == 0)
		rc = fd_put_at(AT_FDCWD, "/proc/self/uid_map", s->uid_map);
	if (rc < 0)
		return rc;
	fs = mount_new("tmpfs", params, ARRAY_LEN(params), MNT_NOEXEC);
	return fs < 0 ? fs : report_send(s->sock, &made, &fs, 1);
}

static int receive_private(int sock)
{
	struct received r;
	int rc = report_receive(sock, /* wait= */ true, &r);

	if (rc <= 0)
		return rc < 0 ? rc : -EPERM;
	if (r.report.kind == REPORT_FAILED)
		return -r.report.sys;
	return r.n_fds == 1 ? r.fds[0] : -EPROTO;
}

static int open_private(uint64_t bytes, uint64_t inodes)
{
	int pidfd = FD_NONE, ends[2], fs;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWUSER | CLONE_NEWNS,
				   .pidfd = (uintptr_t)&pidfd };
	struct private_spec s;
	long pid;

	(void)snprintf(s.size, sizeof(s.size), "%llu", (unsigned long long)bytes);
	(void)snprintf(s.inodes, sizeof(s.inodes), "%llu", (unsigned long long)inodes);
	(void)snprintf(s.uid_map, sizeof(s.uid_map), "%u %u 1\n", geteuid(), geteuid());
	(void)snprintf(s.gid_map, sizeof(s.gid_map), "%u %u 1\n", getegid(), getegid());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	s.sock = ends[1];
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		int rc = make_private(&s);

		if (rc < 0)
			(void)report_failure(s.sock, STEP_show_project, rc);
		_exit(0);
	}
	fs = pid < 0 ? -errno : 0;
	(void)close(ends[1]);
	if (fs == 0)
		fs = receive_private(ends[0]);
	(void)close(ends[0]);
	if (pid > 0)
		(void)proc_reap(&pidfd, clock_now_ns() + HELPER_NS, NULL);
	return fs;
}

/* ---- the carrier ---------------------------------------------------------------------------------- */

/* Holds every capability over the dead cell's namespace, and so over its files, and none elsewhere. */
static _Noreturn void carrier_main(const struct cell *c, const struct pack_caps *caps, int out)
{
	struct brig_error err = { .code = 0 };
	struct pack_counts counts;

	if (setns(c->handed[HANDED_NS_USER], CLONE_NEWUSER) < 0)
		_exit(1);
	_exit(pack_tree(c->handed[HANDED_WORKSPACE], caps, NULL, NULL, out, &counts, &err) < 0);
}

static int carry(const struct cell *c, int to, const struct pack_caps *caps)
{
	const struct unpack_options options = { .caps = *caps, .uid = UINT32_MAX, .gid = UINT32_MAX };
	struct pack_counts counts;
	int ends[2], rc;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* fork(), not a bare clone: packing allocates, and a caller may have threads. */
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		carrier_main(c, caps, ends[1]);
	}
	rc = pid < 0 ? -errno : 0;
	(void)close(ends[1]);
	if (rc == 0)
		rc = unpack_tree(to, ends[0], &options, &counts);
	(void)close(ends[0]); /* a carrier that still writes ends by this */
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return rc;
}

static int view_by_carrier(struct cell *c, struct brig_error *err)
{
	const struct limits *l = &c->spec.plan->limits;
	uint64_t bytes = l->disk_bytes + c->project.copy_bytes, inodes = l->inodes + c->project.copy_inodes + 16;
	const struct pack_caps caps = { .entries = inodes, .bytes = bytes + SPARSE_ROOM };
	AUTO_FD own = open_private(bytes, inodes);
	int rc = own < 0 ? own : carry(c, own, &caps);

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot read back what the program made of %s",
			       c->spec.plan->workspace->path);
	return fd_move(&own);
}

int cell_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err)
{
	bool whole = c->project.way == PROJECT_STREAM;
	enum handed_fd from = whole ? HANDED_WORKSPACE : HANDED_UPPER;
	int fd;

	if (c->project.way == PROJECT_NONE || c->tasks_left != 0 || c->handed[from] < 0)
		return err_set(err, BRIG_E_INTERNAL, 0, "there is no workspace to be read back%s",
			       c->tasks_left == 0 ? "" : ": the cell is not dead");
	if (needs_carrier(c)) {
		fd = view_by_carrier(c, err);
	} else {
		fd = fcntl(c->handed[from], F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot hold the workspace");
	}
	if (fd < 0)
		return fd;
	*ret = (struct workspace_view){ .fd = fd, .whole = whole };
	return 0;
}
