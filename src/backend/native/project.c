/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project for a cell, prepared by the supervisor while init builds the rest; root_project.c has init's half.
 *
 * Its files belong to somebody on this host; the program has an id that belongs to nobody.  Where this process may,
 * it makes a detached copy of the mount that the project lies on, of that folder alone: read-only, without set-uid
 * files and devices, and with the owner's id shown as the program's.  Whatever has another owner has none in the cell.
 * The file system must know such mounts, and the scratch space must be able to hold an overlay's marks.
 *
 * Else (an ordinary user, an old kernel, another kind of file system) the project travels as a stream.  A thread packs
 * it, because writing waits for init's reading, and with no more rights than this process has.  The copy is memory of
 * the cell, so it is measured first, and more than half of that memory is too much.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "backend/native/cell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/pack.h"
#include "sys/mnt.h"
#include "sys/proc.h"

#define HIDDEN_MAX 4096
#define HELPER_NS  (10 * NS_PER_SEC)
#define TMPFS_PAGE ((uint64_t)4096) /* what a small file takes, and more than what an inode does */

struct packer {
	const struct plan_workspace *what;
	struct pack_caps caps;
	int out;
	pthread_t thread;
	struct brig_error err; /* .code 0: it went well */
};

void cell_project_init(struct project *p)
{
	*p = (struct project){ .lower = FD_NONE };
}

/* ---- the mount ----------------------------------------------------------------------------------- */

/* An overlay marks what it hides with extended attributes; a tmpfs has them from Linux 6.6 on. */
static bool can_overlay(void)
{
	AUTO_FD file = memfd_create("brig", MFD_CLOEXEC);
	AUTO_FD overlay = FD_NONE;

	if (file < 0 || fsetxattr(file, "user.overlay.probe", "y", 1, 0) < 0)
		return false;
	overlay = fsopen("overlay", FSOPEN_CLOEXEC);
	return overlay >= 0;
}

/* In the new namespace: there until the supervisor has what it wants, or is gone. */
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

/* A user namespace in which the project's owner is the program, and nobody else is anybody. */
static int make_id_namespace(const struct stat *owner, uint64_t uid, uint64_t gid)
{
	int pidfd = FD_NONE, ends[2], ns;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWUSER,
				   .pidfd = (uintptr_t)&pidfd };
	long pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* No exit signal: a caller's own wait() must not find this child. */
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

	if (c->host->ids.kind != IDMAP_DIRECT || !can_overlay())
		return -EOPNOTSUPP;
	if (fstat(plan->workspace->fd, &st) < 0)
		return -errno;
	idmap_of_program(c, &uid, &gid);
	ns = make_id_namespace(&st, uid, gid);
	if (ns < 0)
		return fd_move(&ns);
	return mount_copy_mapped(plan->workspace->fd, ns, plan->workspace_exec ? 0 : MNT_NOEXEC);
}

/* ---- the stream ---------------------------------------------------------------------------------- */

static void *pack_main(void *arg)
{
	struct packer *p = arg;
	struct pack_counts counts;

	(void)pack_tree(p->what->fd, &p->caps, plan_workspace_hides, (void *)(uintptr_t)p->what, p->out, &counts,
			&p->err);
	fd_closep(&p->out); /* without its last record, if that failed: init then gives up */
	return NULL;
}

static int start_packer(struct project *p, const struct plan_workspace *w, int out)
{
	struct packer *packer = calloc(1, sizeof(*packer));
	sigset_t all, was;
	int rc;

	if (!packer) {
		(void)close(out);
		return -ENOMEM;
	}
	packer->what = w;
	packer->caps = (struct pack_caps){ .entries = p->copy_inodes, .bytes = p->copy_bytes };
	packer->out = out;
	/* Signals are for the caller's own threads. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(&packer->thread, NULL, pack_main, packer);
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (rc != 0) {
		fd_closep(&packer->out);
		free(packer);
		return -rc;
	}
	p->packer = packer;
	return 0;
}

static int measure(struct cell *c, struct brig_error *err)
{
	const struct plan_workspace *w = c->spec.plan->workspace;
	uint64_t room = c->spec.plan->limits.memory_bytes / 2;
	const struct pack_caps caps = { .entries = room / TMPFS_PAGE, .bytes = room };
	struct pack_counts counts;
	char text[32];
	int rc = pack_measure(w->fd, &caps, plan_workspace_hides, (void *)(uintptr_t)w, &counts, err);

	/* Some more of both: it may grow until it is packed. */
	c->project.copy_inodes = counts.entries + counts.entries / 8 + 16;
	c->project.copy_bytes = counts.bytes + counts.bytes / 8 + c->project.copy_inodes * TMPFS_PAGE;
	if (rc == 0 && counts.bytes + counts.entries * TMPFS_PAGE <= room)
		return 0;
	if (rc < 0 && err->code != BRIG_E_REFUSED)
		return rc;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "%s must be copied into the cell's memory, and takes more than half of it (%s): raise "
		       "mem_limit, leave out with workspace_hide what is not needed, or start brig as root on a file "
		       "system that can be mounted with other owners",
		       w->path, str_bytes(text, sizeof(text), room));
}

static int offer_stream(struct cell *c, int *ret_source, struct brig_error *err)
{
	int ends[2], rc = measure(c, err);

	if (rc < 0)
		return rc;
	/* Not a pipe: writing to one without a reader kills. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return cell_step_failed(STEP_offer_project, errno, err);
	*ret_source = ends[0];
	rc = start_packer(&c->project, c->spec.plan->workspace, ends[1]);
	return rc < 0 ? cell_step_failed(STEP_offer_project, -rc, err) : 0;
}

static void await_packer(struct project *p)
{
	if (p->packer && p->packer->thread) {
		(void)pthread_join(p->packer->thread, NULL);
		p->packer->thread = 0;
	}
}

int cell_project_blame(struct project *p, int rc, struct brig_error *err)
{
	await_packer(p);
	/* That the reader went away is no reason but a consequence. */
	if (!p->packer || p->packer->err.code == 0 || p->packer->err.sys == EPIPE || p->packer->err.sys == ECONNRESET)
		return rc;
	*err = p->packer->err;
	return -err->code;
}

void cell_project_release(struct project *p)
{
	await_packer(p);
	free(p->packer);
	free(p->hidden);
	fd_closep(&p->lower);
	cell_project_init(p);
}

/* ---- both ---------------------------------------------------------------------------------------- */

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

int cell_offer_project(struct cell *c, struct brig_error *err)
{
	struct report offer = report_make(REPORT_PROJECT);
	AUTO_FD source = FD_NONE;
	int rc = 0;

	if (FAULT_HIT(STEP_offer_project))
		return cell_step_failed(STEP_offer_project, FAULT_ERRNO, err);
	if (!c->spec.plan->workspace)
		return 0;
	c->project.lower = make_lower(c);
	c->project.way = c->project.lower >= 0 ? PROJECT_LOWER : PROJECT_STREAM;
	if (c->project.way == PROJECT_STREAM)
		rc = offer_stream(c, &source, err);
	if (rc < 0)
		return rc;
	offer.value = (int32_t)c->project.way;
	offer.blocks = c->project.copy_bytes;
	offer.inodes = c->project.copy_inodes;
	rc = report_send(c->ctl, &offer, c->project.way == PROJECT_LOWER ? &c->project.lower : &source, 1);
	return rc < 0 ? cell_lost_init(c, STEP_take_project, rc, err) : 0;
}
