/* SPDX-License-Identifier: Apache-2.0 */
/* The confined worker: same findings as in process, and a CRITICAL one when it dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "inspect/wire.h"
#include "inspect/worker.h"
#include "sys/proc.h"

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

static void await_spare(const struct inspectors *from)
{
	uint64_t deadline = clock_now_ns() + 60 * NS_PER_SEC;

	while (!inspectors_are_ready(from)) {
		assert_true(clock_now_ns() < deadline);
		(void)usleep(1000);
	}
}

/* from: NULL, or has one spare worker. */
static void inspect_by(struct inspectors *from, const struct inspect_request *req, struct findings *ret)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct inspect_job *job = NULL;

	if (from)
		await_spare(from);
	if (inspect_begin(from, rules, req, &job, &err) < 0)
		fail_msg("%s", err.msg);
	if (from) {
		assert_false(inspectors_are_ready(from)); /* it was taken */
		assert_true(inspectors_refill(from));
	}
	if (inspect_finish(job, ret, &err) < 0)
		fail_msg("%s", err.msg);
}

static void compare_with_process(struct inspectors *from)
{
	size_t some = 0;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (unsigned t = INSPECTION_REPORT; t < INSPECTION_COUNT; t++) {
			struct inspect_request req = {
				.kind = texts[i].kind, .level = t, .text = texts[i].text, .len = strlen(texts[i].text)
			};
			struct findings here = { 0 }, there = { 0 };

			/* The worker first: what a library does only once must be allowed there too. */
			inspect_by(from, &req, &there);
			assert_int_equal(inspect_text(rules, &req, &here, NULL), 0);
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
}

static void assert_nothing_left(size_t descriptors_before)
{
	assert_int_equal(open_descriptors(), descriptors_before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void worker_finds_what_the_process_finds(void **state)
{
	size_t before = open_descriptors();

	(void)state;
	compare_with_process(NULL);
	assert_nothing_left(before);
}

static struct inspectors *open_inspectors(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct inspectors *from = NULL;

	if (inspectors_open(rules, 1, &from, &err) < 0)
		fail_msg("%s", err.msg);
	return from;
}

static void spare_worker_finds_what_the_process_finds(void **state)
{
	size_t before = open_descriptors();
	struct inspectors *from = open_inspectors();

	(void)state;
	compare_with_process(from);
	inspectors_close(from);
	assert_nothing_left(before);
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

/* ---- spare workers -------------------------------------------------------------------------------------- */

/* The youngest child of a process with one thread: an older one may be a zombie still. */
static pid_t child_of(pid_t pid)
{
	char path[64];
	uint64_t child = 0;
	char text[256], *last;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	assert_true(fd_get_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	for (last = text + strlen(text); last > text && last[-1] == ' ';)
		*--last = '\0';
	last = strrchr(text, ' ');
	assert_true(str_to_u64(last ? last + 1 : text, &child));
	return (pid_t)child;
}

/* Kills one process; when it returns both have ended. */
static void kill_and_await(pid_t victim, pid_t other)
{
	const pid_t pids[] = { victim, other };
	int pid_fd[ARRAY_LEN(pids)];

	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		pid_fd[i] = (int)syscall(SYS_pidfd_open, pids[i], 0);
		assert_true(pid_fd[i] >= 0);
	}
	assert_int_equal(kill(victim, SIGKILL), 0);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		assert_int_equal(proc_await(pid_fd[i], clock_now_ns() + 60 * NS_PER_SEC), 0);
		fd_closep(&pid_fd[i]);
	}
}

static const struct inspect_request eval = {
	.kind = INSPECT_PYTHON, .level = INSPECTION_STRICT, .text = "eval(x)", .len = 7
};

static void assert_eval_is_found(struct inspectors *from)
{
	struct inspect_job *job = NULL;
	struct findings found = { 0 };

	assert_int_equal(inspect_begin(from, rules, &eval, &job, NULL), 0);
	assert_int_equal(inspect_finish(job, &found, NULL), 0);
	assert_true(found.n > 0);
	assert_string_not_equal(found.row[0].rule, "not-analysable");
	findings_release(&found);
}

/* Whatever is missing, the text is read by a worker that is forked for it. */
static void a_spare_worker_that_is_gone_is_not_missed(void **state)
{
	size_t before = open_descriptors();
	struct inspectors *from = open_inspectors();
	pid_t inspectors = child_of(getpid()), worker;

	(void)state;
	await_spare(from);
	assert_eval_is_found(from); /* by the spare one */
	assert_eval_is_found(from); /* there is none now */
	assert_true(inspectors_refill(from));
	await_spare(from);
	worker = child_of(inspectors);
	kill_and_await(worker, worker);
	assert_eval_is_found(from);
	assert_true(inspectors_refill(from));
	await_spare(from);
	kill_and_await(inspectors, child_of(inspectors));
	assert_eval_is_found(from);
	assert_eval_is_found(from);
	assert_false(inspectors_refill(from));
	inspectors_close(from);
	assert_nothing_left(before);
}

/* One that was given the text and does not answer in time is a finding that blocks; of one that dies the text is read again. */
static void a_spare_worker_that_fails_is_a_finding(void **state)
{
	static const bool dies[] = { true, false };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(dies); i++) {
		struct inspectors *from = open_inspectors();
		struct inspect_job *job = NULL;
		struct findings found = { 0 };
		pid_t worker;

		await_spare(from);
		worker = child_of(child_of(getpid()));
		assert_int_equal(kill(worker, SIGSTOP), 0);
		assert_int_equal(inspect_begin(from, rules, &eval, &job, NULL), 0);
		assert_false(inspectors_are_ready(from));
		if (dies[i])
			assert_int_equal(kill(worker, SIGKILL), 0);
		assert_int_equal(inspect_finish(job, &found, NULL), 0);
		assert_int_equal(found.n, 1);
		assert_int_equal(found.worst, SEVERITY_CRITICAL);
		assert_int_equal(strcmp(found.row[0].rule, "not-analysable") == 0, !dies[i]);
		findings_release(&found);
		inspectors_close(from);
	}
}

/* Those that have answered end by themselves; one that does not is killed when so many more have been used, or at the end. */
static void a_worker_that_has_answered_ends(void **state)
{
	struct inspectors *from = open_inspectors();
	int ends[INSPECTORS_SPARES_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct inspect_job *job = NULL;
		struct findings found = { 0 };
		pid_t worker;

		await_spare(from);
		worker = child_of(child_of(getpid()));
		ends[i] = (int)syscall(SYS_pidfd_open, worker, 0);
		assert_true(ends[i] >= 0);
		assert_int_equal(inspect_begin(from, rules, &eval, &job, NULL), 0);
		assert_int_equal(inspect_finish_beside(job, from, &found, NULL), 0);
		(void)kill(worker, SIGSTOP); /* it rests, or is gone already */
		assert_true(found.n > 0);
		findings_release(&found);
		assert_true(inspectors_refill(from));
	}
	assert_int_equal(proc_await(ends[0], clock_now_ns() + 60 * NS_PER_SEC), 0);
	inspectors_close(from);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		assert_int_equal(proc_await(ends[i], clock_now_ns() + 60 * NS_PER_SEC), 0);
		fd_closep(&ends[i]);
	}
}

/* A text that does not fit into the message is read as if there were no spare worker, and leaves it there. */
static void a_long_text_takes_no_spare_worker(void **state)
{
	struct inspectors *from = open_inspectors();
	size_t len = WIRE_ASK_MAX;
	AUTO_FREE char *text = malloc(len);
	struct inspect_request req = { .kind = INSPECT_SHELL, .level = INSPECTION_GUARD, .text = text, .len = len };
	struct inspect_job *job = NULL;
	struct findings found = { 0 };

	(void)state;
	assert_non_null(text);
	memset(text, '\n', len);
	await_spare(from);
	assert_int_equal(inspect_begin(from, rules, &req, &job, NULL), 0);
	assert_true(inspectors_are_ready(from));
	assert_int_equal(inspect_finish(job, &found, NULL), 0);
	findings_release(&found);
	inspectors_close(from);
}

static void cancelled_texts_leave_nothing(void **state)
{
	size_t before = open_descriptors();
	struct inspectors *from = open_inspectors();
	struct inspect_job *job = NULL;

	(void)state;
	await_spare(from);
	assert_int_equal(inspect_begin(from, rules, &eval, &job, NULL), 0);
	inspect_cancel(job);
	inspectors_close(from);
	inspectors_close(open_inspectors()); /* before the first worker is there */
	assert_nothing_left(before);
}

/* Everything that a request can say arrives: the words of the white-list, the modules that came with it, the rest. */
static void a_request_arrives_whole(void **state)
{
	const char *const asked[] = { "numpy", "pandas" };
	struct setting_list allowed = { 0 };
	struct inspect_request req = { .kind = INSPECT_COMMAND,
				       .level = INSPECTION_REPORT,
				       .text = "make \0 all",
				       .len = 10,
				       .workspace = "/elsewhere",
				       .has_input = true,
				       .strict_commands = true,
				       .allowed_commands = &allowed,
				       .asked = asked,
				       .n_asked = 2,
				       .asked_kind = INSPECT_GO };
	AUTO_BUF bytes = BUF_INIT(WIRE_ASK_MAX);
	struct wire_ask got;

	(void)state;
	assert_true(setting_list_add(&allowed, "make"));
	assert_true(setting_list_add(&allowed, "cc"));
	assert_true(wire_ask_encode(&req, &bytes));
	assert_int_equal(wire_ask_size(bytes.data), bytes.len);
	assert_true(wire_ask_decode(bytes.data, bytes.len, &got));
	assert_int_equal(got.req.kind, INSPECT_COMMAND);
	assert_int_equal(got.req.level, INSPECTION_REPORT);
	assert_int_equal(got.req.asked_kind, INSPECT_GO);
	assert_true(got.req.has_input && got.req.strict_commands);
	assert_string_equal(got.req.workspace, "/elsewhere");
	assert_int_equal(got.req.allowed_commands->n, 2);
	assert_true(setting_list_has(got.req.allowed_commands, "make"));
	assert_true(setting_list_has(got.req.allowed_commands, "cc"));
	assert_int_equal(got.req.n_asked, 2);
	assert_string_equal(got.req.asked[0], "numpy");
	assert_string_equal(got.req.asked[1], "pandas");
	assert_int_equal(got.req.len, 10);
	assert_memory_equal(got.req.text, req.text, 10);
	wire_ask_release(&got);
	/* Cut off anywhere, or with a byte too many, it is none. */
	for (size_t len = 0; len < bytes.len; len++) {
		assert_false(wire_ask_decode(bytes.data, len, &got));
		wire_ask_release(&got);
	}
	(void)buf_add(&bytes, "x", 1);
	assert_false(wire_ask_decode(bytes.data, bytes.len, &got));
	wire_ask_release(&got);
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
		cmocka_unit_test(spare_worker_finds_what_the_process_finds),
		cmocka_unit_test(a_spare_worker_that_is_gone_is_not_missed),
		cmocka_unit_test(a_spare_worker_that_fails_is_a_finding),
		cmocka_unit_test(a_worker_that_has_answered_ends),
		cmocka_unit_test(a_long_text_takes_no_spare_worker),
		cmocka_unit_test(cancelled_texts_leave_nothing),
		cmocka_unit_test(a_request_arrives_whole),
		cmocka_unit_test(hostile_text_gets_an_answer),
		cmocka_unit_test(signals_do_not_disturb),
	};

	return cmocka_run_group_tests(tests, load_rules, drop_rules);
}
