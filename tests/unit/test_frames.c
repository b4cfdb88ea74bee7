/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/frames.h"

static const struct {
	const char *name, *text;
	struct frame_place at;
	const char *want;
} frames[] = {
	{ "a word", "import os\n", { 1, 8, 1, 10 }, " 1 | import os\n   |        ^^\n" },
	{ "a later line", "a\nb\nc d\n", { 3, 3, 3, 4 }, " 3 | c d\n   |   ^\n" },
	{ "a wider gutter", "\n\n\n\n\n\n\n\n\nx\n", { 10, 1, 10, 2 }, " 10 | x\n    | ^\n" },
	{ "a tab before", "\tx = os\n", { 1, 6, 1, 8 }, " 1 |         x = os\n   |             ^^\n" },
	{ "a tab inside", "ab\tos\n", { 1, 4, 1, 6 }, " 1 | ab      os\n   |         ^^\n" },
	{ "wide characters", "\u4e2d\u6587 os\n", { 1, 4, 1, 6 }, " 1 | \u4e2d\u6587 os\n   |      ^^\n" },
	{ "wide characters marked", "\u4e2d\u6587\n", { 1, 1, 1, 3 }, " 1 | \u4e2d\u6587\n   | ^^^^\n" },
	{ "a combining character", "e\u0301 os\n", { 1, 4, 1, 6 }, " 1 | e\u0301 os\n   |   ^^\n" },
	{ "control characters", "\033[31m os\n", { 1, 7, 1, 9 }, " 1 | \\x1b[31m os\n   |          ^^\n" },
	{ "a change of direction", "\u202e os\n", { 1, 1, 1, 2 }, " 1 | \\u202e os\n   | ^^^^^^\n" },
	{ "bytes that are no text", "\xff os\n", { 1, 3, 1, 5 }, " 1 | \\xff os\n   |      ^^\n" },
	{ "CRLF", "a\r\nos\r\n", { 2, 1, 2, 3 }, " 2 | os\n   | ^^\n" },
	{ "a lone CR", "# x\ros", { 2, 1, 2, 3 }, " 2 | os\n   | ^^\n" },
	{ "an empty place", "os\n", { 1, 3, 1, 3 }, " 1 | os\n   |   ^\n" },
	{ "several lines", "f(\n1)\n", { 1, 1, 2, 3 }, " 1 | f(\n   | ^^...\n" },
	{ "an empty line", "\n", { 1, 1, 1, 1 }, " 1 | \n   | ^\n" },
	{ "beyond the line", "os\n", { 1, 9, 1, 12 }, " 1 | os\n   |   ^\n" },
	{ "no such line", "os\n", { 7, 1, 7, 2 }, "" },
	{ "no text", "", { 1, 1, 1, 1 }, " 1 | \n   | ^\n" },
};

static void frames_show_the_place(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		AUTO_BUF out = BUF_INIT(4096);

		frame_show(frames[i].text, strlen(frames[i].text), &frames[i].at, false, UI_RED, &out);
		if (!str_eq(buf_str(&out), frames[i].want))
			fail_msg("%s:\n%s", frames[i].name, buf_str(&out));
	}
}

/* Of a minified program only the part around the place is shown, and the mark still stands below it. */
static void long_lines_are_cut(void **state UNUSED)
{
	static char text[100000];
	const struct frame_place at = { 1, 50001, 1, 50003 };
	AUTO_BUF out = BUF_INIT(64 * KiB);
	const char *os, *mark, *second;

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text + 50000, "os", 2);
	frame_show(text, sizeof(text) - 1, &at, false, UI_RED, &out);
	assert_true(out.len < 400);
	os = strstr(buf_str(&out), "os");
	second = strchr(buf_str(&out), '\n') + 1;
	mark = strstr(second, "^^");
	assert_non_null(os);
	assert_non_null(mark);
	assert_int_equal(os - buf_str(&out), mark - second);
}

static void colours_are_only_used_when_asked_for(void **state UNUSED)
{
	const struct frame_place at = { 1, 1, 1, 3 };
	AUTO_BUF plain = BUF_INIT(4096), painted = BUF_INIT(4096);

	frame_show("os", 2, &at, false, UI_RED, &plain);
	frame_show("os", 2, &at, true, UI_RED, &painted);
	assert_null(strchr(buf_str(&plain), '\033'));
	assert_non_null(strstr(buf_str(&painted), "\033[31m^^\033[0m"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_show_the_place),
		cmocka_unit_test(long_lines_are_cut),
		cmocka_unit_test(colours_are_only_used_when_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
