/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a plan to the keeper: as a job, with descriptors so that the keeper need not trust a path.
 *
 *	contents	of all files, in a sealed memfd (model/job.h)
 *	binds		opened here, with the caller's rights
 *	project		its directory, likewise
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sealed.h"
#include "base/wait.h"
#include "keeper/client.h"

#define RETRY_MS 10

static int add_path(void *arg, const char *path, size_t len_with_nul)
{
	struct buf *all = arg;

	return buf_add(all, path, len_with_nul) == len_with_nul ? 0 : -ENOMEM;
}

/* The project's hidden and protected paths: thousands of short strings, so they are collected for one write. */
static int add_paths(int fd, const struct plan_workspace *w)
{
	AUTO_BUF all = BUF_INIT(job_paths_size(w) + 1);
	int rc = job_each_path(w, add_path, &all);

	return rc < 0 || all.len == 0 ? rc : fd_write_all(fd, all.data, all.len);
}

/* The contents of the plan's files, in one sealed memfd. */
static int make_contents(const struct plan *plan)
{
	AUTO_FD fd = memfd_create("brig-program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const struct plan_file *certificates = plan->egress ? plan->egress->certificates : NULL;
	int rc = 0;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < plan->n_files && rc == 0; i++)
		rc = fd_write_all(fd, plan->files[i].data, plan->files[i].len);
	if (rc == 0 && certificates)
		rc = fd_write_all(fd, certificates->data, certificates->len);
	if (rc == 0 && plan->workspace)
		rc = add_paths(fd, plan->workspace);
	if (rc == 0)
		rc = sealed_close(fd);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		rc = -errno;
	return rc < 0 ? rc : fd_move(&fd);
}

/* The plan as it is sent, and the descriptors that go with it. */
struct said {
	struct plan plan;
	struct plan_bind binds[JOB_BINDS_MAX];
	int opened[JOB_BINDS_MAX]; /* by us; FD_NONE: not opened */
	int contents, theirs;
};

static void said_release(struct said *s)
{
	for (size_t i = 0; i < JOB_BINDS_MAX; i++)
		fd_closep(&s->opened[i]);
	fd_closep(&s->contents);
	fd_closep(&s->theirs);
}

/* Opens the binds of a cell that is made for this request, so that the keeper need not look up a path. */
static int open_binds(struct said *s, struct brig_error *err)
{
	for (size_t i = 0; i < s->plan.n_binds; i++) {
		struct plan_bind *b = &s->binds[i];

		*b = s->plan.binds[i];
		if (b->checked || s->plan.waits_at)
			continue;
		b->fd = s->opened[i] = open(b->source, O_PATH | O_CLOEXEC);
		b->checked = true;
		if (b->fd < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot show '%s' in the cell", b->source);
	}
	s->plan.binds = s->binds;
	return 0;
}

static int prepare_said(struct said *s, const struct plan *plan, struct brig_error *err)
{
	*s = (struct said){ .plan = *plan, .contents = FD_NONE, .theirs = FD_NONE };
	for (size_t i = 0; i < JOB_BINDS_MAX; i++)
		s->opened[i] = FD_NONE;
	s->plan.start_at_once = keeper_starts_early(plan);
	if (job_lacks(plan))
		return err_set(err, BRIG_E_USAGE, 0, "the plan needs %s", job_lacks(plan));
	return open_binds(s, err);
}

/*
 * Retries until startup_ms have passed: the keeper may have a full queue of jobs, or the user as many descriptors in
 * flight as the kernel permits.
 */
static int send_patiently(const struct backend_host *h, const struct said *s, const struct buf *job, const int *fds,
			  size_t n)
{
	const uint64_t deadline = clock_now_ns() + s->plan.limits.startup_ms * NS_PER_MS;
	int rc;

	for (;;) {
		struct pollfd p = { .fd = h->socket, .events = POLLOUT };

		rc = keep_send(h->socket, KEEP_RUN, job->data, job->len, NULL, 0, fds, n);
		if ((rc != -EAGAIN && rc != -ETOOMANYREFS) || clock_now_ns() >= deadline)
			return rc;
		(void)wait_poll(&p, rc == -EAGAIN, RETRY_MS);
	}
}

static int send_said(const struct backend_host *h, struct said *s, int *ret_channel, struct brig_error *err)
{
	AUTO_BUF job = BUF_INIT(JOB_MAX);
	int fds[KEEP_FDS_MAX];
	size_t n = KEEP_RUN_FDS;
	int rc = job_encode(&s->plan, &job, err);

	if (rc < 0)
		return rc;
	s->contents = make_contents(&s->plan);
	rc = s->contents < 0 ? s->contents : keeper_open_channel(ret_channel, &s->theirs);
	fds[KEEP_FD_CHANNEL] = s->theirs;
	fds[KEEP_FD_CONTENTS] = s->contents;
	for (size_t i = 0; i < s->plan.n_binds; i++)
		if (s->plan.binds[i].checked)
			fds[n++] = s->plan.binds[i].fd;
	if (s->plan.workspace)
		fds[n++] = s->plan.workspace->fd;
	if (rc == 0)
		rc = send_patiently(h, s, &job, fds, n);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot ask the keeper of cells for one") : 0;
}

int keeper_send_job(const struct backend_host *h, const struct plan *plan, int *ret_channel, struct brig_error *err)
{
	CLEANUP(said_release)
	struct said s;
	int rc = prepare_said(&s, plan, err);

	return rc < 0 ? rc : send_said(h, &s, ret_channel, err);
}
