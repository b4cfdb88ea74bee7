/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of texts: each, applied, gives the other text, and ends whatever the texts are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "workspace/lines.h"

/* Applies a unified diff without looking at context: what is left must be the other text. */
static void assert_diff_holds(const char *a, const char *b)
{
	AUTO_BUF diff = BUF_INIT(1 * MiB), old = BUF_INIT(1 * MiB), new = BUF_INIT(1 * MiB);
	const char *p, *rest = a;

	assert_true(lines_diff((struct text){ a, strlen(a) }, (struct text){ b, strlen(b) }, &diff));
	for (p = buf_str(&diff); *p;) {
		size_t len = strcspn(p, "\n") + 1;
		bool no_newline = p[len] == '\\';

		if (*p == '@') {
			size_t start = strtoul(p + 4, NULL, 10), lines = strtoul(strchr(p, ',') + 1, NULL, 10), at = 0;

			for (const char *q = a; *q && at < start - (lines > 0); q++)
				if (*q == '\n' && ++at == start - (lines > 0) && q + 1 > rest) {
					(void)buf_add(&new, rest, (size_t)(q + 1 - rest));
					(void)buf_add(&old, rest, (size_t)(q + 1 - rest));
					rest = q + 1;
				}
		} else if (*p != '\\') {
			if (*p != '-')
				(void)buf_add(&new, p + 1, len - 1 - no_newline);
			if (*p != '+') {
				(void)buf_add(&old, p + 1, len - 1 - no_newline);
				rest += len - 1 - no_newline;
			}
		}
		p += len;
	}
	(void)buf_adds(&new, rest);
	(void)buf_adds(&old, rest);
	assert_string_equal(buf_str(&old), a);
	assert_string_equal(buf_str(&new), b);
}

static void test_diff_holds(void **state)
{
	char a[4096], b[4096];
	unsigned seed = 7;

	(void)state;
	assert_diff_holds("", "");
	assert_diff_holds("", "a\n");
	assert_diff_holds("a\n", "");
	assert_diff_holds("a", "a\n");
	assert_diff_holds("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n", "a\nB\nc\nd\ne\nf\ng\nh\ni\nJ\nk\nl");
	for (int round = 0; round < 300; round++) {
		size_t n = 0, m = 0;

		for (int i = 0; i < 60; i++) {
			seed = seed * 1103515245 + 12345;
			if (seed >> 16 & 3) {
				a[n++] = (char)('a' + (seed >> 20) % 3);
				a[n++] = '\n';
			}
			seed = seed * 1103515245 + 12345;
			if (seed >> 16 & 3) {
				b[m++] = (char)('a' + (seed >> 20) % 3);
				b[m++] = '\n';
			}
		}
		n -= n && (round & 1);
		m -= m && (round & 2);
		a[n] = b[m] = '\0';
		assert_diff_holds(a, b);
	}
}

/* Texts with nothing in common: more edits than are searched for. */
static void test_diff_is_bounded(void **state)
{
	AUTO_BUF a = BUF_INIT(1 * MiB), b = BUF_INIT(1 * MiB), out = BUF_INIT(4 * MiB);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		(void)buf_addf(&a, "old %d\n", i);
		(void)buf_addf(&b, "new %d\n", i);
	}
	assert_true(lines_diff((struct text){ a.data, a.len }, (struct text){ b.data, b.len }, &out));
	assert_int_equal(out.len, a.len + b.len + 40000 + strlen("@@ -1,20000 +1,20000 @@\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_diff_holds),
		cmocka_unit_test(test_diff_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
