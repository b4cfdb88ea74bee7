/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "api/request.h"
#include "base/str.h"

/* A request with nothing wrong; each case spoils one thing. */
static struct brig_request good_request(void)
{
	struct brig_request req = BRIG_REQUEST_INIT;

	req.code = "pass";
	req.code_len = 4;
	return req;
}

static void expect_refusal(const struct brig_request *req, const char *words)
{
	struct brig_error err = BRIG_ERROR_INIT;

	assert_int_equal(request_check(req, &err), -BRIG_E_USAGE);
	if (!strstr(err.msg, words))
		fail_msg("'%s' is not in '%s'", words, err.msg);
}

static void sound_requests_pass(void **state UNUSED)
{
	static const char *const args[] = { "", "-x", "\xff" }, *const env[] = { "A=", "AB=1", "B=a=b" };
	static const struct brig_option options[] = { { "timeout", "" } };
	struct brig_request req = good_request();
	struct brig_error err = BRIG_ERROR_INIT;

	assert_int_equal(request_check(&req, &err), 0);
	req.code_len = 0;
	req.file_name = "..a b.py";
	req.args = args;
	req.n_args = ARRAY_LEN(args);
	req.env = env;
	req.n_env = ARRAY_LEN(env);
	req.options = options;
	req.n_options = ARRAY_LEN(options);
	req.flags = BRIG_RUN_NO_CAPTURE;
	assert_int_equal(request_check(&req, &err), 0);
}

static void commands_are_words(void **state UNUSED)
{
	static const char *const good[] = { "ls", "-l", "A=b" }, *const none[] = { "" },
				 *const assign[] = { "A=b", "ls" }, *const dash[] = { "-x" };
	struct brig_request req = BRIG_REQUEST_INIT;

	req.kind = BRIG_KIND_COMMAND;
	expect_refusal(&req, "no command");
	req.args = good;
	req.n_args = ARRAY_LEN(good);
	assert_int_equal(request_check(&req, NULL), 0);
	req.code = "x";
	expect_refusal(&req, "code and file_name");
	req.code = NULL;
	req.n_args = 1;
	req.args = none;
	expect_refusal(&req, "no command");
	req.args = assign;
	expect_refusal(&req, "A=b");
	req.args = dash;
	expect_refusal(&req, "leading");
	req.kind = 99;
	expect_refusal(&req, "kind 99");
}

static void tests_have_a_workspace(void **state UNUSED)
{
	static const char *const args[] = { "x" };
	struct brig_request req = BRIG_REQUEST_INIT;

	req.kind = BRIG_KIND_TESTS;
	expect_refusal(&req, "need a workspace");
	req.workspace = "/tmp";
	assert_int_equal(request_check(&req, NULL), 0);
	req.test_path = "";
	expect_refusal(&req, "test_path");
	req.test_path = "tests";
	assert_int_equal(request_check(&req, NULL), 0);
	req.args = args;
	req.n_args = 1;
	expect_refusal(&req, "no code, file_name or arguments");
}

static void shell_lines_are_strings(void **state UNUSED)
{
	static const char *const args[] = { "x" };
	static char large[BRIG_STRING_MAX];
	struct brig_request req = BRIG_REQUEST_INIT;

	req.kind = BRIG_KIND_SHELL;
	expect_refusal(&req, "no line");
	req.code = "ls | wc";
	req.code_len = 7;
	assert_int_equal(request_check(&req, NULL), 0);
	req.args = args;
	req.n_args = 1;
	expect_refusal(&req, "no arguments");
	req.n_args = 0;
	req.code = "a\0b";
	req.code_len = 3;
	expect_refusal(&req, "no string");
	memset(large, 'x', sizeof(large));
	req.code = large;
	req.code_len = sizeof(large);
	expect_refusal(&req, "no string");
}

static void code_is_there_and_bounded(void **state UNUSED)
{
	struct brig_request req = good_request();

	req.code = NULL;
	expect_refusal(&req, "no code");
	req = good_request();
	req.code_len = BRIG_CODE_MAX + 1; /* refused by its size: never read */
	expect_refusal(&req, "at most 16777216");
}

static void names_are_plain(void **state UNUSED)
{
	static const char *const bad[] = { "", ".", "..", "/etc/passwd", "a/b", "a\nb", "a\177" };
	char longest[257];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct brig_request req = good_request();

		req.file_name = bad[i];
		expect_refusal(&req, "file_name");
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[256] = '\0';
	struct brig_request req = good_request();
	req.file_name = longest;
	expect_refusal(&req, "longer than 255");
	req = good_request();
	req.language = longest;
	expect_refusal(&req, "language");
	req = good_request();
	req.trust = "";
	expect_refusal(&req, "trust is empty");
}

