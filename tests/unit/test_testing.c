/* SPDX-License-Identifier: Apache-2.0 */
/* A project's tests: which framework is chosen, and what is believed of a report. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/str.h"
#include "sys/crypto.h"
#include "testing/internal.h"

/* ---- a project ------------------------------------------------------------------------------------ */

struct project {
	char path[64];
	int fd;
};

static int make_project(void **state)
{
	static struct project p;

	(void)str_copy(p.path, sizeof(p.path), "/tmp/unit-testing-XXXXXX");
	if (!mkdtemp(p.path))
		return -1;
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &p;
	return p.fd < 0;
}

static int drop_project(void **state)
{
	struct project *p = *state;
	char command[128];

	(void)close(p->fd);
	(void)snprintf(command, sizeof(command), "rm -r -- %s", p->path);
	return system(command);
}

static void put(const struct project *p, const char *name, const char *text)
{
	char copy[256];
	int fd;

	(void)str_copy(copy, sizeof(copy), name);
	for (char *slash = copy; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdirat(p->fd, copy, 0755);
		*slash = '/';
	}
	fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static void expect(const struct project *p, const char *wanted, const char *path, const char *framework)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct test_run t;

	if (testing_find(p->fd, wanted, path, &t, &err) < 0)
		fail_msg("%s instead of %s", err.msg, framework);
	assert_string_equal(t.framework, framework);
	test_run_release(&t);
}

static void expect_refusal(const struct project *p, const char *wanted, const char *path, const char *words)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct test_run t;

	assert_true(testing_find(p->fd, wanted, path, &t, &err) < 0);
	if (!strstr(err.msg, words))
		fail_msg("'%s' is not in '%s'", words, err.msg);
	test_run_release(&t);
}

static void files_decide(void **state)
{
	const struct project *p = *state;

	expect_refusal(p, NULL, NULL, "test_*.py");
	put(p, "node_modules/x/x.test.js", "");
	put(p, ".venv/test_x.py", "");
	expect_refusal(p, NULL, NULL, "no tests were found");
	put(p, "tests/test_a.py", "");
	expect(p, NULL, NULL, "pytest");
	expect(p, "unittest", NULL, "unittest");
	expect(p, "python", NULL, "pytest");
	put(p, "lib/a.test.mjs", "");
	expect_refusal(p, NULL, NULL, "several frameworks: pytest, node");
	expect(p, NULL, "lib", "node");
	expect(p, NULL, "tests/test_a.py", "pytest");
	expect(p, "node", NULL, "node");
	expect_refusal(p, "rspec", NULL, "not known; known: pytest, unittest, node");
	put(p, "a_test.go", "");
	expect_refusal(p, "go", NULL, "go.mod");
	put(p, "go.mod", "module x\n");
	expect(p, "go", NULL, "go");
}

static void paths_stay_below(void **state)
{
	const struct project *p = *state;

	put(p, "tests/test_a.py", "");
	expect(p, NULL, "tests/test_a.py::test_one", "pytest");
	expect_refusal(p, NULL, "../x", "no path below");
	expect_refusal(p, NULL, "tests/../../x", "no path below");
	expect_refusal(p, NULL, "/etc", "outside the workspace");
	expect_refusal(p, NULL, "/not/there", "no tests at");
	expect(p, NULL, "./tests/", "pytest");
	expect(p, NULL, ".", "pytest");
	expect(p, NULL, ".//tests/./test_a.py::test_one", "pytest");
	expect_refusal(p, NULL, "-x", "no path");
	expect_refusal(p, NULL, "tests/none.py", "no tests at");
	assert_int_equal(symlinkat("/etc", p->fd, "out"), 0);
	expect_refusal(p, NULL, "out", "neither");
	expect_refusal(p, NULL, "out/passwd", "no tests at");
}

