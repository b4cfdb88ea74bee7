/* SPDX-License-Identifier: Apache-2.0 */
/* The runner of the service: executions from their acceptance to their result, and questions. */
#include "runner_bed.h"

#include "server/runner/job.h"

/* ---- runs ----------------------------------------------------------------------------------------------------- */

static void code_runs_and_its_result_is_the_answer(void **state)
{
	struct bed *b = *state;
	struct buf m;
	AUTO_GOT g = { 0 };
	AUTO_GOT one = { 0 };

	start(b);
	begin_code(&m, "shell", "read x; echo \"$1 $K $x\"");
	message_put_text(&m, FIELD_arg, "a b");
	message_put_text(&m, FIELD_variable, "K=v");
	message_put_bytes(&m, FIELD_input, "in\n", 3);
	message_put_text(&m, FIELD_option, "timeout=20");
	g = ask(b, &m);
	assert_int_equal(g.status, 200);
	assert_string_equal(text_in(&g, "verdict"), "ok");
	assert_string_equal(text_in(&g, "stdout"), "a b v in\n");
	assert_string_equal(g.who, "anonymous");
	one = ask_plain(b, ROUTE_execution, text_in(&g, "id"), NULL);
	assert_int_equal(one.status, 200);
	assert_string_equal(text_in(&one, "state"), "finished");
	assert_true(json_equal(json_object_get(one.doc, "result"), g.doc));
	assert_int_equal(stop(b), 0);
}

static void commands_and_tests_have_routes_of_their_own(void **state)
{
	struct bed *b = *state;
	struct buf m;
	AUTO_GOT g = { 0 };
	AUTO_GOT wrong = { 0 };

	start(b);
	begin_ask(&m, ROUTE_command);
	message_put_text(&m, FIELD_arg, "echo");
	message_put_text(&m, FIELD_arg, "word");
	g = ask(b, &m);
	assert_string_equal(text_in(&g, "stdout"), "word\n");
	begin_ask(&m, ROUTE_tests);
	message_put_number(&m, FIELD_kind, BRIG_KIND_CODE);
	message_put_bytes(&m, FIELD_code, "1", 1);
	wrong = ask(b, &m);
	expect_error(&wrong, 422, "unusable", "/v1/executions");
	assert_int_equal(stop(b), 0);
}

static void unusable_requests_are_refused_before_they_wait(void **state)
{
	static const struct {
		enum field field;
		const char *text, *words;
	} bad[] = {
		{ FIELD_file_name, "a/b.py", "base name" },
		{ FIELD_variable, "no equals sign", "NAME=VALUE" },
		{ FIELD_option, "timeout", "no key" },
		{ FIELD_artifact, "../x", "no pattern" },
	};
	struct bed *b = *state;

	start(b);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf m;
		AUTO_GOT g = { 0 };

		begin_code(&m, "python", "pass");
		message_put_text(&m, bad[i].field, bad[i].text);
		g = ask(b, &m);
		expect_error(&g, 422, "unusable", bad[i].words);
	}
	assert_int_equal(stop(b), 0);
}

static void streams_tell_what_happens_and_end_with_the_verdict(void **state)
{
	struct bed *b = *state;
	char verdict[32] = "", again[32] = "";
	AUTO_BUF output = BUF_INIT(MiB), names = BUF_INIT(MiB), replayed = BUF_INIT(MiB), names_again = BUF_INIT(MiB);
	AUTO_GOT list = { 0 };
	struct buf m;
	const char *id;

	start(b);
	begin_code(&m, "shell", "printf 'a\\303'; printf '\\244b\\n'; echo c");
	message_put_number(&m, FIELD_stream, 1);
	read_stream(b, send_ask(b, &m), &output, &names, verdict);
	assert_string_equal(buf_str(&output), "a\xc3\xa4"
					      "b\nc\n");
	assert_string_equal(verdict, "ok");
	assert_non_null(strstr(buf_str(&names), "started stdout"));
	list = ask_plain(b, ROUTE_executions, NULL, NULL);
	id = json_string_value(json_object_get(json_array_get(json_object_get(list.doc, "executions"), 0), "id"));
	assert_non_null(id);
	begin_ask(&m, ROUTE_execution_events);
	message_put_text(&m, FIELD_id, id);
	read_stream(b, send_ask(b, &m), &replayed, &names_again, again);
	assert_string_equal(buf_str(&replayed), buf_str(&output));
	assert_string_equal(buf_str(&names_again), buf_str(&names));
	assert_string_equal(again, "ok");
	assert_int_equal(stop(b), 0);
}

