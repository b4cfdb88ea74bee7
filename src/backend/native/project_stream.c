/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/native/project_stream.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "backend/native/cell.h"
#include "base/str.h"
#include "files/pack.h"

struct packer {
	const struct plan_workspace *what;
	struct pack_caps caps;
	int out;
	pthread_t thread;
	struct brig_error err; /* .code 0: success */
};

static void *pack_main(void *arg)
{
	struct packer *p = arg;
	struct pack_counts counts;

	(void)pack_tree(p->what->fd, &p->caps, plan_workspace_hides, (void *)(uintptr_t)p->what, p->out, &counts,
			&p->err);
	/*
	 * If packing failed, its last record is missing, and init gives up.  The thread that joins us closes the
	 * socket.
	 */
	(void)shutdown(p->out, SHUT_WR);
	return NULL;
}

static int start_packer(struct project_stream *s, const struct plan_workspace *w, int out)
{
	struct packer *packer = calloc(1, sizeof(*packer));
	sigset_t all, was;
	int rc;

	if (!packer) {
		(void)close(out);
		return -ENOMEM;
	}
	packer->what = w;
	packer->caps = (struct pack_caps){ .entries = s->inodes, .bytes = s->bytes };
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
	s->packer = packer;
	return 0;
}

static int measure(struct project_stream *s, const struct plan *plan, struct brig_error *err)
{
	const struct plan_workspace *w = plan->workspace;
	uint64_t room = plan->limits.memory_bytes / 2;
	const struct pack_caps caps = { .entries = room / PROJECT_PAGE, .bytes = room };
	struct pack_counts counts;
	char text[32];
	int rc = pack_measure(w->fd, &caps, plan_workspace_hides, (void *)(uintptr_t)w, &counts, err);

	/* Some room: the project may grow before it is packed. */
	s->inodes = counts.entries + counts.entries / 8 + 16;
	s->bytes = counts.bytes + counts.bytes / 8 + s->inodes * PROJECT_PAGE;
	if (rc == 0 && counts.bytes + counts.entries * PROJECT_PAGE <= room)
		return 0;
	if (rc < 0 && err->code != BRIG_E_REFUSED)
		return rc;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "%s must be copied into the cell's memory, and takes more than half of it (%s): raise "
		       "mem_limit, leave out with workspace_hide what is not needed, or start brig as root on a file "
		       "system that can be mounted with other owners",
		       w->path, str_bytes(text, sizeof(text), room));
}

int project_stream_begin(struct project_stream *s, const struct plan *plan, struct brig_error *err)
{
	int ends[2], rc;

	fault_arm(); /* not armed yet if this process has not begun a cell */
	if (FAULT_HIT(STEP_pack_project))
		return cell_step_failed(STEP_pack_project, FAULT_ERRNO, err);
	rc = measure(s, plan, err);
	if (rc < 0)
		return rc;
	/* Not a pipe: writing to a pipe without a reader raises SIGPIPE. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return cell_step_failed(STEP_pack_project, errno, err);
	rc = start_packer(s, plan->workspace, ends[1]);
	if (rc < 0) {
		(void)close(ends[0]);
		return cell_step_failed(STEP_pack_project, -rc, err);
	}
	s->source = ends[0];
	return 0;
}

static void await_packer(struct project_stream *s)
{
	fd_closep(&s->source);
	if (s->packer && s->packer->thread) {
		(void)shutdown(s->packer->out, SHUT_RDWR); /* unblocks a packer whose reader is stopped */
		(void)pthread_join(s->packer->thread, NULL);
		fd_closep(&s->packer->out);
		s->packer->thread = 0;
	}
}

int project_stream_blame(struct project_stream *s, int rc, struct brig_error *err)
{
	await_packer(s);
	/* A reader that is gone is a consequence of the cell's failure, not its reason. */
	if (!s->packer || s->packer->err.code == 0 || s->packer->err.sys == EPIPE || s->packer->err.sys == ECONNRESET)
		return rc;
	*err = s->packer->err;
	return -err->code;
}

void project_stream_end(struct project_stream *s)
{
	await_packer(s);
	free(s->packer);
	*s = (struct project_stream)PROJECT_STREAM_NONE;
}
