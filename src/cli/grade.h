/* SPDX-License-Identifier: Apache-2.0 */
/* Data of `brig grade`: submissions, cases, and a judgement for each pair of them. */
#ifndef CLI_GRADE_H
#define CLI_GRADE_H

#include "cli/batch_task.h"

#define GRADE_BYTES_MAX (512 * MiB) /* all cases together; also all submissions together */

struct grade_cases {
	struct batch_job *owner; /* owns their strings */
	struct batch_case *item;
	char (*name)[64]; /* the name of each; made safe where it is shown */
	size_t n;
	double points; /* total */
};

/*
 * Loads a file with one case per line, or a directory of NAME.in and NAME.out; how: defaults for what a case does not
 * set.
 */
int grade_cases_load(const char *path, const struct judge_expected *how, struct grade_cases *ret,
		     struct brig_error *err);
void grade_cases_release(struct grade_cases *c);

struct grade_submission {
	char *name;      /* of the file or folder */
	char *workspace; /* if it is a directory: its path; otherwise NULL */
	char *entry;     /* if it is a directory: the file in which its program begins */
	char *code;
	size_t code_len;
	struct brig_error bad; /* code not 0: why it cannot be run */
	char language[32];     /* as in the results */
};

struct grade_submissions {
	struct grade_submission *item;
	size_t n;
};

/* Loads everything in a directory except dot files and the cases; links are not followed. */
int grade_submissions_load(const char *dir, const char *cases, struct grade_submissions *ret, struct brig_error *err);
void grade_submissions_release(struct grade_submissions *s);

/* The result of one submission for one case. */
struct grade_mark {
	enum judgement judgement; /* JUDGED_NOT: it was not run */
	char *message;
	char id[32];
	struct brig_usage usage;
};

struct grade {
	struct grade_submissions submissions;
	struct grade_cases cases;
	struct grade_mark *mark; /* case c of submission s is at s * cases.n + c */
};

/* The total of a submission. */
struct grade_sum {
	size_t passed;
	double score;           /* out of 100 */
	size_t first_failure;   /* index of the case; cases.n: none */
	enum judgement overall; /* that of the first failure, or accepted */
	uint64_t longest_ms;
};
struct grade_sum grade_sum(const struct grade *g, size_t submission);

void grade_table(const struct grade *g, bool has_color, struct buf *out);
void grade_csv(const struct grade *g, struct buf *out);
/* For free(); NULL: no memory. */
char *grade_json(const struct grade *g);

#endif
