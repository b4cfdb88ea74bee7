/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes pass.  For each way to hide code from the parser there are three steps: the engine, where it is installed,
 * runs the code; the parser does not see it in the text as it came; after the pass it does (or the text is refused).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/str.h"
#include "inspect/parse.h"

/* ---- tools ---- */

struct bench {
	struct judge judge;
	struct findings found;
	struct rule_set *rules;
};

static void setup(struct bench *b, enum rule_language lang, enum inspection level)
{
	*b = (struct bench){ .judge = { .language = lang, .level = level, .steps_left = 1000000 } };
	assert_int_equal(rules_builtin(&b->rules, NULL), 0);
	b->judge.rules = b->rules;
	b->judge.out = &b->found;
	b->judge.deadline_ns = clock_now_ns() + 60 * NS_PER_SEC;
}

static void teardown(struct bench *b)
{
	findings_release(&b->found);
	rules_free(b->rules);
}

static char *clean(struct bench *b, const char *text, size_t len)
{
	b->judge.text = text;
	b->judge.len = len;
	return inspect_bytes(&b->judge, text, len);
}

static enum severity severity_of(const struct findings *f, const char *rule)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->row[i].rule, rule))
			return f->row[i].severity;
	return SEVERITY_NONE;
}

/* Whether the tree has a node of this type anywhere. */
static bool tree_has(struct bench *b, const TSLanguage *language, const char *text, size_t len, const char *type)
{
	TSTree *tree = inspect_parse(&b->judge, language, text, len);
	AUTO_FREE char *shown = NULL;
	bool has;

	assert_non_null(tree);
	shown = ts_node_string(ts_tree_root_node(tree));
	has = strstr(shown, type) != NULL;
	ts_tree_delete(tree);
	return has;
}

/* The first line that the engine prints for this program, "" if it is not installed. */
static void run_engine(const char *engine, const char *text, size_t len, char *line, size_t size)
{
	char path[] = "/tmp/unit-test-bytes-XXXXXX.js";
	char command[128];
	int fd = mkstemps(path, 3);
	FILE *out;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	(void)close(fd);
	(void)snprintf(command, sizeof(command), "%s %s 2>/dev/null", engine, path);
	out = popen(command, "re");
	assert_non_null(out);
	line[0] = '\0';
	if (fgets(line, (int)size, out))
		line[strcspn(line, "\r\n")] = '\0';
	(void)pclose(out);
	(void)unlink(path);
}

static void engine_runs_it(const char *engine, const char *text, size_t len)
{
	char probe[32], line[64];

	(void)snprintf(probe, sizeof(probe), "command -v %s >/dev/null", engine);
	if (system(probe) != 0) {
		print_message("%s is not installed: not shown that it runs the code\n", engine);
		return;
	}
	run_engine(engine, text, len, line, sizeof(line));
	assert_string_equal(line, "RAN");
}

/* ---- code that hides ---- */

static void a_lone_cr_ends_a_python_comment(void **state)
{
	static const char text[] = "# harmless\rprint('RAN')\n";
	struct bench b;
	AUTO_FREE char *cleaned = NULL;

	(void)state;
	engine_runs_it("python3", text, strlen(text));
	setup(&b, RULE_PYTHON, INSPECTION_GUARD);
	assert_false(tree_has(&b, tree_sitter_python(), text, strlen(text), "call"));
	cleaned = clean(&b, text, strlen(text));
	assert_true(tree_has(&b, tree_sitter_python(), cleaned, strlen(text), "call"));
	assert_int_equal(strlen(cleaned), strlen(text));
	teardown(&b);
}

/* In UTF-7 "+AAo-" is a line end, and the comment is over. */
static void a_coding_cookie_changes_what_python_reads(void **state)
{
	static const char text[] = "# coding: utf-7\n# harmless +AAo-print('RAN')\n";
	struct bench b;
	AUTO_FREE char *cleaned = NULL;

	(void)state;
	engine_runs_it("python3", text, strlen(text));
	setup(&b, RULE_PYTHON, INSPECTION_GUARD);
	assert_false(tree_has(&b, tree_sitter_python(), text, strlen(text), "call"));
	cleaned = clean(&b, text, strlen(text));
	assert_int_equal(severity_of(&b.found, "coding-cookie"), SEVERITY_CRITICAL);
	teardown(&b);
}

static void a_hashbang_ends_where_javascript_lines_end(void **state)
{
	static const char *const texts[] = { "#!/usr/bin/node\rconsole.log('RAN')\n",
					     "#!/usr/bin/node\xe2\x80\xa8"
					     "console.log('RAN')\n",
					     "#!/usr/bin/node\xe2\x80\xa9"
					     "console.log('RAN')\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_FREE char *cleaned = NULL;
		struct bench b;

		engine_runs_it("node", texts[i], strlen(texts[i]));
		setup(&b, RULE_JAVASCRIPT, INSPECTION_GUARD);
		assert_false(tree_has(&b, tree_sitter_javascript(), texts[i], strlen(texts[i]), "call_expression"));
		cleaned = clean(&b, texts[i], strlen(texts[i]));
		assert_true(tree_has(&b, tree_sitter_javascript(), cleaned, strlen(texts[i]), "call_expression"));
		assert_false(tree_has(&b, tree_sitter_javascript(), cleaned, strlen(texts[i]), "ERROR"));
		assert_int_equal(strlen(cleaned), strlen(texts[i]));
		teardown(&b);
	}
}

