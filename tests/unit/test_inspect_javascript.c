/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JavaScript and TypeScript inspector: what is found however it is written, what only looks alike, places, trust
 * levels, bounds, and the tricks that hide code behind an error-free tree, each shown to run by the engine itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "inspect/inspect.h"
#include "test_inspect_javascript_cases.h"
#include "test_inspect_javascript_harmless.h"
#include "test_inspect_javascript_intent.h"
#include "inspect_helpers.h"

static struct rule_set *rules;

static struct findings inspect(enum inspect_kind kind, enum inspection level, const char *text, size_t len)
{
	struct inspect_request req = { .kind = kind, .level = level, .text = text, .len = len };
	struct findings found = { 0 };

	assert_int_equal(inspect_text(rules, &req, &found, NULL), 0);
	return found;
}

static enum severity worst_of(enum inspect_kind kind, enum inspection level, const char *text)
{
	struct findings f = inspect(kind, level, text, strlen(text));
	enum severity worst = f.worst;

	findings_release(&f);
	return worst;
}

/* ---- tables --------------------------------------------------------------------------------------------- */

static void check_level(enum inspect_kind kind, enum inspection level, const char *const *row, size_t n,
			enum severity least, enum severity most)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		enum severity worst = worst_of(kind, level, row[i]);

		if (worst >= least && worst <= most)
			continue;
		print_error("%s: %s\n", severity_name[worst], row[i]);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static void check_rows(enum inspect_kind kind, const char *const *row, size_t n, enum severity least,
		       enum severity most)
{
	check_level(kind, INSPECTION_GUARD, row, n, least, most);
}

static void strict_finds_what_is_dangerous(void **state UNUSED)
{
	check_level(INSPECT_JAVASCRIPT, INSPECTION_STRICT, blocked, ARRAY_LEN(blocked), SEVERITY_CRITICAL,
		    SEVERITY_CRITICAL);
	check_level(INSPECT_JAVASCRIPT, INSPECTION_STRICT, warned, ARRAY_LEN(warned), SEVERITY_HIGH, SEVERITY_CRITICAL);
}

static void guard_blocks_intent(void **state UNUSED)
{
	check_rows(INSPECT_JAVASCRIPT, intent, ARRAY_LEN(intent), SEVERITY_CRITICAL, SEVERITY_CRITICAL);
	check_rows(INSPECT_TYPESCRIPT, intent_typescript, ARRAY_LEN(intent_typescript), SEVERITY_CRITICAL,
		   SEVERITY_CRITICAL);
	check_rows(INSPECT_JAVASCRIPT, reaching_out, ARRAY_LEN(reaching_out), SEVERITY_HIGH, SEVERITY_HIGH);
}

static void guard_leaves_everyday_programs_alone(void **state UNUSED)
{
	check_rows(INSPECT_JAVASCRIPT, everyday, ARRAY_LEN(everyday), SEVERITY_NONE, SEVERITY_MEDIUM);
	check_rows(INSPECT_TYPESCRIPT, everyday, ARRAY_LEN(everyday), SEVERITY_NONE, SEVERITY_MEDIUM);
}

static void ordinary_code_is_let_through(void **state UNUSED)
{
	check_rows(INSPECT_JAVASCRIPT, allowed, ARRAY_LEN(allowed), SEVERITY_NONE, SEVERITY_MEDIUM);
}

static void typescript_is_seen_through(void **state UNUSED)
{
	check_level(INSPECT_TYPESCRIPT, INSPECTION_STRICT, blocked_typescript, ARRAY_LEN(blocked_typescript),
		    SEVERITY_CRITICAL, SEVERITY_CRITICAL);
	check_rows(INSPECT_TYPESCRIPT, allowed_typescript, ARRAY_LEN(allowed_typescript), SEVERITY_NONE,
		   SEVERITY_MEDIUM);
}

static void jsx_holds_code(void **state UNUSED)
{
	static const char *const bad[] = { "const a = <b x={eval('1')}>{1}</b>;",
					   "const a = <b>{require('child_process')}</b>;",
					   "const a = <b {...globalThis} />;", "const a = <eval.x />; eval('1')" };
	static const char *const good[] = { "const a = <b>eval('1')</b>;", "const a = <b title=\"eval('1')\" />;",
					    "const A = () => <ul>{list.map(x => <li key={x}>{x}</li>)}</ul>;" };

	check_level(INSPECT_TSX, INSPECTION_STRICT, bad, ARRAY_LEN(bad), SEVERITY_CRITICAL, SEVERITY_CRITICAL);
	check_rows(INSPECT_TSX, good, ARRAY_LEN(good), SEVERITY_NONE, SEVERITY_MEDIUM);
	check_level(INSPECT_JAVASCRIPT, INSPECTION_STRICT, bad, ARRAY_LEN(bad), SEVERITY_CRITICAL, SEVERITY_CRITICAL);
	check_rows(INSPECT_JAVASCRIPT, good, ARRAY_LEN(good), SEVERITY_NONE, SEVERITY_MEDIUM);
}

