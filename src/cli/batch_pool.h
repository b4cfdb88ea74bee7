/* SPDX-License-Identifier: Apache-2.0 */
/* Runs many jobs in one thread: a number of slots, each with a running job, and one poll() for all. */
#ifndef CLI_BATCH_POOL_H
#define CLI_BATCH_POOL_H

#include "cli/batch_task.h"

#define BATCH_SLOTS_MAX 1024

enum batch_next {
	BATCH_NEXT_JOB,  /* the pool takes *ret */
	BATCH_NEXT_WAIT, /* none at the moment */
	BATCH_NEXT_END,  /* no more jobs; not called again */
};

struct batch_pool;

/* Source of jobs and destination of results.  Negative descriptors are not polled. */
struct batch_ops {
	enum batch_next (*next)(void *user, struct batch_job **ret);
	/* A descriptor to poll for more jobs, and the handler when it is readable. */
	int (*input_fd)(void *user);
	void (*on_input)(void *user);
	/* A descriptor to poll for pending output, and the handler when it is writable. */
	int (*output_fd)(void *user);
	void (*on_output)(void *user);
	/* Called when a job is finished; the task stays the pool's. */
	void (*done)(void *user, const struct batch_task *t);
	/* A notice that cannot wait: that programs are not isolated, that images are built. */
	void (*notice)(void *user, const char *text);
	/* Called on each iteration: returns the milliseconds until it must be called again, or -1. */
	int (*tick)(void *user);
};

struct batch_pool {
	struct batch_makers makers;
	size_t n_slots;
	int cancel_fd; /* readable: cancelled */
	const struct batch_ops *ops;
	void *user;
	/* Set by the pool: */
	bool is_cancelled;
	uint64_t n_dropped; /* jobs that were running when it was cancelled, and have no result */
	struct batch_task **task;
	struct pollfd *fds;
	size_t n_busy;
	struct brig_error lost; /* the service is gone: why */
	struct service_place place;
};

/* Uses the service at p->place. */
void batch_pool_use_place(struct batch_pool *p);
/*
 * Decides whether a service creates the cells; negative: one was named, and cannot.  only_here: an option that only
 * this process can follow, or NULL.  Call before batch_pool_run(), with n_slots as for cells created here.
 */
int batch_pool_choose(struct batch_pool *p, bool local, const char *only_here, struct brig_error *err);

/* Runs until everything is finished or cancelled.  Negative: it could not continue, and nothing is running any more. */
int batch_pool_run(struct batch_pool *p, struct brig_error *err);
/* From a callback: ends running jobs and starts no more. */
void batch_pool_cancel(struct batch_pool *p);
/* The default number of slots: the CPUs that we may use. */
size_t batch_pool_cpus(void);
/* Parses --warm: the number of cells kept ready; text NULL is the default for so many slots. */
int batch_pool_warm(const char *text, size_t n_slots, uint32_t *ret, struct brig_error *err);
/* Parses --jobs; NULL is the default.  Reduces the number, with a message, if there are not enough descriptors. */
int batch_pool_slots(const char *text, size_t *ret, struct brig_error *err);

#endif
