/* SPDX-License-Identifier: Apache-2.0 */
/* Policies and what is wrong with them, as documents; and text of others in messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "policy_helpers.h"

static void test_policy_json(void **state)
{
	struct policy *p = must_load_text("mem_limit: 64m\nwhitelist: [a.org]\n");
	char *text = NULL;
	json_t *doc, *rows;

	(void)state;
	must_resolve(p, "untrusted");
	policy_free(p);
	assert_int_equal(policy_to_json(&resolved, &text, NULL), 0);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	assert_string_equal(json_string_value(json_object_get(doc, "trust")), "untrusted");
	assert_string_equal(json_string_value(json_object_get(doc, "preset")), "standard");
	rows = json_object_get(doc, "settings");
	assert_int_equal(json_array_size(rows), SETTING_COUNT);
	rows = json_array_get(rows, SET_mem_limit);
	assert_string_equal(json_string_value(json_object_get(rows, "key")), "mem_limit");
	assert_int_equal(json_integer_value(json_object_get(rows, "value")), 64 * MiB);
	assert_string_equal(json_string_value(json_object_get(rows, "text")), "64m");
	assert_string_equal(json_string_value(json_object_get(rows, "unit")), "bytes");
	assert_string_equal(json_string_value(json_object_get(rows, "layer")), "file");
	assert_string_equal(json_string_value(json_object_get(rows, "place")), "sandbox.yaml:1");
	assert_string_equal(json_string_value(json_object_get(rows, "section")), "resources");
	rows = json_object_get(json_array_get(json_object_get(doc, "settings"), SET_whitelist), "value");
	assert_string_equal(json_string_value(json_array_get(rows, 0)), "a.org");
	rows = json_object_get(json_array_get(json_object_get(doc, "settings"), SET_read_only), "value");
	assert_true(json_is_true(rows));
	json_decref(doc);
	free(text);
}

static void test_diags_json(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;
	char *text = NULL;
	json_t *doc, *row;

	(void)state;
	assert_int_equal(load_text("\"\xc2\x9b\": 1", 7, &p, &err), -BRIG_E_POLICY);
	assert_int_equal(policy_diags_to_json("bad\xff\n.yaml", &diags, &text, NULL), 0);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	assert_true(json_is_false(json_object_get(doc, "valid")));
	assert_string_equal(json_string_value(json_object_get(doc, "path")), "bad??.yaml");
	row = json_array_get(json_object_get(doc, "errors"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "line")), 1);
	assert_int_equal(json_integer_value(json_object_get(row, "column")), 2);
	assert_non_null(json_string_value(json_object_get(row, "message")));
	json_decref(doc);
	free(text);
}

static void test_printable(void **state)
{
	char dst[16];

	(void)state;
	assert_string_equal(printable("plain", dst, sizeof(dst)), "plain");
	assert_string_equal(printable("a\x1b[0m\x7f", dst, sizeof(dst)), "a?[0m?");
	assert_string_equal(printable("\xc3\xa4\xc2\x9b\xff", dst, sizeof(dst)), "\xc3\xa4???");
	assert_string_equal(printable("0123456789abcdefgh", dst, sizeof(dst)), "0123456789ab...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy_json),
		cmocka_unit_test(test_diags_json),
		cmocka_unit_test(test_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
