/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: the built-in ones keep their word, a user's file is taken whole or refused with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "inspect/dispatch.h"
#include "inspect/examples.h"
#include "inspect/judge.h"

static struct rule_set *builtin(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *set = NULL;

	if (rules_builtin(&set, &err) < 0)
		fail_msg("%s", err.msg);
	return set;
}

static void builtin_examples_hold(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *set = builtin();

	(void)state;
	if (rules_check_examples(set, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	rules_free(set);
}

static void every_name_is_found(void **state)
{
	struct rule_set *set = builtin();
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < rules_count(set); i++) {
		const struct rule *r = rules_at(set, i);

		assert_ptr_equal(rules_by_id(set, r->id), r);
		for (unsigned lang = 0; lang < RULE_LANGUAGE_COUNT; lang++)
			for (size_t n = 0; (r->languages & 1u << lang) && n < r->n_names; n++, found++)
				assert_non_null(rules_find(set, lang, r->kind, r->names[n], strlen(r->names[n])));
	}
	assert_true(found > 50);
	assert_null(rules_find(set, RULE_PYTHON, RULE_CHECK, "no-such-check", 13));
	assert_null(rules_find(set, RULE_PYTHON, RULE_CHECK, "parse-error-not", 15));
	assert_null(rules_find(set, RULE_PYTHON, RULE_CHECK, "parse-erro", 10));
	rules_free(set);
}

static void iteration_sees_each_rule_once(void **state)
{
	struct rule_set *set = builtin();
	size_t seen = 0, expected = 0;

	(void)state;
	for (unsigned lang = 0; lang < RULE_LANGUAGE_COUNT; lang++)
		for (unsigned kind = 0; kind < RULE_KIND_COUNT; kind++) {
			const struct rule *r;
			size_t at = 0;

			while ((r = rules_next(set, lang, kind, &at))) {
				assert_int_equal(r->kind, kind);
				assert_true(r->languages & 1u << lang);
				seen++;
			}
		}
	for (size_t i = 0; i < rules_count(set); i++)
		expected += (size_t)__builtin_popcount(rules_at(set, i)->languages);
	assert_int_equal(seen, expected);
	rules_free(set);
}

/* ---- checks in C and their words in YAML belong together ---- */

/* The check that a call names: the first string in it, unless the call ends before. */
static bool named_check(const char *call, char name[64])
{
	size_t before = strcspn(call, "\";");
	size_t len = call[before] == '"' ? strcspn(call + before + 1, "\"") : 0;

	/* Behind the second comma the string is the detail of a check whose name is a variable. */
	for (size_t i = 0, commas = 0; i < before; i++)
		if (call[i] == ',' && ++commas > 1)
			return false;
	if (len == 0 || len >= 64)
		return false;
	(void)str_copy(name, len + 1, call + before + 1);
	return true;
}

static size_t look_up_checks(const struct rule_set *set, const char *path)
{
	static char text[256 * 1024];
	FILE *f = fopen(path, "re");
	size_t n = 0;

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	(void)fclose(f);
	for (const char *at = text; (at = strstr(at, "judge_check(")); at++) {
		char name[64];
		bool known = false;

		if (!named_check(at + strlen("judge_check("), name))
			continue;
		for (unsigned lang = 0; lang < RULE_LANGUAGE_COUNT; lang++)
			known |= rules_find(set, lang, RULE_CHECK, name, strlen(name)) != NULL;
		if (!known)
			fail_msg("%s: judge_check(\"%s\") has no rule in data/rules: it would stay silent", path, name);
		n++;
	}
	return n;
}

static void every_check_has_a_rule(void **state)
{
	struct rule_set *set = builtin();
	char pattern[4096];
	size_t n = 0;
	glob_t files;

	(void)state;
	(void)snprintf(pattern, sizeof(pattern), "%s/src/inspect/*.c", getenv("TEST_SOURCE_ROOT"));
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++)
		n += look_up_checks(set, files.gl_pathv[i]);
	globfree(&files);
	assert_true(n >= 5);
	rules_free(set);
}

/* ---- files of users ---- */

static int add_text(struct rule_set *set, const char *text, size_t len, struct brig_error *err)
{
	char path[] = "/tmp/unit-test-rules-XXXXXX";
	int fd = mkstemp(path);
	int rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	(void)close(fd);
	rc = rules_add_file(set, path, err);
	(void)unlink(path);
	return rc;
}

#define RULE(id, kind, names, rest)                                                                                 \
	"- id: " id "\n  languages: [path]\n  kind: " kind "\n  names: " names "\n  severity: HIGH\n  message: m\n" \
	"  remedy: r\n" rest