static void package_json_decides_among_its_own(void **state)
{
	const struct project *p = *state;

	put(p, "package.json", "{\"scripts\":{\"test\":\"vitest run\"}}");
	expect(p, NULL, NULL, "vitest");
	put(p, "package.json", "{\"devDependencies\":{\"jest\":\"30\"}}");
	expect(p, NULL, NULL, "jest");
	expect(p, "javascript", NULL, "jest");
	put(p, "package.json", "{\"scripts\":{\"test\":\"jest\"},\"devDependencies\":{\"vitest\":\"4\"}}");
	expect(p, NULL, NULL, "jest");
	put(p, "package.json", "{\"scripts\":{\"test\":\"./suggest-jest-like\"}}");
	expect_refusal(p, NULL, NULL, "no tests were found");
	put(p, "package.json", "{\"scripts\":{\"test\":\"mocha\"}}");
	expect_refusal(p, NULL, NULL, "mocha");
	put(p, "test/a.js", "");
	expect_refusal(p, NULL, NULL, "mocha");
	put(p, "package.json", "{\"scripts\":{\"test\":\"node --test\"},\"devDependencies\":{\"jest\":\"30\"}}");
	expect(p, NULL, NULL, "node");
	put(p, "package.json", "{\"scripts\":[]}");
	expect(p, NULL, NULL, "node");
	put(p, "package.json", "{");
	expect_refusal(p, NULL, NULL, "no JSON");
}

static void runner_has_the_key_and_a_name_of_its_own(void **state)
{
	const struct project *p = *state;
	struct test_run a, b;

	put(p, "test_a.py", "");
	assert_int_equal(testing_find(p->fd, NULL, "test_a.py", &a, NULL), 0);
	assert_int_equal(testing_find(p->fd, "pytest", NULL, &b, NULL), 0);
	assert_string_not_equal(a.key, b.key);
	assert_string_not_equal(a.name[0], b.name[0]);
	assert_int_equal(strlen(a.key), SHA256_HEX);
	assert_non_null(strstr(a.text, a.key));
	assert_int_equal(a.file.len, strlen(a.text));
	assert_string_equal(a.argv[4], "any");
	assert_string_equal(b.argv[4], "pytest");
	assert_string_equal(a.argv[6], "test_a.py");
	assert_null(a.argv[7]);
	assert_int_equal(a.n_ours, 3);
	test_run_release(&a);
	test_run_release(&b);
}

static void go_is_started_with_packages(void **state)
{
	static const struct {
		const char *path, *words;
	} rows[] = { { NULL, "./..." }, { "sub", "./sub/..." }, { "sub/b_test.go", "./sub" }, { "a_test.go", "./" } };
	const struct project *p = *state;
	struct test_run t;

	put(p, "go.mod", "module x\n");
	put(p, "a_test.go", "");
	put(p, "sub/b_test.go", "");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(testing_find(p->fd, NULL, rows[i].path, &t, NULL), 0);
		assert_string_equal(t.argv[2], rows[i].words);
		assert_true(t.on_stdout);
		assert_int_equal(t.n_ours, 0);
		test_run_release(&t);
	}
}

/* ---- sealed reports -------------------------------------------------------------------------------- */

static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static struct test_run python_run(void)
{
	struct test_run t = { .framework = "pytest", .language = "python" };

	(void)str_copy(t.key, sizeof(t.key), key);
	return t;
}

static void add_line(struct buf *b, const char *with_key, const char *line)
{
	uint8_t bytes[SHA256_LEN], made[SHA256_LEN];
	char hex[SHA256_HEX + 1];
	struct hmac256 m;

	assert_true(hex_get(with_key, bytes, sizeof(bytes)));
	hmac256_key(&m, bytes);
	hmac256(&m, line, strlen(line), made);
	buf_addf(b, "%s %s\n", line, hex_put(hex, made, sizeof(made)));
}

struct outcome {
	struct test_report r;
	char why[TEST_WHY_MAX];
	enum test_outcome judged;
};

static void judge(const struct test_run *t, const struct buf *b, int exit_code, struct outcome *o)
{
	testing_read(t, buf_str(b), b->len, &o->r, o->why);
	o->judged = testing_judge(t, &o->r, exit_code, o->why);
}

static void expect_incomplete(const struct test_run *t, const struct buf *b, int exit_code, const char *words)
{
	struct outcome o;

	judge(t, b, exit_code, &o);
	assert_int_equal(o.judged, TESTS_INCOMPLETE);
	assert_false(o.r.complete);
	if (!strstr(o.why, words))
		fail_msg("'%s' is not in '%s'", words, o.why);
	test_report_release(&o.r);
}

/* One of each: four tests, one failed. */
static void add_good(struct buf *b)
{
	add_line(b, key, "0 begin pytest 7.2.1");
	add_line(b, key, "1 passed tests/test_a.py::test_one");
	add_line(b, key, "2 failed a%20b::c test_a.py 12 no%0away%25%00%ff%");
	add_line(b, key, "3 skipped x");
	add_line(b, key, "4 passed -");
}

