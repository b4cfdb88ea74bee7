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
/* Folders with code of others. */
bool tests_is_foreign(const char *name);
/* Fills in t->files. */
int tests_list_files(int project, struct test_run *t, struct brig_error *err);
/* What package.json says: *ret is a framework of ours, or NULL if it names none; foreign (24 bytes) one of others, or "". */
int package_framework(int project, const struct framework **ret, char *foreign, struct brig_error *err);

/* What `go test -json` wrote. */
void go_report_read(const char *text, size_t len, struct test_report *ret, char *why);

/* A failure is counted; the strings, which may be NULL, are copied with their ends cut off.  False: no memory. */
bool tests_add_failure(struct test_report *r, const char *name, const char *file, uint64_t line, const char *message);

#endif
