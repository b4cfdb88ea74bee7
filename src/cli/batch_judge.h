/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a program's result with what was expected. */
#ifndef CLI_BATCH_JUDGE_H
#define CLI_BATCH_JUDGE_H

#include <brig/brig.h>

#include "base/buf.h"

enum judgement {
	JUDGED_NOT, /* nothing was expected */
#define JUDGEMENT(name, meaning) JUDGED_##name,
#include "cli/judgements.def"
	JUDGEMENT_COUNT,
};
const char *judgement_name(enum judgement j);

/* How output is compared with the expected output. */
enum judge_compare {
	COMPARE_TRIM,   /* by line, ignoring blanks at the end of lines and empty lines at the end */
	COMPARE_EXACT,  /* byte for byte */
	COMPARE_TOKENS, /* by word, ignoring white space */
	COMPARE_FLOAT,  /* the same, and numbers may differ by the tolerance */
	COMPARE_COUNT,
};
const char *judge_compare_name(enum judge_compare how);

struct judge_expected {
	bool is_given;
	struct bytes out, err; /* data NULL: any output */
	int exit_code;         /* -1: 0 is expected, and any other is a runtime_error */
	enum judge_compare compare;
	double tolerance; /* absolute, or relative to the expected number, whichever allows more */
};
#define JUDGE_TOLERANCE 1e-6
#define JUDGE_EXPECTED_INIT                                   \
	{                                                     \
		.exit_code = -1, .tolerance = JUDGE_TOLERANCE \
	}

#define JUDGE_MESSAGE_MAX 1024

/* 1: the program ended as expected, and its output decides; 0: *ret is the judgement, and message says why. */
int judge_end(const struct judge_expected *e, const struct brig_result *r, enum judgement *ret,
	      char message[JUDGE_MESSAGE_MAX]);
/* Compares its output.  The message says where it differs, without revealing the expected output. */
enum judgement judge_output(const struct judge_expected *e, const struct brig_result *r,
			    char message[JUDGE_MESSAGE_MAX]);
/* The judgement according to a checker's run; its standard output is the message. */
enum judgement judge_checked(const struct brig_result *checker, char message[JUDGE_MESSAGE_MAX]);
/* 0: equal; otherwise the number of the first line of actual that differs. */
size_t judge_differs(enum judge_compare how, double tolerance, const struct bytes *expected,
		     const struct bytes *actual);

#endif