/* Answers of many megabytes, asked for faster than they are taken: the runner waits with them. */
static void long_answers_wait_for_who_reads(void **state)
{
	enum { ASKS = 40 };
	struct bed *b = *state;
	struct buf m;
	AUTO_GOT g = { 0 };
	const char *id;

	start(b);
	begin_code(&m, "shell", "head -c 5000000 /dev/zero | tr '\\000' x");
	g = ask(b, &m);
	id = text_in(&g, "id");
	assert_true(g.len > 4 * MiB);
	for (size_t i = 0; i < ASKS; i++) {
		begin_ask(&m, ROUTE_execution);
		message_put_text(&m, FIELD_id, id);
		(void)send_ask(b, &m);
	}
	for (uint32_t i = 0; i < ASKS; i++) {
		AUTO_GOT one = next_record(b);

		assert_int_equal(one.tag, b->tag - ASKS + 1 + i);
		assert_int_equal(one.status, 200);
		assert_true(one.len > g.len);
	}
	assert_int_equal(stop(b), 0);
}

/* ---- asynchronous ones ------------------------------------------------------------------------------------------ */

static void asynchronous_ones_are_cancelled_by_their_id(void **state)
{
	struct bed *b = *state;
	char running[32], queued[32], verdict[32] = "";
	AUTO_GOT g = { 0 };
	AUTO_GOT place = { 0 };
	AUTO_GOT again = { 0 };
	AUTO_GOT queue = { 0 };

	b->options.jobs = 1;
	start(b);
	begin_async(b, ENDLESS, NULL, running);
	begin_async(b, "echo never", NULL, queued);
	place = ask_plain(b, ROUTE_execution, queued, NULL);
	assert_string_equal(text_in(&place, "state"), "queued");
	assert_int_equal(json_integer_value(json_object_get(place.doc, "position")), 1);
	queue = ask_plain(b, ROUTE_queue, NULL, NULL);
	assert_int_equal(json_integer_value(json_object_get(queue.doc, "waiting")), 1);
	assert_int_equal(json_integer_value(json_object_get(queue.doc, "running")), 1);
	got_release(&place);
	place = ask_plain(b, ROUTE_cancel, queued, NULL);
	assert_int_equal(place.status, 202);
	wait_for_end(b, queued, verdict);
	assert_string_equal(verdict, "cancelled");
	g = ask_plain(b, ROUTE_cancel, running, NULL);
	assert_int_equal(g.status, 202);
	wait_for_end(b, running, verdict);
	assert_string_equal(verdict, "cancelled");
	again = ask_plain(b, ROUTE_cancel, running, NULL);
	assert_int_equal(again.status, 200);
	assert_int_equal(stop(b), 0);
}

static void what_was_promised_is_lost_or_finished_after_a_crash(void **state)
{
	struct bed *b = *state;
	char finished[32], lost[32], verdict[32] = "";
	AUTO_GOT f = { 0 };
	AUTO_GOT l = { 0 };
	AUTO_GOT none = { 0 };

	b->options.jobs = 2;
	start(b);
	begin_async(b, "echo done", NULL, finished);
	begin_async(b, ENDLESS, NULL, lost);
	wait_for_end(b, finished, verdict);
	(void)kill(b->runner, SIGKILL);
	assert_int_equal(end_of(b), 128 + SIGKILL);
	start(b);
	f = ask_plain(b, ROUTE_execution, finished, NULL);
	assert_string_equal(text_in(&f, "state"), "finished");
	assert_string_equal(json_string_value(json_object_get(json_object_get(f.doc, "record"), "verdict")), "ok");
	assert_string_equal(text_in(&f, "verdict"), "ok");
	assert_string_equal(text_in(&f, "token"), "anonymous");
	l = ask_plain(b, ROUTE_execution, lost, NULL);
	assert_string_equal(text_in(&l, "state"), "lost");
	none = ask_plain(b, ROUTE_execution, "abcdefghijklmnop", NULL);
	expect_error(&none, 404, "not_found", "abcdefghijklmnop");
	assert_int_equal(stop(b), 0);
}