static void environment_is_names_and_values(void **state UNUSED)
{
	static const struct {
		const char *env[2];
		const char *words;
	} cases[] = {
		{ { "PATH", "B=1" }, "'PATH' has no '='" },
		{ { "=1", "B=1" }, "'=1' has no name" },
		{ { "A=1", "A=2" }, "'A' is given twice" },
		{ { "A=1", NULL }, "number 2 of the environment entries is NULL" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct brig_request req = good_request();

		req.env = cases[i].env;
		req.n_env = 2;
		expect_refusal(&req, cases[i].words);
	}
}

/* One string too long, then many strings that are too much together. */
static void strings_are_bounded(void **state UNUSED)
{
	AUTO_FREE char *longest = malloc(BRIG_STRING_MAX + 1);
	const char *args[16];
	struct brig_request req = good_request();

	assert_non_null(longest);
	memset(longest, 'a', BRIG_STRING_MAX);
	longest[BRIG_STRING_MAX] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(args); i++)
		args[i] = longest;
	req.args = args;
	req.n_args = 1;
	expect_refusal(&req, "number 1 of the arguments is longer");
	longest[BRIG_STRING_MAX - 1] = '\0';
	assert_int_equal(request_check(&req, NULL), 0);
	req.n_args = 9;
	expect_refusal(&req, "together");
	req.n_args = SIZE_MAX; /* refused by its number: never read */
	expect_refusal(&req, "at most 4096");
	req.args = NULL;
	req.n_args = 1;
	expect_refusal(&req, "the list is NULL");
}

static void options_have_both_halves(void **state UNUSED)
{
	static const struct brig_option bad[] = { { NULL, "1" }, { "", "1" }, { "timeout", NULL } };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct brig_request req = good_request();

		req.options = &bad[i];
		req.n_options = 1;
		expect_refusal(&req, "option number 1");
	}
}

static void descriptors_are_open(void **state UNUSED)
{
	AUTO_FD write_only = open("/dev/null", O_WRONLY | O_CLOEXEC), path = open("/", O_PATH | O_CLOEXEC);
	struct brig_request req = good_request();

	req.stdin_fd = write_only;
	expect_refusal(&req, "not open for reading");
	req.stdin_fd = path;
	expect_refusal(&req, "not open for reading");
	req.stdin_fd = -2;
	expect_refusal(&req, "stdin_fd is -2");
	req = good_request();
	req.cancel_fd = 1 << 20;
	expect_refusal(&req, "cancel_fd");
	req = good_request();
	req.stdin_len = 1;
	expect_refusal(&req, "stdin_data is NULL");
}

static void unknown_flags_are_refused(void **state UNUSED)
{
	struct brig_request req = good_request();

	req.flags = 1u << 31 | BRIG_RUN_NO_CAPTURE;
	expect_refusal(&req, "0x80000000");
}

static void ids_are_as_the_library_makes_them(void **state UNUSED)
{
	static const char *const bad[] = { "",
					   "abcdefghijklmno",
					   "abcdefghijklmnop2",
					   "ABCDEFGHIJKLMNOP",
					   "abcdefghijklmno1",
					   "../defghijklmnop",
					   "abcdefgh ijklmno" };
	struct brig_request req = good_request();
	char who[66];

	req.id = "abcdefghijklmn27";
	req.who = "ci";
	assert_int_equal(request_check(&req, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		req.id = bad[i];
		expect_refusal(&req, "is none");
	}
	req.id = NULL;
	req.who = "";
	expect_refusal(&req, "who is empty");
	memset(who, 'w', sizeof(who));
	who[65] = '\0';
	req.who = who;
	expect_refusal(&req, "who is longer");
}

/* ---- versions ------------------------------------------------------------------------------------ */

struct newer_opts {
	struct brig_open_opts now;
	uint64_t later;
};

static void older_callers_are_understood(void **state UNUSED)
{
	struct brig_open_opts known = BRIG_OPEN_OPTS_INIT, given = { .policy_file = "old", .preset = "not read" };

	given.size = offsetof(struct brig_open_opts, preset);
	assert_int_equal(versioned_read(&known, sizeof(known), &given, "opts", NULL), 0);
	assert_string_equal(known.policy_file, "old");
	assert_null(known.preset);
	assert_int_equal(known.size, sizeof(known));
}

static void newer_callers_may_not_use_what_is_unknown(void **state UNUSED)
{
	struct brig_open_opts known = BRIG_OPEN_OPTS_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct newer_opts given = { .now = { .size = sizeof(given), .preset = "strict" } };

	assert_int_equal(versioned_read(&known, sizeof(known), &given, "opts", &err), 0);
	assert_string_equal(known.preset, "strict");
	given.later = 1;
	assert_int_equal(versioned_read(&known, sizeof(known), &given, "opts", &err), -BRIG_E_USAGE);
	assert_non_null(strstr(err.msg, "update the library"));
}

static void uninitialised_structs_are_noticed(void **state UNUSED)
{
	static const uint32_t sizes[] = { 0, 3, 5000, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct brig_open_opts known = BRIG_OPEN_OPTS_INIT, given = { .size = sizes[i] };
		struct brig_error err = BRIG_ERROR_INIT;

		assert_int_equal(versioned_read(&known, sizeof(known), &given, "opts", &err), -BRIG_E_USAGE);
		assert_non_null(strstr(err.msg, "_INIT"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound_requests_pass),
		cmocka_unit_test(code_is_there_and_bounded),
		cmocka_unit_test(commands_are_words),
		cmocka_unit_test(shell_lines_are_strings),
		cmocka_unit_test(tests_have_a_workspace),
		cmocka_unit_test(names_are_plain),
		cmocka_unit_test(environment_is_names_and_values),
		cmocka_unit_test(strings_are_bounded),
		cmocka_unit_test(options_have_both_halves),
		cmocka_unit_test(descriptors_are_open),
		cmocka_unit_test(unknown_flags_are_refused),
		cmocka_unit_test(ids_are_as_the_library_makes_them),
		cmocka_unit_test(older_callers_are_understood),
		cmocka_unit_test(newer_callers_may_not_use_what_is_unknown),
		cmocka_unit_test(uninitialised_structs_are_noticed),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
