/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_test.c - `brig test`: runs a project's tests in a cell, and prints each failure and a summary line. */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/request.h"
#include "cli/srt_settings.h"
#include "cli/ui.h"

#define HEAD_LINES     6  /* of a failure's message */
#define TAIL_LINES     20 /* of output, if there is no report to show instead */
#define FAILURES_SHOWN 50

struct test_values {
	const char *framework;
	bool verbose;
	struct request_values request;
};

static const struct option_row test_options[] = {
	{ "framework", 'f', OPTION_TEXT, "NAME", offsetof(struct test_values, framework), NULL,
	  "pytest, unittest, node, jest, vitest or go, or a language; without it the project's files decide" },
	{ "verbose", 'v', OPTION_FLAG, NULL, offsetof(struct test_values, verbose), NULL,
	  "show the framework's own output as it comes" },
#define AT(member) offsetof(struct test_values, request.member)
#include "cli/request_options.def"
};

/* ---- the end --------------------------------------------------------------------------------------- */

static bool has_piece(const char *line, size_t len, const char *piece)
{
	return memmem(line, len, piece, strlen(piece)) != NULL;
}

/* Whether a line contains the error itself, as the frameworks print it, rather than its location. */
static bool tells_error(const char *line, size_t len)
{
	static const char *const pieces[] = { "Error:",   "Error [",  "Exception:", "assert ", "Expected",
					      "expected", "Received", "panic:",     " want ",  "AssertionError" };

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		if (has_piece(line, len, pieces[i]))
			return true;
	return false;
}

/* Prints either the lines with errors or the others, until *left are printed. */
static void add_some(struct buf *page, const char *text, bool of_error, int *left)
{
	for (; *text && *left > 0; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t len = strcspn(text, "\n");

		if (len == 0 || tells_error(text, len) != of_error)
			continue;
		buf_adds(page, "    ");
		ui_lines(text, len < 200 ? len : 200, page);
		buf_adds(page, "\n");
		(*left)--;
	}
}

/* A few lines of a message, indented and made safe: first the error, then the beginning. */
static void add_head(struct buf *page, const char *text)
{
	int left = HEAD_LINES;

	add_some(page, text, /* of_error= */ true, &left);
	add_some(page, text, /* of_error= */ false, &left);
}

static void add_failure(struct buf *page, bool has_color, const struct brig_test_failure *f)
{
	ui_paint(page, has_color, UI_RED, "FAILED");
	buf_adds(page, " ");
	ui_line(f->name, page);
	if (f->file && f->line) {
		buf_adds(page, " (");
		ui_line(f->file, page);
		buf_addf(page, ":%u)", f->line);
	}
	buf_adds(page, "\n");
	add_head(page, f->message);
}

static void add_counts(struct buf *page, bool has_color, const struct brig_result *r, const struct brig_tests *t)
{
	struct brig_usage usage;
	char text[160];

	brig_result_usage(r, &usage);
	(void)snprintf(text, sizeof(text), "%llu passed, %llu failed, %llu skipped in %.1f s",
		       (unsigned long long)t->passed, (unsigned long long)t->failed, (unsigned long long)t->skipped,
		       (double)usage.wall_ms / 1000);
	ui_paint(page, has_color, t->failed || !t->complete ? UI_RED : UI_GREEN, text);
	buf_adds(page, t->complete ? "" : " (not all: the report is not complete)");
	buf_adds(page, t->sealed ? "\n" : ", as the test programs themselves say\n");
}

/* Without a report, the end of the output may explain the failure. */
static void say_tail(const struct brig_result *r, enum brig_stream stream)
{
	size_t len, from, lines = 0;
	const char *text = brig_result_output(r, stream, &len);
	AUTO_BUF safe = BUF_INIT(UI_TEXT_MAX);

	for (from = len; from > 0 && lines <= TAIL_LINES; from--)
		lines += text[from - 1] == '\n';
	ui_lines(text + from, len - from, &safe);
	(void)ui_put(STDERR_FILENO, &safe);
}

static int show_tests(const struct brig_result *r, void *arg)
{
	const struct test_values *v = arg;
	bool has_color = ui_has_color(STDOUT_FILENO, v->request.no_color);
	struct brig_test_failure f = BRIG_TEST_FAILURE_INIT;
	struct brig_tests t = BRIG_TESTS_INIT;
	AUTO_BUF page = BUF_INIT(UI_TEXT_MAX);
	size_t n = 0;

	(v->request.quiet ? report_fatal : report_remarks)(r, NULL);
	if (!brig_result_tests(r, &t))
		return brig_result_status(r);
	for (; brig_result_test_failure(r, n, &f); n++)
		if (n < FAILURES_SHOWN)
			add_failure(&page, has_color, &f);
	if (t.failed > FAILURES_SHOWN)
		buf_addf(&page, "and %llu more failures; --json lists up to 256\n",
			 (unsigned long long)t.failed - FAILURES_SHOWN);
	add_counts(&page, has_color, r, &t);
	if (!v->verbose && (!t.complete || t.passed + t.failed + t.skipped == 0)) {
		say_tail(r, BRIG_STDOUT);
		say_tail(r, BRIG_STDERR);
	}
	/* Failed tests have been printed; any other error needs its reason. */
	if (str_eq(brig_result_verdict(r), "error") && (!t.complete || t.failed == 0))
		ui_say("error: %s", brig_result_reason(r));
	return ui_finish(&page, brig_result_status(r));
}

/* ------------------------------------------------------------------------------------------------- */

static int test_values(const struct command *self, struct test_values *v, const struct operands *ops)
{
	const struct request_way way = { .name = "tests", .quiet = !v->verbose, .end = show_tests, .arg = v };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	AUTO_SRT srt = SRT_INIT;
	AUTO_FD input = FD_NONE;

	if (ops->words.n > 1 || ops->rest.n > 0)
		(void)err_set(&err, BRIG_E_USAGE, 0, "'brig test' takes one path");
	else
		(void)srt_settings_use(&v->request, &srt, &err);
	if (!v->request.input)
		v->request.no_input = true; /* tests have no input */
	if (!v->request.workspace && !v->request.files)
		v->request.workspace = ".";
	if (err.code || srt_settings_keep(&v->request, &srt, &err) < 0 ||
	    request_stdin(&v->request, false, &req, &input, &err) < 0)
		return request_refuse(self, &v->request, &err);
	req.kind = BRIG_KIND_TESTS;
	req.language = v->framework;
	req.test_path = ops->words.n > 0 ? ops->words.item[0] : NULL;
	return request_run(&v->request, &req, &way);
}

static int test_main(const struct command *self, int argc, char **argv)
{
	struct test_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = test_values(self, &v, &ops);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_test = {
	.name = "test",
	.synopsis = "[OPTIONS] [PATH]",
	.summary = "run a project's tests in a cell",
	.examples = "  brig test\n"
		    "  brig test tests/\n"
		    "  brig test ./tests/test_api.py::test_login\n",
	.details = "The project is --workspace, the archive of --files, or the current folder; PATH is\n"
		   "a file or folder in it.\n\n"
		   "Exit status: 0 if every test passed, 1 if one failed, 3 if there is no complete report,\n"
		   "5 if there were no tests; else as of 'brig run'.\n",
	.options = test_options,
	.n_options = ARRAY_LEN(test_options),
	.gives_result = true,
	.run = test_main,
};
