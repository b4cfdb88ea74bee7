/* SPDX-License-Identifier: Apache-2.0 */
/* The runner of the service: who may see, run and ask what. */
#include "runner_bed.h"

/* ---- who may ------------------------------------------------------------------------------------------------------- */

static void make_token(const struct bed *b, struct token what, char secret[TOKEN_SECRET_SIZE])
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct tokens *t = NULL;

	what.created = time(NULL);
	if (tokens_open(b->state, &t, &err) < 0 || tokens_create(t, &what, secret, &err) < 0)
		fail_msg("%s", err.msg);
	tokens_close(t);
}

static void nobody_sees_what_others_run(void **state)
{
	static const enum route routes[] = { ROUTE_execution, ROUTE_execution_events, ROUTE_cancel, ROUTE_artifact,
					     ROUTE_history_entry };
	struct bed *b = *state;
	char ann[TOKEN_SECRET_SIZE], bob[TOKEN_SECRET_SIZE], boss[TOKEN_SECRET_SIZE], id[32];
	AUTO_GOT own = { 0 };
	AUTO_GOT all = { 0 };
	struct buf m;
	AUTO_GOT run = { 0 };

	b->options.no_auth = false;
	make_token(b, (struct token){ .name = "ann", .max_trust = TOKEN_UNKNOWN }, ann);
	make_token(b, (struct token){ .name = "bob", .max_trust = TOKEN_UNKNOWN }, bob);
	make_token(b, (struct token){ .name = "boss", .max_trust = TOKEN_UNKNOWN, .admin = true }, boss);
	start(b);
	begin_code(&m, "shell", "echo secret; printf '\\000'");
	message_put_text(&m, FIELD_credential, ann);
	run = ask(b, &m);
	assert_string_equal(run.who, "ann");
	(void)str_copy(id, sizeof(id), text_in(&run, "id"));
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		AUTO_GOT g = ask_plain(b, routes[i], id, bob);
		AUTO_GOT none = ask_plain(b, routes[i], "abcdefghijklmnop", bob);

		assert_int_equal(g.status, 404);
		assert_int_equal(none.status, 404);
		assert_null(strstr(g.body, "secret"));
	}
	own = ask_plain(b, ROUTE_executions, NULL, bob);
	assert_int_equal(json_array_size(json_object_get(own.doc, "executions")), 0);
	got_release(&own);
	own = ask_plain(b, ROUTE_history, NULL, bob);
	assert_int_equal(json_integer_value(json_object_get(own.doc, "total")), 0);
	got_release(&own);
	own = ask_plain(b, ROUTE_history, NULL, ann);
	assert_int_equal(json_integer_value(json_object_get(own.doc, "total")), 1);
	got_release(&own);
	own = ask_plain(b, ROUTE_history_entry, id, ann);
	assert_int_equal(own.status, 200);
	assert_string_equal(text_in(&own, "who"), "ann");
	all = ask_plain(b, ROUTE_execution, id, boss);
	assert_int_equal(all.status, 200);
	assert_int_equal(stop(b), 0);
}

static void a_request_never_exceeds_its_token(void **state)
{
	static const char *const languages[] = { "shell" };
	struct token what = { .name = "few", .max_trust = TOKEN_UNTRUSTED };
	struct bed *b = *state;
	char secret[TOKEN_SECRET_SIZE];
	struct buf m;
	static const struct {
		const char *language, *trust, *option, *words;
	} bad[] = {
		{ "python", NULL, NULL, "python" },
		{ "shell", "trusted", NULL, "trust" },
		{ "shell", NULL, "allow_degraded=cgroup_pids", "allow_degraded" },
	};

	b->options.no_auth = false;
	what.languages.item = (const char **)(uintptr_t)languages;
	what.languages.n = 1;
	make_token(b, what, secret);
	start(b);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_GOT g = { 0 };

		begin_code(&m, bad[i].language, "echo");
		message_put_text(&m, FIELD_trust, bad[i].trust);
		message_put_text(&m, FIELD_option, bad[i].option);
		message_put_text(&m, FIELD_credential, secret);
		g = ask(b, &m);
		expect_error(&g, 403, "forbidden", bad[i].words);
	}
	AUTO_GOT good = { 0 };

	begin_code(&m, "sh", "echo");
	message_put_text(&m, FIELD_credential, secret);
	good = ask(b, &m);
	assert_int_equal(good.status, 200);
	assert_string_equal(text_in(&good, "trust"), "untrusted");
	AUTO_GOT nobody = ask_plain(b, ROUTE_whoami, NULL, "brig_abcdefghijklmnopabcdefghijklmnop");

	expect_error(&nobody, 401, "unauthorized", "not known");
	AUTO_GOT none = ask_plain(b, ROUTE_whoami, NULL, NULL);

	expect_error(&none, 401, "unauthorized", "Bearer");
	AUTO_GOT cells = ask_plain(b, ROUTE_cells, NULL, secret);

	expect_error(&cells, 403, "forbidden", "administrators");
	AUTO_GOT ready = ask_plain(b, ROUTE_readyz, NULL, NULL);

	assert_int_equal(ready.status, 200);
	assert_int_equal(stop(b), 0);
}

static void quotas_say_when_to_come_back(void **state)
{
	struct token what = { .name = "slow", .max_trust = TOKEN_UNKNOWN, .quota = { .runs_per_minute = 1 } };
	struct bed *b = *state;
	char secret[TOKEN_SECRET_SIZE];
	struct buf m;
	AUTO_GOT first = { 0 };
	AUTO_GOT second = { 0 };

	b->options.no_auth = false;
	make_token(b, what, secret);
	start(b);
	begin_code(&m, "shell", "echo");
	message_put_text(&m, FIELD_credential, secret);
	first = ask(b, &m);
	assert_int_equal(first.status, 200);
	begin_code(&m, "shell", "echo");
	message_put_text(&m, FIELD_credential, secret);
	second = ask(b, &m);
	expect_error(&second, 429, "too_many_requests", "slow");
	assert_in_range(second.retry_after, 1, 60);
	assert_int_equal(stop(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nobody_sees_what_others_run),
		CASE(a_request_never_exceeds_its_token),
		CASE(quotas_say_when_to_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