/* ---- who goes ----------------------------------------------------------------------------------------------------- */

static void say_gone(struct bed *b, uint32_t tag)
{
	const struct record r = { .tag = tag, .type = RECORD_GONE };
	struct brig_error err = BRIG_ERROR_INIT;

	assert_int_equal(channel_send(b->channel, &r, &err), 0);
}

/* The only execution that there is; its state, and its id. */
static void state_of_only(struct bed *b, char ret_state[32], char ret_id[32])
{
	AUTO_GOT list = ask_plain(b, ROUTE_executions, NULL, NULL);
	const json_t *rows = json_object_get(list.doc, "executions");
	const json_t *row = json_array_get(rows, 0);

	assert_int_equal(json_array_size(rows), 1);
	(void)str_copy(ret_state, 32, json_string_value(json_object_get(row, "state")));
	(void)str_copy(ret_id, 32, json_string_value(json_object_get(row, "id")));
}

static void a_client_that_goes_cancels_what_ran_for_it(void **state)
{
	struct bed *b = *state;
	char is[32], id[32], verdict[32] = "";
	struct buf m;
	uint32_t tag;
	AUTO_GOT g = { 0 };

	start(b);
	begin_code(&m, "shell", ENDLESS);
	message_put_text(&m, FIELD_option, "timeout=100");
	tag = send_ask(b, &m);
	state_of_only(b, is, id);
	assert_string_equal(is, "running");
	say_gone(b, tag);
	g = next_record(b); /* each ask is answered, wanted or not */
	assert_int_equal(g.tag, tag);
	assert_int_equal(g.type, RECORD_ANSWER);
	wait_for_end(b, id, verdict);
	assert_string_equal(verdict, "cancelled");
	assert_int_equal(stop(b), 0);
}

static void one_that_only_watches_may_go(void **state)
{
	struct bed *b = *state;
	char id[32], verdict[32] = "";
	struct buf m;
	uint32_t tag;
	AUTO_GOT now = { 0 };

	start(b);
	begin_async(b, "read x; echo \"$x\"; " ENDLESS, NULL, id);
	begin_ask(&m, ROUTE_execution_events);
	message_put_text(&m, FIELD_id, id);
	tag = send_ask(b, &m);
	say_gone(b, tag);
	for (bool is_answered = false; !is_answered;) {
		AUTO_GOT g = next_record(b);

		assert_int_equal(g.tag, tag);
		is_answered = g.type == RECORD_ANSWER;
	}
	now = ask_plain(b, ROUTE_execution, id, NULL);
	assert_string_equal(text_in(&now, "state"), "running");
	got_release(&now);
	now = ask_plain(b, ROUTE_cancel, id, NULL);
	wait_for_end(b, id, verdict);
	assert_string_equal(verdict, "cancelled");
	assert_int_equal(stop(b), 0);
}

static void one_that_waits_and_goes_never_was(void **state)
{
	struct bed *b = *state;
	char is[32], id[32], only[32];
	struct buf m;
	uint32_t tag;
	AUTO_GOT g = { 0 };

	b->options.jobs = 1;
	start(b);
	begin_async(b, ENDLESS, NULL, id);
	begin_code(&m, "shell", "echo");
	tag = send_ask(b, &m);
	say_gone(b, tag);
	g = next_record(b);
	assert_int_equal(g.tag, tag);
	state_of_only(b, is, only);
	assert_string_equal(only, id);
	assert_int_equal(stop(b), 0);
}

