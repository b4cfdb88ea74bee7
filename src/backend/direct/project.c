/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project in a direct run: a copy in the scratch directory, without hidden files, which the program may change and
 * which is compared with the project when every process is dead.  It is copied as a stream of files/pack.h, as for
 * other cells; a thread packs it, because writing blocks until the reader reads.  The copy is on the disk of /tmp: a
 * project that needs more than half of the free space is refused.
 *
 * A copy cannot keep the program from the project itself, which is still at its path on the host.  The evidence says
 * so.  If the project is shown read-only, the copy belongs to root if brig is root, and is readable for the program's
 * group; an ordinary user's program owns its copy and can make it writable again.
 *
 * Reading back: root's program has ids of its own, and only files with these ids are the program's.  A hard link to
 * another user's file, which old kernels and some settings let any user create, is moved aside: otherwise root would
 * read a file for a program that may not.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "backend/direct/direct.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/pack.h"
#include "files/walk.h"

#define ENTRIES_MAX 1000000
#define ASIDE_MAX   10000 /* more cannot be an accident */

/* ---- copying in -------------------------------------------------------------------------------- */

struct packer {
	const struct plan_workspace *what;
	struct pack_caps caps;
	int out;
	struct brig_error err; /* .code 0: success */
};

static void *pack_main(void *arg)
{
	struct packer *p = arg;
	struct pack_counts counts;

	(void)pack_tree(p->what->fd, &p->caps, plan_workspace_hides, (void *)(uintptr_t)p->what, p->out, &counts,
			&p->err);
	fd_closep(&p->out); /* if packing failed, the last record is missing, and the reader gives up */
	return NULL;
}

static int measure(const struct cell *c, struct pack_caps *ret, struct brig_error *err)
{
	const struct plan_workspace *w = c->spec.plan->workspace;
	struct pack_counts counts;
	struct statvfs fs;
	char text[32];
	int rc;

	if (fstatvfs(c->scratch.dir, &fs) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot tell how much is free for %s", c->scratch.work);
	*ret = (struct pack_caps){ .entries = ENTRIES_MAX, .bytes = (uint64_t)fs.f_bavail * fs.f_frsize / 2 };
	rc = pack_measure(w->fd, ret, plan_workspace_hides, (void *)(uintptr_t)w, &counts, err);
	if (rc == 0 && counts.room <= ret->bytes)
		return 0;
	if (rc < 0 && err->code != BRIG_E_REFUSED)
		return rc;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "%s must be copied to %s, and has more than %d files or takes more than half of what is free "
		       "there (%s): make room, or leave out with workspace_hide what is not needed",
		       w->path, c->scratch.path, ENTRIES_MAX, str_bytes(text, sizeof(text), ret->bytes));
}

static int begin_packer(struct packer *p, pthread_t *ret)
{
	sigset_t all, was;
	int rc;

	/* Signals are for the caller's own threads. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(ret, NULL, pack_main, p);
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	return -rc;
}

/* Root keeps a copy that is shown read-only. */
static uint32_t owner_of_copy(const struct cell *c)
{
	return c->spec.own_ids ? c->spec.plan->workspace->read_only ? geteuid() : c->uid : UINT32_MAX;
}

static int copy(const struct cell *c, struct packer *p)
{
	const struct unpack_options o = { .caps = p->caps,
					  .uid = owner_of_copy(c),
					  .gid = c->spec.own_ids ? c->gid : UINT32_MAX };
	struct pack_counts counts;
	pthread_t thread;
	int ends[2], rc;

	/* Not a pipe: writing to a pipe without a reader raises SIGPIPE. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	p->out = ends[1];
	rc = begin_packer(p, &thread);
	if (rc < 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return rc;
	}
	rc = unpack_tree(c->scratch.dir, ends[0], &o, &counts);
	(void)close(ends[0]); /* ends a packer that still writes */
	(void)pthread_join(thread, NULL);
	return rc;
}

int project_copy(const struct cell *c, struct brig_error *err)
{
	struct packer p = { .what = c->spec.plan->workspace };
	int rc;

	if (!p.what)
		return 0;
	rc = measure(c, &p.caps, err);
	if (rc < 0)
		return rc;
	rc = copy(c, &p);
	if (rc == 0)
		return 0;
	/* A reader that is gone is a consequence of the failure, not its reason. */
	if (p.err.code && p.err.sys != EPIPE && p.err.sys != ECONNRESET) {
		*err = p.err;
		return -err->code;
	}
	return err_set(err, BRIG_E_SYSTEM, -rc, "cannot copy the workspace to %s", c->scratch.work);
}

/* ---- read-only ----------------------------------------------------------------------------------- */

struct sealing {
	bool for_group; /* the group gets the owner's read permission, others get none */
	int rc;
};

static unsigned sealed_mode(const struct sealing *s, unsigned mode)
{
	mode &= 0555;
	return s->for_group ? (mode & 0500) | (mode & 0500) >> 3 : mode;
}

static enum walk_next seal_entry(void *arg, const struct walk_entry *e)
{
	struct sealing *s = arg;

	if (S_ISLNK(e->st->st_mode))
		return WALK_ON;
	if (fchmodat(e->dir, e->name, sealed_mode(s, e->st->st_mode), 0) < 0)
		s->rc = -errno;
	return s->rc < 0 ? WALK_STOP : WALK_ON;
}

int project_seal(const struct cell *c, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = 2 * ENTRIES_MAX };
	struct sealing s = { .for_group = c->spec.own_ids };
	struct walk_outcome out;
	int rc;

	if (!c->spec.plan->workspace || !c->spec.plan->workspace->read_only)
		return 0;
	rc = walk_tree(c->scratch.dir, &caps, seal_entry, &s, &out, err);
	if (rc < 0)
		return rc;
	if (s.rc == 0 && s.for_group && fchown(c->scratch.dir, geteuid(), c->gid) < 0)
		s.rc = -errno;
	if (s.rc == 0 && fchmod(c->scratch.dir, sealed_mode(&s, 0700)) < 0)
		s.rc = -errno;
	return s.rc < 0 ? err_set(err, BRIG_E_SYSTEM, -s.rc, "cannot make %s read-only", c->scratch.work) : 0;
}

