/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/result.h"

/* The schema of the tree that the test was built from. */
static json_t *load_schema(void)
{
	const char *root = getenv("TEST_SOURCE_ROOT");
	char path[4096];
	json_t *schema;

	(void)snprintf(path, sizeof(path), "%s/data/schemas/result.json", root ? root : ".");
	schema = json_load_file(path, 0, NULL);
	assert_non_null(schema);
	return schema;
}

/* ---- as much of JSON Schema as the schema of results uses ------------------------------------- */

static bool is_type(const json_t *v, const char *type)
{
	static const struct {
		const char *name;
		json_type type;
	} types[] = {
		{ "object", JSON_OBJECT },   { "array", JSON_ARRAY },  { "string", JSON_STRING },
		{ "integer", JSON_INTEGER }, { "number", JSON_REAL },  { "number", JSON_INTEGER },
		{ "null", JSON_NULL },       { "boolean", JSON_TRUE }, { "boolean", JSON_FALSE },
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(types[i].name, type) && types[i].type == json_typeof(v))
			return true;
	return false;
}

static bool contains(const json_t *array, const json_t *v)
{
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item) if (json_equal(item, v)) return true;
	return false;
}

static bool type_fits(const json_t *v, const json_t *type)
{
	const json_t *item;
	size_t i;

	if (!type)
		return true;
	if (json_is_string(type))
		return is_type(v, json_string_value(type));
	json_array_foreach(type, i, item) if (is_type(v, json_string_value(item))) return true;
	return false;
}

static bool fits(const json_t *v, const json_t *schema, const char *at);

static bool object_fits(const json_t *v, const json_t *schema, const char *at)
{
	const json_t *props = json_object_get(schema, "properties"), *name, *item;
	const char *key;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i,
			   name) if (!json_object_get(v, json_string_value(name)))
	{
		print_message("%s: %s is missing\n", at, json_string_value(name));
		return false;
	}
	/* jansson's iterator takes no const object, although it changes nothing */
	void *iter = json_object_iter((json_t *)(uintptr_t)v);
	for (; iter; iter = json_object_iter_next((json_t *)(uintptr_t)v, iter)) {
		key = json_object_iter_key(iter);
		item = json_object_iter_value(iter);
		if (!json_object_get(props, key)) {
			print_message("%s: %s is not in the schema\n", at, key);
			return false;
		}
		if (!fits(item, json_object_get(props, key), key))
			return false;
	}
	return true;
}

static bool array_fits(const json_t *v, const json_t *schema, const char *at)
{
	const json_t *max = json_object_get(schema, "maxItems"), *items = json_object_get(schema, "items"), *item;
	size_t i;

	if (max && json_array_size(v) > (size_t)json_integer_value(max))
		return false;
	json_array_foreach(v, i, item) if (items && !fits(item, items, at)) return false;
	return true;
}

static bool fits(const json_t *v, const json_t *schema, const char *at)
{
	const json_t *choices = json_object_get(schema, "enum"), *min = json_object_get(schema, "minimum");

	if (!type_fits(v, json_object_get(schema, "type")) || (choices && !contains(choices, v)) ||
	    (min && json_is_number(v) && json_number_value(v) < json_number_value(min))) {
		print_message("%s: does not fit\n", at);
		return false;
	}
	if (json_is_object(v) && json_object_get(schema, "properties"))
		return object_fits(v, schema, at);
	return json_is_array(v) ? array_fits(v, schema, at) : true;
}

/* ---- making documents -------------------------------------------------------------------------- */

static struct result *new_result(void)
{
	struct result *r = malloc(sizeof(*r));

	assert_non_null(r);
	result_init(r);
	r->out.max = r->err.max = 1024;
	return r;
}

static void free_result(struct result *r)
{
	result_release(r);
	free(r);
}

/* The document, which fits the schema whatever the result holds. */
static json_t *document(const struct result *r)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *schema = load_schema(), *doc;
	char *text = NULL;

	assert_int_equal(result_to_json(r, &text, &err), 0);
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	assert_non_null(doc);
	assert_true(fits(doc, schema, "$"));
	free(text);
	json_decref(schema);
	return doc;
}

static const char *text_of(const json_t *doc, const char *name)
{
	const char *text = json_string_value(json_object_get(doc, name));

	return text ? text : "(not a string)";
}

/* ---- cases ------------------------------------------------------------------------------------- */

