/* SPDX-License-Identifier: Apache-2.0 */
/* The runner of the service: how it ends, what it reads anew, and a front that is none. */
#include "runner_bed.h"

/* ---- its end --------------------------------------------------------------------------------------------------------- */

static void a_drain_lets_what_runs_finish_and_takes_nothing_new(void **state)
{
	const char drain = CONTROL_DRAIN;
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

/* The master brings another front. */
static void bring_front(struct bed *b, uint32_t number)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int ends[2];

	channel_free(MOVE_PTR(b->channel));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(channel_new(&ends[0], &b->channel, &err), 0);
	assert_int_equal(control_send(b->master, &(struct control_message){ .kind = CONTROL_CHANNEL,
									    .number = number,
									    .fds = { ends[1] },
									    .n_fds = 1 }),
			 0);
	(void)close(ends[1]);
}

static void what_is_no_message_cuts_the_front_off(void **state)
{
	const struct record nonsense[] = {
		{ .tag = 1, .type = RECORD_ASK, .data = "\xff\xff\0\0\x01\0\0\0x", .len = 9 },
		{ .tag = 1, .type = RECORD_ANSWER },
	};
	struct bed *b = *state;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_GOT there = { 0 };
	struct control_message w;
	char id[32];

	start(b);
	begin_async(b, ENDLESS, NULL, id);
	for (uint32_t i = 0; i < ARRAY_LEN(nonsense); i++) {
		assert_int_equal(channel_send(b->channel, &nonsense[i], &err), 0);
		wait_readable(b->master);
		assert_int_equal(control_receive(b->master, &w), 1);
		assert_int_equal(w.kind, CONTROL_CUT);
		assert_int_equal(w.number, i);
		bring_front(b, i + 1);
	}
	there = ask_plain(b, ROUTE_execution, id, NULL);
	assert_string_equal(text_in(&there, "state"), "running");
	assert_int_equal(stop(b), 0);
}

/* Tags of a new front begin anew: what the old one asked for must not be answered to it. */
static void a_front_that_went_has_hung_up(void **state)
{
	struct bed *b = *state;
	AUTO_GOT both = { 0 };
	AUTO_GOT list = { 0 };
	char id[32];
	struct buf m;

	b->options.jobs = 1;
	start(b);
	begin_async(b, ENDLESS, NULL, id);
	begin_code(&m, "shell", "echo");
	(void)send_ask(b, &m); /* waits for the first */
	both = ask_plain(b, ROUTE_executions, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(both.doc, "executions")), 2);
	bring_front(b, 1);
	list = ask_plain(b, ROUTE_executions, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(list.doc, "executions")), 1);
	assert_int_equal(stop(b), 0);
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
	const char reload = CONTROL_RELOAD;
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
		CASE(what_is_no_message_cuts_the_front_off),
		CASE(a_front_that_went_has_hung_up),
		CASE(a_route_that_is_none_is_answered),
		CASE(a_policy_is_read_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
