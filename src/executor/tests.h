/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a project's tests, from the choice of the framework to the verdict. */
#ifndef EXECUTOR_TESTS_H
#define EXECUTOR_TESTS_H

#include "executor/stage.h"
#include "lang/lang.h"
#include "testing/testing.h"

struct tests {
	struct test_run run;
	struct language lang; /* the language's row with a run step of our own: its tool, our words and environment */
	struct plan_workspace workspace; /* the request's, with the test files held */
	struct buf report;
	bool keep_output; /* in the result */
};

/* Looks at the request's workspace.  *ret is on the heap: others point into it. */
int tests_find(const struct brig_request *req, int archive, struct tests **ret, struct brig_error *err);
void tests_free(struct tests *t); /* NULL is fine */

/* The project as tests get it: nobody changes their files. */
const struct plan_workspace *tests_workspace(struct tests *t, const struct plan_workspace *project);
/* Before the stage: what it has to fetch, and that its verdict is made of the report, too. */
void tests_prepare(struct tests *t, struct stage *s);

#endif
