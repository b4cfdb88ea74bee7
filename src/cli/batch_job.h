/* SPDX-License-Identifier: Apache-2.0 */
/* One job of a batch: what its line says, as the library takes it. */
#ifndef CLI_BATCH_JOB_H
#define CLI_BATCH_JOB_H

#include <jansson.h>

#include "base/json_read.h"
#include "cli/batch_judge.h"
#include "cli/options.h"

#define BATCH_CASES_MAX 100000
#define BATCH_ID_MAX    256 /* bytes of a job's id */

/* What one cell is given, and what is expected of it. */
struct batch_case {
	const char *name; /* NULL: its number */
	struct bytes input;
	struct json_strings args;
	struct judge_expected expected;
	double points;
};

/* A program that judges; it has no code if there is none. */
struct batch_checker {
	const char *language, *file_name, *trust; /* the name decides where there is no language */
	struct bytes code;
	struct wishes wishes;
};

struct batch_job {
	char id[BATCH_ID_MAX + 1];
	uint64_t number;         /* in the order of the batch, from 0 */
	struct brig_error bad;   /* code not 0: there is no job, and this is why */
	struct brig_request req; /* without what its cases say */
	const char *kind, *inline_artifacts;
	struct json_strings args, env, packages, artifacts;
	struct bytes code, input;
	struct judge_expected expected;
	struct wishes wishes;
	struct batch_checker checker;
	struct batch_case *cases; /* n_cases of them, at least one */
	size_t n_cases;
	bool has_cases; /* the line has them; else there is the one that it is itself */
	bool stop_at_failure;
	bool never_again; /* on a queue it begins once, or is lost */
	int files_fd;     /* FD_NONE: no files */
	void *tag;        /* of whoever made the job */
	json_t *doc;      /* strings belong to it */
	struct json_block *blocks;
};

/* What jobs have that say nothing else. */
struct batch_defaults {
	const char *language, *trust;
	struct wishes wishes;
};

/* An empty one; NULL: no memory. */
struct batch_job *batch_job_new(void);
void batch_job_free(struct batch_job *job); /* NULL is fine */
/* Memory that goes with the job; NULL: there is none. */
void *batch_job_alloc(struct batch_job *job, size_t n, size_t size);

/*
 * Reads a line into a new job: its id (the number of the line if it has none), and all of the rest, or in job->bad why it is
 * none.
 */
void batch_job_read(struct batch_job *job, const char *line, size_t len, uint64_t line_number,
		    const struct batch_defaults *defaults);
/* Reads a case of its own, as `brig grade` takes them from a file; the job owns its strings.  What
 * ret->expected says before counts where the line says nothing. */
int batch_case_read(struct batch_job *job, const char *line, size_t len, struct batch_case *ret,
		    struct brig_error *err);
/* Puts together what a job asks for when its members are there: 0 or -code. */
int batch_job_finish(struct batch_job *job, const struct batch_defaults *defaults, struct brig_error *err);
/* The request of one of its cells; it borrows from the job. */
struct brig_request batch_job_request(const struct batch_job *job, const struct batch_case *c);

#endif
