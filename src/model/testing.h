/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of a project's tests said, and packages that a run was given. */
#ifndef MODEL_TESTING_H
#define MODEL_TESTING_H

#include "base/util.h"

#define TEST_FAILURES_MAX 256

struct test_failure {
	char *name;    /* heap: "tests/test_sum.py::test_add" */
	char *message; /* heap; its end is cut off beyond 4 KB */
	char *file;    /* heap or NULL */
	uint32_t line; /* 0: not known */
};

struct test_report {
	bool known;         /* tests were run, and there is a report */
	char framework[24]; /* "pytest", "unittest", "node", "jest", "vitest", "go" */
	bool complete;      /* the report has its end, and its seals are right; else counts are what had come so far */
	bool sealed; /* the report is of our runner, line by line; else the word of the test programs themselves */
	bool held;   /* no test could change a test file; else they were compared when all was over */
	uint64_t passed, failed, skipped;
	struct test_failure *row; /* heap */
	size_t n, cap;
	uint64_t dropped; /* failures that are counted but not listed */
};

/* Takes the strings of one.  False: no memory, and they are freed. */
bool test_report_add(struct test_report *t, struct test_failure *one);
void test_report_release(struct test_report *t);

enum packages_state { PACKAGES_NONE, PACKAGES_HIT, PACKAGES_INSTALLED, PACKAGES_RECEIVED, PACKAGES_STATE_COUNT };
extern const char *const packages_state_name[PACKAGES_STATE_COUNT];

struct result_packages {
	enum packages_state state;
	char ecosystem[8];    /* "pip", "npm", "go" */
	char key[64 + 1];     /* of the cache entry */
	char content[64 + 1]; /* SHA-256 of everything that was installed */
	uint64_t files, bytes;
	uint64_t age_ms;       /* of a hit */
	char made_for[64 + 1]; /* SHA-256 of the runtime and the machine that they are for */
	uint64_t missing;      /* protections that their install cell was known to go without */
};

#endif
