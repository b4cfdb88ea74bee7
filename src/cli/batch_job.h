/* SPDX-License-Identifier: Apache-2.0 */
/* One job of a batch: a line of its input as a request of the library. */
#ifndef CLI_BATCH_JOB_H
#define CLI_BATCH_JOB_H

#include <jansson.h>

#include "base/json_read.h"
#include "cli/batch_judge.h"
#include "cli/options.h"

#define BATCH_CASES_MAX 100000
#define BATCH_ID_MAX    256 /* size of a job's id */

/* The input of one cell, and the expected output. */
struct batch_case {
	const char *name; /* NULL: its number */
	struct bytes input;
	struct json_strings args;
	struct judge_expected expected;
	double points;
};

/* A program that judges; no code: there is none. */
struct batch_checker {
	const char *language, *file_name, *trust; /* without a language, the file name decides */
	struct bytes code;
	struct wishes wishes;
};

struct batch_job {
	char id[BATCH_ID_MAX + 1];
	uint64_t number;         /* in the order of the batch, from 0 */
	struct brig_error bad;   /* code not 0: the line is not a job, and this is why */
	struct brig_request req; /* without the members of its cases */
	const char *kind, *inline_artifacts;
	struct json_strings args, env, packages, artifacts;
	struct bytes code, input;
	struct judge_expected expected;
	struct wishes wishes;
	struct batch_checker checker;
	struct batch_case *cases; /* n_cases, at least one */
	size_t n_cases;
	bool has_cases; /* the line has cases; otherwise the job is its only case */
	bool stop_at_failure;
	bool never_again; /* a queue starts it at most once */
	int files_fd;     /* FD_NONE: no files */
	void *tag;        /* for the job's creator */
	json_t *doc;      /* owns the strings */
	struct json_block *blocks;
};

/* Defaults for members that a job does not set. */
struct batch_defaults {
	const char *language, *trust;
	struct wishes wishes;
};

/* An empty job; NULL: no memory. */
struct batch_job *batch_job_new(void);
void batch_job_free(struct batch_job *job); /* NULL is fine */
/* Memory that is freed with the job; NULL: no memory. */
void *batch_job_alloc(struct batch_job *job, size_t n, size_t size);

/*
 * Parses a line into a new job: its id (by default the number of the line) and the other members.  If the line is
 * invalid, job->bad says why.
 */
void batch_job_read(struct batch_job *job, const char *line, size_t len, uint64_t line_number,
		    const struct batch_defaults *defaults);
/*
 * Parses a separate case, as `brig grade` reads them from a file; the job owns its strings.  ret->expected has the
 * defaults for members that the line does not set.
 */
int batch_case_read(struct batch_job *job, const char *line, size_t len, struct batch_case *ret,
		    struct brig_error *err);
/* Completes the request of a job when all members are set: 0 or -code. */
int batch_job_finish(struct batch_job *job, const struct batch_defaults *defaults, struct brig_error *err);
/* The request of one of its cells; it borrows from the job. */
struct brig_request batch_job_request(const struct batch_job *job, const struct batch_case *c);

#endif
