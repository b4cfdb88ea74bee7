/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_pool.c - the loop
 *
 * In each iteration free slots take jobs, as long as there are some and results can be written; then poll() waits for
 * the first event: a cell to be stepped, a line of input, room for output, a signal. Nothing else blocks, so no reader,
 * writer or program delays another.  Memory is bounded by the slots: a job is read only when there is a slot for it.
 *
 * On cancellation the cells are told to end and stepped until they have; their results are dropped, since these
 * describe the cancellation and not the programs.
 */
#include "cli/batch_pool.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include "base/str.h"
#include "cli/ui.h"

#define FDS_OURS         32  /* standard streams, files, descriptors of the handle */
#define SERVICE_JOBS_MAX 128 /* at a time; limited by the connections that one user may have */
#define FDS_CELL         48  /* needed while a cell is created with its proxy and its archive; observed: 27 */

enum { FD_CANCEL, FD_INPUT, FD_OUTPUT, FD_SLOTS };

size_t batch_pool_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

/*
 * A cell for which there are no descriptors fails, so no more cells are started than there are descriptors for.  Our
 * own limit is raised to the hard limit; the program's comes from its plan.
 */
static size_t descriptors_for(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit more = { .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			limit = more;
	}
	return limit.rlim_cur > FDS_OURS + FDS_CELL ? (limit.rlim_cur - FDS_OURS) / FDS_CELL : 1;
}

int batch_pool_slots(const char *text, size_t *ret, struct brig_error *err)
{
	uint64_t n = batch_pool_cpus();

	if (text && (!str_to_u64(text, &n) || n == 0 || n > BATCH_SLOTS_MAX))
		return err_set(err, BRIG_E_USAGE, 0, "--jobs '%.40s' is no number from 1 to %d", text, BATCH_SLOTS_MAX);
	*ret = min_u64(min_u64(n, BATCH_SLOTS_MAX), descriptors_for());
	if (text && *ret < n)
		ui_say("%zu cells at once, not %s: a process may have no more open files here (ulimit -n)", *ret, text);
	return 0;
}

#define WARM_DEFAULT_MAX 16 /* each holds its interpreter's memory */
#define WARM_MAX         64

int batch_pool_warm(const char *text, size_t n_slots, uint32_t *ret, struct brig_error *err)
{
	uint64_t n = min_u64(n_slots, WARM_DEFAULT_MAX);

	if (text && (!str_to_u64(text, &n) || n > WARM_MAX))
		return err_set(err, BRIG_E_USAGE, 0, "--warm '%.40s' is no number from 0 to %d", text, WARM_MAX);
	*ret = (uint32_t)n;
	return 0;
}

void batch_pool_cancel(struct batch_pool *p)
{
	if (p->is_cancelled)
		return;
	p->is_cancelled = true;
	for (size_t i = 0; i < p->n_slots; i++)
		if (p->task[i])
			batch_task_cancel(p->task[i]);
}

static void end_task(struct batch_pool *p, size_t slot)
{
	batch_task_free(p->task[slot]);
	p->task[slot] = NULL;
	p->n_busy--;
}

/* Takes the cell's result, or the reason why there is none. */
static void end_cell(struct batch_task *t, int rc, const struct brig_error *stuck)
{
	struct brig_error err = BRIG_ERROR_INIT, none = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	int end = batch_task_end(t, &r, &err);

	if (end > 0)
		return;
	if (end < 0 && brig_result_from_error(rc < 0 ? stuck : &err, &r, &none) < 0)
		t->no_memory = t->is_done = true;
	else
		batch_task_take(t, r);
}

/* The service died: whether a job ran is unknown, so nothing is reported about it. */
static void lose(struct batch_pool *p, const struct brig_error *why)
{
	if (!p->lost.code)
		p->lost = *why;
	batch_pool_cancel(p);
}

/* Advances a task as far as possible without waiting: to the next event of its cell, to its next cell, to its end. */
static void advance(struct batch_pool *p, size_t slot)
{
	struct batch_task *t = p->task[slot];

	while (batch_task_is_at_work(t) || (!t->is_done && !p->is_cancelled)) {
		struct brig_error err = BRIG_ERROR_INIT;
		int rc;

		if (!batch_task_is_at_work(t))
			batch_task_begin(t, &p->makers, p->ops->notice, p->user);
		if (t->early)
			batch_task_take(t, MOVE_PTR(t->early));
		if (t->lost.code)
			break;
		if (!batch_task_is_at_work(t))
			continue;
		rc = batch_task_step(t, &err);
		if (rc > 0)
			return;
		if (rc < 0 && t->away) {
			lose(p, &err);
			break;
		}
		end_cell(t, rc, &err);
	}
	if (t->lost.code)
		lose(p, &t->lost);
	if (t->is_done && !p->is_cancelled)
		p->ops->done(p->user, t);
	else
		p->n_dropped++;
	end_task(p, slot);
}

