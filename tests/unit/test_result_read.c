/* SPDX-License-Identifier: Apache-2.0 */
/* A result from its document: it gives the same document again, and a document that is none is refused by its member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <brig/brig.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "api/handle.h"
#include "base/str.h"

static void add_rows(struct result *r)
{
	struct finding f = { .rule = "py-network",
			     .severity = SEVERITY_HIGH,
			     .line = 3,
			     .column = 4,
			     .end_line = 3,
			     .end_column = 9,
			     .name = "socket",
			     .message = "m",
			     .remedy = "",
			     .network = true };
	struct denied_row d = { .kind = DENIED_HOST, .what = "example.org:443", .why = "why", .count = 3 };
	struct network_row n = { .host = "example.org", .port = 443, .reason = "no", .count = 2, .sent_bytes = 7 };
	struct change c = { .path = (char[]){ "a\xff" },
			    .kind = CHANGE_MODIFIED,
			    .type = CHANGE_LINK,
			    .mode = 0644,
			    .size = 12,
			    .hashed = true };
	struct artifact a = {
		.path = (char[]){ "x.png" }, .size = 3, .content = strndup("\x89PN", 3), .may_execute = true
	};
	struct artifact left = { .path = (char[]){ "y" }, .size = 1 };
	struct test_failure t = { .name = strdup("t::a"), .message = strdup("boom"), .line = 7 };

	assert_true(findings_add(&r->findings, &f));
	f.span = (struct span){ 9, 10 };
	f.network = false;
	assert_true(findings_add(&r->findings, &f)); /* the same rule twice */
	assert_true(denied_add(&r->denied, &d) && network_add(&r->network, &n) && changes_add(&r->changes, &c));
	c.hashed = false;
	assert_true(changes_add(&r->changes, &c) && artifacts_add(&r->artifacts, &a) && artifacts_add(&r->left, &left));
	assert_true(test_report_add(&r->tests, &t));
	r->left.dropped = 5;
	r->artifacts.lost = 3;
	r->has_diff = r->diff_is_cut = true;
	r->diff = (struct buf)BUF_INIT(64);
	assert_int_equal(buf_add(&r->diff, "+caf\xe9\n", 6), 6);
}

static struct brig_result *full_result(void)
{
	struct brig_result *res = result_new();
	struct result *r = &res->r;

	(void)str_copy(r->id, sizeof(r->id), "abcdefgh234567aa");
	r->verdict = VERDICT_crash;
	(void)str_copy(r->reason, sizeof(r->reason), "because \xff of it");
	r->signal = SIGRTMIN + 2;
	(void)str_copy(r->language, sizeof(r->language), "python");
	r->out = (struct buf)BUF_INIT(100);
	buf_add(&r->out, "a\0b\xc3\xa9", 5);
	r->err = (struct buf)BUF_INIT(100);
	buf_add(&r->err, "\xff\x00z", 3);
	r->err_truncated = true;
	r->usage.wall_ms = 17;
	r->phase_ns[PHASE_RUN] = 123456789;
	r->total_ns = 999999999;
	r->has_limits = true;
	r->limits.memory_bytes = UINT64_MAX;
	r->evidence.row[0] =
		(struct evidence_row){ .check = "memory_limit", .declared = "1", .enforced = "1", .kept = true };
	r->evidence.n = r->evidence.kept = 1;
	r->samples.row[0].at_ms = 4;
	r->samples.n = 1;
	r->degraded = PROT_BIT(PROT_memory_limit);
	r->cache.compile = CACHED_HIT;
	r->cache.age_ms = 4;
	r->packages = (struct result_packages){ .state = PACKAGES_INSTALLED, .ecosystem = "pip", .files = 3 };
	r->changes.known = r->tests.known = r->tests.held = true;
	r->changes.state = CHANGES_KEPT;
	(void)str_copy(r->tests.framework, sizeof(r->tests.framework), "pytest");
	r->audit_seq = 9;
	memset(r->audit_hash, 'a', 64);
	result_warn(r, "careful");
	add_rows(r);
	return res;
}

static char *again(const char *text)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	char *copy = NULL;

	if (brig_result_from_json(text, strlen(text), &r, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(brig_result_json(r, &copy, NULL), 0);
	brig_result_free(r);
	return copy;
}

static void what_is_read_gives_the_same_document(void **state UNUSED)
{
	struct brig_result *results[] = { full_result(), result_new() };

	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		char *text = NULL, *copy;

		assert_int_equal(brig_result_json(results[i], &text, NULL), 0);
		copy = again(text);
		assert_string_equal(copy, text);
		brig_free(text);
		brig_free(copy);
		brig_result_free(results[i]);
	}
}