static void a_file_adds_and_replaces(void **state)
{
	static const char text[] = RULE("mine", "check", "[my-check]", "") RULE("nul-byte", "check", "[nul-byte]", "");
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *set = builtin();
	size_t before = rules_count(set);

	(void)state;
	if (add_text(set, text, strlen(text), &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(rules_count(set), before + 1);
	assert_int_equal(rules_by_id(set, "nul-byte")->severity[INSPECTION_STRICT], SEVERITY_HIGH);
	assert_null(rules_find(set, RULE_PYTHON, RULE_CHECK, "nul-byte", 8));
	assert_string_equal(rules_find(set, RULE_PATH, RULE_CHECK, "my-check", 8)->id, "mine");
	assert_string_equal(rules_find(set, RULE_PYTHON, RULE_CHECK, "parse-error", 11)->id, "parse-error");
	rules_free(set);
}

static void a_file_extends_a_rule(void **state)
{
	static const char text[] = "- extend: py-network\n  names: [zz.wire]\n  match: [\"import zz.wire\"]\n"
				   "  no_match: [\"import zz.text\"]\n";
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *set = builtin();
	size_t before = rules_count(set), names = rules_by_id(set, "py-network")->n_names;

	(void)state;
	if (add_text(set, text, strlen(text), &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(rules_count(set), before);
	assert_int_equal(rules_by_id(set, "py-network")->n_names, names + 1);
	assert_string_equal(rules_find(set, RULE_PYTHON, RULE_MODULE, "zz.wire", 7)->id, "py-network");
	assert_string_equal(rules_find(set, RULE_PYTHON, RULE_MODULE, "socket", 6)->id, "py-network");
	rules_free(set);
}

static int adjusted(const struct rule_set *set, const char *item, bool only_tighten, struct rule_set **ret,
		    struct brig_error *err)
{
	struct setting_list list = { 0 };
	const struct rule_choices choices = { .rules = &list,
					      .only_tighten = only_tighten,
					      .level = INSPECTION_STRICT };

	assert_true(setting_list_add(&list, item));
	return rules_adjusted(set, &choices, ret, err);
}

static void single_rules_do_what_is_said(void **state)
{
	static const struct {
		const char *item;
		enum severity severity;
	} rows[] = {
		{ "py-network=allow", SEVERITY_NONE },
		{ "py-network=note", SEVERITY_MEDIUM },
		{ "py-network=warn", SEVERITY_HIGH },
		{ "py-network=block", SEVERITY_CRITICAL },
	};
	struct rule_set *set = builtin(), *made = NULL;
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(adjusted(set, rows[i].item, false, &made, &err), 0);
		for (enum inspection level = INSPECTION_REPORT; level < INSPECTION_COUNT; level++)
			assert_int_equal(rule_severity(rules_by_id(made, "py-network"), level), rows[i].severity);
		assert_string_equal(rules_find(made, RULE_PYTHON, RULE_MODULE, "socket", 6)->id, "py-network");
		rules_free(made);
	}
	assert_int_equal(adjusted(set, "py-netwrk=allow", false, &made, &err), -BRIG_E_POLICY);
	assert_non_null(strstr(err.msg, "did you mean 'py-network'?"));
	assert_int_equal(adjusted(set, "py-network-harmless=block", false, &made, &err), -BRIG_E_POLICY);
	assert_int_equal(adjusted(set, "py-network=warn", true, &made, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "can only tighten"));
	assert_int_equal(adjusted(set, "py-network=block", true, &made, &err), 0);
	rules_free(made);
	/* Unless it is chosen, at report nothing blocks. */
	assert_int_not_equal(rule_severity(rules_by_id(set, "nul-byte"), INSPECTION_REPORT), SEVERITY_CRITICAL);
	rules_free(set);
}

static struct findings inspected(const struct rule_set *set, enum rule_language lang, enum inspection level,
				 const char *text)
{
	const struct inspect_request req = {
		.kind = inspect_example_kind(lang), .level = level, .text = text, .len = strlen(text), .has_input = true
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct findings f = { 0 };

	if (inspect_text(set, &req, &f, &err) < 0)
		fail_msg("%s", err.msg);
	return f;
}

/* Allows every rule that blocks the text, as their remedies say, and inspects it again. */
static void permit(const struct rule_set *set, enum rule_language lang, enum inspection level, const char *text)
{
	struct findings f = inspected(set, lang, level, text);
	struct setting_list list = { 0 };
	const struct rule_choices choices = { .rules = &list, .level = level };
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *made = NULL;

	for (size_t i = 0; i < f.n; i++) {
		char item[64];

		(void)snprintf(item, sizeof(item), "%s=allow", f.row[i].rule);
		if (f.row[i].severity == SEVERITY_CRITICAL && !setting_list_has(&list, item))
			assert_true(setting_list_add(&list, item));
	}
	findings_release(&f);
	assert_int_equal(rules_adjusted(set, &choices, &made, &err), 0);
	f = inspected(made, lang, level, text);
	if (f.worst == SEVERITY_CRITICAL)
		fail_msg("%s still blocks at %s: %s", f.row[0].rule, inspection_name[level], text);
	findings_release(&f);
	rules_free(made);
}

static void what_a_block_names_permits_it(void **state)
{
	struct rule_set *set = builtin();

	(void)state;
	for (size_t i = 0; i < rules_count(set); i++) {
		const struct rule *r = rules_at(set, i);

		for (unsigned lang = 0; lang < RULE_LANGUAGE_COUNT; lang++)
			for (unsigned t = INSPECTION_GUARD; r->languages & 1u << lang && t < INSPECTION_COUNT; t++)
				for (size_t n = 0; r->severity[t] == SEVERITY_CRITICAL && n < r->n_match; n++)
					permit(set, (enum rule_language)lang, (enum inspection)t, r->match[n]);
	}
	rules_free(set);
}

/* Who can only tighten does not get past the list of modules by choosing something between. */
static void tightening_a_rule_settles_nothing(void **state)
{
	struct rule_set *set = builtin(), *made = NULL;
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	assert_int_equal(adjusted(set, "py-network=block", true, &made, &err), 0);
	assert_false(rules_by_id(made, "py-network")->settled);
	rules_free(made);
	assert_int_equal(adjusted(set, "py-network=allow", false, &made, &err), 0);
	assert_true(rules_by_id(made, "py-network")->settled);
	rules_free(made);
	rules_free(set);
}

struct bad_file {
	const char *text;
	const char *line; /* as it stands in the message, behind the path */
	const char *why;
};

static const struct bad_file bad_files[] = {
	{ "id: x\n", ":1:", "is a list" },
	{ "- id: x\n  languages: [cobol]\n", ":2:", "unknown language 'cobol'" },
	{ "- extend: py-netwrk\n  names: [a]\n", ":1:", "did you mean 'py-network'?" },
	{ "- extend: py-network\n  names: [a]\n  severity: LOW\n", ":1:", "'severity' stays as it is" },
	{ "- extend: py-network\n  names: [zz]\n  match: [\"import yy\"]\n", ":1:", "does not match its example" },
	{ "- extend: py-network\n  names: [subprocess]\n", ":1:", "belongs to rule" },
	{ "- extend: py-network\n  id: y\n  names: [a]\n", ":1:", "stays as it is" },
	{ "- id: x\n  severty: HIGH\n", ":2:", "did you mean 'severity'?" },
	{ "- id: x\n  severity: CRITCAL\n", ":2:", "did you mean 'CRITICAL'?" },
	{ "- id: x\n  severity: {strict: HIGH, all: HIGH}\n", ":2:", "unknown level of inspection 'all'" },
	{ "- id: x\n  severity: {report: HIGH, report: LOW}\n", ":2:", "names report twice" },
	{ "- id: x\n  kind: modul\n", ":2:", "did you mean 'module'?" },
	{ "- id: X y\n", ":1:", "lower-case" },
	{ "- id: x\n  id: y\n", ":2:", "appears twice" },
	{ "- id: x\n  languages: []\n  kind: check\n", ":1:", "names no language" },
	{ "- id: &a x\n", ":1:", "anchors" },
	{ "- id: *a\n", ":1:", "aliases" },
	{ "- id: !!str x\n", ":1:", "tags" },
	{ "%YAML 1.1\n---\n[]\n", ":1:", "directives" },
	{ "- id: x\n  names: {a: b}\n", ":2:", "takes a list" },
	{ "- id: x\n  names: [[a]]\n", ":2:", "takes a text" },
	{ "- id: x\n  names: [\"\"]\n", ":2:", "1 to 127 bytes" },
	{ "- id: \"a\\0b\"\n", ":1:", "without NUL" },
	{ "- id: x\n  names: [a\n", ":", "not YAML" },
	{ "- id: x\n  message: \"\xff\"\n", ":2:", "not valid UTF-8" },
	{ "[]\n---\n[]\n", ":2:", "second document" },
	{ "- id: x\n  languages: [go]\n  kind: module\n  names: [a]\n  severity: LOW\n  message: m\n  remedy: r\n",
	  ":1:", "lacks 'match'" },
	{ RULE("one", "check", "[a]", "") RULE("one", "check", "[b]", ""), ":8:", "appears twice, first in line 1" },
	{ RULE("one", "check", "[a]", "") RULE("two", "check", "[a]", ""), ":8:", "belongs to rule one already" },
	{ RULE("one", "check", "[nul-byte]", ""), ":1:", "belongs to rule nul-byte already" },
	{ RULE("one", "check", "[a]", "  match: [\"harmless\"]\n"), ":1:", "does not match its example \"harmless\"" },
};

static void a_bad_file_is_refused_with_its_line(void **state)
{
	struct rule_set *set = builtin();
	size_t before = rules_count(set);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
		const struct bad_file *b = &bad_files[i];
		struct brig_error err = BRIG_ERROR_INIT;
		int rc = add_text(set, b->text, strlen(b->text), &err);

		if (rc != -BRIG_E_POLICY || !strstr(err.msg, b->line) || !strstr(err.msg, b->why))
			fail_msg("%s-> %d %s (wanted %s %s)", b->text, rc, err.msg, b->line, b->why);
		/* The set is as it was. */
		assert_int_equal(rules_count(set), before);
	}
	rules_free(set);
}

static void long_files_and_lists_are_refused(void **state)
{
	struct rule_set *set = builtin();
	size_t len = 1100 * 1024;
	AUTO_FREE char *text = malloc(len + 1);
	struct brig_error err = BRIG_ERROR_INIT;
	size_t n;

	(void)state;
	assert_non_null(text);
	memset(text, '#', len);
	assert_int_equal(add_text(set, text, len, &err), -BRIG_E_POLICY);
	assert_non_null(strstr(err.msg, "longer than"));
	n = (size_t)sprintf(text, "- id: x\n  names: [");
	for (int i = 0; i < 1025; i++)
		n += (size_t)sprintf(text + n, "a%d,", i);
	n += (size_t)sprintf(text + n, "]\n");
	assert_int_equal(add_text(set, text, n, &err), -BRIG_E_POLICY);
	assert_non_null(strstr(err.msg, ":2: names takes 1024 entries at most"));
	assert_int_equal(rules_add_file(set, "/nonexistent/rules.yaml", &err), -BRIG_E_POLICY);
	assert_int_equal(rules_add_file(set, "/tmp", &err), -BRIG_E_POLICY);
	rules_free(set);
}

/* ---- which rule wins ---- */

/* Exceptions need no examples, so they can be had from a file here. */
static const char precedence[] =
	"- {id: allow, languages: [python], kind: member-allow, names: [zz.good, zz.sub.*]}\n"
	"- {id: evil, languages: [python], kind: check, names: [zz-check], severity: LOW, message: m, remedy: r}\n";

static bool judged(struct rule_set *set, bool (*judge)(struct judge *, const char *, size_t, struct span),
		   const char *name)
{
	struct findings found = { 0 };
	struct judge j = {
		.rules = set, .language = RULE_PYTHON, .level = INSPECTION_STRICT, .text = "", .out = &found
	};
	bool is = judge(&j, name, strlen(name), (struct span){ 0, 0 });

	assert_int_equal(found.n, is);
	findings_release(&found);
	return is;
}

static void exceptions_silence_only_what_is_less_specific(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *set = builtin();

	(void)state;
	if (add_text(set, precedence, strlen(precedence), &err) < 0)
		fail_msg("%s", err.msg);
	assert_non_null(rules_find(set, RULE_PYTHON, RULE_MEMBER_ALLOW, "zz.sub.deep.er", 14));
	assert_non_null(rules_find(set, RULE_PYTHON, RULE_MEMBER_ALLOW, "zz.good", 7));
	assert_null(rules_find(set, RULE_PYTHON, RULE_MEMBER_ALLOW, "zz.sub", 6));
	assert_null(rules_find(set, RULE_PYTHON, RULE_MEMBER_ALLOW, "zz.goods", 8));
	assert_null(rules_find(set, RULE_GO, RULE_MEMBER_ALLOW, "zz.good", 7));
	assert_false(judged(set, judge_member, "zz.good"));
	assert_false(judged(set, judge_builtin, "zz_no_such_builtin"));
	rules_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builtin_examples_hold),
		cmocka_unit_test(a_file_extends_a_rule),
		cmocka_unit_test(single_rules_do_what_is_said),
		cmocka_unit_test(what_a_block_names_permits_it),
		cmocka_unit_test(tightening_a_rule_settles_nothing),
		cmocka_unit_test(every_name_is_found),
		cmocka_unit_test(iteration_sees_each_rule_once),
		cmocka_unit_test(every_check_has_a_rule),
		cmocka_unit_test(a_file_adds_and_replaces),
		cmocka_unit_test(a_bad_file_is_refused_with_its_line),
		cmocka_unit_test(long_files_and_lists_are_refused),
		cmocka_unit_test(exceptions_silence_only_what_is_less_specific),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
