/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of a project: which framework it uses, how that is started so that it writes a report, and how the report is
 * read.
 *
 * The report is a file in the workspace that is read when every process of the cell is dead.  The runner seals each
 * line with a key that is in its own file, which it deletes before any code of the project is loaded.  The last line
 * contains the numbers of passed, failed and skipped tests.  So output proves nothing, a forged line is detected, and
 * so is a run that ends early.  For Go there is no runner: the report is the output of `go test -json` on the cell's
 * standard output, checked for consistency, and go's exit status.  docs/TESTS.md says what can still be forged.
 */
#ifndef TESTING_TESTING_H
#define TESTING_TESTING_H

#include <limits.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/plan.h"
#include "model/testing.h"

#define TEST_ARGS_MAX   12
#define TEST_NAME_MAX   64          /* bytes of a staged file's name */
#define TEST_REPORT_MAX (32u << 20) /* bytes of a report; a larger one is not read */
#define TEST_WHY_MAX    300
#define TEST_FILES_MAX  10000 /* maximum number of files that are protected from changes */

/* Tests that the sources of a Go project declare, by folder and name (go_source.c). */
struct go_test {
	char *folder, *name; /* allocated; name "": the folder has test files */
	bool sure;           /* certainly compiled and run, on any system */
};
struct go_tests {
	char module[512];
	struct go_test *row; /* allocated */
	size_t n, cap;       /* 0: nothing to compare with */
};

/* How the tests of a project are run. */
struct test_run {
	char framework[24];     /* "pytest"; another framework of the language may run instead, as the report says */
	const char *language;   /* language of the runtime: "python", "javascript", "go" */
	const char *const *env; /* "NAME=VALUE", NULL-terminated */
	const char *argv[TEST_ARGS_MAX]; /* words after the runtime's program; NULL-terminated */
	struct plan_file file;           /* the runner, staged at the top of the workspace; name NULL: none */
	bool on_stdout;                  /* the report is the cell's standard output, not a file */
	/* Files of ours at the top of the workspace: the runner, the report and a file that the runner creates. */
	const char *ours[3];
	size_t n_ours;
	/*
	 * Paths of the test files, relative to the project, sorted: no test may change another one before it is loaded.
	 */
	char **files; /* allocated, as is each path */
	size_t n_files, files_cap;
	bool has_links; /* a test file is a symbolic link, so the list is incomplete */
	struct go_tests declared;
	char key[65]; /* key of the seals, in hex */
	/* storage for the members above */
	char name[3][TEST_NAME_MAX];
	char path[PATH_MAX];
	char *text;
};

/*
 * Finds out how the project in this folder is tested.  wanted: a framework or language, NULL: any; path: relative to
 * the project, NULL: all of it.  BRIG_E_REFUSED: nothing was found, and what was searched for; or several, and which.
 * *ret must not be moved, since it points into itself.
 */
int testing_find(int project, const char *wanted, const char *path, struct test_run *ret, struct brig_error *err);
void test_run_release(struct test_run *t);

/*
 * Reads a report; never fails: an error makes the report incomplete, and why (TEST_WHY_MAX bytes) says what is wrong.
 */
void testing_read(const struct test_run *t, const char *report, size_t len, struct test_report *ret, char *why);

/* The outcome for a report and an exit code (-1: none, the process was killed by a signal). */
enum test_outcome { TESTS_OK, TESTS_FAILED, TESTS_NONE, TESTS_INCOMPLETE, TEST_OUTCOME_COUNT };
/*
 * why: the text of testing_read(); TEST_WHY_MAX bytes, which get a sentence unless the outcome is TESTS_OK.
 * Contradictions make the report incomplete.
 */
enum test_outcome testing_judge(const struct test_run *t, struct test_report *r, int exit_code, char *why);

#endif