static void nothing_known_is_still_a_document(void **state UNUSED)
{
	struct result *r = new_result();
	json_t *doc = document(r);

	assert_string_equal(text_of(doc, "verdict"), "failed");
	assert_true(json_is_null(json_object_get(doc, "exit_code")));
	assert_true(json_is_null(json_object_get(doc, "signal")));
	assert_true(json_is_null(json_object_get(doc, "language")));
	assert_int_equal(json_object_size(json_object_get(doc, "limits")), 0);
	json_decref(doc);
	free_result(r);
}

static void everything_full_fits_the_schema(void **state UNUSED)
{
	struct result *r = new_result();
	json_t *doc;

	r->has_limits = true;
	r->limits.memory_bytes = UINT64_MAX; /* unlimited: must not turn negative */
	r->degraded = PROT_BIT(PROT_COUNT - 1) | PROT_BIT(0);
	for (size_t i = 0; i < RESULT_WARNINGS_MAX + 3; i++)
		result_warn(r, "warning %zu", i);
	for (size_t i = 0; i < 10 * SAMPLES_MAX; i++)
		sample_series_add(&r->samples, &(struct sample){ .at_ms = i });
	for (r->evidence.n = 0; r->evidence.n < EVIDENCE_MAX; r->evidence.n++)
		r->evidence.row[r->evidence.n].check = "memory";
	for (uint32_t i = 0; i < FINDINGS_MAX + 3; i++)
		assert_true(findings_add(&r->findings, &(struct finding){ .rule = "py-process",
									  .severity = SEVERITY_LOW,
									  .span = { i, i + 1 },
									  .line = 1,
									  .column = i + 1,
									  .end_line = 1,
									  .end_column = i + 2 }));
	doc = document(r);
	assert_int_equal(json_array_size(json_object_get(doc, "findings")), FINDINGS_MAX);
	assert_int_equal(json_array_size(json_object_get(doc, "evidence")), EVIDENCE_MAX);
	assert_int_equal(json_array_size(json_object_get(doc, "degraded")), 2);
	assert_int_equal(json_array_size(json_object_get(doc, "warnings")), RESULT_WARNINGS_MAX);
	assert_string_equal(r->warning[RESULT_WARNINGS_MAX - 1], "there were more warnings");
	json_decref(doc);
	free_result(r);
}

/* Names come from the program's own text: they may be anything. */
static void findings_are_text_with_a_place(void **state UNUSED)
{
	static const struct finding one = { .rule = "py-os",
					    .severity = SEVERITY_CRITICAL,
					    .line = 3,
					    .column = 7,
					    .end_line = 4,
					    .end_column = 1,
					    .name = "os.\xff",
					    .message = "why",
					    .remedy = "what else" };
	struct result *r = new_result();
	const json_t *row;
	json_t *doc;

	assert_true(findings_add(&r->findings, &one));
	doc = document(r);
	row = json_array_get(json_object_get(doc, "findings"), 0);
	assert_string_equal(text_of(row, "rule"), "py-os");
	assert_string_equal(text_of(row, "severity"), "CRITICAL");
	assert_string_equal(text_of(row, "name"), "os.\xef\xbf\xbd");
	assert_string_equal(text_of(row, "message"), "why");
	assert_string_equal(text_of(row, "remedy"), "what else");
	assert_int_equal(json_integer_value(json_object_get(row, "line")), 3);
	assert_int_equal(json_integer_value(json_object_get(row, "column")), 7);
	assert_int_equal(json_integer_value(json_object_get(row, "end_line")), 4);
	assert_int_equal(json_integer_value(json_object_get(row, "end_column")), 1);
	json_decref(doc);
	free_result(r);
}

static void every_verdict_is_in_the_schema(void **state UNUSED)
{
	for (enum verdict v = 0; v < VERDICT_COUNT; v++) {
		struct result *r = new_result();
		json_t *doc;

		r->verdict = v;
		doc = document(r);
		assert_string_equal(text_of(doc, "verdict"), verdict_info[v].name);
		json_decref(doc);
		free_result(r);
	}
}

static void the_schema_check_can_fail(void **state UNUSED)
{
	json_t *schema = load_schema();
	struct result *r = new_result();
	json_t *doc = document(r);

	json_object_set_new(doc, "surprise", json_true());
	assert_false(fits(doc, schema, "$"));
	json_object_del(doc, "surprise");
	json_object_set_new(json_object_get(doc, "usage"), "cpu_ms", json_string("1"));
	assert_false(fits(doc, schema, "$"));
	json_decref(doc);
	json_decref(schema);
	free_result(r);
}

