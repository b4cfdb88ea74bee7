/* SPDX-License-Identifier: Apache-2.0 */
/* .env files: the reader of their lines, and the layer that a policy file makes of one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "policy/dotenv.h"
#include "policy_helpers.h"
#include "temp_folder.h"

static const struct {
	const char *text, *name, *value;
	unsigned line;
	bool expands;
	const char *why; /* a part of it; NULL: the line is good */
} rows[] = {
	{ "A=b", "A", "b", 1, false, NULL },
	{ "\n# x\n  \t\nA=b\n", "A", "b", 4, false, NULL },
	{ "export A=b", "A", "b", 1, false, NULL },
	{ "export=b", "export", "b", 1, false, NULL },
	{ "A = b c \t\r\n", "A", "b c", 1, false, NULL },
	{ "A=", "A", "", 1, false, NULL },
	{ "A= # nothing", "A", "", 1, false, NULL },
	{ "A=b#c", "A", "b#c", 1, false, NULL },
	{ "A=b #c", "A", "b", 1, false, NULL },
	{ "A='b #c' # d", "A", "b #c", 1, false, NULL },
	{ "A='$b\\n'", "A", "$b\\n", 1, false, NULL },
	{ "A=\"b\\n\\t\\\"\\\\\\$\\d\"", "A", "b\n\t\"\\$\\d", 1, false, NULL },
	{ "A=\"b\nc\"", "A", "b\nc", 1, false, NULL },
	{ "A=$b", "A", "$b", 1, true, NULL },
	{ "A=\"${b}\"", "A", "${b}", 1, true, NULL },
	{ "A=b=c", "A", "b=c", 1, false, NULL },
	{ "A_1=2", "A_1", "2", 1, false, NULL },
	{ "1A=2", "", "", 1, false, "NAME=VALUE" },
	{ "=2", "", "", 1, false, "NAME=VALUE" },
	{ "A", "A", "", 1, false, "no =" },
	{ "A: b", "A", "", 1, false, "no =" },
	{ "A B=c", "A", "", 1, false, "no =" },
	{ "A-B=c", "A", "", 1, false, "no =" },
	{ "A='b", "A", "b", 1, false, "not closed" },
	{ "A=\"b\\", "A", "b\\", 1, false, "not closed" },
	{ "A='b'c", "A", "b", 1, false, "follows" },
};

static void test_lines(void **state)
{
	struct dotenv_entry e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct dotenv d = DOTENV_INIT(rows[i].text, strlen(rows[i].text));

		assert_true(dotenv_next(&d, &e));
		assert_string_equal(e.name, rows[i].name);
		assert_string_equal(e.value, rows[i].value);
		assert_int_equal(e.line, rows[i].line);
		assert_int_equal(e.expands, rows[i].expands);
		if (!rows[i].why)
			assert_null(e.why);
		else
			assert_true(e.why && strstr(e.why, rows[i].why));
		assert_false(dotenv_next(&d, &e));
	}
}

