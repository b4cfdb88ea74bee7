/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells for one request: a kind with a single cell, which has the run's own id, and which is freed with it.
 *
 * The contents of the request's files arrive as one sealed memfd.  It is mapped here, but this process never reads the
 * files: the cell's init, which shares the mapping, passes their pieces to write(2).  The hidden and protected paths of
 * a project follow the files; the keeper checks that each is a plain path below the directory.
 */
#include <sys/mman.h>

#include "base/fd.h"
#include "keeper/inside.h"

static int map_contents(struct kind *kind, int fd, uint64_t size, struct brig_error *err)
{
	void *map = NULL;

	if (size > 0) {
		map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			return err_set(err, BRIG_E_SYSTEM, errno, "the keeper of cells cannot map the request's files");
	}
	kind->contents = map;
	kind->contents_size = size;
	if (!job_set_contents(kind->job, map, size))
		return err_set(err, BRIG_E_INTERNAL, 0, "the keeper was sent a job whose contents are not its own");
	return 0;
}

/* In the order of the job's checked binds; the project is last. */
static void take_fds(struct kind *kind, int *fds)
{
	for (size_t i = 0; i < kind->job->plan.n_binds; i++)
		if (kind->job->binds[i].checked)
			kind->job->binds[i].fd = fd_move(fds++);
	if (kind->job->plan.workspace)
		kind->job->workspace.fd = fd_move(fds);
}

void single_free(struct kind *kind)
{
	if (!kind->single)
		return;
	for (size_t i = 0; i < JOB_BINDS_MAX; i++)
		if (kind->job->binds[i].checked)
			fd_closep(&kind->job->binds[i].fd);
	if (kind->job->plan.workspace)
		fd_closep(&kind->job->workspace.fd);
	if (kind->contents)
		(void)munmap(kind->contents, kind->contents_size);
	job_destroy(kind->job);
	free(kind);
}

struct kept *single_begin(struct keeper *k, struct job *job, struct keep_message *m, uint64_t size,
			  struct brig_error *err)
{
	struct kind *kind = calloc(1, sizeof(*kind));
	struct kept *c = NULL;

	if (!kind) {
		(void)err_nomem(err);
		job_destroy(job);
		return NULL;
	}
	*kind = (struct kind){ .job = job, .single = true };
	take_fds(kind, &m->fds[KEEP_RUN_FDS]);
	if (map_contents(kind, m->fds[KEEP_FD_CONTENTS], size, err) == 0)
		c = kept_begin(k, kind, err);
	if (!c)
		single_free(kind);
	return c;
}
