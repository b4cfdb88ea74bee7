/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grade.c - judges a program that nobody has read, using only libbrig.
 *
 *	grade FILE
 *
 * FILE is to read two numbers and print their sum.  It runs once per case, each time in a new cell with
 * tight limits, and its output is compared with what is expected.  Exit status: 0 if every case passed,
 * 1 if not, 2 if nothing could be judged.
 *
 *	cc grade.c -lbrig -o grade
 */
#include <brig/brig.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *input, *expected;
} cases[] = {
	{ "1 2\n", "3\n" },
	{ "40 2\n", "42\n" },
	{ "-5 5\n", "0\n" },
};

/* A wish can only tighten what the policy allows for this trust level. */
static const struct brig_option limits[] = {
	{ "timeout", "2s" },
	{ "mem_limit", "64m" },
	{ "output_limit", "64k" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char *read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(BRIG_CODE_MAX);

	if (f && text) {
		*ret_len = fread(text, 1, BRIG_CODE_MAX, f);
		if (!ferror(f) && feof(f)) {
			fclose(f);
			return text;
		}
	}
	fprintf(stderr, "grade: cannot read %s\n", path);
	if (f)
		fclose(f);
	free(text);
	return NULL;
}

/* A program passes if it ended well and printed exactly what was expected. */
static int has_passed(const struct brig_result *r, const char *expected)
{
	size_t len;
	const char *output = brig_result_output(r, BRIG_STDOUT, &len);

	return strcmp(brig_result_verdict(r), "ok") == 0 && len == strlen(expected) &&
	       memcmp(output, expected, len) == 0;
}

/* 1: passed, 0: not passed, -1: could not be judged. */
static int judge(struct brig *b, struct brig_request *req, size_t i)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	struct brig_usage usage;
	size_t kept, total;
	int passed;

	req->stdin_data = cases[i].input;
	req->stdin_len = strlen(cases[i].input);
	if (brig_run(b, req, &r, &err) < 0) {
		fprintf(stderr, "grade: %s\n", err.msg);
		return -1;
	}
	passed = has_passed(r, cases[i].expected);
	brig_result_usage(r, &usage);
	brig_result_evidence(r, &kept, &total);
	printf("case %zu: %s (%s%s%s), %llu ms, %zu of %zu promises kept\n", i + 1, passed ? "passed" : "failed",
	       brig_result_verdict(r), *brig_result_reason(r) ? ": " : "", brig_result_reason(r),
	       (unsigned long long)usage.wall_ms, kept, total);
	/* Refused and failed runs say nothing about the program. */
	if (strcmp(brig_result_verdict(r), "refused") == 0 || strcmp(brig_result_verdict(r), "failed") == 0)
		passed = -1;
	brig_result_free(r);
	return passed;
}

static int grade(struct brig *b, const char *path)
{
	struct brig_request req = BRIG_REQUEST_INIT;
	const char *slash = strrchr(path, '/');
	char *code = read_file(path, &req.code_len);
	int status = 0;

	if (!code)
		return 2;
	req.code = code;
	req.file_name = slash ? slash + 1 : path; /* its extension names the language */
	req.trust = "untrusted";
	req.options = limits;
	req.n_options = COUNT(limits);
	for (size_t i = 0; i < COUNT(cases) && status < 2; i++) {
		int passed = judge(b, &req, i);

		if (passed != 1)
			status = passed < 0 ? 2 : 1;
	}
	free(code);
	return status;
}

int main(int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	int status;

	if (argc != 2) {
		fprintf(stderr, "usage: grade FILE\n");
		return 2;
	}
	if (brig_open(NULL, &b, &err) < 0) {
		fprintf(stderr, "grade: %s\n", err.msg);
		return 2;
	}
	status = grade(b, argv[1]);
	brig_close(b);
	return status;
}