/* A line that is none ends with itself, and a value over several lines is counted. */
static void test_many(void **state)
{
	static const char text[] = "bad line\nA='1\n2\n3'\nB=4\n\0C=5\nD=6";
	struct dotenv d = DOTENV_INIT(text, sizeof(text) - 1);
	struct dotenv_entry e;
	static const struct {
		const char *name;
		unsigned line;
		bool good;
	} want[] = { { "bad", 1, false }, { "A", 2, true }, { "B", 5, true }, { "", 6, false }, { "D", 7, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_true(dotenv_next(&d, &e));
		assert_string_equal(e.name, want[i].name);
		assert_int_equal(e.line, want[i].line);
		assert_int_equal(!e.why, want[i].good);
	}
	assert_false(dotenv_next(&d, &e));
}

static void test_long(void **state)
{
	static char text[DOTENV_VALUE_MAX + 300];
	struct dotenv d = DOTENV_INIT(text, sizeof(text));
	struct dotenv_entry e;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_true(dotenv_next(&d, &e));
	assert_non_null(strstr(e.why, "too long"));
	text[1] = '=';
	d = (struct dotenv)DOTENV_INIT(text, sizeof(text));
	assert_true(dotenv_next(&d, &e));
	assert_true(e.cut && !e.why);
	assert_int_equal(strlen(e.value), DOTENV_VALUE_MAX - 1);
}

/* ---- the layer ------------------------------------------------------------------------------------------- */

static char folder[200], policy_path[256];

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	assert_non_null(f);
	(void)fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int begin(void **state)
{
	(void)state;
	if (temp_folder_make(folder, sizeof(folder), "dotenv") < 0)
		return -1;
	(void)snprintf(policy_path, sizeof(policy_path), "%s/p.yaml", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return temp_folder_remove(folder);
}

/* The complaints about a policy and its env_file, joined. */
static const char *complaints(const char *policy, const char *env, bool guarded)
{
	static char all[8192];
	const struct policy_sources src = { .file = policy_path, .is_users_own = guarded };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	write_file("p.yaml", policy, 0600);
	if (env)
		write_file(".env", env, 0644);
	all[0] = '\0';
	assert_int_equal(policy_load(&src, &p, &diags, &err), -BRIG_E_POLICY);
	for (size_t i = 0; i < diags.n; i++)
		(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s: %s\n", diags.row[i].place,
			       diags.row[i].msg);
	return all;
}

static void test_layer(void **state)
{
	static const char *const vars[] = { "BRIG_PIDS_LIMIT=9", NULL };
	const struct policy_sources src = { .file = policy_path, .environ = vars };
	struct policy *p;

	(void)state;
	write_file("p.yaml", "env_file: .env\nmem_limit: 256m\n", 0600);
	write_file(".env",
		   "API_KEY=\"a\nb$c\"\nexport SECURITY_MAX_EXECUTION_TIME=7\nBRIG_MEM_LIMIT='64m'\nBRIG_PIDS_LIMIT=5\n"
		   "BRIG_PRESET=strict\n",
		   0600);
	p = must_load(&src);
	must_resolve(p, NULL);
	assert_value("execution_timeout_ms", "7s");
	assert_origin("execution_timeout_ms", LAYER_ENV, "env_file .env:3");
	assert_value("mem_limit", "64m");
	assert_value("pids_limit", "9"); /* the environment itself wins */
	assert_origin("pids_limit", LAYER_ENV, "BRIG_PIDS_LIMIT");
	assert_string_equal(resolved.preset, "strict");
	policy_free(p);
}

static void test_layer_is_bound(void **state)
{
	static const struct {
		const char *policy, *env, *says;
	} bad[] = {
		{ "env_file: .env\nbackend: native\n", "\nBRIG_BACKEND=direct\n",
		  "env_file .env:2:1: would loosen backends" },
		{ "env_file: .env\nnetwork_mode: none\n", "BRIG_NETWORK_MODE=allowlist", "would loosen network_mode" },
		{ "env_file: .env\nmax_trust: unknown\n", "BRIG_DEFAULT_TRUST=trusted", "above max_trust" },
		{ "env_file: .env\npreset: strict\n", "BRIG_PRESET=standard", "looser than 'strict'" },
		{ "env_file: .env\n", "BRIG_TMEOUT=4",
		  "/.env:1:1: this variable names no setting; did you mean 'BRIG_TIMEOUT'" },
		{ "env_file: .env\n", "BRIG_TIMEOUT=4\nBRIG_TIMEOUT=5", "set twice, first in line 1" },
		{ "env_file: .env\n", "BRIG_STATE=/x", "environment itself only" },
		{ "env_file: .env\n", "BRIG_TIMEOUT=$T", "nothing is expanded" },
		{ "env_file: .env\n", "BRIG_TIMEOUT=many", "/.env:1:1: timeout takes" },
		{ "env_file: .env\n", "what is this", "/.env:1:1: there is no =" },
		{ "env_file: .nothing\n", "", ".nothing: cannot be read: No such file" },
		{ "env_file: ../.env\n", "", "p.yaml:1:11: env_file takes a path relative to the folder" },
		{ "env_file: /etc/environment\n", "", "relative to the folder" },
		{ "env_file: [a]\n", "", "relative to the folder" },
		{ "env_file: .\n", "", "is a directory" },
		{ "trust_levels: {trusted: {env_file: .env}}\n", "", "at the top of the file only" },
		{ "env_file: .env\nenv_file: .env\n", "", "twice" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *all = complaints(bad[i].policy, bad[i].env, /* guarded= */ false);

		if (!strstr(all, bad[i].says))
			fail_msg("'%s' is not in '%s'", bad[i].says, all);
	}
}

static void test_large_and_foreign(void **state)
{
	static char large[70000];

	(void)state;
	memset(large, '\n', sizeof(large) - 1);
	assert_non_null(strstr(complaints("env_file: .env\n", large, false), "larger than 64 KB"));
	/* Under a policy that was found, nobody else may have had a hand in it. */
	write_file(".env", "", 0666);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_non_null(strstr(complaints("env_file: .env\n", NULL, true), "nobody else may write"));
}

/* A text that is in no folder, and a variable, name no file. */
static void test_only_a_file_asks(void **state)
{
	static const char *const vars[] = { "BRIG_ENV_FILE=.env", NULL };
	const struct policy_sources src = { .environ = vars };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	assert_true(load_text("env_file: .env\n", 15, &p, &err) < 0);
	assert_non_null(strstr(err.msg, "in none"));
	assert_true(policy_load(&src, &p, &diags, &err) < 0);
	assert_non_null(strstr(err.msg, "names no setting"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_long),
		cmocka_unit_test_setup_teardown(test_layer, begin, end),
		cmocka_unit_test_setup_teardown(test_layer_is_bound, begin, end),
		cmocka_unit_test_setup_teardown(test_large_and_foreign, begin, end),
		cmocka_unit_test(test_only_a_file_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
