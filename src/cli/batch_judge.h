/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program did what was expected of it. */
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

/* How output is compared with what is expected. */
enum judge_compare {
	COMPARE_TRIM,   /* line by line, but for blanks at the end of a line and empty lines at the end */
	COMPARE_EXACT,  /* byte for byte */
	COMPARE_TOKENS, /* word by word: how they are spaced does not matter */
	COMPARE_FLOAT,  /* the same, and words that are numbers may differ by the tolerance */
	COMPARE_COUNT,
};
const char *judge_compare_name(enum judge_compare how);

struct judge_expected {
	bool is_given;
	struct bytes out, err; /* data NULL: may be anything */
	int exit_code;         /* -1: 0 is expected, and another one is a runtime_error */
	enum judge_compare compare;
	double tolerance; /* absolute, or relative to the expected number, whichever allows more */
};
#define JUDGE_TOLERANCE 1e-6
#define JUDGE_EXPECTED_INIT                                   \
	{                                                     \
		.exit_code = -1, .tolerance = JUDGE_TOLERANCE \
	}

#define JUDGE_MESSAGE_MAX 1024

/* 1: the program came to an end that was expected, and its output decides; 0: *ret is what it gets, and message says why. */
int judge_end(const struct judge_expected *e, const struct brig_result *r, enum judgement *ret,
	      char message[JUDGE_MESSAGE_MAX]);
/* Compares its output.  The message tells where it differs and nothing of what is expected. */
enum judgement judge_output(const struct judge_expected *e, const struct brig_result *r,
			    char message[JUDGE_MESSAGE_MAX]);
/* What a checker's run says of the program; its standard output is the message. */
enum judgement judge_checked(const struct brig_result *checker, char message[JUDGE_MESSAGE_MAX]);
/* 0: they agree; else the number of the first line of actual that differs. */
size_t judge_differs(enum judge_compare how, double tolerance, const struct bytes *expected,
		     const struct bytes *actual);

#endif
