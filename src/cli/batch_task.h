/* SPDX-License-Identifier: Apache-2.0 */
/* A job in progress: its cells one after the other, with their results. */
#ifndef CLI_BATCH_TASK_H
#define CLI_BATCH_TASK_H

#include <brig/brig.h>

#include "cli/batch_job.h"
#include "cli/service.h"

/* The result of one case. */
struct batch_outcome {
	enum judgement judgement; /* JUDGED_NOT: nothing was expected */
	char *message;            /* NULL: none */
	char verdict[16], id[32];
	int exit_code; /* -1: none */
	struct brig_usage usage;
};

struct batch_task {
	struct batch_job *job;
	struct brig_run *run;        /* the running cell; NULL: none here */
	struct service_job *away;    /* the same at a service */
	bool stays;                  /* the service cannot run it */
	struct brig_error lost;      /* the service is gone: why */
	bool is_checking;            /* the running cell is the checker's */
	struct brig_result *early;   /* a result without a run */
	struct brig_result *program; /* the result that the checker judges */
	struct brig_result *shown;   /* of the first case that was not accepted, otherwise of the last one */
	struct batch_outcome *outcome;
	size_t n_outcomes;
	size_t n_accepted;
	int checker_files;
	bool is_done, no_memory;
};

/* Takes the job.  NULL: no memory, and the caller keeps the job. */
struct batch_task *batch_task_new(struct batch_job *job);
void batch_task_free(struct batch_task *t); /* ends its cell; NULL is fine */
/* Where cells are created: at a service, or if place is NULL here. */
struct batch_makers {
	struct brig *b;
	const struct service_place *place;
};
/*
 * Starts the next cell: afterwards it is running, or t->early is set.  Notices that cannot wait for the result go to
 * on_notice.
 */
void batch_task_begin(struct batch_task *t, const struct batch_makers *makers, brig_notice_fn on_notice, void *user);
/* For the running cell: whether there is one, what to poll, a step (1: not finished), ending it. */
static inline bool batch_task_is_at_work(const struct batch_task *t)
{
	return t->run || t->away;
}
struct pollfd batch_task_waits(const struct batch_task *t);
int batch_task_step(struct batch_task *t, struct brig_error *err);
void batch_task_cancel(struct batch_task *t);
/* 0: *ret; 1: start it again, here; negative: there is no result. */
int batch_task_end(struct batch_task *t, struct brig_result **ret, struct brig_error *err);
/* Takes a cell's result. */
void batch_task_take(struct batch_task *t, struct brig_result *r);
/* The job's judgement: that of its first case that was not accepted. */
enum judgement batch_task_judgement(const struct batch_task *t, const char **ret_message);
/* Appends the line of a finished task, with newline: result, judgement, cases.  False: no memory. */
bool batch_task_line(const struct batch_task *t, struct buf *out);

#endif
