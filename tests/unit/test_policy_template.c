/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `brig init`: complete, without effect as it is, and true: each line put in force says what holds anyway. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "policy_helpers.h"

static char *must_template(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;

	if (policy_template(&text, &err) < 0)
		fail_msg("no template: %s", err.msg);
	return text;
}

/* The values of brig without any file. */
static struct policy_resolved *must_defaults(const char *trust)
{
	struct policy_resolved *ret = calloc(1, sizeof(*ret));
	struct policy *p = must_load(&(struct policy_sources){ 0 });

	must_resolve(p, trust);
	*ret = resolved;
	policy_free(p);
	return ret;
}

static void the_file_as_it_is_changes_nothing(void **state UNUSED)
{
	char *text = must_template();
	struct policy *p = must_load_text(text);

	assert_string_equal(policy_file(p), "");
	for (enum trust t = 0; t < TRUST_COUNT; t++) {
		struct policy_resolved *defaults = must_defaults(trust_name[t]);

		must_resolve(p, trust_name[t]);
		assert_memory_equal(&resolved, defaults, sizeof(resolved));
		free(defaults);
	}
	policy_free(p);
	free(text);
}

static void every_setting_is_in_it_with_its_meaning(void **state UNUSED)
{
	char *text = must_template(), line[80], word[64];

	for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
		(void)snprintf(line, sizeof(line), "\n#%s: ", setting_info[k].name);
		if (!strstr(text, line))
			fail_msg("'%s' is not in the file", setting_info[k].name);
		(void)snprintf(word, sizeof(word), "\n# %.20s", setting_info[k].help);
		if (!strstr(text, word))
			fail_msg("'%s' is not explained", setting_info[k].name);
	}
	free(text);
}

/* Puts the setting of one line, without '#', in force. */
static void check_line(const char *line, const struct policy_resolved *defaults)
{
	char name[64], is[8192], was[8192];
	struct policy *p = must_load_text(line);
	enum setting_key k;

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, ":"), line);
	k = key_named(name);
	must_resolve(p, NULL);
	assert_string_equal(policy_value_text(&resolved.set, k, is, sizeof(is)),
			    policy_value_text(&defaults->set, k, was, sizeof(was)));
	assert_int_equal(resolved.origin[k].layer, LAYER_FILE);
	policy_free(p);
}

static void each_line_in_force_says_the_default(void **state UNUSED)
{
	struct policy_resolved *defaults = must_defaults(NULL);
	char *text = must_template(), line[1024];
	size_t n = 0;

	for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
		struct spelling sp;

		(void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, ":"), at + 1);
		line[strcspn(line, ":\n")] = '\0';
		if (*at != '#' || !spelling_find(line, &sp))
			continue;
		(void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n") - 1, at + 1);
		check_line(line, defaults);
		n++;
	}
	assert_int_equal(n, SETTING_COUNT);
	free(defaults);
	free(text);
}

static void the_trust_levels_in_force_say_the_defaults(void **state UNUSED)
{
	char *text = must_template(), is[8192], was[8192];
	AUTO_BUF yaml = BUF_INIT(64 * KiB);
	struct policy *p;

	for (const char *at = strstr(text, "#trust_levels:"); *at; at += strcspn(at, "\n") + 1)
		buf_addf(&yaml, "%.*s\n", (int)strcspn(at, "\n") - 1, at + 1);
	p = must_load_text(buf_str(&yaml));
	for (enum trust t = 0; t < TRUST_COUNT; t++) {
		struct policy_resolved *defaults = must_defaults(trust_name[t]);

		must_resolve(p, trust_name[t]);
		for (enum setting_key k = 0; k < SETTING_COUNT; k++)
			assert_string_equal(policy_value_text(&resolved.set, k, is, sizeof(is)),
					    policy_value_text(&defaults->set, k, was, sizeof(was)));
		free(defaults);
	}
	policy_free(p);
	free(text);
}

static void the_users_in_force_are_rows(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = must_template(), *shown = NULL;
	AUTO_BUF yaml = BUF_INIT(64 * KiB);
	struct policy *p;

	for (const char *at = strstr(text, "#users:"); *at == '#'; at += strcspn(at, "\n") + 1)
		buf_addf(&yaml, "%.*s\n", (int)strcspn(at, "\n") - 1, at + 1);
	p = must_load_text(buf_str(&yaml));
	assert_int_equal(policy_users_json(p, &shown, &err), 0);
	assert_non_null(strstr(shown, "\"user\": \"alice\""));
	assert_non_null(strstr(shown, "\"memory_max\": 2147483648"));
	assert_non_null(strstr(shown, "\"group\": \"students\""));
	assert_non_null(strstr(shown, "\"user\": \"*\""));
	free(shown);
	policy_free(p);
	free(text);
}

static void comments_alone_are_no_policy(void **state UNUSED)
{
	static const struct {
		const char *text;
		bool is_policy;
	} cases[] = {
		{ "", false },
		{ "\n\n  \n# a\n\t", true }, /* a tab is for the reader of YAML to judge */
		{ "# a\r\n#b: 1\n   # c", false },
		{ "# a\npreset: standard\n", true },
		{ "{}", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		struct policy *p = NULL;
		int rc = load_text(cases[i].text, strlen(cases[i].text), &p, &err);

		if (rc == 0 && (*policy_file(p) != '\0') != cases[i].is_policy)
			fail_msg("case %zu counts as %s policy", i, cases[i].is_policy ? "no" : "a");
		assert_true(rc == 0 || cases[i].is_policy);
		policy_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_as_it_is_changes_nothing),
		cmocka_unit_test(every_setting_is_in_it_with_its_meaning),
		cmocka_unit_test(each_line_in_force_says_the_default),
		cmocka_unit_test(the_trust_levels_in_force_say_the_defaults),
		cmocka_unit_test(the_users_in_force_are_rows),
		cmocka_unit_test(comments_alone_are_no_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
