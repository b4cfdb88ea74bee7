/* SPDX-License-Identifier: Apache-2.0 */
/* Many jobs at once in one thread: so many slots, each with a job at work, and one poll() for all. */
#ifndef CLI_BATCH_POOL_H
#define CLI_BATCH_POOL_H

#include "cli/batch_task.h"

#define BATCH_SLOTS_MAX 1024

enum batch_next {
	BATCH_NEXT_JOB,  /* *ret is the pool's */
	BATCH_NEXT_WAIT, /* not now */
	BATCH_NEXT_END,  /* there will be no more; asked no further */
};

struct batch_pool;

/* Where jobs come from and results go to.  A descriptor below 0 is not waited for. */
struct batch_ops {
	enum batch_next (*next)(void *user, struct batch_job **ret);
	/* What may be readable before there is another job, and what to do when it is. */
	int (*input_fd)(void *user);
	void (*on_input)(void *user);
	/* What must be writable for what has been made, and what to do when it is. */
	int (*output_fd)(void *user);
	void (*on_output)(void *user);
	/* Of a job that is done; the task stays the pool's. */
	void (*done)(void *user, const struct batch_task *t);
	/* A sentence for people that cannot wait: that nothing isolates the programs, that images are built. */
	void (*notice)(void *user, const char *text);
	/* At each turn: the milliseconds after which it wants to be called again, or -1. */
	int (*tick)(void *user);
};

struct batch_pool {
	struct batch_makers makers;
	size_t n_slots;
	int cancel_fd; /* readable: it is over */
	const struct batch_ops *ops;
	void *user;
	/* Set by the pool: */
	bool is_cancelled;
	uint64_t n_dropped; /* jobs that were at work when it was cancelled, and have no result */
	struct batch_task **task;
	struct pollfd *fds;
	size_t n_busy;
	struct brig_error lost; /* the service has gone: why */
	struct service_place place;
};

/* Cells are made at the service of p->place. */
void batch_pool_use_place(struct batch_pool *p);
/*
 * Whether a service makes the cells, from then on; negative: one was named, and cannot.  only_here: an option that is
 * this process's to obey, or NULL.  Before batch_pool_run(), with n_slots as they are for cells of our own.
 */
int batch_pool_choose(struct batch_pool *p, bool local, const char *only_here, struct brig_error *err);

/* Until all is done or cancelled.  Negative: it could not go on, and nothing runs any more. */
int batch_pool_run(struct batch_pool *p, struct brig_error *err);
/* From a callback: ends what runs, starts nothing more. */
void batch_pool_cancel(struct batch_pool *p);
/* The default number of slots: the cpus that we may use. */
size_t batch_pool_cpus(void);
/* The value of --warm: cells that are kept ready; NULL is the default for so many slots. */
int batch_pool_warm(const char *text, size_t n_slots, uint32_t *ret, struct brig_error *err);
/* Reads the value of --jobs; NULL is the default.  Fewer, and a word about it, if there are not descriptors for all. */
int batch_pool_slots(const char *text, size_t *ret, struct brig_error *err);

#endif