/* What becomes of a program's output. */
static const struct {
	const char *name, *out;
	size_t len;
	bool truncated;
	const char *encoding, *want;
	size_t want_len;
} outputs[] = {
#define OUTPUT(name, out, truncated, encoding, want)                                    \
	{                                                                               \
		name, out, sizeof(out) - 1, truncated, encoding, want, sizeof(want) - 1 \
	}
	OUTPUT("nothing", "", false, "utf-8", ""),
	OUTPUT("text", "h\xc3\xa9llo\n", false, "utf-8", "h\xc3\xa9llo\n"),
	OUTPUT("NUL is text", "a\0b", false, "utf-8", "a\0b"),
	OUTPUT("escape is text", "\033[2J", false, "utf-8", "\033[2J"),
	OUTPUT("noncharacter is text", "\xef\xbf\xbf", false, "utf-8", "\xef\xbf\xbf"),
	OUTPUT("1 odd byte", "\xff", false, "base64", "/w=="),
	OUTPUT("2 odd bytes", "\xff\xfe", false, "base64", "//4="),
	OUTPUT("3 odd bytes", "\xff\xfe\x00", false, "base64", "//4A"),
	OUTPUT("surrogate", "\xed\xa0\x80", false, "base64", "7aCA"),
	OUTPUT("2 bytes, cut after 1", "a\xc3", true, "utf-8", "a"),
	OUTPUT("3 bytes, cut after 1", "a\xe0", true, "utf-8", "a"),
	OUTPUT("3 bytes, cut after 2", "a\xe2\x82", true, "utf-8", "a"),
	OUTPUT("last before surrogates, cut", "a\xed\x9f", true, "utf-8", "a"),
	OUTPUT("4 bytes, cut after 1", "a\xf0", true, "utf-8", "a"),
	OUTPUT("4 bytes, cut after 3", "a\xf0\x9f\x98", true, "utf-8", "a"),
	OUTPUT("highest plane, cut", "a\xf4\x8f", true, "utf-8", "a"),
	OUTPUT("cut between characters", "\xc3\xa9", true, "utf-8", "\xc3\xa9"),
	OUTPUT("half a character, not cut", "a\xc3", false, "base64", "YcM="),
	OUTPUT("odd before the cut", "\xff\xc3", true, "base64", "/8M="),
	OUTPUT("cut, but hopeless", "a\xc0", true, "base64", "YcA="),
	OUTPUT("cut, but overlong", "a\xe0\x80", true, "base64", "YeCA"),
	OUTPUT("cut, but beyond Unicode", "a\xf4\x90", true, "base64", "YfSQ"),
};

static void output_is_text_or_base64(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
		struct result *r = new_result();
		const json_t *out;
		json_t *doc;

		buf_add(&r->out, outputs[i].out, outputs[i].len);
		r->out_truncated = outputs[i].truncated;
		doc = document(r);
		out = json_object_get(doc, "stdout");
		if (!str_eq(text_of(doc, "stdout_encoding"), outputs[i].encoding) ||
		    json_string_length(out) != outputs[i].want_len ||
		    memcmp(json_string_value(out), outputs[i].want, outputs[i].want_len) != 0)
			fail_msg("%s: %s '%s'", outputs[i].name, text_of(doc, "stdout_encoding"),
				 json_string_value(out));
		json_decref(doc);
		free_result(r);
	}
}

static void streams_do_not_mix(void **state UNUSED)
{
	struct result *r = new_result();
	json_t *doc;

	buf_adds(&r->out, "out");
	buf_adds(&r->err, "\xff");
	r->err_truncated = true;
	doc = document(r);
	assert_string_equal(text_of(doc, "stdout"), "out");
	assert_string_equal(text_of(doc, "stdout_encoding"), "utf-8");
	assert_string_equal(text_of(doc, "stderr"), "/w==");
	assert_string_equal(text_of(doc, "stderr_encoding"), "base64");
	assert_true(json_is_false(json_object_get(doc, "stdout_truncated")));
	assert_true(json_is_true(json_object_get(doc, "stderr_truncated")));
	json_decref(doc);
	free_result(r);
}

