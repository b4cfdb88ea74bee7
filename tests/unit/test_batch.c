/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `brig batch` that need no cell: lines, comparison, order, the ids of a file that is gone on with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/batch_judge.h"
#include "cli/batch_lines.h"
#include "cli/batch_output.h"
#include "cli/batch_resume.h"

static void test_base64(void **state)
{
	static const char *const wrong[] = { "A",    "AA",   "AAA",  "AA=A",     "=AAA", "A===",
					     "AB==", "AAB=", "AA A", "AA==AAAA", "-_AA" };
	char bytes[64], text[96], back[64];

	(void)state;
	for (size_t len = 0; len < sizeof(bytes); len++) {
		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)(i * 37 + len);
		base64_put(text, bytes, len);
		assert_int_equal(base64_get(back, text, base64_len(len)), len);
		assert_memory_equal(back, bytes, len);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(base64_get(back, wrong[i], strlen(wrong[i])), -1);
}

/* Whether two texts agree in each way, and in which line they differ if they do not. */
static const struct {
	const char *expected, *actual;
	size_t line[COMPARE_COUNT]; /* trim, exact, tokens, float */
} compared[] = {
	{ "", "", { 0, 0, 0, 0 } },
	{ "a\n", "a\n", { 0, 0, 0, 0 } },
	{ "a", "a\n", { 0, 1, 0, 0 } },
	{ "a\nb\n", "a \r\nb\n\n\n", { 0, 1, 0, 0 } },
	{ "a b", "a  b", { 1, 1, 0, 0 } },
	{ "a b", "a\nb", { 1, 1, 0, 0 } },
	{ "a\n\nb", "a\nb", { 2, 2, 0, 0 } },
	{ " a", "a", { 1, 1, 0, 0 } },
	{ "1\n2\n3", "1\n2\n4", { 3, 3, 3, 3 } },
	{ "1\n2", "1\n2\n3", { 3, 2, 3, 3 } },
	{ "1\n2\n3", "1\n2", { 3, 2, 2, 2 } },
	{ "1.0", "1.0000001", { 1, 1, 1, 0 } },
	{ "1000000", "1000001", { 1, 1, 1, 0 } },
	{ "1000000", "1000002", { 1, 1, 1, 1 } },
	{ "1", "0x1", { 1, 1, 1, 1 } },
	{ "nan", "nan", { 0, 0, 0, 0 } },
	{ "0", "nan", { 1, 1, 1, 1 } },
	{ "0", "-", { 1, 1, 1, 1 } },
	{ "1e999", "1e998", { 1, 1, 1, 1 } },
};

static void test_compare(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(compared); i++) {
		struct bytes a = { compared[i].expected, strlen(compared[i].expected) };
		struct bytes b = { compared[i].actual, strlen(compared[i].actual) };

		for (enum judge_compare how = 0; how < COMPARE_COUNT; how++)
			if (judge_differs(how, 1e-6, &a, &b) != compared[i].line[how])
				fail_msg("row %zu, %s: line %zu", i, judge_compare_name(how),
					 judge_differs(how, 1e-6, &a, &b));
	}
}

static int file_with(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void test_lines(void **state)
{
	AUTO_FD fd = file_with("one\n\n123456789\n12345678\ntorn");
	static const struct {
		enum batch_line got;
		const char *text;
	} want[] = { { BATCH_LINE_GOOD, "one" },
		     { BATCH_LINE_GOOD, "" },
		     { BATCH_LINE_TOO_LONG, NULL },
		     { BATCH_LINE_GOOD, "12345678" },
		     { BATCH_LINE_GOOD, "torn" } };
	struct batch_lines l = BATCH_LINES_INIT(fd, 8);
	const char *line;
	size_t len;

	(void)state;
	assert_int_equal(batch_lines_count(fd), ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		enum batch_line got;

		while ((got = batch_lines_next(&l, &line, &len)) == BATCH_LINE_WAIT)
			assert_int_equal(batch_lines_read(&l), 0);
		assert_int_equal(got, want[i].got);
		assert_int_equal(l.is_torn, i + 1 == ARRAY_LEN(want));
		if (want[i].text) {
			assert_int_equal(len, strlen(want[i].text));
			assert_memory_equal(line, want[i].text, len);
		}
	}
	assert_int_equal(batch_lines_next(&l, &line, &len), BATCH_LINE_END);
	batch_lines_release(&l);
}

static void put(struct batch_output *o, uint64_t number, const char *text)
{
	AUTO_BUF line = BUF_INIT(1 * MiB);

	buf_adds(&line, text);
	batch_output_put(o, number, &line);
}

static void test_order(void **state)
{
	AUTO_FD fd = memfd_create("test", MFD_CLOEXEC);
	struct brig_error err = BRIG_ERROR_INIT;
	struct batch_output o;
	char text[64] = "";

	(void)state;
	assert_int_equal(batch_output_init(&o, fd, true, 1, &err), 0);
	put(&o, 2, "c\n");
	put(&o, 1, "b\n");
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_true(batch_output_has_room(&o, o.n_window - 1));
	assert_false(batch_output_has_room(&o, o.n_window));
	put(&o, 0, "a\n");
	batch_output_write(&o, -1);
	assert_true(batch_output_has_room(&o, o.n_window));
	assert_int_equal(pread(fd, text, sizeof(text) - 1, 0), 6);
	assert_string_equal(text, "a\nb\nc\n");
	batch_output_release(&o);
}

static void test_resume(void **state)
{
	char path[] = "/tmp/test-batch-XXXXXX", id[16];
	AUTO_FD made = mkstemp(path);
	AUTO_FD fd = FD_NONE;
	int status;
	pid_t child;
	struct brig_error err = BRIG_ERROR_INIT;
	struct batch_finished done, none;

	(void)state;
	for (int i = 0; i < 5000; i++)
		assert_true(dprintf(made, "{\"job\":\"j%d\",\"verdict\":\"ok\"}\n", i) > 0);
	assert_true(dprintf(made, "{\"job\":\"torn\",\"verdict\":\"ok\"}") > 0);
	assert_true(batch_resume_open(path, false, &done, &err) < 0);
	fd_closep(&made); /* a lock ends with any descriptor of its file */
	batch_finished_release(&done);
	fd = batch_resume_open(path, true, &done, &err);
	assert_true(fd >= 0);
	assert_int_equal(done.n, 5000);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(id, sizeof(id), "j%d", i);
		assert_true(batch_finished_has(&done, id));
	}
	assert_false(batch_finished_has(&done, "torn"));
	assert_false(batch_finished_has(&done, "j5000"));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), lseek(fd, 0, SEEK_END));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) /* the first one holds it, and its children do not */
		_exit(batch_resume_open(path, true, &none, &err) == -BRIG_E_REFUSED ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	batch_finished_release(&done);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64), cmocka_unit_test(test_compare), cmocka_unit_test(test_lines),
		cmocka_unit_test(test_order),  cmocka_unit_test(test_resume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
