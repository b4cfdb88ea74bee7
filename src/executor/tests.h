/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a project's tests: from the choice of the framework to the verdict. */
#ifndef EXECUTOR_TESTS_H
#define EXECUTOR_TESTS_H

#include "executor/stage.h"
#include "lang/lang.h"
#include "testing/testing.h"

struct tests {
	struct test_run run;
	/* the language with a run step for the test tool, with its arguments and environment */
	struct language lang;
	struct plan_workspace workspace; /* the request's, with the test files protected */
	struct buf report;
	bool keep_output; /* in the result */
};

/* Searches the request's workspace. *ret is on the heap, since others point into it. */
int tests_find(const struct brig_request *req, int archive, struct tests **ret, struct brig_error *err);
void tests_free(struct tests *t); /* accepts NULL */

/* The project as tests see it: its test files cannot be changed. */
const struct plan_workspace *tests_workspace(struct tests *t, const struct plan_workspace *project);
/* Prepares the stage: what to fetch, and that the verdict considers the report. */
void tests_prepare(struct tests *t, struct stage *s);

#endif