/* ---- findings ------------------------------------------------------------------------------------------- */

static void a_finding_names_what_it_resolved(void **state UNUSED)
{
	static const char code[] = "const a = 'child_';\n  const go = require(a + 'process');\n";
	struct findings f = inspect(INSPECT_JAVASCRIPT, INSPECTION_GUARD, code, sizeof(code) - 1);
	const struct finding *one = by_rule(&f, "js-process");

	if (!one)
		fail_msg("nothing found");
	assert_string_equal(one->name, "child_process");
	assert_int_equal(one->line, 2);
	assert_int_equal(one->column, 14);
	findings_release(&f);
}

static void commands_and_paths_are_judged_as_such(void **state UNUSED)
{
	static const char reads[] = "require('fs').readFileSync('/etc/shadow')";
	struct findings f = inspect(INSPECT_JAVASCRIPT, INSPECTION_REPORT, reads, sizeof(reads) - 1);

	assert_int_equal(f.worst, SEVERITY_HIGH); /* told, and not blocked: nothing blocks at this level */
	findings_release(&f);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_REPORT, "require('fs').readFileSync('data.txt')"),
			 SEVERITY_LOW);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD, "require('child_process').exec('rm -rf /')"),
			 SEVERITY_CRITICAL);
	assert_int_equal(
		worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD, "require('child_process').spawn('rm', ['-rf', '/'])"),
		SEVERITY_CRITICAL);
	assert_int_equal(
		worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD, "eval(\"require('fs').readFileSync('/etc/shadow')\")"),
		SEVERITY_CRITICAL);
}

static void untrusted_code_has_a_list_of_modules(void **state UNUSED)
{
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_STRICT, "require('util').inspect(1)"), SEVERITY_NONE);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_STRICT, "require('left-pad')"), SEVERITY_CRITICAL);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD, "require('left-pad')"), SEVERITY_NONE);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_STRICT, "if ("), SEVERITY_CRITICAL);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD, "if ("), SEVERITY_HIGH);
}

static void broken_code_is_judged_as_far_as_it_goes(void **state UNUSED)
{
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_STRICT, "if (x { eval('1') ]"), SEVERITY_CRITICAL);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD, "if (x { eval('1') ]"), SEVERITY_HIGH);
	assert_int_equal(worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD,
				  "const a = 1; const a = e.constructor.constructor('return 1')();"),
			 SEVERITY_CRITICAL);
}

/* ---- where parser and engine differ --------------------------------------------------------------------- */

struct trick {
	const char *what;
	const char *suffix; /* of the file: what the engine takes it for */
	const char *code;   /* says RAN if the engine runs what is hidden */
};

static const struct trick tricks[] = {
	{ "hashbang ended by CR", ".cjs", "#!/usr/bin/env node\reval(\"console.log('RAN')\")" },
	{ "hashbang ended by U+2028", ".cjs",
	  "#!/usr/bin/env node\xe2\x80\xa8"
	  "eval(\"console.log('RAN')\")" },
	{ "hashbang ended by U+2029", ".cjs",
	  "#!/usr/bin/env node\xe2\x80\xa9"
	  "eval(\"console.log('RAN')\")" },
	{ "hashbang ended by CRLF", ".cjs", "#!/usr/bin/env node\r\neval(\"console.log('RAN')\")" },
	{ "comment ended by CR", ".cjs", "// x\reval(\"console.log('RAN')\")" },
	{ "comment ended by U+2028", ".cjs",
	  "// x\xe2\x80\xa8"
	  "eval(\"console.log('RAN')\")" },
	{ "comment ended by U+2029", ".cjs",
	  "// x\xe2\x80\xa9"
	  "eval(\"console.log('RAN')\")" },
	{ "a variable named await", ".cjs", "var await = 1, g = 1; await /eval(\"console.log('RAN')\")/g" },
	{ "a variable named yield", ".cjs", "var yield = 1, g = 1; yield /eval(\"console.log('RAN')\")/g" },
	{ "a global named await", ".cjs", "globalThis.await = 1; g = 1; await /eval(\"console.log('RAN')\")/g" },
	{ "a global named yield", ".cjs", "globalThis.yield = 1; g = 1; yield /eval(\"console.log('RAN')\")/g" },
	{ "await with ++", ".cjs", "var await = 1, g = 1; await ++/eval(\"console.log('RAN')\")/g" },
	{ "a comment behind await", ".cjs", "var await = 1, g = 1; await /* x */ /eval(\"console.log('RAN')\")/g" },
	{ "a parameter named await", ".cjs", "(function (await, g) { await /eval(\"console.log('RAN')\")/g })(1, 1)" },
	{ "a parameter named yield", ".cjs", "(function (yield, g) { yield /eval(\"console.log('RAN')\")/g })(1, 1)" },
	{ "await from a pattern", ".cjs",
	  "var { x: await, g } = { x: 1, g: 1 }; await /eval(\"console.log('RAN')\")/g" },
	{ "HTML comment opens a block comment", ".cjs", "var a = 1\na <!-- /*\neval(\"console.log('RAN')\")\n/* */ a" },
	{ "HTML comment opens a template", ".cjs", "var a = 1\na <!-- `\neval(\"console.log('RAN')\")\n//`" },
	{ "an arrow that is no HTML comment", ".mjs", "let x = 1; x /* a */ --> eval(\"console.log('RAN')\")" },
	{ "escapes in a name", ".cjs", "\\u{65}v\\u0061l(\"console.log('RAN')\")" },
	{ "a regular expression that is none", ".cjs", "var a = 1, g = 1; a\n/eval(\"console.log('RAN')\")/g" },
	{ "a division behind a bracket", ".cjs", "var g = 1; ({}) /eval(\"console.log('RAN')\")/g" },
	{ "names that are keywords elsewhere", ".cjs", "var of = 1, g = 1; of /eval(\"console.log('RAN')\")/g" },
	{ "let as a name", ".cjs", "var let = 1, g = 1; let /eval(\"console.log('RAN')\")/g" },
	{ "async as a name", ".cjs", "var async = 1, g = 1; async /eval(\"console.log('RAN')\")/g" },
	{ "a backslash before CRLF", ".cjs", "console.log('\\\r\n'); eval(\"console.log('RAN')\")" },
};

