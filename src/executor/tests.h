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
	struct buf report;
};

/* Looks at the request's workspace.  *ret is on the heap: others point into it. */
int tests_find(const struct brig_request *req, struct tests **ret, struct brig_error *err);
void tests_free(struct tests *t); /* NULL is fine */

/* Before the stage: what it has to fetch. */
void tests_prepare(struct tests *t, struct stage *s);
/* After it, with its verdict in the result: what the report makes of it.  keep: its output is wanted in the result. */
void tests_finish(struct tests *t, bool keep, struct result *res);

#endif