static void a_lone_cr_ends_a_javascript_comment(void **state)
{
	static const char text[] = "// harmless\rconsole.log('RAN')\n";
	AUTO_FREE char *cleaned = NULL;
	struct bench b;

	(void)state;
	engine_runs_it("node", text, strlen(text));
	setup(&b, RULE_JAVASCRIPT, INSPECTION_GUARD);
	cleaned = clean(&b, text, strlen(text));
	assert_true(tree_has(&b, tree_sitter_javascript(), cleaned, strlen(text), "call_expression"));
	teardown(&b);
}

/* ---- line ends that stay what they are ---- */

struct line_end {
	enum rule_language lang;
	const char *from, *to;
};
static const struct line_end line_ends[] = {
	{ RULE_PYTHON, "a\r\nb\rc\n", "a \nb\nc\n" },
	{ RULE_PYTHON, "x = 1 + \\\r\n  2\r\n", "x = 1 +  \\\n  2 \n" }, /* a continuation stays one */
	{ RULE_PYTHON, "'''\\\\\r\n'''", "'''\\\\ \n'''" },              /* an escaped backslash is none */
	{ RULE_PYTHON, "'\\\\\\\r\n'", "' \\\\\\\n'" },
	{ RULE_PYTHON, "\\\r\n", " \\\n" },
	{ RULE_PYTHON, "\r\n", " \n" },
	{ RULE_PYTHON, "\r", "\n" },
	{ RULE_JAVASCRIPT, "a\r\r\nb", "a\n \nb" },
	{ RULE_JAVASCRIPT, "#!x\n#!y", "   \n#!y" },
	{ RULE_JAVASCRIPT,
	  "\xef\xbb\xbf"
	  "1",
	  "   1" },
	{ RULE_TYPESCRIPT, "\xef\xbb\xbf#!x\r1", "      \n1" },
	{ RULE_GO, "// a\rb\r\n", "// a b \n" },      /* no line end in Go */
	{ RULE_SHELL, "a \\\r\nb\r", "a \\\r\nb\r" }, /* a character like any other in the shell */
	{ RULE_PATH, "a\rb", "a\rb" },
};

static void line_ends_are_those_of_the_engine(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(line_ends); i++) {
		AUTO_FREE char *cleaned = NULL;
		struct bench b;

		setup(&b, line_ends[i].lang, INSPECTION_GUARD);
		cleaned = clean(&b, line_ends[i].from, strlen(line_ends[i].from));
		assert_string_equal(cleaned, line_ends[i].to);
		assert_int_equal(b.found.n, 0);
		teardown(&b);
	}
}

static void a_bom_does_not_indent_python(void **state)
{
	static const char text[] = "\xef\xbb\xbfimport os\nx = 1\n";
	AUTO_FREE char *cleaned = NULL;
	struct bench b;

	(void)state;
	setup(&b, RULE_PYTHON, INSPECTION_GUARD);
	cleaned = clean(&b, text, strlen(text));
	assert_true(tree_has(&b, tree_sitter_python(), cleaned, strlen(text), "import_statement"));
	assert_false(tree_has(&b, tree_sitter_python(), cleaned, strlen(text), "ERROR"));
	assert_int_equal(b.found.n, 0);
	teardown(&b);
}

/* ---- what is judged ---- */