/* ---- the same again ------------------------------------------------------------------------------------------------- */

static void begin_keyed(struct buf *m, const char *code, const char *key)
{
	begin_code(m, "shell", code);
	message_put_text(m, FIELD_idempotency_key, key);
}

static void a_key_stands_for_one_execution(void **state)
{
	struct bed *b = *state;
	struct buf m;
	uint32_t one, two;
	AUTO_GOT first = { 0 };
	AUTO_GOT second = { 0 };
	AUTO_GOT third = { 0 };
	AUTO_GOT other = { 0 };

	start(b);
	begin_keyed(&m, "sleep 0.3; echo $$", "k");
	one = send_ask(b, &m);
	begin_keyed(&m, "sleep 0.3; echo $$", "k"); /* while it runs */
	two = send_ask(b, &m);
	first = next_record(b);
	second = next_record(b);
	assert_int_equal(first.tag + second.tag, one + two);
	assert_string_equal(text_in(&first, "id"), text_in(&second, "id"));
	begin_keyed(&m, "sleep 0.3; echo $$", "k"); /* and when it is over */
	third = ask(b, &m);
	assert_string_equal(third.body, first.body);
	begin_keyed(&m, "echo other", "k");
	other = ask(b, &m);
	expect_error(&other, 409, "conflict", "another request");
	got_release(&other);
	begin_keyed(&m, "sleep 0.3; echo $$", "another");
	other = ask(b, &m);
	assert_string_not_equal(text_in(&other, "id"), text_in(&first, "id"));
	assert_int_equal(stop(b), 0);
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

static int archive_of(const char *name, const char *text)
{
	AUTO_BUF tar = BUF_INIT(MiB);
	int fd = memfd_create("archive", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_true(ustar_add_head(&tar, name, 0644, strlen(text)));
	buf_adds(&tar, text);
	for (size_t i = ustar_padding(strlen(text)); i > 0; i--)
		buf_add(&tar, "", 1);
	assert_true(ustar_add_end(&tar));
	assert_int_equal(fd_write_all(fd, tar.data, tar.len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
	return fd;
}

static struct got artifact_of(struct bed *b, const char *id, const char *path)
{
	struct buf m;

	begin_ask(&m, ROUTE_artifact);
	message_put_text(&m, FIELD_id, id);
	message_put_text(&m, FIELD_path, path);
	return ask(b, &m);
}

static void files_go_in_and_artifacts_come_out(void **state)
{
	struct bed *b = *state;
	AUTO_FD files = archive_of("in.txt", "input");
	AUTO_GOT g = { 0 };
	struct buf m;
	const char *id;

	start(b);
	begin_code(&m, "shell", "tr a-z A-Z < in.txt > out.png; printf 'x\\377\\000y' > raw; echo '<p>' > page.html");
	message_put_text(&m, FIELD_artifact, "*");
	message_put_number(&m, FIELD_has_files, 1);
	(void)send_with(b, &m, &files, 1);
	g = next_record(b);
	assert_string_equal(text_in(&g, "verdict"), "ok");
	id = text_in(&g, "id");
	AUTO_GOT png = artifact_of(b, id, "out.png");
	AUTO_GOT raw = artifact_of(b, id, "raw");
	AUTO_GOT page = artifact_of(b, id, "page.html");
	AUTO_GOT none = artifact_of(b, id, "../etc/passwd");

	assert_int_equal(png.status, 200);
	assert_string_equal(png.body, "INPUT");
	assert_string_equal(png.content_type, "image/png");
	assert_int_equal(raw.len, 4);
	assert_memory_equal(raw.body, "x\377\0y", 4);
	assert_string_equal(raw.content_type, "application/octet-stream");
	assert_string_equal(page.content_type, "text/plain; charset=utf-8");
	expect_error(&none, 404, "not_found", "no artifact");
	assert_int_equal(stop(b), 0);
}

/* ---- questions ------------------------------------------------------------------------------------------------------- */

static void questions_have_documents(void **state)
{
	static const struct {
		enum route route;
		const char *member;
	} questions[] = {
		{ ROUTE_languages, "languages" },   { ROUTE_environments, "environments" },
		{ ROUTE_policy, "settings" },       { ROUTE_capabilities, "rows" },
		{ ROUTE_capabilities, "rows" },     { ROUTE_rules, "rules" },
		{ ROUTE_history, "executions" },    { ROUTE_statistics, "metrics" },
		{ ROUTE_cells, "cells" },           { ROUTE_queue, "jobs" },
		{ ROUTE_whoami, "admin" },          { ROUTE_readyz, "status" },
		{ ROUTE_executions, "executions" },
	};
	struct bed *b = *state;
	struct buf m;
	AUTO_GOT metrics = { 0 };
	AUTO_GOT checked = { 0 };

	start(b);
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		AUTO_GOT g = ask_plain(b, questions[i].route, NULL, NULL);

		if (g.status != 200 || !json_object_get(g.doc, questions[i].member))
			fail_msg("%s: %u %s", route_rows[questions[i].route].path, g.status, g.body);
	}
	metrics = ask_plain(b, ROUTE_metrics, NULL, NULL);
	assert_non_null(strstr(metrics.body, "\nbrig_service_running 0\n"));
	assert_non_null(strstr(metrics.content_type, "text/plain"));
	begin_ask(&m, ROUTE_inspect);
	message_put_text(&m, FIELD_check_kind, "command");
	message_put_bytes(&m, FIELD_text, "rm -rf /", 8);
	checked = ask(b, &m);
	assert_true(json_is_true(json_object_get(checked.doc, "blocked")));
	assert_int_equal(stop(b), 0);
}

static void a_receipt_comes_with_the_result_and_holds(void **state)
{
	struct bed *b = *state;
	struct buf m;
	AUTO_GOT g = { 0 };
	AUTO_GOT checked = { 0 };
	char *receipt;

	start(b);
	begin_code(&m, "shell", "echo");
	message_put_number(&m, FIELD_receipt, 1);
	g = ask(b, &m);
	assert_true(json_is_object(json_object_get(g.doc, "receipt")));
	receipt = json_dumps(json_object_get(g.doc, "receipt"), 0);
	begin_ask(&m, ROUTE_verify_receipt);
	message_put_bytes(&m, FIELD_text, receipt, strlen(receipt));
	free(receipt);
	checked = ask(b, &m);
	assert_true(json_is_true(json_object_get(checked.doc, "ok")));
	assert_int_equal(stop(b), 0);
}

static void every_descriptor_of_a_job_counts(void **state UNUSED)
{
	const size_t members[] = { offsetof(struct job, files), offsetof(struct job, input), offsetof(struct job, out),
				   offsetof(struct job, project), offsetof(struct job, left) };

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct job job = {
			.files = FD_NONE, .input = FD_NONE, .out = FD_NONE, .project = FD_NONE, .left = FD_NONE
		};

		assert_int_equal(job_highest_fd(&job), FD_NONE);
		*(int *)(void *)((char *)&job + members[i]) = 9;
		assert_int_equal(job_highest_fd(&job), 9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(code_runs_and_its_result_is_the_answer),
		CASE(commands_and_tests_have_routes_of_their_own),
		CASE(unusable_requests_are_refused_before_they_wait),
		CASE(streams_tell_what_happens_and_end_with_the_verdict),
		CASE(long_answers_wait_for_who_reads),
		CASE(asynchronous_ones_are_cancelled_by_their_id),
		CASE(what_was_promised_is_lost_or_finished_after_a_crash),
		CASE(a_client_that_goes_cancels_what_ran_for_it),
		CASE(one_that_only_watches_may_go),
		CASE(one_that_waits_and_goes_never_was),
		CASE(a_key_stands_for_one_execution),
		CASE(files_go_in_and_artifacts_come_out),
		CASE(questions_have_documents),
		cmocka_unit_test(every_descriptor_of_a_job_counts),
		CASE(a_receipt_comes_with_the_result_and_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