static void a_whole_report_is_believed(void **state UNUSED)
{
	const struct test_run t = python_run();
	AUTO_BUF b = BUF_INIT(65536);
	struct outcome o;

	add_good(&b);
	add_line(&b, key, "5 end 2 1 1");
	judge(&t, &b, 1, &o);
	assert_int_equal(o.judged, TESTS_FAILED);
	assert_string_equal(o.why, "1 of 4 tests failed");
	assert_true(o.r.known && o.r.complete);
	assert_string_equal(o.r.framework, "pytest");
	assert_int_equal(o.r.passed, 2);
	assert_int_equal(o.r.failed, 1);
	assert_int_equal(o.r.skipped, 1);
	assert_int_equal(o.r.n, 1);
	assert_string_equal(o.r.row[0].name, "a b::c");
	assert_string_equal(o.r.row[0].file, "test_a.py");
	assert_int_equal(o.r.row[0].line, 12);
	assert_string_equal(o.r.row[0].message, "no\nway%\xff%");
	test_report_release(&o.r);
}

static void good_ends(void **state UNUSED)
{
	const struct test_run t = python_run();
	AUTO_BUF ok = BUF_INIT(65536), none = BUF_INIT(65536);
	struct outcome o;

	add_line(&ok, key, "0 begin unittest 3.11");
	add_line(&ok, key, "1 passed x");
	add_line(&ok, key, "2 end 1 0 0");
	judge(&t, &ok, 0, &o);
	assert_int_equal(o.judged, TESTS_OK);
	assert_string_equal(o.r.framework, "unittest"); /* what really ran */
	test_report_release(&o.r);
	add_line(&none, key, "0 begin pytest 7");
	add_line(&none, key, "1 end 0 0 0");
	judge(&t, &none, 0, &o);
	assert_int_equal(o.judged, TESTS_NONE);
	assert_non_null(strstr(o.why, "no tests were run"));
	test_report_release(&o.r);
}

static void forged_reports_are_found_out(void **state UNUSED)
{
	static const char other[] = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
	const struct test_run t = python_run();
	AUTO_BUF b = BUF_INIT(65536);

	expect_incomplete(&t, &b, 0, "there is none");
	add_good(&b);
	expect_incomplete(&t, &b, 0,
			  "it has no end: the process was ended before its tests were done, after 4 of them");
	add_line(&b, other, "5 end 2 1 1");
	expect_incomplete(&t, &b, 1, "line 6 is not the runner's");
	buf_release(&b);
	b.max = 65536;
	add_line(&b, other, "0 begin pytest 7");
	add_line(&b, other, "1 end 0 0 0");
	expect_incomplete(&t, &b, 0, "line 1 is not the runner's");
	buf_release(&b);
	b.max = 65536;
	buf_adds(&b, "4 passed, 0 failed\n");
	expect_incomplete(&t, &b, 0, "line 1 is not the runner's");
}

static void reports_out_of_order_are_found_out(void **state UNUSED)
{
	static const struct {
		const char *line[4], *why;
	} rows[] = {
		{ { "0 begin pytest 7", "1 passed x", "1 passed x", "2 end 2 0 0" }, "line 3 is not where it belongs" },
		{ { "0 begin pytest 7", "2 end 0 0 0" }, "line 2 is not where it belongs" },
		{ { "0 passed x", "1 end 1 0 0" }, "line 1 is not where it belongs" },
		{ { "0 begin pytest 7", "1 begin pytest 7" }, "line 2 is not where it belongs" },
		{ { "0 begin pytest 7", "1 end 0 0 0", "2 passed x" }, "something follows its end" },
		{ { "0 begin pytest 7", "1 passed x", "2 end 2 0 0" }, "counts other tests" },
		{ { "0 begin pytest 7", "1 end 0 0" }, "its end makes no sense" },
		{ { "0 begin pytest 7", "1 frobnicated" }, "line 2 makes no sense" },
		{ { "0 begin pytest 7", "1 failed x y" }, "line 2 makes no sense" },
		{ { "0 begin go 1.19" }, "a framework that was not started" },
		{ { "0 begin pytest 7", "1 stopped because%20of%20me", "2 end 0 0 0" }, "because of me" },
	};
	const struct test_run t = python_run();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF b = BUF_INIT(65536);

		for (size_t k = 0; k < ARRAY_LEN(rows[i].line) && rows[i].line[k]; k++)
			add_line(&b, key, rows[i].line[k]);
		expect_incomplete(&t, &b, 0, rows[i].why);
	}
}