static void other_text_is_repaired(void **state UNUSED)
{
	struct result *r = new_result();
	json_t *doc;

	(void)str_copy(r->reason, sizeof(r->reason), "no such file '\xff\xc3'");
	doc = document(r);
	assert_string_equal(text_of(doc, "reason"), "no such file '\xef\xbf\xbd\xef\xbf\xbd'");
	json_decref(doc);
	free_result(r);
}

static void times_have_microseconds(void **state UNUSED)
{
	struct result *r = new_result();
	AUTO_FREE char *text = NULL;

	r->phase_ns[PHASE_CREATE] = 1234567;
	r->total_ns = 86400000000400;
	assert_int_equal(result_to_json(r, &text, NULL), 0);
	assert_non_null(strstr(text, "\"create_ms\":1.235,"));
	assert_non_null(strstr(text, "\"total_ms\":86400000.0"));
	free_result(r);
}

static void signals_have_names(void **state UNUSED)
{
	char name[32];

	assert_string_equal(result_signal_name(SIGKILL, name, sizeof(name)), "SIGKILL");
	assert_string_equal(result_signal_name(SIGRTMIN + 2, name, sizeof(name)), "SIGRTMIN+2");
	assert_string_equal(result_signal_name(120, name, sizeof(name)), "SIG120");
}

static void status_follows_the_verdict(void **state UNUSED)
{
	static const struct {
		enum verdict verdict;
		int exit_code, signal, status;
	} rows[] = {
		{ VERDICT_ok, 0, 0, 0 },
		{ VERDICT_error, 7, 0, 7 },
		{ VERDICT_crash, -1, SIGSEGV, 139 },
		{ VERDICT_timeout, -1, SIGKILL, 124 },
		{ VERDICT_cpu_limit, -1, 0, 124 },
		{ VERDICT_memory_limit, -1, SIGKILL, 137 },
		{ VERDICT_output_limit, -1, 0, 123 },
		{ VERDICT_disk_limit, 1, 0, 123 },
		{ VERDICT_pids_limit, 1, 0, 123 },
		{ VERDICT_blocked, -1, 0, 126 },
		{ VERDICT_refused, -1, 0, 125 },
		{ VERDICT_violated, 0, 0, 122 },
		{ VERDICT_failed, -1, 0, 121 },
		{ VERDICT_cancelled, -1, 0, 130 },
		{ VERDICT_ok, -1, 0, 121 }, /* a broken promise of ours must not look like success */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct result *r = new_result();

		r->verdict = rows[i].verdict;
		r->exit_code = rows[i].exit_code;
		r->signal = rows[i].signal;
		assert_int_equal(result_status(r), rows[i].status);
		free_result(r);
	}
}

/* The entry is written while the text around it is there already; what else recording may change makes that text old. */
static void text_is_made_ahead(void **state UNUSED)
{
	struct result *r = new_result();
	struct result_text text;
	char *ahead = NULL, *whole = NULL;

	assert_int_equal(result_text_make(r, &text, NULL), 0);
	r->audit_seq = 7;
	memset(r->audit_hash, 'a', 64);
	assert_true(result_text_is_current(&text, r));
	assert_int_equal(result_text_join(&text, r, &ahead, NULL), 0);
	assert_int_equal(result_to_json(r, &whole, NULL), 0);
	assert_string_equal(ahead, whole);
	assert_non_null(strstr(whole, "\"audit\":{\"entry\":7,\"hash\":\"aaaa"));
	free(ahead);
	free(whole);
	result_warn(r, "this run has no audit entry");
	assert_false(result_text_is_current(&text, r));
	r->n_warnings = 0;
	r->verdict = r->verdict == VERDICT_failed ? VERDICT_ok : VERDICT_failed;
	assert_false(result_text_is_current(&text, r));
	result_text_release(&text);
	assert_false(result_text_is_current(&text, r));
	free_result(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_made_ahead),
		cmocka_unit_test(nothing_known_is_still_a_document),
		cmocka_unit_test(everything_full_fits_the_schema),
		cmocka_unit_test(findings_are_text_with_a_place),
		cmocka_unit_test(every_verdict_is_in_the_schema),
		cmocka_unit_test(the_schema_check_can_fail),
		cmocka_unit_test(output_is_text_or_base64),
		cmocka_unit_test(streams_do_not_mix),
		cmocka_unit_test(other_text_is_repaired),
		cmocka_unit_test(times_have_microseconds),
		cmocka_unit_test(signals_have_names),
		cmocka_unit_test(status_follows_the_verdict),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
