/* SPDX-License-Identifier: Apache-2.0 */
/* A job at work: its cells one after the other, and what each of them got. */
#ifndef CLI_BATCH_TASK_H
#define CLI_BATCH_TASK_H

#include <brig/brig.h>

#include "cli/batch_job.h"
#include "cli/service.h"

/* What became of one case. */
struct batch_outcome {
	enum judgement judgement; /* JUDGED_NOT: nothing was expected */
	char *message;            /* NULL: none */
	char verdict[16], id[32];
	int exit_code; /* -1: none */
	struct brig_usage usage;
};

struct batch_task {
	struct batch_job *job;
	struct brig_run *run;        /* the cell at work; NULL: none of ours */
	struct service_job *away;    /* the same at a service */
	bool stays;                  /* the service does not do it */
	struct brig_error lost;      /* there is no service any more: why */
	bool is_checking;            /* it is that of the checker */
	struct brig_result *early;   /* there is a result without a run */
	struct brig_result *program; /* what the checker is about */
	struct brig_result *shown;   /* of the first case that was not accepted, else of the last */
	struct batch_outcome *outcome;
	size_t n_outcomes;
	size_t n_accepted;
	int checker_files;
	bool is_done, no_memory;
};

/* Takes the job.  NULL: no memory, and the job is still the caller's. */
struct batch_task *batch_task_new(struct batch_job *job);
void batch_task_free(struct batch_task *t); /* ends its cell; NULL is fine */
/* Where cells are made: at a service (place NULL: at none), or here. */
struct batch_makers {
	struct brig *b;
	const struct service_place *place;
};
/* Starts the next cell: it is at work, or t->early is there afterwards.  What cannot wait for the result is passed to
 * on_notice. */
void batch_task_begin(struct batch_task *t, const struct batch_makers *makers, brig_notice_fn on_notice, void *user);
/* Of the cell at work: whether there is one, what it waits for, going on with it (1: not yet), ending it. */
static inline bool batch_task_is_at_work(const struct batch_task *t)
{
	return t->run || t->away;
}
struct pollfd batch_task_waits(const struct batch_task *t);
int batch_task_step(struct batch_task *t, struct brig_error *err);
void batch_task_cancel(struct batch_task *t);
/* 0: *ret; 1: another one has to be begun, here; negative: there is no result. */
int batch_task_end(struct batch_task *t, struct brig_result **ret, struct brig_error *err);
/* A cell's result, which is the task's from now on. */
void batch_task_take(struct batch_task *t, struct brig_result *r);
/* The job's judgement: that of the first case that was not accepted. */
enum judgement batch_task_judgement(const struct batch_task *t, const char **ret_message);
/* The line of a finished task, with its newline: result, judgement, cases.  False: no memory. */
bool batch_task_line(const struct batch_task *t, struct buf *out);

#endif
