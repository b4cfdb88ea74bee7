/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project's tests: which framework it uses, how that is started so that it reports to us, and what the report says.
 *
 * The report is a file in the workspace that is read when every process of the cell is dead.  Each of its lines is
 * sealed with a key that the runner was given in its own text, which it deletes before any code of the project is
 * loaded; the last line says how many there are.  So output proves nothing, a forged line is detected, and so is a run
 * that ends early.  Go has no place for a runner: there the report is what `go test -json` itself writes to the cell's
 * standard output, checked for consistency, and its exit status.  docs/TESTS.md says what can still be forged.
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
#define TEST_FILES_MAX  10000 /* that are held as they are */

/* Tests that the sources of a Go project declare, by folder and name (go_source.c). */
struct go_test {
	char *folder, *name; /* heap; name "": there are test files in the folder */
	bool sure;           /* it is compiled and run, whatever the system */
};
struct go_tests {
	char module[512];
	struct go_test *row; /* heap */
	size_t n, cap;       /* 0: nothing to compare with */
};

/* How a project's tests are run. */
struct test_run {
	char framework[24];              /* "pytest"; what runs may be another one of the language: the report says */
	const char *language;            /* whose runtime it needs: "python", "javascript", "go" */
	const char *const *env;          /* "NAME=VALUE", NULL-terminated */
	const char *argv[TEST_ARGS_MAX]; /* what follows the runtime's program; NULL-terminated */
	struct plan_file file;           /* the runner, staged at the top of the workspace; name NULL: none */
	bool on_stdout;                  /* the report is the cell's standard output, not a file */
	/* Names at the top of the workspace that are not the project's: the runner, the report and what else it makes. */
	const char *ours[3];
	size_t n_ours;
	/* The tests themselves, below the project and by path: no test may change another one before it is loaded. */
	char **files; /* heap, as each of them */
	size_t n_files, files_cap;
	bool has_links; /* a test file is a link: what is listed is not all */
	struct go_tests declared;
	char key[65]; /* of the seals, in hex */
	/* what the members above point to */
	char name[3][TEST_NAME_MAX];
	char path[PATH_MAX];
	char *text;
};

/*
 * What the project in this folder uses.  wanted: a framework or language, NULL: whatever is found; path: below the
 * project, NULL: all of it.  BRIG_E_REFUSED: nothing was found, and what was looked for; or several, and which.
 * *ret must stay where it is.
 */
int testing_find(int project, const char *wanted, const char *path, struct test_run *ret, struct brig_error *err);
void test_run_release(struct test_run *t);

/* Reads a report; never fails: what is wrong with it makes it incomplete, and why (TEST_WHY_MAX bytes) says what. */
void testing_read(const struct test_run *t, const char *report, size_t len, struct test_report *ret, char *why);

/* What report and exit code, or the signal that there is none (-1), amount to. */
enum test_outcome { TESTS_OK, TESTS_FAILED, TESTS_NONE, TESTS_INCOMPLETE, TEST_OUTCOME_COUNT };
/* why: what testing_read said; TEST_WHY_MAX bytes, filled with a sentence unless it is TESTS_OK.  What is contradictory makes the
 * report incomplete. */
enum test_outcome testing_judge(const struct test_run *t, struct test_report *r, int exit_code, char *why);

#endif
