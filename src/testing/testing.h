/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project's tests: which framework it uses, how that is started so that it reports to us, and what the report says.
 *
 * The report is a file in the workspace that is read when every process of the cell is dead.  Each of its lines is sealed
 * with a key that the runner was given in its own text, which it deletes before any code of the project is loaded; the
 * last line says how many there are.  So output proves nothing, a line that was written by somebody else is found out,
 * and so is a run that ends before its end.
 */
#ifndef TESTING_TESTING_H
#define TESTING_TESTING_H

#include "base/buf.h"
#include "base/err.h"
#include "model/plan.h"
#include "model/testing.h"

#define TEST_ARGS_MAX  64
#define TEST_FILES_MAX 4

struct test_run {
	char framework[24];
	const char *language; /* whose runtime it needs: "python", "javascript", "go" */
	const char
		*argv[TEST_ARGS_MAX]; /* argv[0] is a tool's name to be found, the rest is complete; NULL-terminated */
	struct plan_file files[TEST_FILES_MAX]; /* staged at the top of the workspace */
	size_t n_files;
	char report[64]; /* name of the report at the top of the workspace */
	char key[65];    /* of its seals, in hex */
	char *text;      /* heap: contents of the files */
};

/* What the project in this folder uses.  wanted: a framework or language, NULL: whatever is found; path: below the
 * project, NULL: all of it.  BRIG_E_REFUSED: nothing was found, and what was looked for. */
int testing_find(int project, const char *wanted, const char *path, struct test_run *ret, struct brig_error *err);
void test_run_release(struct test_run *t);

/* Reads a report; never fails: what is wrong with it makes it incomplete, and *why says what. */
void testing_read(const struct test_run *t, const char *report, size_t len, struct test_report *ret, char *why,
		  size_t why_size);

#endif
