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
/* The usual one of a language. */
const struct framework *framework_of(const char *language);

/* The framework of a project, as testing_find() wants it. */
int tests_choose(int project, const char *wanted, const char *path, const struct framework **ret,
		 struct brig_error *err);
/* A path as people write it, as one below the project: "./tests/" is "tests", "." is "".  What stands behind "::" stays. */
int tests_clean_path(int project, const char *path, char *dst, size_t size, struct brig_error *err);
/* Folders with code of others. */
bool tests_is_foreign(const char *name);
/* Fills in t->files. */
int tests_list_files(int project, struct test_run *t, struct brig_error *err);
/* What package.json says: *ret is a framework of ours, or NULL if it names none; foreign (24 bytes) one of others, or "". */
int package_framework(int project, const struct framework **ret, char *foreign, struct brig_error *err);

/* What `go test -json` wrote; declared is what the sources have. */
void go_report_read(const struct go_tests *declared, const char *text, size_t len, struct test_report *ret, char *why);

/* Reads the project's test files; nothing is found if something of them cannot be read. */
void go_source_find_all(int project, const struct test_run *t, struct go_tests *ret);
/* One file of it.  False: no memory, or too many. */
bool go_source_read(struct go_tests *g, const char *path, const char *text, size_t len);
void go_source_sort(struct go_tests *g);
/* NULL: it is not declared there.  The list must be sorted. */
const struct go_test *go_source_find(const struct go_tests *g, const char *folder, const char *name);
void go_source_release(struct go_tests *g);

/* A failure is counted; the strings, which may be NULL, are copied with their ends cut off.  False: no memory. */
bool tests_add_failure(struct test_report *r, const char *name, const char *file, uint64_t line, const char *message);

#endif
