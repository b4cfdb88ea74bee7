/* SPDX-License-Identifier: Apache-2.0 */
/* Which environment a request gets, and what its plan says of modules to load beforehand.  No cell is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "base/fd.h"
#include "executor/environment_files.h"
#include "policy_helpers.h"
#include "temp_folder.h"

static char folder[256];
static struct recorder recorder = RECORDER_INIT;

static int make_folder(void **state)
{
	(void)state;
	recorder = (struct recorder)RECORDER_INIT;
	if (temp_folder_make(folder, sizeof(folder), "environment") < 0)
		return -1;
	(void)snprintf(recorder.state, sizeof(recorder.state), "%s", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	recorder_release(&recorder);
	return temp_folder_remove(folder);
}

/* One without packages, with a list of its own. */
static void put(const char *name, const char *language, const char *first, const char *second)
{
	struct environment env = { .eco = ecosystem_of_language(language), .brig = "0", .backend = "native" };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;

	(void)snprintf(env.name, sizeof(env.name), "%s", name);
	assert_true(environment_add_word(&env.warm, &env.n_warm, first));
	assert_true(environment_add_word(&env.warm, &env.n_warm, second));
	if (environments_open(&recorder, true, &dir, &err) < 0 || environment_save(&dir, &env, &err) < 0)
		fail_msg("%s", err.msg);
	environment_release(&env);
}

/* What the plan of a run says: "" if nothing, "refused: ..." if there is no plan. */
static const char *warm_of(const char *policy_text, const char *trust, const char *language, const char *environment)
{
	static char warm[1024];
	struct policy *policy = must_load_text(policy_text);
	struct brig_request req = BRIG_REQUEST_INIT;
	struct prepared_request *pr = calloc(1, sizeof(*pr));
	struct prepared *run = calloc(1, sizeof(*run)), *compile = calloc(1, sizeof(*compile));
	struct used_environment used = { .warm = BUF_INIT(0) };
	struct brig_error err = BRIG_ERROR_INIT;
	const struct buf nothing = BUF_INIT(0);
	bool ok;

	assert_true(pr && run && compile);
	req.language = language;
	req.code = "";
	req.trust = trust;
	req.environment = environment;
	ok = prepare_request(policy, &req, pr, &err) == 0 && environment_find(&used, pr, &req, &recorder, &err) == 0;
	pr->warm = ok && used.warm.len ? buf_str(&used.warm) : NULL;
	pr->brings_runtimes = true; /* what this host has does not matter here */
	if (ok && pr->lang->compiles) {
		assert_int_equal(prepare_compile(pr, &req, compile, &err), 0);
		assert_null(compile->plan.warm);
	}
	if (ok && prepare_run(pr, &req, pr->lang->compiles ? &nothing : NULL, run, &err) < 0)
		fail_msg("%s", err.msg);
	(void)snprintf(warm, sizeof(warm), "%s%s", ok ? "" : "refused: ",
		       !ok              ? err.msg
		       : run->plan.warm ? run->plan.warm
					: "");
	prepared_release(run);
	prepared_release(compile);
	prepared_request_release(pr);
	environment_drop(&used);
	policy_free(policy);
	free(run);
	free(compile);
	free(pr);
	return warm;
}

static void assert_refused(const char *warm, const char *why)
{
	assert_int_equal(strncmp(warm, "refused: ", 9), 0);
	if (!strstr(warm, why))
		fail_msg("'%s' is not in: %s", why, warm);
}

static void lists_reach_the_plan(void **state)
{
	static const char plain[] = "packages: {warm: [json, re]}\n", chosen[] = "environment: data\nwarm: [json]\n";

	(void)state;
	put("data", "python", "numpy", "pandas");
	put("web", "javascript", "node:fs", "@scope/name");
	assert_string_equal(warm_of("{}\n", NULL, "python", NULL), "");
	assert_string_equal(warm_of(plain, NULL, "python", NULL), "json,re");
	assert_string_equal(warm_of(plain, NULL, "javascript", NULL), "");
	assert_string_equal(warm_of(plain, NULL, "python", "data"), "numpy,pandas");
	assert_string_equal(warm_of(chosen, NULL, "python", NULL), "numpy,pandas");
	assert_string_equal(warm_of(chosen, NULL, "python", "none"), "json");
	assert_string_equal(warm_of(chosen, NULL, "javascript", NULL), "");
	assert_string_equal(warm_of("{}\n", NULL, "javascript", "web"), "node:fs,@scope/name");
	assert_string_equal(warm_of("{}\n", NULL, "typescript", "web"),
			    "node:fs,@scope/name"); /* and not the compiler's */
}

static void policy_has_a_word(void **state)
{
	static const char levels[] = "environments: [data]\ntrust_levels: {untrusted: {environments: []}}\n";

	(void)state;
	put("data", "python", "numpy", "pandas");
	put("web", "javascript", "node:fs", "@scope/name");
	assert_refused(warm_of("{}\n", NULL, "python", "web"), "is for javascript");
	assert_refused(warm_of("{}\n", NULL, "python", "nope"), "there are: data, web");
	assert_refused(warm_of("{}\n", NULL, "python", "../data"), "no name");
	assert_refused(warm_of("environment: nope\n", NULL, "python", NULL), "no environment 'nope'");
	assert_string_equal(warm_of(levels, NULL, "python", "data"), "numpy,pandas");
	assert_refused(warm_of(levels, "untrusted", "python", "data"), "lets trust 'untrusted' use");
	assert_refused(warm_of(levels, NULL, "javascript", "web"), "lets trust 'unknown' use");
}

static void values_are_checked_where_they_are_written(void **state)
{
	static const char *const bad[] = { "environment: Data\n",   "environment: ../x\n", "environment: none\n",
					   "environments: [a/b]\n", "warm: ['a b']\n",     "warm: ['a;b']\n" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (load_text(bad[i], strlen(bad[i]), &p, &err) != -BRIG_E_POLICY)
			fail_msg("%s was taken", bad[i]);
}

int main(void)
{
#define ROW(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		ROW(lists_reach_the_plan),
		ROW(policy_has_a_word),
		cmocka_unit_test(values_are_checked_where_they_are_written),
	};
#undef ROW
	return cmocka_run_group_tests(tests, NULL, NULL);
}