struct judged {
	enum rule_language lang;
	const char *text;
	size_t len;             /* 0: strlen */
	const char *rule;       /* NULL: nothing */
	enum severity severity; /* at the level guard */
	bool refused;
};
static const struct judged judged[] = {
	{ RULE_PYTHON, "a\0b", 3, "nul-byte", SEVERITY_CRITICAL, true },
	{ RULE_PATH, "a.txt\0/../etc", 13, "nul-byte", SEVERITY_CRITICAL, true },
	{ RULE_PYTHON, "s = '\xff'", 0, "bad-utf8", SEVERITY_CRITICAL, false },
	{ RULE_GO, "// \xc0\xaf", 0, "bad-utf8", SEVERITY_CRITICAL, false },
	{ RULE_JAVASCRIPT, "/* \xe2\x80\xae */", 0, "bidi-control", SEVERITY_HIGH, false },
	{ RULE_SHELL, "echo \xe2\x81\xa6", 0, "bidi-control", SEVERITY_HIGH, false },
	{ RULE_JAVASCRIPT, "const {a,\xe3\x85\xa4} = b", 0, "hidden-character", SEVERITY_MEDIUM, false },
	{ RULE_SHELL, "echo \x1b[2J", 0, "hidden-character", SEVERITY_MEDIUM, false },
	{ RULE_PYTHON, "# -*- coding: UTF-8 -*-\n", 0, NULL, 0, false },
	{ RULE_PYTHON, "# vim: fileencoding=latin_1\n", 0, NULL, 0, false },
	{ RULE_PYTHON, "#!/bin/x\n\t# coding=rot13", 0, "coding-cookie", SEVERITY_CRITICAL, false },
	{ RULE_PYTHON, "\xef\xbb\xbf# coding: cp037\n", 0, "coding-cookie", SEVERITY_CRITICAL, false },
	/* Whoever counts CR as line end and whoever does not. */
	{ RULE_PYTHON, "\r\r\r# coding: utf-7\n", 0, "coding-cookie", SEVERITY_CRITICAL, false },
	{ RULE_PYTHON, "# x\rf()\n", 0, "lone-return", SEVERITY_CRITICAL, false },
	{ RULE_PYTHON, "x = 1 # y\r\n", 0, NULL, 0, false },
	{ RULE_PYTHON, "x = 1\r# coding: utf-7\n", 0, "coding-cookie", SEVERITY_CRITICAL, false },
	{ RULE_PYTHON, "x\ny\n# coding: utf-7\n", 0, NULL, 0, false },
	{ RULE_PYTHON, "s = 'coding: utf-7'\n", 0, NULL, 0, false },
	{ RULE_JAVASCRIPT, "// coding: utf-7\n", 0, NULL, 0, false },
	/* Emoji and other scripts are text. */
	{ RULE_PYTHON, "s = '\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d'\t\f\n", 0,
	  NULL, 0, false },
};

static void bytes_are_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(judged); i++) {
		const struct judged *row = &judged[i];
		size_t len = row->len ? row->len : strlen(row->text);
		AUTO_FREE char *cleaned = NULL;
		struct bench b;

		setup(&b, row->lang, INSPECTION_GUARD);
		cleaned = clean(&b, row->text, len);
		if ((cleaned == NULL) != row->refused || b.found.n != (row->rule != NULL) ||
		    (row->rule && severity_of(&b.found, row->rule) != row->severity))
			fail_msg("row %zu (%s): %zu findings, the first is %s", i, row->text, b.found.n,
				 b.found.n ? b.found.row[0].rule : "none");
		teardown(&b);
	}
}

static void what_is_too_large_is_said_not_to_be_inspected(void **state)
{
	static const enum severity want[] = { [INSPECTION_REPORT] = SEVERITY_LOW,
					      [INSPECTION_GUARD] = SEVERITY_HIGH,
					      [INSPECTION_STRICT] = SEVERITY_CRITICAL };
	size_t len = 2 * 1024 * 1024 + 1;
	AUTO_FREE char *text = malloc(len);
	struct bench b;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', len);
	for (unsigned t = INSPECTION_REPORT; t < INSPECTION_COUNT; t++) {
		AUTO_FREE char *refused = NULL, *cleaned = NULL;

		setup(&b, RULE_GO, t);
		refused = clean(&b, text, len);
		assert_null(refused);
		assert_int_equal(severity_of(&b.found, "too-large"), want[t]);
		teardown(&b);
		setup(&b, RULE_GO, t);
		cleaned = clean(&b, text, len - 1);
		assert_non_null(cleaned);
		assert_int_equal(b.found.n, 0);
		teardown(&b);
	}
}

static void places_count_lines_and_characters(void **state)
{
	/* two line ends of three kinds before it, two characters of two bytes before it */
	static const char text[] = "a\r\nb\rc\n\xc3\xa4\xc3\xb6\xe2\x80\xae";
	struct inspect_request req = {
		.kind = INSPECT_SHELL, .level = INSPECTION_STRICT, .text = text, .len = strlen(text)
	};
	struct findings found = { 0 };
	struct rule_set *rules;

	(void)state;
	assert_int_equal(rules_builtin(&rules, NULL), 0);
	assert_int_equal(inspect_text(rules, &req, &found, NULL), 0);
	for (size_t i = 0; i < found.n; i++) {
		const struct finding *f = &found.row[i];

		if (!str_eq(f->rule, "bidi-control"))
			continue;
		assert_int_equal(f->line, 4);
		assert_int_equal(f->column, 3);
		assert_int_equal(f->end_line, 4);
		assert_int_equal(f->end_column, 4);
		assert_int_equal(f->span.start, strlen(text) - 3);
	}
	assert_int_equal(severity_of(&found, "bidi-control"), SEVERITY_CRITICAL);
	findings_release(&found);
	rules_free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_cr_ends_a_python_comment),
		cmocka_unit_test(a_coding_cookie_changes_what_python_reads),
		cmocka_unit_test(a_hashbang_ends_where_javascript_lines_end),
		cmocka_unit_test(a_lone_cr_ends_a_javascript_comment),
		cmocka_unit_test(line_ends_are_those_of_the_engine),
		cmocka_unit_test(a_bom_does_not_indent_python),
		cmocka_unit_test(bytes_are_judged),
		cmocka_unit_test(what_is_too_large_is_said_not_to_be_inspected),
		cmocka_unit_test(places_count_lines_and_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
