/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: they hold as they are, and no longer when any value in them was changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/audit.h"
#include "audit/keys.h"
#include "base/str.h"
#include "temp_folder.h"

struct bed {
	char path[64];
	struct statedir state;
	char *receipt;
	char public_key[2 * SIGN_PUB_LEN + 1];
};

/* A run with something of everything in it. */
static char *make_receipt(const struct statedir *state)
{
	static struct settings set;
	struct brig_error err = BRIG_ERROR_INIT;
	struct result *res = calloc(1, sizeof(*res));
	struct record rec = { .wall_ns = 1700000000 * NS_PER_SEC, .uid = 1000, .who = "", .res = res, .set = &set };
	struct finding found = { .rule = "py-process", .severity = SEVERITY_HIGH, .line = 3 };
	char *text = NULL;

	result_init(res);
	res->verdict = VERDICT_error;
	res->exit_code = 3;
	res->has_limits = true;
	res->limits.memory_bytes = UINT64_MAX;
	(void)str_copy(res->reason, sizeof(res->reason), "exit code \xff \"3\"\n");
	(void)str_copy(res->language, sizeof(res->language), "python");
	res->evidence.n = 2;
	res->evidence.kept = 1;
	res->evidence.row[0] =
		(struct evidence_row){ .check = "memory_limit", .declared = "1", .enforced = "1", .kept = true };
	res->evidence.row[1] = (struct evidence_row){ .check = "network", .declared = "none", .enforced = "host" };
	res->degraded = PROT_BIT(0);
	assert_true(findings_add(&res->findings, &found));
	rec.policy_origin = "/etc/brig/sandbox.yaml";
	rec.audit_seq = 7;
	rec.code = "print(1)";
	rec.code_len = 8;
	record_hash_request(&rec);
	record_hash_evidence(&rec);
	record_stream_begin(&rec.out, true, 0);
	record_stream_add(&rec.out, "1\n", 2);
	record_stream_end(&rec.out);
	if (receipt_make(state, "0123456789abcdef", &rec, &text, &err) < 0)
		fail_msg("%s", err.msg);
	result_release(res);
	free(res);
	return text;
}

static int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	struct brig_error err = BRIG_ERROR_INIT;
	struct keyring *ring = calloc(1, sizeof(*ring));

	(void)str_copy(b->path, sizeof(b->path), "/tmp/test-receipt-XXXXXX");
	assert_non_null(mkdtemp(b->path));
	assert_int_equal(statedir_open(b->path, true, &b->state, &err), 0);
	b->receipt = make_receipt(&b->state);
	assert_int_equal(keyring_load(&b->state, false, ring, &err), 0);
	(void)hex_put(b->public_key, ring->key[0].pub, SIGN_PUB_LEN);
	free(ring);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *b = *state;

	statedir_close(&b->state);
	(void)temp_folder_remove(b->path);
	free(b->receipt);
	free(b);
	return 0;
}

/* The answer, for json_decref. */
static json_t *verify(const char *text, const char *key, int expected)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *answer = NULL;
	json_t *doc;
	int rc = receipt_verify(text, strlen(text), key, &answer, &err);

	if (rc < 0)
		fail_msg("%s", err.msg);
	if (rc != expected)
		fail_msg("%s", answer);
	doc = json_loads(answer, 0, NULL);
	assert_non_null(doc);
	free(answer);
	return doc;
}

static void expect(const char *text, const char *key, int expected)
{
	json_decref(verify(text, key, expected));
}

static void it_holds(void **state)
{
	struct bed *b = *state;
	json_t *doc = verify(b->receipt, b->public_key, 0);

	assert_true(json_is_true(json_object_get(json_object_get(doc, "key"), "expected")));
	assert_true(json_array_size(json_object_get(doc, "proven")) >= 5);
	assert_true(json_array_size(json_object_get(doc, "not_proven")) >= 3);
	json_decref(doc);
	doc = verify(b->receipt, NULL, 0);
	assert_false(json_is_true(json_object_get(json_object_get(doc, "key"), "expected")));
	json_decref(doc);
}

static void another_form_holds_too(void **state)
{
	struct bed *b = *state;
	json_t *doc = json_loads(b->receipt, 0, NULL);
	char *compact = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);

	expect(compact, b->public_key, 0);
	free(compact);
	json_decref(doc);
}