/* Takes jobs for a free slot until one is running in it: some need no cell, or end immediately. */
static enum batch_next fill_slot(struct batch_pool *p, size_t slot, struct brig_error *err)
{
	while (!p->task[slot] && !p->is_cancelled) {
		struct batch_job *job = NULL;
		enum batch_next next = p->ops->next(p->user, &job);

		if (next != BATCH_NEXT_JOB)
			return next;
		p->task[slot] = batch_task_new(job);
		if (!p->task[slot]) {
			batch_job_free(job);
			(void)err_nomem(err);
			return BATCH_NEXT_END;
		}
		p->n_busy++;
		advance(p, slot);
	}
	return p->is_cancelled ? BATCH_NEXT_END : BATCH_NEXT_JOB;
}

/* False: there will be no more jobs. */
static bool fill(struct batch_pool *p, struct brig_error *err)
{
	enum batch_next next = BATCH_NEXT_JOB;

	for (size_t i = 0; i < p->n_slots && next == BATCH_NEXT_JOB; i++)
		next = fill_slot(p, i, err);
	return next != BATCH_NEXT_END;
}

static size_t gather(struct batch_pool *p, bool wants_jobs)
{
	size_t n = FD_SLOTS;

	p->fds[FD_CANCEL] = (struct pollfd){ .fd = p->is_cancelled ? -1 : p->cancel_fd, .events = POLLIN };
	p->fds[FD_INPUT] = (struct pollfd){ .fd = -1, .events = POLLIN };
	p->fds[FD_OUTPUT] = (struct pollfd){ .fd = p->ops->output_fd(p->user), .events = POLLOUT };
	if (wants_jobs && p->n_busy < p->n_slots)
		p->fds[FD_INPUT].fd = p->ops->input_fd(p->user);
	for (size_t i = 0; i < p->n_slots; i++)
		if (p->task[i])
			p->fds[n++] = batch_task_waits(p->task[i]);
	return n;
}

/* The tasks' entries in fds are in the order of their slots. */
static void step_ready(struct batch_pool *p)
{
	size_t at = FD_SLOTS;

	for (size_t i = 0; i < p->n_slots; i++)
		if (p->task[i] && p->fds[at++].revents)
			advance(p, i);
}

/* Ends the jobs at a service when the batch is cancelled: no event reports them. */
static void reap_away(struct batch_pool *p)
{
	for (size_t i = 0; i < p->n_slots && p->is_cancelled; i++)
		if (p->task[i] && p->task[i]->away)
			advance(p, i);
}

static int turn(struct batch_pool *p, bool wants_jobs, struct brig_error *err)
{
	size_t n;
	int ready;

	reap_away(p);
	if (p->is_cancelled && p->n_busy == 0)
		return 0;
	n = gather(p, wants_jobs);
	ready = poll(p->fds, n, p->ops->tick(p->user));

	if (ready < 0 && errno != EINTR)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for cells");
	if (ready <= 0)
		return 0;
	if (p->fds[FD_OUTPUT].revents)
		p->ops->on_output(p->user);
	step_ready(p);
	if (p->fds[FD_INPUT].revents)
		p->ops->on_input(p->user);
	if (p->fds[FD_CANCEL].revents)
		batch_pool_cancel(p);
	return 0;
}

void batch_pool_use_place(struct batch_pool *p)
{
	p->makers.place = &p->place;
	p->n_slots = min_u64(p->n_slots, SERVICE_JOBS_MAX);
}

int batch_pool_choose(struct batch_pool *p, bool local, const char *only_here, struct brig_error *err)
{
	int rc = service_find(local, &p->place, err);

	if (!only_here)
		only_here = service_own_policy();
	if (rc > 0 && only_here)
		return service_stay_here(&p->place, only_here, err) < 0 ? -err->code : 0;
	if (rc > 0)
		batch_pool_use_place(p);
	return rc < 0 ? rc : 0;
}

int batch_pool_run(struct batch_pool *p, struct brig_error *err)
{
	AUTO_FREE struct batch_task **task = calloc(p->n_slots, sizeof(struct batch_task *));
	AUTO_FREE struct pollfd *fds = calloc(p->n_slots + FD_SLOTS, sizeof(*fds));
	bool wants_jobs = true;
	int rc = 0;

	if (!task || !fds)
		return err_nomem(err);
	p->task = task;
	p->fds = fds;
	while (rc == 0) {
		if (wants_jobs)
			wants_jobs = fill(p, err) && !p->is_cancelled;
		if (err->code)
			rc = -err->code;
		else if (!wants_jobs && p->n_busy == 0 && (p->is_cancelled || p->ops->output_fd(p->user) < 0))
			break;
		else
			rc = turn(p, wants_jobs, err);
	}
	for (size_t i = 0; i < p->n_slots; i++)
		if (task[i])
			end_task(p, i);
	p->task = NULL;
	p->fds = NULL;
	if (rc == 0 && p->lost.code) {
		*err = p->lost;
		rc = -err->code;
	}
	return rc;
}