static void the_exit_status_must_agree(void **state UNUSED)
{
	const struct test_run t = python_run();
	AUTO_BUF bad = BUF_INIT(65536), good = BUF_INIT(65536);

	add_good(&bad);
	add_line(&bad, key, "5 end 2 1 1");
	expect_incomplete(&t, &bad, 0, "counts 1 failed tests, but pytest ended with exit code 0");
	expect_incomplete(&t, &bad, 3, "exit code 3");
	expect_incomplete(&t, &bad, -1, "exit code -1");
	add_line(&good, key, "0 begin pytest 7");
	add_line(&good, key, "1 end 0 0 0");
	expect_incomplete(&t, &good, 1, "counts 0 failed tests");
}

static void reports_are_cut_and_capped(void **state UNUSED)
{
	const struct test_run t = python_run();
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct outcome o;
	char *large = calloc(1, TEST_REPORT_MAX + 2), line[64];

	add_good(&b);
	add_line(&b, key, "5 end 2 1 1");
	b.len--; /* the newline */
	expect_incomplete(&t, &b, 1, "last line is cut");
	buf_adds(&b, "\n5 passed x"); /* something behind the end that is no line */
	expect_incomplete(&t, &b, 1, "last line is cut");
	assert_non_null(large);
	testing_read(&t, large, TEST_REPORT_MAX + 1, &o.r, o.why);
	assert_false(o.r.complete);
	assert_non_null(strstr(o.why, "larger than 32 MB"));
	test_report_release(&o.r);
	free(large);
	/* More failures than are listed are counted. */
	buf_release(&b);
	b.max = 1 << 20;
	add_line(&b, key, "0 begin pytest 7");
	for (unsigned i = 1; i <= 300; i++) {
		(void)snprintf(line, sizeof(line), "%u failed x - 0 m", i);
		add_line(&b, key, line);
	}
	add_line(&b, key, "301 end 0 300 0");
	judge(&t, &b, 1, &o);
	assert_int_equal(o.judged, TESTS_FAILED);
	assert_int_equal(o.r.failed, 300);
	assert_int_equal(o.r.n, TEST_FAILURES_MAX);
	assert_int_equal(o.r.dropped, 300 - TEST_FAILURES_MAX);
	assert_null(o.r.row[0].file);
	test_report_release(&o.r);
}

/* ---- Go --------------------------------------------------------------------------------------------- */

#define EVENT(action, test) \
	"{\"Time\":\"x\",\"Action\":\"" action "\",\"Package\":\"x/y\",\"Test\":\"" test "\",\"Elapsed\":0.1}\n"
#define SAYS(test, text) \
	"{\"Action\":\"output\",\"Package\":\"x/y\",\"Test\":\"" test "\",\"Output\":\"" text "\\n\"}\n"
#define PACKAGE_SAYS(text) "{\"Action\":\"output\",\"Package\":\"x/y\",\"Output\":\"" text "\\n\"}\n"
#define PACKAGE(action)    "{\"Action\":\"" action "\",\"Package\":\"x/y\",\"Elapsed\":0}\n"

static enum test_outcome judge_go(const char *text, int exit_code, struct outcome *o)
{
	const struct test_run t = { .framework = "go", .language = "go", .on_stdout = true };

	testing_read(&t, text, strlen(text), &o->r, o->why);
	return testing_judge(&t, &o->r, exit_code, o->why);
}

static void go_is_understood(void **state UNUSED)
{
	static const char text[] = EVENT("run", "TestA") SAYS("TestA", "=== RUN   TestA") EVENT("pass", "TestA")
		EVENT("run", "TestB") SAYS("TestB", "    b_test.go:41: caf\\u00e9 \\u003c \\\"x\\\"")
			SAYS("TestB", "--- FAIL: TestB") EVENT("fail", "TestB") EVENT("run", "TestC")
				EVENT("skip", "TestC") PACKAGE_SAYS("FAIL") PACKAGE("fail");
	struct outcome o;

	assert_int_equal(judge_go(text, 1, &o), TESTS_FAILED);
	assert_int_equal(o.r.passed, 1);
	assert_int_equal(o.r.skipped, 1);
	assert_int_equal(o.r.failed, 1);
	assert_string_equal(o.r.row[0].name, "x/y.TestB");
	assert_string_equal(o.r.row[0].file, "b_test.go");
	assert_int_equal(o.r.row[0].line, 41);
	assert_string_equal(o.r.row[0].message, "    b_test.go:41: café < \"x\"\n");
	test_report_release(&o.r);
	assert_int_equal(judge_go(text, 0, &o), TESTS_INCOMPLETE);
	test_report_release(&o.r);
}

