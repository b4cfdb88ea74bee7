/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTING_INTERNAL_H
#define TESTING_INTERNAL_H

#include "testing/testing.h"

enum test_runner { RUNNER_PYTHON, RUNNER_NODE, RUNNER_GO };

struct framework {
	const char *name, *language;
	enum test_runner runner;
};
/* By name; NULL: there is none. */
const struct framework *framework_by_name(const char *name);
/* The default framework of a language. */
const struct framework *framework_of(const char *language);

/* The framework of a project, for testing_find(). */
int tests_choose(int project, const char *wanted, const char *path, const struct framework **ret,
		 struct brig_error *err);
/*
 * Normalizes a caller's path to one relative to the project: "./tests/" becomes "tests", "." becomes "".  Keeps "::"
 * and the part after it.
 */
int tests_clean_path(int project, const char *path, char *dst, size_t size, struct brig_error *err);
/* True for the name of a folder with third-party code. */
bool tests_is_foreign(const char *name);
/* Fills in t->files. */
int tests_list_files(int project, struct test_run *t, struct brig_error *err);
/*
 * The framework in package.json: *ret is a supported one, NULL: none; foreign (24 bytes) is the name of another one, or
 * "".
 */
int package_framework(int project, const struct framework **ret, char *foreign, struct brig_error *err);

/* Reads the output of `go test -json`; declared: the tests in the sources. */
void go_report_read(const struct go_tests *declared, const char *text, size_t len, struct test_report *ret, char *why);

/* Reads the project's test files; the list is empty if one of them cannot be read. */
void go_source_find_all(int project, const struct test_run *t, struct go_tests *ret);
/* Adds the tests of one file.  False: no memory, or too many tests. */
bool go_source_read(struct go_tests *g, const char *path, const char *text, size_t len);
void go_source_sort(struct go_tests *g);
/* NULL: not declared there.  The list must be sorted. */
const struct go_test *go_source_find(const struct go_tests *g, const char *folder, const char *name);
void go_source_release(struct go_tests *g);

/* Counts a failure; copies the strings, which may be NULL, and truncates long ones.  False: no memory. */
bool tests_add_failure(struct test_report *r, const char *name, const char *file, uint64_t line, const char *message);

#endif
