/* SPDX-License-Identifier: Apache-2.0 */
/* brig_check() and brig_rules_json() as a program meets them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/str.h"
#include "base/util.h"

static struct brig *handle;

static int open_handle(void **state UNUSED)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = "" };

	return brig_open(&opts, &handle, NULL);
}

static int close_handle(void **state UNUSED)
{
	brig_close(handle);
	return 0;
}

static struct brig_check check_of(const char *kind, const char *language, const char *text)
{
	struct brig_check req = BRIG_CHECK_INIT;

	req.kind = kind;
	req.language = language;
	req.text = text;
	req.len = strlen(text);
	return req;
}

/* The outcome, and the document in *ret for json_decref(). */
static int run_check(const struct brig_check *req, json_t **ret)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc = brig_check(handle, req, &text, &err);

	if (rc < 0)
		fail_msg("%s", err.msg);
	*ret = json_loads(text, 0, NULL);
	assert_non_null(*ret);
	brig_free(text);
	return rc;
}

static void outcomes_follow_the_worst_finding(void **state UNUSED)
{
	static const struct {
		const char *kind, *language, *text;
		int outcome;
		const char *worst;
	} rows[] = {
		{ NULL, "python", "print(1)\n", 0, "NONE" },
		{ NULL, "python", "# \033[31m\nprint(1)\n", 0, "MEDIUM" },
		{ "code", "python", "x = '\u202e'\n", 1, "HIGH" },
		{ "path", NULL, "../../etc/passwd", 2, "CRITICAL" },
		{ "path", NULL, "data/a.csv", 0, "NONE" },
		{ NULL, "c", "int main(void) { return 0; }\n", 0, "NONE" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct brig_check req = check_of(rows[i].kind, rows[i].language, rows[i].text);
		json_t *doc;

		if (run_check(&req, &doc) != rows[i].outcome)
			fail_msg("%s: not %d", rows[i].text, rows[i].outcome);
		assert_string_equal(json_string_value(json_object_get(doc, "worst")), rows[i].worst);
		assert_int_equal(json_is_true(json_object_get(doc, "blocked")), rows[i].outcome == 2);
		assert_int_equal(json_is_true(json_object_get(doc, "inspected")),
				 !rows[i].language || !str_eq(rows[i].language, "c"));
		assert_int_equal(json_array_size(json_object_get(doc, "findings")) > 0, !str_eq(rows[i].worst, "NONE"));
		json_decref(doc);
	}
}

static void findings_have_every_member(void **state UNUSED)
{
	static const char *const texts[] = { "rule", "severity", "name", "message", "remedy" };
	static const char *const numbers[] = { "line", "column", "end_line", "end_column" };
	struct brig_check req = check_of(NULL, "python", "\nx = '\u202e'\n");
	const json_t *f;
	json_t *doc;

	(void)run_check(&req, &doc);
	f = json_array_get(json_object_get(doc, "findings"), 0);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_true(json_is_string(json_object_get(f, texts[i])));
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		assert_true(json_integer_value(json_object_get(f, numbers[i])) >= 1);
	assert_int_equal(json_integer_value(json_object_get(f, "line")), 2);
	assert_int_equal(json_integer_value(json_object_get(f, "column")), 6);
	json_decref(doc);
}

static void trust_and_language_are_resolved(void **state UNUSED)
{
	struct brig_check req = check_of(NULL, NULL, "print(1)\n");
	json_t *doc;

	req.file_name = "a.py";
	req.trust = "untrusted";
	assert_int_equal(run_check(&req, &doc), 0);
	assert_string_equal(json_string_value(json_object_get(doc, "language")), "python");
	assert_string_equal(json_string_value(json_object_get(doc, "level")), "strict");
	json_decref(doc);
	req.trust = NULL;
	assert_int_equal(brig_check(handle, &req, NULL, NULL), 0); /* the document need not be wanted */
}

/* Each change makes a good request unusable. */
static void no_text(struct brig_check *req)
{
	req->text = NULL;
}

static void too_long(struct brig_check *req)
{
	req->len = (size_t)BRIG_CODE_MAX + 1;
}

static void odd_kind(struct brig_check *req)
{
	req->kind = "wish";
}

static void odd_language(struct brig_check *req)
{
	req->language = "cobol";
}

static void odd_trust(struct brig_check *req)
{
	req->trust = "vip";
}

static void odd_flags(struct brig_check *req)
{
	req->flags = 1;
}

static void odd_workspace(struct brig_check *req)
{
	req->workspace = "here";
}

static void odd_size(struct brig_check *req)
{
	req->size = 2;
}

static void unusable_requests_are_refused(void **state UNUSED)
{
	static void (*const changes[])(struct brig_check *) = { no_text,   too_long,  odd_kind,      odd_language,
								odd_trust, odd_flags, odd_workspace, odd_size };

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		struct brig_check req = check_of(NULL, "python", "pass\n");
		struct brig_error err = BRIG_ERROR_INIT;
		char *json = NULL;

		changes[i](&req);
		assert_int_equal(brig_check(handle, &req, &json, &err), -BRIG_E_USAGE);
		assert_true(err.msg[0]);
		assert_null(json);
	}
	assert_int_equal(brig_check(NULL, NULL, NULL, NULL), -BRIG_E_USAGE);
	assert_int_equal(brig_rules_json(handle, NULL, NULL), -BRIG_E_USAGE);
}