static void go_packages_that_fail_as_a_whole(void **state UNUSED)
{
	struct outcome o;

	assert_int_equal(judge_go("FAIL\tx/y [build failed]\nFAIL\n", 1, &o), TESTS_FAILED);
	assert_string_equal(o.r.row[0].name, "x/y");
	assert_string_equal(o.r.row[0].message, "build failed");
	test_report_release(&o.r);
	assert_int_equal(judge_go(PACKAGE_SAYS("exit status 7") PACKAGE("fail"), 1, &o), TESTS_FAILED);
	assert_string_equal(o.r.row[0].name, "x/y");
	test_report_release(&o.r);
}

/* ---- Go's report against the sources ------------------------------------------------------------------- */

static const char go_text[] = "package y // func TestComment() {}\n"
			      "import \"testing\"\n"
			      "/* func TestBlock(t *testing.T) {} */\n"
			      "var x, c = `\nfunc TestRaw(t *testing.T) {`, '\"'\n"
			      "var s = \"func TestString() { \\\" {\"\n"
			      "func (s suite) TestMethod(t *testing.T) {}\n"
			      "func helper() { f := func(t *testing.T) {}; f(nil) }\n"
			      "func TestA(t *testing.T) { t.Run(\"sub\", func(t *testing.T) {}) }\n"
			      "func\n\tTestB (t *testing.T) {}\n"
			      "func Testify() {}\n"
			      "func TestMain(m *testing.M) {}\n"
			      "func ExampleX() {}\nfunc FuzzY(f *testing.F) {}\nfunc BenchmarkZ(b *testing.B) {}\n";

static void declare(struct test_run *t, const char *path, const char *text)
{
	*t = (struct test_run){ .framework = "go", .language = "go", .on_stdout = true };
	(void)str_copy(t->declared.module, sizeof(t->declared.module), "x");
	assert_true(go_source_read(&t->declared, path, text, strlen(text)));
	go_source_sort(&t->declared);
}

