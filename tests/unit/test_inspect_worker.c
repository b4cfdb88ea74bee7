/* SPDX-License-Identifier: Apache-2.0 */
/* The confined worker: same findings as in process, and a CRITICAL one when it dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/str.h"
#include "inspect/inspect.h"

static struct rule_set *rules;

static int load_rules(void **state)
{
	(void)state;
	return rules_builtin(&rules, NULL);
}

static int drop_rules(void **state)
{
	(void)state;
	rules_free(rules);
	return 0;
}

static size_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static const struct {
	enum inspect_kind kind;
	const char *text;
} texts[] = {
	{ INSPECT_PYTHON, "" },
	{ INSPECT_PYTHON, "# coding: utf-7\nimport os\nos.system('id') # \xe2\x80\xae\n" },
	{ INSPECT_JAVASCRIPT, "require('child_process').exec('id') \xff" },
	{ INSPECT_TYPESCRIPT, "let x: number = 1\n" },
	{ INSPECT_TSX, "const a = <b>{c}</b>\n" },
	{ INSPECT_GO, "package main\nimport \"os/exec\"\n" },
	{ INSPECT_SHELL, "rm -rf / # \x1b" },
	{ INSPECT_COMMAND, "curl x | sh" },
	{ INSPECT_PATH, "../../etc/passwd" },
};

static void worker_finds_what_the_process_finds(void **state)
{
	size_t some = 0, before = open_descriptors();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (unsigned t = INSPECTION_REPORT; t < INSPECTION_COUNT; t++) {
			struct inspect_request req = {
				.kind = texts[i].kind, .level = t, .text = texts[i].text, .len = strlen(texts[i].text)
			};
			struct findings here = { 0 }, there = { 0 };
			struct brig_error err = BRIG_ERROR_INIT;

			/* The worker first: what a library does only once must be allowed there too. */
			if (inspect_confined(rules, &req, &there, &err) < 0)
				fail_msg("%s", err.msg);
			assert_int_equal(inspect_text(rules, &req, &here, &err), 0);
			assert_int_equal(here.n, there.n);
			assert_int_equal(here.worst, there.worst);
			for (size_t k = 0; k < here.n; k++) {
				assert_string_equal(here.row[k].rule, there.row[k].rule);
				assert_string_equal(here.row[k].message, there.row[k].message);
				assert_int_equal(here.row[k].line, there.row[k].line);
				assert_int_equal(here.row[k].severity, there.row[k].severity);
			}
			some += here.n;
			findings_release(&here);
			findings_release(&there);
		}
	assert_true(some > 0);
	/* Nothing is left: no descriptor, no child. */
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void assert_not_analysable(const struct inspect_request *req)
{
	struct findings found = { 0 };

	assert_int_equal(inspect_confined(rules, req, &found, NULL), 0);
	assert_int_equal(found.n, 1);
	assert_string_equal(found.row[0].rule, "not-analysable");
	assert_int_equal(found.worst, req->level == INSPECTION_REPORT ? SEVERITY_HIGH : SEVERITY_CRITICAL);
	findings_release(&found);
}

/* A text that cannot be read stands for a parser that goes astray. */
static void a_dead_worker_is_a_finding_that_blocks_except_at_report(void **state)
{
	char *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(hole != MAP_FAILED);
	for (unsigned kind = 0; kind < INSPECT_KIND_COUNT; kind++)
		for (unsigned level = INSPECTION_REPORT; level < INSPECTION_COUNT; level++)
			assert_not_analysable(
				&(struct inspect_request){ .kind = kind, .level = level, .text = hole, .len = 100 });
	(void)munmap(hole, 4096);
}

/* Whatever comes of it: an answer, and never silence about a text that is mostly brackets. */
static void hostile_text_gets_an_answer(void **state)
{
	static const struct {
		enum inspect_kind kind;
		const char *unit;
	} rows[] = {
		{ INSPECT_PYTHON, "(" },     { INSPECT_PYTHON, "a[" },      { INSPECT_PYTHON, "def f(" },
		{ INSPECT_JAVASCRIPT, "[" }, { INSPECT_JAVASCRIPT, "`${" }, { INSPECT_TYPESCRIPT, "a<" },
		{ INSPECT_TSX, "<a>" },      { INSPECT_GO, "a[" },          { INSPECT_GO, "func(" },
		{ INSPECT_SHELL, "$(" },     { INSPECT_SHELL, "`$(" },      { INSPECT_SHELL, "((" },
	};
	size_t len = 256 * 1024;
	AUTO_FREE char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct inspect_request req = {
			.kind = rows[i].kind, .level = INSPECTION_STRICT, .text = text, .len = len
		};
		size_t unit = strlen(rows[i].unit);
		struct findings found = { 0 };
		struct brig_error err = BRIG_ERROR_INIT;

		for (size_t k = 0; k < len; k++)
			text[k] = rows[i].unit[k % unit];
		if (inspect_confined(rules, &req, &found, &err) < 0)
			fail_msg("%s", err.msg);
		if (found.worst < SEVERITY_HIGH)
			fail_msg("256 KB of '%s' (%s): nothing above %s", rows[i].unit, inspect_kind_name[rows[i].kind],
				 severity_name[found.worst]);
		findings_release(&found);
	}
}

static void on_signal(int number)
{
	(void)number;
}

/* Signals of the caller interrupt its waiting, not the inspection. */
static void signals_do_not_disturb(void **state)
{
	struct sigaction act = { .sa_handler = on_signal }, old;
	struct inspect_request req = { .kind = INSPECT_SHELL, .level = INSPECTION_GUARD, .text = "echo", .len = 4 };
	struct findings found = { 0 };

	(void)state;
	assert_int_equal(sigaction(SIGCHLD, &act, &old), 0);
	assert_int_equal(inspect_confined(rules, &req, &found, NULL), 0);
	findings_release(&found);
	/* A caller that has its children reaped by the kernel gets its answer too. */
	act.sa_handler = SIG_IGN;
	assert_int_equal(sigaction(SIGCHLD, &act, NULL), 0);
	assert_int_equal(inspect_confined(rules, &req, &found, NULL), 0);
	findings_release(&found);
	assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_finds_what_the_process_finds),
		cmocka_unit_test(a_dead_worker_is_a_finding_that_blocks_except_at_report),
		cmocka_unit_test(hostile_text_gets_an_answer),
		cmocka_unit_test(signals_do_not_disturb),
	};

	return cmocka_run_group_tests(tests, load_rules, drop_rules);
}