static bool has_node(void)
{
	return system("node --version >/dev/null 2>&1") == 0;
}

/* What the engine prints when it runs this. */
static bool engine_runs(const char *folder, const struct trick *t)
{
	char file[128], command[192], line[64] = "";
	bool ran = false;
	FILE *f;

	(void)snprintf(file, sizeof(file), "%s/trick%s", folder, t->suffix);
	f = fopen(file, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(t->code, 1, strlen(t->code), f), strlen(t->code));
	assert_int_equal(fclose(f), 0);
	(void)snprintf(command, sizeof(command), "node %s 2>/dev/null", file);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		ran |= strncmp(line, "RAN", 3) == 0;
	(void)pclose(f);
	(void)unlink(file);
	return ran;
}

static void hidden_code_is_found(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(tricks); i++) {
		enum severity worst = worst_of(INSPECT_JAVASCRIPT, INSPECTION_GUARD, tricks[i].code);

		if (worst != SEVERITY_CRITICAL)
			print_error("%s: %s\n", tricks[i].what, severity_name[worst]);
		assert_int_equal(worst, SEVERITY_CRITICAL);
	}
}

static void hidden_code_does_run(void **state UNUSED)
{
	char folder[] = "/tmp/unit-test-XXXXXX";

	if (!has_node())
		skip();
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_LEN(tricks); i++) {
		bool ran = engine_runs(folder, &tricks[i]);

		if (!ran)
			print_error("%s: the engine does not run it\n", tricks[i].what);
		assert_true(ran);
	}
	assert_int_equal(rmdir(folder), 0);
}

/* ---- bounds --------------------------------------------------------------------------------------------- */

/* Texts that grow, nest or repeat without end; each in the largest size that is inspected at all. */
static const char *const hostile[] = {
	"[",
	"a[",
	"{let a;",
	"x=>",
	"f(",
	"`${",
	"function f(){",
	"class A{x=",
	"x=x+x;",
	"a=[a,a];",
	"s=s.concat(s);",
	"o={...o,...o};",
	"f=f.bind(null,'a');",
	"require(",
	"eval('eval(1)');",
	"let {a:{b}}=c;",
	"a.constructor.",
};

static void hostile_texts_end(void **state UNUSED)
{
	enum { SIZE = 256 * 1024 };
	AUTO_FREE char *text = malloc(SIZE);

	assert_non_null(text);
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		size_t len = strlen(hostile[i]), n = 0;
		struct findings f;

		for (; n + len <= SIZE; n += len)
			memcpy(text + n, hostile[i], len);
		f = inspect(INSPECT_JAVASCRIPT, INSPECTION_GUARD, text, n);
		findings_release(&f);
	}
}

static int set_up(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;

	return rules_builtin(&rules, &err);
}

static int tear_down(void **state UNUSED)
{
	rules_free(rules);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict_finds_what_is_dangerous),
		cmocka_unit_test(guard_blocks_intent),
		cmocka_unit_test(guard_leaves_everyday_programs_alone),
		cmocka_unit_test(ordinary_code_is_let_through),
		cmocka_unit_test(typescript_is_seen_through),
		cmocka_unit_test(jsx_holds_code),
		cmocka_unit_test(a_finding_names_what_it_resolved),
		cmocka_unit_test(commands_and_paths_are_judged_as_such),
		cmocka_unit_test(untrusted_code_has_a_list_of_modules),
		cmocka_unit_test(broken_code_is_judged_as_far_as_it_goes),
		cmocka_unit_test(hidden_code_is_found),
		cmocka_unit_test(hidden_code_does_run),
		cmocka_unit_test(hostile_texts_end),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
