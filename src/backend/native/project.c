/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares a project for a cell, in the supervisor, while init builds the rest; root_project.c has init's part.
 *
 * The project's files have an owner on this host; the program has an id that no user has.  If this process has the
 * rights, it makes a detached copy of the mount that the project is on, limited to its directory: read-only, without
 * set-uid files and devices, and id-mapped so that the owner appears as the program.  All other owners appear as
 * unmapped.  The file system must support id-mapped mounts, and the scratch space must support an overlay's extended
 * attributes.
 *
 * Otherwise (an ordinary user, an old kernel, another type of file system) the project comes as a stream
 * (project_stream.h), which is passed on unread.  A keeper requests it from its caller, which may read the project; a
 * process that makes a cell for itself packs it.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "backend/native/cell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "files/beneath.h"
#include "sys/mnt.h"
#include "sys/proc.h"

#define HIDDEN_MAX 4096
#define HELPER_NS  (10 * NS_PER_SEC)

void cell_project_init(struct project *p)
{
	*p = (struct project){ .lower = FD_NONE, .stream = PROJECT_STREAM_NONE };
}

/* ---- the mount ----------------------------------------------------------------------------------- */

/* An overlay marks what it hides with extended attributes, which tmpfs has since Linux 6.6. */
static bool can_overlay(void)
{
	AUTO_FD file = memfd_create("brig", MFD_CLOEXEC);
	AUTO_FD overlay = FD_NONE;

	if (file < 0 || fsetxattr(file, "user.overlay.probe", "y", 1, 0) < 0)
		return false;
	overlay = fsopen("overlay", FSOPEN_CLOEXEC);
	return overlay >= 0;
}

/* Keeps the new namespace until the supervisor has what it needs, or is gone. */
static _Noreturn void hold(int lifeline)
{
	char end;

	(void)close_range(0, (unsigned)lifeline - 1, 0);
	(void)close_range((unsigned)lifeline + 1, ~0U, 0);
	while (read(lifeline, &end, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int write_holder_map(pid_t pid, const char *file, uint64_t from, uint64_t to)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return fd_putf_at(AT_FDCWD, path, "%llu %llu 1\n", (unsigned long long)from, (unsigned long long)to);
}

static int open_holder_ns(pid_t pid, const struct stat *owner, uint64_t uid, uint64_t gid)
{
	char path[48];
	int rc = write_holder_map(pid, "gid_map", owner->st_gid, gid);
	int fd;

	if (rc == 0)
		rc = write_holder_map(pid, "uid_map", owner->st_uid, uid);
	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A user namespace that maps only the project's owner, to the program. */
static int make_id_namespace(const struct stat *owner, uint64_t uid, uint64_t gid)
{
	int pidfd = FD_NONE, ends[2], ns;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWUSER,
				   .pidfd = (uintptr_t)&pidfd };
	long pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* No exit signal: wait() in the caller's code must not find this child. */
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		hold(ends[0]);
	ns = pid < 0 ? -errno : open_holder_ns((pid_t)pid, owner, uid, gid);
	(void)close(ends[0]);
	(void)close(ends[1]);
	if (pid > 0)
		(void)proc_reap(&pidfd, clock_now_ns() + HELPER_NS, NULL);
	proc_leave(&pidfd);
	return ns;
}

static int make_lower(const struct cell *c)
{
	const struct plan *plan = c->spec.plan;
	AUTO_FD ns = FD_NONE;
	uint64_t uid, gid;
	struct stat st;

	if (c->host->ids.kind != IDMAP_DIRECT || c->host->mounts_no_project || FAULT_HIT(STEP_pack_project) ||
	    FAULT_HIT(STEP_offer_stream) || !can_overlay())
		return -EOPNOTSUPP;
	if (fstat(plan->workspace->fd, &st) < 0)
		return -errno;
	idmap_of_program(c, &uid, &gid);
	ns = make_id_namespace(&st, uid, gid);
	if (ns < 0)
		return fd_move(&ns);
	return mount_copy_mapped(plan->workspace->fd, ns, plan->workspace_exec ? 0 : MNT_NOEXEC);
}

/* ---- mount and stream ---------------------------------------------------------------------------- */

int cell_look_at_project(struct cell *c, struct brig_error *err)
{
	const struct plan_workspace *w = c->spec.plan->workspace;

	if (!w)
		return 0;
	if (w->n_hidden > HIDDEN_MAX)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "%zu files of %s are to be hidden, more than %d: hide the folders that they are in",
			       w->n_hidden, w->path, HIDDEN_MAX);
	c->project.hidden = calloc(w->n_hidden + 1, sizeof(*c->project.hidden));
	if (!c->project.hidden)
		return err_nomem(err);
	for (size_t i = 0; i < w->n_hidden; i++) {
		struct stat st;
		AUTO_FD fd = beneath_look(w->fd, w->hidden[i], &st);

		if (fd >= 0)
			c->project.hidden[i] = S_ISDIR(st.st_mode) ? HIDDEN_DIR : HIDDEN_FILE;
	}
	c->spec.hidden = c->project.hidden;
	return 0;
}

static int offer(struct cell *c, enum project_way way, const int *fd)
{
	struct report r = report_make(REPORT_PROJECT);

	c->project.way = way;
	r.value = (int32_t)way;
	r.blocks = c->project.copy_bytes;
	r.inodes = c->project.copy_inodes;
	return report_send(c->ctl, &r, fd, 1);
}

int cell_offer_stream(struct cell *c, int source, uint64_t bytes, uint64_t inodes, struct brig_error *err)
{
	int rc;

	if (FAULT_HIT(STEP_offer_stream))
		return cell_step_failed(STEP_offer_stream, FAULT_ERRNO, err);
	c->project.wants_stream = false;
	c->project.copy_bytes = bytes;
	c->project.copy_inodes = inodes;
	rc = offer(c, PROJECT_STREAM, &source);
	return rc < 0 ? cell_lost_init(c, STEP_take_project, rc, err) : 0;
}

/* Packs the project in this process, unless another one does that. */
static int pack_and_offer(struct cell *c, struct brig_error *err)
{
	struct project_stream *s = &c->project.stream;
	int rc;

	if (c->host->asks_for_streams) {
		c->project.wants_stream = true;
		return 0;
	}
	rc = project_stream_begin(s, c->spec.plan, err);
	if (rc == 0)
		rc = cell_offer_stream(c, s->source, s->bytes, s->inodes, err);
	fd_closep(&s->source);
	return rc;
}

int cell_offer_project(struct cell *c, struct brig_error *err)
{
	int rc;

	if (FAULT_HIT(STEP_offer_project))
		return cell_step_failed(STEP_offer_project, FAULT_ERRNO, err);
	if (!c->spec.plan->workspace)
		return 0;
	c->project.lower = make_lower(c);
	if (c->project.lower < 0)
		return pack_and_offer(c, err);
	rc = offer(c, PROJECT_LOWER, &c->project.lower);
	return rc < 0 ? cell_lost_init(c, STEP_take_project, rc, err) : 0;
}

void cell_project_release(struct project *p)
{
	project_stream_end(&p->stream);
	free(p->hidden);
	fd_closep(&p->lower);
	cell_project_init(p);
}