static void go_report_sources_are_scanned(void **state UNUSED)
{
	static const char *const declared[] = { "TestA", "TestB", "ExampleX", "FuzzY", "TestMain" };
	static const char *const not_declared[] = { "TestComment", "TestBlock", "TestRaw",    "TestString",
						    "TestMethod",  "helper",    "BenchmarkZ", "Testify" };
	struct test_run t;

	declare(&t, "y/a_test.go", go_text);
	for (size_t i = 0; i < ARRAY_LEN(declared); i++) {
		const struct go_test *one = go_source_find(&t.declared, "y", declared[i]);

		if (!one || one->sure != (i < 2))
			fail_msg("%s", declared[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(not_declared); i++)
		if (go_source_find(&t.declared, "y", not_declared[i]))
			fail_msg("%s", not_declared[i]);
	test_run_release(&t);
}

#define RAN(test) EVENT("run", test) EVENT("pass", test)
#define PASSED    PACKAGE_SAYS("PASS") PACKAGE("pass")

static void go_report_must_fit_the_sources(void **state UNUSED)
{
	static const struct {
		const char *path, *before, *report, *why;
	} rows[] = {
		{ "y/a_test.go", "", RAN("TestA") RAN("TestA/sub") RAN("TestB") RAN("ExampleX") PASSED, NULL },
		{ "y/a_test.go", "", RAN("TestA") RAN("TestB") RAN("TestInvented") PASSED,
		  "no source of the project declares: TestInvented" },
		{ "y/a_test.go", "", RAN("TestA") RAN("TestComment") RAN("TestB") PASSED,
		  "no source of the project declares" },
		{ "y/a_test.go", "", RAN("TestA") PASSED, "is not in it: TestB" },
		/* What may not be compiled here need not be run. */
		{ "y/a_test.go", "//go:build special\n", RAN("TestA") PASSED, NULL },
		{ "y/a_windows_test.go", "", RAN("TestA") PASSED, NULL },
		/* Another package, and one that failed. */
		{ "z/a_test.go", "", RAN("TestOther") PASSED, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF text = BUF_INIT(8192);
		struct test_run t;
		struct outcome o;

		buf_addf(&text, "%s%s", rows[i].before, go_text);
		declare(&t, rows[i].path, buf_str(&text));
		testing_read(&t, rows[i].report, strlen(rows[i].report), &o.r, o.why);
		assert_false(o.r.sealed);
		if (o.r.complete != !rows[i].why || (rows[i].why && !strstr(o.why, rows[i].why)))
			fail_msg("row %zu: '%s'", i, o.why);
		test_report_release(&o.r);
		test_run_release(&t);
	}
}

static void go_reports_must_make_sense(void **state UNUSED)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "", "go said nothing" },
		{ PACKAGE("pass"), "ended before its tests were done: x/y" }, /* TestMain: os.Exit(0) */
		{ EVENT("run", "TestA") PACKAGE("pass"), "ended before its tests were done" },
		{ EVENT("run", "TestA") PACKAGE_SAYS("PASS"), "no outcome" },
		{ EVENT("run", "TestA") SAYS("TestA", "x--- PASS: TestB (0.00s)") PACKAGE_SAYS("PASS") PACKAGE("pass"),
		  "no outcome" },
		{ EVENT("pass", "TestA") PACKAGE_SAYS("PASS") PACKAGE("pass"), "was not started: TestA" },
		{ EVENT("run", "TestA") EVENT("pass", "TestA") EVENT("pass", "TestA") PACKAGE_SAYS("PASS")
			  PACKAGE("pass"),
		  "two outcomes: TestA" },
		{ PACKAGE_SAYS("PASS") PACKAGE("pass") PACKAGE("pass"), "two outcomes: x/y" },
		{ EVENT("run", "TestA") EVENT("pass", "TestA") PACKAGE_SAYS("PASS") "{\"Action\":\"pa", "cut" },
	};
	struct outcome o;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(judge_go(rows[i].text, 0, &o), TESTS_INCOMPLETE);
		if (!strstr(o.why, rows[i].why))
			fail_msg("'%s' is not in '%s'", rows[i].why, o.why);
		test_report_release(&o.r);
	}
}

static void go_without_tests_and_silent_ones(void **state UNUSED)
{
	struct outcome o;

	assert_int_equal(judge_go(PACKAGE_SAYS("?   \\tx/y\\t[no test files]") PACKAGE("skip"), 0, &o), TESTS_NONE);
	test_report_release(&o.r);
	/* Its outcome got lost behind output without a newline. */
	assert_int_equal(judge_go(EVENT("run", "TestA") SAYS("TestA", "x--- PASS: TestA (0.00s)") PACKAGE_SAYS("PASS")
					  PACKAGE("pass"),
				  0, &o),
			 TESTS_OK);
	assert_int_equal(o.r.passed, 1);
	test_report_release(&o.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_decide, make_project, drop_project),
		cmocka_unit_test_setup_teardown(paths_stay_below, make_project, drop_project),
		cmocka_unit_test_setup_teardown(package_json_decides_among_its_own, make_project, drop_project),
		cmocka_unit_test_setup_teardown(runner_has_the_key_and_a_name_of_its_own, make_project, drop_project),
		cmocka_unit_test_setup_teardown(go_is_started_with_packages, make_project, drop_project),
		cmocka_unit_test(a_whole_report_is_believed),
		cmocka_unit_test(good_ends),
		cmocka_unit_test(forged_reports_are_found_out),
		cmocka_unit_test(reports_out_of_order_are_found_out),
		cmocka_unit_test(the_exit_status_must_agree),
		cmocka_unit_test(reports_are_cut_and_capped),
		cmocka_unit_test(go_is_understood),
		cmocka_unit_test(go_packages_that_fail_as_a_whole),
		cmocka_unit_test(go_report_sources_are_scanned),
		cmocka_unit_test(go_report_must_fit_the_sources),
		cmocka_unit_test(go_reports_must_make_sense),
		cmocka_unit_test(go_without_tests_and_silent_ones),
	};

	return cmocka_run_group_tests_name("testing", tests, NULL, NULL);
}
