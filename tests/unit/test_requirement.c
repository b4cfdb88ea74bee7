/* SPDX-License-Identifier: Apache-2.0 */
/* Packages of Python as a list names them, and what of an image's recipe they become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "backend/docker/image_python.h"
#include "backend/docker/images.h"
#include "base/str.h"
#include "model/requirement.h"

static void test_good(void **state)
{
	static const struct {
		const char *text, *name, *op, *version;
		bool extras;
	} rows[] = {
		{ "numpy", "numpy", "", "", false },
		{ "pandas==2.1", "pandas", "==", "2.1", false },
		{ "PyYAML>=6", "pyyaml", ">=", "6", false },
		{ "zope.Interface_x", "zope-interface-x", "", "", false },
		{ "requests[socks,security]~=2.28.1", "requests", "~=", "2.28.1", true },
		{ "a===1.0+local", "a", "===", "1.0+local", false },
		{ "a<2", "a", "<", "2", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct requirement r;

		assert_null(requirement_parse(rows[i].text, &r));
		assert_string_equal(r.name, rows[i].name);
		assert_string_equal(r.op, rows[i].op);
		assert_string_equal(r.version, rows[i].version);
		assert_int_equal(r.has_extras, rows[i].extras);
	}
}

static void test_bad(void **state)
{
	static const char *const rows[] = {
		"",
		"-r x",
		"--index-url=http://a",
		"./x",
		"/x",
		"a b",
		"a @ http://x",
		"a==",
		"a==1,<2",
		"a=1",
		"a;x",
		"a==1;x",
		"git+https://a/b",
		"a[",
		"a[]",
		"a[x",
		"a\"",
		"a==1\"",
		"a==$(id)",
		"a-",
		".a",
		"a==1 # x",
		"a==1.*",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct requirement r;

		if (!requirement_parse(rows[i], &r))
			fail_msg("'%s' was taken", rows[i]);
	}
}

static void test_versions(void **state)
{
	static const struct {
		const char *wanted, *have;
		bool good;
	} rows[] = {
		{ "a", "anything", true },       { "a==2.1", "2.1.0", true },   { "a==2.1", "2.1.1", false },
		{ "a==2.1", "2.1+dfsg", true },  { "a!=2", "2.0", false },      { "a!=2", "2.0.1", true },
		{ "a>=2.1", "2.10", true },      { "a>=2.1", "2.0.9", false },  { "a>2", "2", false },
		{ "a>2", "2.0.1", true },        { "a<=2", "2.0", true },       { "a<2", "2.0", false },
		{ "a<2", "1.99", true },         { "a~=2.1", "2.5", true },     { "a~=2.1", "3.0", false },
		{ "a~=2.1.3", "2.2", false },    { "a~=2.1", "2.0", false },    { "a>=1", "2.0rc1", false },
		{ "a==2.0rc1", "2.0rc1", true }, { "a===2.0", "2.0.0", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct requirement r;

		assert_null(requirement_parse(rows[i].wanted, &r));
		if (requirement_allows(&r, rows[i].have) != rows[i].good)
			fail_msg("%s and %s", rows[i].wanted, rows[i].have);
	}
}

/* Another list is another image, of Python only; the order says nothing. */
static void test_recipe(void **state)
{
	char plain[IMAGE_REF_MAX], one[IMAGE_REF_MAX], two[IMAGE_REF_MAX], other[IMAGE_REF_MAX];
	struct setting_list ab = { 0 }, ba = { 0 }, none = { 0 };
	AUTO_BUF text = BUF_INIT(4096);

	(void)state;
	(void)setting_list_add(&ab, "numpy");
	(void)setting_list_add(&ab, "pandas==2.1");
	(void)setting_list_add(&ba, "pandas==2.1");
	(void)setting_list_add(&ba, "numpy");
	assert_true(image_reference("python", NULL, plain, sizeof(plain)));
	assert_true(image_reference("python", &none, one, sizeof(one)));
	assert_string_equal(plain, one);
	assert_true(image_reference("python", &ab, one, sizeof(one)) &&
		    image_reference("python", &ba, two, sizeof(two)));
	assert_string_equal(one, two);
	assert_string_not_equal(plain, one);
	assert_true(image_reference("shell", &ab, one, sizeof(one)) &&
		    image_reference("shell", NULL, other, sizeof(other)));
	assert_string_equal(one, other);
	image_python_install(&none, &text);
	assert_int_equal(text.len, 0);
	image_python_install(&ab, &text);
	assert_non_null(strstr(buf_str(&text), "USER 0:0\nRUN [\"python3\", \"-m\", \"pip\", \"install\""));
	assert_non_null(strstr(buf_str(&text), "\"--\", \"numpy\", \"pandas==2.1\"]\nUSER 1000:1000\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_recipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