static void verdicts_and_statuses_are_the_same(void **state UNUSED)
{
	for (int v = 0; v < VERDICT_COUNT; v++) {
		struct brig_result *r = result_new(), *copy = NULL;
		char *text = NULL;

		r->r.verdict = (enum verdict)v;
		r->r.exit_code = v % 3 ? 7 : -1;
		r->r.signal = v % 2 ? SIGSEGV : 0;
		assert_int_equal(brig_result_json(r, &text, NULL), 0);
		assert_int_equal(brig_result_from_json(text, strlen(text), &copy, NULL), 0);
		assert_int_equal(brig_result_status(copy), brig_result_status(r));
		assert_string_equal(brig_result_verdict(copy), brig_result_verdict(r));
		brig_free(text);
		brig_result_free(r);
		brig_result_free(copy);
	}
}

/* What the document has not, beside it. */
static void receipt_and_unlisted_come_along(void **state UNUSED)
{
	struct brig_result *r = full_result(), *copy = NULL;
	struct brig_finding f = BRIG_FINDING_INIT;
	char *text = NULL, *unlisted = NULL, *both;
	const char *path;
	uint64_t n = 0;

	assert_int_equal(brig_result_json(r, &text, NULL), 0);
	assert_int_equal(brig_result_unlisted_json(r, &unlisted, NULL), 0);
	assert_true(asprintf(&both, "%.*s,\"receipt\":{\"a\":1},\"unlisted\":%s}", (int)strlen(text) - 1, text,
			     unlisted) > 0);
	assert_int_equal(brig_result_from_json(both, strlen(both), &copy, NULL), 0);
	assert_string_equal(brig_result_receipt(copy), "{\"a\":1}");
	assert_true(brig_result_finding(copy, 0, &f) && f.network);
	assert_true(brig_result_finding(copy, 1, &f) && !f.network);
	assert_int_equal(brig_result_left(copy, 99, &path, &n), 0);
	assert_int_equal(n, 5);
	free(both);
	brig_free(text);
	brig_free(unlisted);
	brig_result_free(r);
	brig_result_free(copy);
}

static void refuse(const json_t *doc, const char *word)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	char *text = json_dumps(doc, JSON_COMPACT);

	if (brig_result_from_json(text, strlen(text), &r, &err) == 0)
		fail_msg("%s is not missed", word);
	assert_int_equal(err.code, BRIG_E_USAGE);
	if (!strstr(err.msg, word))
		fail_msg("'%s' does not name %s", err.msg, word);
	free(text);
}

/* Each member in turn: gone, of another type, with company that nobody knows. */
static void bad_documents_are_refused_by_their_member(void **state UNUSED)
{
	struct brig_result *r = full_result();
	const char *names[64];
	char *text = NULL;
	size_t n = 0;
	json_t *doc, *v;
	const char *key;

	assert_int_equal(brig_result_json(r, &text, NULL), 0);
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	json_object_foreach(doc, key, v) names[n++] = key;
	for (size_t i = 0; i < n; i++) {
		json_t *copy = json_deep_copy(doc);

		json_object_del(copy, names[i]);
		/* of a run that was to tell, and of one with losses */
		if (!str_eq(names[i], "diff") && !str_eq(names[i], "artifacts_lost"))
			refuse(copy, names[i]);
		json_object_set_new(copy, names[i], json_real(1.5));
		refuse(copy, "");
		json_decref(copy);
	}
	json_object_set_new(doc, "verdict", json_string("perfect"));
	refuse(doc, "verdict");
	json_object_set_new(doc, "verdict", json_string("ok"));
	json_object_set_new(doc, "more", json_true());
	refuse(doc, "result");
	json_decref(doc);
	brig_free(text);
	brig_result_free(r);
}

static void lists_have_ceilings(void **state UNUSED)
{
	struct brig_result *r = result_new();
	char *text = NULL, longer[600];
	json_t *doc, *list = json_array();

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(brig_result_json(r, &text, NULL), 0);
	doc = json_loads(text, 0, NULL);
	for (size_t i = 0; i <= RESULT_WARNINGS_MAX; i++)
		json_array_append_new(list, json_string("w"));
	json_object_set_new(doc, "warnings", list);
	refuse(doc, "warnings");
	json_object_set_new(doc, "warnings", json_array());
	json_object_set_new(doc, "reason", json_string(longer));
	refuse(doc, "reason");
	json_decref(doc);
	brig_free(text);
	brig_result_free(r);
	assert_int_equal(brig_result_from_json("{", 1, &r, NULL), -BRIG_E_USAGE);
	assert_int_equal(brig_result_from_json("[]", 2, &r, NULL), -BRIG_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_gives_the_same_document),
		cmocka_unit_test(verdicts_and_statuses_are_the_same),
		cmocka_unit_test(receipt_and_unlisted_come_along),
		cmocka_unit_test(bad_documents_are_refused_by_their_member),
		cmocka_unit_test(lists_have_ceilings),
	};

	return cmocka_run_group_tests_name("result_read", tests, NULL, NULL);
}
