/* SPDX-License-Identifier: Apache-2.0 */
/* The runner of the service: how it ends, what it reads anew, and a front that is none. */
#include "runner_bed.h"

/* ---- its end --------------------------------------------------------------------------------------------------------- */

static void a_drain_lets_what_runs_finish_and_takes_nothing_new(void **state)
{
	const char drain = WORD_DRAIN;
	struct bed *b = *state;
	struct buf m;
	uint32_t tag;
	AUTO_GOT refused = { 0 };
	AUTO_GOT ready = { 0 };
	AUTO_GOT result = { 0 };

	start(b);
	begin_code(&m, "shell", "sleep 1; echo done");
	tag = send_ask(b, &m);
	got_release(&ready);
	ready = ask_plain(b, ROUTE_readyz, NULL, NULL);
	assert_int_equal(ready.status, 200);
	assert_int_equal(send(b->master, &drain, 1, 0), 1);
	do { /* it hears the master and us in any order */
		got_release(&ready);
		ready = ask_plain(b, ROUTE_readyz, NULL, NULL);
	} while (ready.status == 200);
	assert_int_equal(ready.status, 503);
	begin_code(&m, "shell", "echo");
	refused = ask(b, &m);
	expect_error(&refused, 503, "unavailable", "stopped");
	assert_true(refused.retry_after > 0);
	result = next_record(b);
	assert_int_equal(result.tag, tag);
	assert_string_equal(text_in(&result, "stdout"), "done\n");
	assert_int_equal(end_of(b), 0);
}

static void now_means_now(void **state)
{
	struct bed *b = *state;
	char id[32];
	struct buf m;

	b->options.jobs = 1;
	start(b);
	begin_async(b, ENDLESS, NULL, id);
	begin_code(&m, "shell", "echo");
	(void)send_ask(b, &m);
	assert_int_equal(stop(b), 0);
}

static void a_master_that_went_ends_it(void **state)
{
	struct bed *b = *state;
	char id[32];

	start(b);
	begin_async(b, ENDLESS, NULL, id);
	fd_closep(&b->master);
	assert_int_equal(end_of(b), 0);
}

static void what_is_no_message_ends_it(void **state)
{
	struct bed *b = *state;
	const struct record r = { .tag = 1, .type = RECORD_ASK, .data = "\xff\xff\0\0\x01\0\0\0x", .len = 9 };
	const struct record own = { .tag = 1, .type = RECORD_ANSWER };
	struct brig_error err = BRIG_ERROR_INIT;

	start(b);
	assert_int_equal(channel_send(b->channel, &r, &err), 0);
	assert_int_equal(end_of(b), 1);
	start(b);
	assert_int_equal(channel_send(b->channel, &own, &err), 0);
	assert_int_equal(end_of(b), 1);
}

static void a_route_that_is_none_is_answered(void **state)
{
	struct bed *b = *state;
	struct buf m;
	AUTO_GOT far = { 0 };
	AUTO_GOT front = { 0 };

	start(b);
	begin_ask(&m, ROUTE_COUNT + 7);
	far = ask(b, &m);
	expect_error(&far, 404, "not_found", "no such route");
	front = ask_plain(b, ROUTE_healthz, NULL, NULL);
	expect_error(&front, 404, "not_found", "no such route");
	assert_int_equal(stop(b), 0);
}

static void a_policy_is_read_anew(void **state)
{
	const char reload = WORD_RELOAD;
	struct bed *b = *state;
	char path[300], id[32];
	AUTO_GOT result = { 0 };
	bool is_new = false;

	(void)snprintf(path, sizeof(path), "%s/policy.yaml", b->state);
	AUTO_FD file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_int_equal(fd_write_all(file, "pids_limit: 40\n", 15), 0);
	b->options.policy = path;
	start(b);
	begin_async(b, ENDLESS, NULL, id); /* goes on with the old one */
	assert_int_equal(pwrite(file, "pids_limit: 30\n", 15, 0), 15);
	assert_int_equal(send(b->master, &reload, 1, 0), 1);
	while (!is_new) {
		AUTO_GOT policy = ask_plain(b, ROUTE_policy, NULL, NULL);

		assert_int_equal(policy.status, 200);
		is_new = strstr(policy.body, "\"text\": \"30\"") != NULL;
	}
	result = ask_plain(b, ROUTE_execution, id, NULL);
	assert_string_equal(text_in(&result, "state"), "running");
	assert_int_equal(stop(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_drain_lets_what_runs_finish_and_takes_nothing_new),
		CASE(now_means_now),
		CASE(a_master_that_went_ends_it),
		CASE(what_is_no_message_ends_it),
		CASE(a_route_that_is_none_is_answered),
		CASE(a_policy_is_read_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