static void another_key_does_not(void **state)
{
	struct bed *b = *state;
	char key[sizeof(b->public_key)];
	struct brig_error err = BRIG_ERROR_INIT;
	char *answer = NULL;

	memcpy(key, b->public_key, sizeof(key));
	key[0] = key[0] == '0' ? '1' : '0';
	expect(b->receipt, key, 1);
	key[10] = '\0';
	assert_int_equal(receipt_verify(b->receipt, strlen(b->receipt), key, &answer, &err), -BRIG_E_USAGE);
}

/* ---- every value, one after the other ---------------------------------------------------------------- */

static json_t *changed(const json_t *v)
{
	char text[512];

	switch (json_typeof(v)) {
	case JSON_STRING:
		(void)snprintf(text, sizeof(text), "%s", json_string_value(v));
		text[0] = text[0] == '0' ? '1' : '0';
		text[1] = *json_string_value(v) ? text[1] : '\0';
		return json_string(text);
	case JSON_INTEGER:
		return json_integer(json_integer_value(v) ^ 1);
	case JSON_TRUE:
		return json_false();
	case JSON_FALSE:
	case JSON_NULL:
		return json_true();
	default:
		return json_string("changed");
	}
}

/* Puts another value into the n-th leaf below; false: there are not so many. */
static bool change_leaf(json_t *v, size_t *n)
{
	const char *name;
	json_t *member;
	size_t i;

	if (json_is_object(v)) {
		json_object_foreach(v, name, member)
		{
			if (json_is_object(member) || json_is_array(member) ? change_leaf(member, n) : (*n)-- == 0) {
				if (!json_is_object(member) && !json_is_array(member))
					(void)json_object_set_new(v, name, changed(member));
				return true;
			}
		}
		return false;
	}
	json_array_foreach(v, i, member)
	{
		if (json_is_object(member) || json_is_array(member) ? change_leaf(member, n) : (*n)-- == 0) {
			if (!json_is_object(member) && !json_is_array(member))
				(void)json_array_set_new(v, i, changed(member));
			return true;
		}
	}
	return false;
}

static void every_changed_value_is_noticed(void **state)
{
	struct bed *b = *state;
	size_t count = 0;

	for (;; count++) {
		json_t *doc = json_loads(b->receipt, 0, NULL);
		size_t n = count;
		bool there = change_leaf(doc, &n);
		char *text = json_dumps(doc, JSON_COMPACT);

		json_decref(doc);
		if (there)
			expect(text, NULL, 1);
		free(text);
		if (!there)
			break;
	}
	assert_true(count > 50);
}

static void added_and_removed_members_are_noticed(void **state)
{
	static const char *const groups[] = { "request", "plan", "outcome", "evidence", "stdout", "audit", "key" };
	struct bed *b = *state;

	for (size_t i = 0; i <= ARRAY_LEN(groups); i++)
		for (int removes = 0; removes < 2; removes++) {
			json_t *doc = json_loads(b->receipt, 0, NULL), *at = json_object_get(doc, "statement");
			char *text;

			if (i < ARRAY_LEN(groups))
				at = json_object_get(at, groups[i]);
			if (removes)
				(void)json_object_del(at, json_object_iter_key(json_object_iter(at)));
			else
				(void)json_object_set_new(at, "more", json_true());
			text = json_dumps(doc, 0);
			expect(text, NULL, 1);
			free(text);
			json_decref(doc);
		}
}

static void what_is_no_receipt_is_said_to_be_none(void **state UNUSED)
{
	static const char *const texts[] = {
		"",
		"null",
		"[]",
		"{}",
		"{\"statement\":{},\"signature\":\"\"}",
		"{\"statement\":{\"brig_receipt\":1}}",
		"{\"a\":1,\"a\":2}",
		"\xff\xfe",
		"{\"statement\":{\"brig_receipt\":1,\"x\":1.5},\"signature\":\"00\"}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		expect(texts[i], NULL, 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_holds),
		CASE(another_form_holds_too),
		CASE(another_key_does_not),
		CASE(every_changed_value_is_noticed),
		CASE(added_and_removed_members_are_noticed),
		cmocka_unit_test(what_is_no_receipt_is_said_to_be_none),
	};

	return cmocka_run_group_tests_name("receipt", tests, NULL, NULL);
}