/* ---- facts -------------------------------------------------------------------------------------- */

static const char *rights(const struct cell *c, const struct stat *copy, const struct stat *project)
{
	if (copy->st_dev == project->st_dev && copy->st_ino == project->st_ino)
		return "the project itself";
	if (!c->spec.plan->workspace->read_only)
		return "cow";
	return copy->st_uid != c->uid && !(copy->st_mode & 0222) ? "ro" : "ro until its owner changes that";
}

static bool hides_all(const struct cell *c)
{
	const struct plan_workspace *w = c->spec.plan->workspace;

	for (size_t i = 0; i < w->n_hidden; i++) {
		AUTO_FD fd = beneath_look(c->scratch.dir, w->hidden[i], NULL);

		if (fd >= 0)
			return false;
	}
	return true;
}

void project_facts(const struct cell *c, struct facts *f)
{
	const struct plan_workspace *w = c->spec.plan->workspace;
	struct stat copy, project;

	if (!w || fstat(c->scratch.dir, &copy) < 0 || fstat(w->fd, &project) < 0)
		return;
	fact_text(f, FACT_workspace, rights(c, &copy, &project), "%s", c->scratch.work);
	fact_text(f, FACT_project, "by its own path", "no mount namespace");
	fact_text(f, FACT_masks, hides_all(c) ? "not in the copy" : "missing", "%s", c->scratch.work);
}

/* ---- reading back ------------------------------------------------------------------------------- */

struct aside {
	const struct cell *c;
	unsigned n;
	int rc;
};

/* To the parent directory, which is not read back, and which is removed with everything in it. */
static enum walk_next put_aside(void *arg, const struct walk_entry *e)
{
	struct aside *a = arg;
	char name[32];

	if (e->st->st_uid == a->c->uid)
		return WALK_ON;
	(void)snprintf(name, sizeof(name), ".aside-%u", a->n++);
	if (a->n > ASIDE_MAX)
		a->rc = -E2BIG;
	else if (renameat2(e->dir, e->name, a->c->scratch.lock, name, RENAME_NOREPLACE) < 0)
		a->rc = -errno;
	return a->rc < 0 ? WALK_STOP : WALK_SKIP;
}

static int leave_own(const struct cell *c, bool *ret_in_part, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX };
	struct aside a = { .c = c };
	struct walk_outcome out;
	int rc = walk_tree(c->scratch.dir, &caps, put_aside, &a, &out, err);

	if (rc < 0)
		return rc;
	if (a.rc < 0 || out.cut)
		return err_set(err, BRIG_E_SYSTEM, -a.rc,
			       "what the program left in its workspace cannot be read back: there is more of it than "
			       "brig looks at, or too much that is not the program's own");
	*ret_in_part = a.n > 0;
	return 0;
}

int direct_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err)
{
	bool in_part = false;
	int rc;

	if (c->left != 0)
		return err_set(err, BRIG_E_SYSTEM, 0,
			       "processes of the program may be left: what they leave in its workspace is not read");
	rc = c->spec.own_ids ? leave_own(c, &in_part, err) : 0;
	if (rc < 0)
		return rc;
	rc = fcntl(c->scratch.dir, F_DUPFD_CLOEXEC, 0);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot hold the workspace");
	*ret = (struct workspace_view){ .fd = rc, .whole = true, .in_part = in_part };
	return 0;
}

int direct_open_output(struct cell *c, const char *name)
{
	struct stat st;
	AUTO_FD fd = beneath_open_file(c->scratch.dir, name, &st);

	return fd >= 0 && st.st_uid != c->uid ? -EPERM : fd_move(&fd);
}

int direct_open_folder(struct cell *c, const char *name)
{
	return beneath_open_dir(c->scratch.dir, name);
}
