/* SPDX-License-Identifier: Apache-2.0 */
/* Hints about missing packages: which words give one, and what of a program's own text can come into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "executor/hint.h"

static const char *hint(const char *text)
{
	static char dst[512];

	hint_find(text, strlen(text), HINT_HOST, dst, sizeof(dst));
	return dst;
}

static void test_missing_packages(void **state)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{ "Traceback\nModuleNotFoundError: No module named 'pandas'\n", "--packages pandas installs it" },
		{ "ModuleNotFoundError: No module named 'pandas.core'\n", "python3-pandas on the host" },
		{ "ModuleNotFoundError: No module named 'cv2'\n", "--packages opencv-python installs it" },
		{ "ModuleNotFoundError: No module named 'PIL'\n", "python3-pil" },
		{ "ModuleNotFoundError: No module named 'tkinter'\n", "Debian package python3-tk" },
		{ "Error: Cannot find module 'express'\nRequire stack:\n", "--packages express installs it" },
		{ "Error: Cannot find module '@types/node/x.js'\n", "'@types/node'" },
		{ "Cannot find package 'zod' imported from /workspace/main.mjs\n", "--packages zod" },
		{ "main.go:2:8: no required module provides package github.com/a/b: go.mod file not found",
		  "--packages github.com/a/b installs it" },
		{ "ModuleNotFoundError: No module named 'a'\nModuleNotFoundError: No module named 'b'\n", "'b'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!strstr(hint(rows[i].text), rows[i].part))
			fail_msg("%s: '%s'", rows[i].text, hint(rows[i].text));
}

static void test_texts_that_name_none(void **state)
{
	static const char *const texts[] = {
		"",
		"No module named",
		"ModuleNotFoundError: No module named '",
		"ModuleNotFoundError: No module named '\x1b[31mred'",
		"ModuleNotFoundError: No module named '9x'",
		"ModuleNotFoundError: No module named 'a b'",
		"Cannot find module './neighbour'",
		"Cannot find module '/etc/passwd'",
		"Cannot find module 'node:nothing'",
		"Cannot find module 'a b; rm -rf x'",
		"Cannot find module '--registry=http://x'",
		"Cannot find module '@scope'",
		"no required module provides package fmtt; to add it",
		"no required module provides package /a.b/c",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (*hint(texts[i]))
			fail_msg("%s: '%s'", texts[i], hint(texts[i]));
}

/* An image is not fixed by --packages, nor by what is installed on the host. */
static void test_in_an_image(void **state)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{ "ModuleNotFoundError: No module named 'cv2'\n",
		  "docker_requirements: [opencv-python] in the policy" },
		{ "ModuleNotFoundError: No module named 'tkinter'\n", "docker_image that has it" },
		{ "Error: Cannot find module 'express'\n", "--packages express with backend native" },
	};
	char dst[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		hint_find(rows[i].text, strlen(rows[i].text), HINT_IMAGE, dst, sizeof(dst));
		if (!strstr(dst, rows[i].part))
			fail_msg("%s: '%s'", rows[i].text, dst);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_packages),
		cmocka_unit_test(test_texts_that_name_none),
		cmocka_unit_test(test_in_an_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