/* A program built against an older header knows fewer members. */
static void older_structs_work(void **state UNUSED)
{
	struct brig_check req = check_of("path", NULL, "a/b");

	req.size = offsetof(struct brig_check, workspace);
	assert_int_equal(brig_check(handle, &req, NULL, NULL), 0);
}

static void rules_are_listed(void **state UNUSED)
{
	const json_t *rule;
	char *text = NULL;
	json_t *doc;
	size_t i;

	assert_int_equal(brig_rules_json(handle, &text, NULL), 0);
	doc = json_loads(text, 0, NULL);
	brig_free(text);
	assert_true(json_array_size(json_object_get(doc, "rules")) > 0);
	json_array_foreach(json_object_get(doc, "rules"), i, rule)
	{
		assert_true(*json_string_value(json_object_get(rule, "id")));
		assert_true(json_array_size(json_object_get(rule, "languages")) > 0);
		assert_int_equal(json_object_size(json_object_get(rule, "severity")), 3);
		assert_true(json_integer_value(json_object_get(rule, "line")) > 0);
	}
	json_decref(doc);
}

/* The owner of a handle may add rules; a file that is wrong is said where it is used. */
static void a_bad_rules_file_is_refused(void **state UNUSED)
{
	struct brig_open_opts opts = { .size = sizeof(opts),
				       .policy_file = "",
				       .rules_file = "/nonexistent/rules.yaml" };
	struct brig_check req = check_of(NULL, "python", "pass\n");
	struct brig_error err = BRIG_ERROR_INIT;
	static char long_name[5000];
	struct brig *b = NULL;

	assert_int_equal(brig_open(&opts, &b, &err), 0);
	assert_true(brig_check(b, &req, NULL, &err) < 0);
	assert_non_null(strstr(err.msg, "/nonexistent/rules.yaml"));
	brig_close(b);
	memset(long_name, 'x', sizeof(long_name) - 1);
	opts.rules_file = long_name;
	assert_int_equal(brig_open(&opts, &b, &err), -BRIG_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outcomes_follow_the_worst_finding),
		cmocka_unit_test(findings_have_every_member),
		cmocka_unit_test(trust_and_language_are_resolved),
		cmocka_unit_test(unusable_requests_are_refused),
		cmocka_unit_test(older_structs_work),
		cmocka_unit_test(rules_are_listed),
		cmocka_unit_test(a_bad_rules_file_is_refused),
	};

	return cmocka_run_group_tests(tests, open_handle, close_handle);
}
