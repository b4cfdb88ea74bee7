/* SPDX-License-Identifier: Apache-2.0 */
/* The bottom layer: conversions, bounded buffers, whole reads and writes, errors, ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/library.h"
#include "base/sealed.h"
#include "base/str.h"
#include "base/when.h"

/* ---- str ----------------------------------------------------------------------------------------- */

static void test_u64(void **state)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "-1", "0x1", "1.0", "18446744073709551616", "99999999999999999999"
	};
	uint64_t v = 7;

	(void)state;
	assert_true(str_to_u64("0", &v));
	assert_int_equal(v, 0);
	assert_true(str_to_u64("18446744073709551615", &v));
	assert_true(v == UINT64_MAX);
	v = 7;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(str_to_u64(bad[i], &v));
	assert_int_equal(v, 7); /* untouched */
}

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "1k", KiB },
		{ "64KB", 64 * KiB },
		{ "100 MiB", 100 * MiB },
		{ "512M", 512 * MiB },
		{ "1.5g", 1536 * MiB },
		{ "0.5k", 512 },
		{ "2tb", 2048 * GiB },
		{ "1b", 1 },
		{ "16777215t", 16777215 * (1024 * GiB) },
	};
	static const char *const bad[] = {
		"", "g", "-1g", "1gg", "1.g", ".5g", "1 g x", "16777216t", "1e3", "99999999999999999999", "1,5g", "1g ",
	};
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(str_to_bytes(good[i].text, &v));
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(str_to_bytes(bad[i], &v));
}

static void test_millis(void **state)
{
	static const struct {
		const char *text;
		uint64_t bare, value;
	} good[] = {
		{ "5", 1, 5 },       { "5", 1000, 5000 },  { "250ms", 1000, 250 }, { "1.5s", 1, 1500 },
		{ "2m", 1, 120000 }, { "1h", 1, 3600000 }, { "2 min", 1, 120000 }, { "0.0019s", 1, 1 },
	};
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(str_to_millis(good[i].text, good[i].bare, &v));
		assert_int_equal(v, good[i].value);
	}
	assert_false(str_to_millis("5d", 1, &v));
	assert_false(str_to_millis("s", 1, &v));
	assert_false(str_to_millis("18446744073709551615h", 1, &v));
}

static void test_bool(void **state)
{
	bool v;

	(void)state;
	assert_true(str_to_bool("TRUE", &v) && v);
	assert_true(str_to_bool("on", &v) && v);
	assert_true(str_to_bool("No", &v) && !v);
	assert_true(str_to_bool("0", &v) && !v);
	assert_false(str_to_bool("", &v));
	assert_false(str_to_bool("2", &v));
	assert_false(str_to_bool("yes ", &v));
}

static void test_copy(void **state)
{
	char dst[4];

	(void)state;
	assert_true(str_copy(dst, sizeof(dst), "abc"));
	assert_string_equal(dst, "abc");
	assert_false(str_copy(dst, sizeof(dst), "abcd"));
	assert_string_equal(dst, "abc");
	assert_false(str_copy(dst, 1, "a"));
	assert_string_equal(dst, "");
}

static void test_bytes_text(void **state)
{
	char dst[32];

	(void)state;
	assert_string_equal(str_bytes(dst, sizeof(dst), 0), "0 B");
	assert_string_equal(str_bytes(dst, sizeof(dst), 1023), "1023 B");
	assert_string_equal(str_bytes(dst, sizeof(dst), 1536), "1.5 KB");
	assert_string_equal(str_bytes(dst, sizeof(dst), 512 * MiB), "512 MB");
	assert_string_equal(str_bytes(dst, sizeof(dst), UINT64_MAX), "16 EB");
}

static void test_nearest(void **state)
{
	static const char *const names[] = { "mem_limit", "pids_limit", "timeout" };
	char longest[200];

	(void)state;
	assert_string_equal(str_nearest("mem_limt", names, 3), "mem_limit");
	assert_string_equal(str_nearest("timeout", names, 3), "timeout");
	assert_string_equal(str_nearest("tiemout", names, 3), "timeout");
	assert_null(str_nearest("privileged", names, 3));
	assert_null(str_nearest("x", names, 3));
	assert_null(str_nearest("timeout", names, 0));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_null(str_nearest(longest, names, 3));
}

static void test_utf8(void **state)
{
	static const struct {
		const char *text;
		size_t len, good;
	} rows[] = {
		{ "", 0, 0 },
		{ "a\0b", 3, 3 },
		{ "\xc3\xa4", 2, 2 },
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xf0\x9f\x98\x80", 4, 4 },
		{ "ab\xc3", 3, 2 },           /* cut */
		{ "\xc0\xaf", 2, 0 },         /* not the shortest form */
		{ "\xe0\x9f\xbf", 3, 0 },     /* likewise */
		{ "x\xed\xa0\x80", 4, 1 },    /* a surrogate */
		{ "\xf4\x90\x80\x80", 4, 0 }, /* beyond U+10FFFF */
		{ "\xf4\x8f\xbf\xbf", 4, 4 }, /* the last one */
		{ "\x80", 1, 0 },
		{ "\xff", 1, 0 },
		{ "a\xe2\x28\xa1", 4, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(str_utf8_prefix(rows[i].text, rows[i].len), rows[i].good);
		assert_int_equal(str_is_utf8(rows[i].text, rows[i].len), rows[i].len == rows[i].good);
	}
}

/* ---- buf ----------------------------------------------------------------------------------------- */

static void test_buf_ceiling(void **state)
{
	AUTO_BUF b = BUF_INIT(10);

	(void)state;
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(buf_adds(&b, "12345"), 5);
	assert_false(b.full);
	assert_int_equal(buf_adds(&b, "67890"), 5);
	assert_false(b.full); /* exactly full is not overfull */
	assert_int_equal(buf_adds(&b, "x"), 0);
	assert_true(b.full);
	assert_string_equal(buf_str(&b), "1234567890");
	assert_int_equal(b.len, 10);
}

static void test_buf_keeps_what_fits(void **state)
{
	AUTO_BUF b = BUF_INIT(4);

	(void)state;
	assert_int_equal(buf_add(&b, "ab\0def", 6), 4);
	assert_true(b.full);
	assert_memory_equal(b.data, "ab\0d", 5);
}

static void test_buf_format_is_all_or_nothing(void **state)
{
	AUTO_BUF b = BUF_INIT(8);

	(void)state;
	assert_true(buf_addf(&b, "%d-%s", 42, "abc"));
	assert_string_equal(buf_str(&b), "42-abc");
	assert_false(buf_addf(&b, "%s", "xyz"));
	assert_true(b.full);
	assert_string_equal(buf_str(&b), "42-abc");
	assert_true(buf_addf(&b, "%s", "xy"));
	assert_int_equal(b.len, 8);
}

static void test_buf_grows(void **state)
{
	AUTO_BUF b = BUF_INIT(1 * MiB);

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buf_add(&b, "0123456789", 10), 10);
	assert_int_equal(b.len, 100000);
	assert_true(b.cap > b.len && b.cap < 4 * b.len);
	assert_int_equal(b.data[b.len], 0);
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(b.data[i], '0' + (int)(i % 10));
}

static void test_buf_take(void **state)
{
	AUTO_BUF b = BUF_INIT(100);
	AUTO_FREE char *first = NULL, *second = NULL;

	(void)state;
	(void)buf_adds(&b, "mine");
	first = buf_take(&b);
	assert_string_equal(first, "mine");
	assert_int_equal(b.len, 0);
	assert_int_equal(b.max, 100);
	second = buf_take(&b); /* an empty buffer gives an empty string, not NULL */
	assert_string_equal(second, "");
	assert_int_equal(buf_adds(&b, "again"), 5);
}

/* ---- err ----------------------------------------------------------------------------------------- */

static void test_err_set_and_wrap(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	assert_int_equal(err_set(&err, BRIG_E_SYSTEM, ENOENT, "open %s", "x"), -BRIG_E_SYSTEM);
	assert_int_equal(err.code, BRIG_E_SYSTEM);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.msg, "open x: No such file or directory");
	assert_int_equal(err_wrap(&err, "step %d", 3), -BRIG_E_SYSTEM);
	assert_string_equal(err.msg, "step 3: open x: No such file or directory");
	assert_int_equal(err_set(&err, BRIG_E_USAGE, 0, "plain"), -BRIG_E_USAGE);
	assert_string_equal(err.msg, "plain");
	assert_int_equal(err.sys, 0);
	assert_int_equal(err_nomem(&err), -BRIG_E_NOMEM);
}

static void test_err_is_bounded_and_optional(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char longest[2000];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(err_set(&err, BRIG_E_POLICY, EIO, "%s", longest), -BRIG_E_POLICY);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_int_equal(err_wrap(&err, "%s", longest), -BRIG_E_POLICY);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_int_equal(err_set(NULL, BRIG_E_REFUSED, 0, "nobody listens"), -BRIG_E_REFUSED);
	assert_true(err_wrap(NULL, "nobody listens") < 0);
}

/* ---- fd ------------------------------------------------------------------------------------------ */

static int make_folder(void **state)
{
	static char folder[sizeof("/tmp/unit-test-base-XXXXXX")];

	(void)str_copy(folder, sizeof(folder), "/tmp/unit-test-base-XXXXXX");
	*state = folder;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	return rmdir(*state);
}

static void write_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(close(fd), 0);
}

static void test_fd_small_files(void **state)
{
	AUTO_FD dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[8];
	uint64_t v;

	assert_true(dir >= 0);
	assert_int_equal(fd_put_at(dir, "f", "1"), -ENOENT); /* never creates */
	write_file(dir, "f", "");
	assert_int_equal(fd_putf_at(dir, "f", "%d\n", 42), 0);
	assert_int_equal(fd_get_at(dir, "f", text, sizeof(text)), 2);
	assert_string_equal(text, "42");
	assert_int_equal(fd_get_u64_at(dir, "f", &v), 0);
	assert_int_equal(v, 42);
	write_file(dir, "f", "max\n");
	assert_int_equal(fd_get_u64_at(dir, "f", &v), 0);
	assert_true(v == UINT64_MAX);
	write_file(dir, "f", "4x");
	assert_int_equal(fd_get_u64_at(dir, "f", &v), -EINVAL);
	write_file(dir, "f", "1234567");
	assert_int_equal(fd_get_at(dir, "f", text, sizeof(text)), 7);
	write_file(dir, "f", "12345678");
	assert_int_equal(fd_get_at(dir, "f", text, sizeof(text)), -EFBIG);
	assert_int_equal(unlinkat(dir, "f", 0), 0);
	assert_int_equal(fd_get_at(dir, "f", text, sizeof(text)), -ENOENT);
	assert_int_equal(fd_get_u64_at(dir, "f", &v), -ENOENT);
}

static void test_fd_whole_reads(void **state)
{
	char data[16] = { 0 };
	int pipe_fds[2];

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(pipe_fds[1], "one", 3), 0);
	assert_int_equal(fd_write_all(pipe_fds[1], "two", 3), 0);
	assert_int_equal(fd_read_all(pipe_fds[0], data, 4), 4);
	assert_string_equal(data, "onet");
	assert_int_equal(close(pipe_fds[1]), 0);
	assert_int_equal(fd_read_all(pipe_fds[0], data, sizeof(data)), 2); /* up to end of file */
	assert_int_equal(fd_set_nonblock(pipe_fds[0]), 0);
	assert_true(fcntl(pipe_fds[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(close(pipe_fds[0]), 0);
	assert_int_equal(fd_read_all(FD_NONE, data, 1), -EBADF);
	assert_int_equal(fd_write_all(FD_NONE, data, 1), -EBADF);
	assert_int_equal(fd_set_nonblock(FD_NONE), -EBADF);
}

static void test_fd_ownership(void **state)
{
	int raw, moved;

	(void)state;
	{
		AUTO_FD fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		raw = fd;
		assert_true(fcntl(raw, F_GETFD) >= 0);
		moved = fd_move(&fd);
		assert_int_equal(fd, FD_NONE);
	}
	assert_int_equal(moved, raw);
	assert_true(fcntl(raw, F_GETFD) >= 0); /* moved out, so it outlived its scope */
	fd_closep(&moved);
	assert_int_equal(moved, FD_NONE);
	assert_int_equal(fcntl(raw, F_GETFD), -1);
}

/* ---- id ------------------------------------------------------------------------------------------ */

static void test_id(void **state)
{
	char a[27], b[27], seen[33] = "";
	size_t n_seen = 0;

	(void)state;
	assert_int_equal(id_random(a, 26), 0);
	assert_int_equal(id_random(b, 26), 0);
	assert_int_equal(strlen(a), 26);
	assert_int_equal(strspn(a, "abcdefghijklmnopqrstuvwxyz234567"), 26);
	assert_string_not_equal(a, b);
	assert_int_equal(id_random(a, 0), 0);
	assert_string_equal(a, "");
	/* Every letter turns up: 5 bits are used, not 4. */
	for (int i = 0; i < 200; i++) {
		assert_int_equal(id_random(a, 26), 0);
		for (const char *c = a; *c; c++)
			if (!strchr(seen, *c)) {
				seen[n_seen++] = *c;
				seen[n_seen] = '\0';
			}
	}
	assert_int_equal(n_seen, 32);
	assert_int_equal(id_random(a, 1000), -EINVAL);
}

/* ---- when ---------------------------------------------------------------------------------------- */

/* Every day that 64 bits of nanoseconds know, against the C library. */
static void test_utc_of_every_day(void **state)
{
	char ours[WHEN_TEXT_MAX], libc[32];

	(void)state;
	for (uint64_t day = 0; day <= UINT64_MAX / NS_PER_SEC / 86400; day++) {
		uint64_t secs = min_u64(day * 86400 + day % 86400, UINT64_MAX / NS_PER_SEC);
		time_t t = (time_t)secs;
		struct tm tm;

		assert_non_null(gmtime_r(&t, &tm));
		assert_true(strftime(libc, sizeof(libc), "%Y-%m-%dT%H:%M:%S", &tm) > 0);
		(void)when_utc(ours, sizeof(ours),
			       secs * NS_PER_SEC + min_u64(7 * NS_PER_MS, UINT64_MAX - secs * NS_PER_SEC));
		if (strncmp(ours, libc, strlen(libc)) != 0 || !str_eq(ours + strlen(libc), ".007Z"))
			fail_msg("day %llu is %s, not %s", (unsigned long long)day, ours, libc);
	}
}

/* ---- library.h ------------------------------------------------------------------------------- */

static void a_library_is_loaded_whole_or_not_at_all(void **state)
{
	static const char *const here[] = { "libno-such-library.so.1", "libc.so.6", NULL };
	static const char *const nowhere[] = { "libno-such-library.so.1", NULL };
	static const struct library_function functions[] = { { "getpid", sizeof(void *) }, { "getppid", 0 } };
	static const struct library_function lacking[] = { { "getpid", 0 }, { "brig_no_such_function", 0 } };
	struct {
		pid_t (*getppid)(void);
		pid_t (*getpid)(void);
	} call;
	const char *why = NULL;
	void *handle = NULL;

	(void)state;
	assert_int_equal(library_load(&(struct library){ here, functions, 2 }, &call, &handle, &why), 0);
	assert_int_equal(call.getpid(), getpid());
	assert_int_equal(call.getppid(), getppid());
	assert_int_equal(dlclose(handle), 0);
	assert_int_equal(library_load(&(struct library){ here, lacking, 2 }, &call, &handle, &why), -ENOSYS);
	assert_string_equal(why, "brig_no_such_function");
	assert_int_equal(library_load(&(struct library){ nowhere, functions, 2 }, &call, &handle, &why), -ENOENT);
	assert_non_null(strstr(why, "libno-such-library.so.1"));
}

/* The kernel itself may hold a page of a file in memory for a while.  Here a pipe does, until it is read. */
static void *drain_later(void *arg)
{
	char page[4096];

	(void)usleep(400000); /* longer than the kernel waits by itself */
	assert_int_equal(read(*(int *)arg, page, sizeof(page)), sizeof(page));
	return NULL;
}

static void test_sealed_waits_for_pages_in_use(void **state)
{
	static const char page[4096] = "held";
	AUTO_FD fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ends[2];
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(fd, page, sizeof(page)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(splice(fd, NULL, ends[1], NULL, sizeof(page), 0), sizeof(page));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(pthread_create(&thread, NULL, drain_later, &ends[0]), 0);
	assert_int_equal(sealed_close(fd), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(write(fd, "x", 1), -1);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_millis),
		cmocka_unit_test(test_bool),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_bytes_text),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_buf_ceiling),
		cmocka_unit_test(test_buf_keeps_what_fits),
		cmocka_unit_test(test_buf_format_is_all_or_nothing),
		cmocka_unit_test(test_buf_grows),
		cmocka_unit_test(test_buf_take),
		cmocka_unit_test(test_err_set_and_wrap),
		cmocka_unit_test(test_err_is_bounded_and_optional),
		cmocka_unit_test_setup_teardown(test_fd_small_files, make_folder, remove_folder),
		cmocka_unit_test(test_fd_whole_reads),
		cmocka_unit_test(test_fd_ownership),
		cmocka_unit_test(test_id),
		cmocka_unit_test(test_sealed_waits_for_pages_in_use),
		cmocka_unit_test(test_utc_of_every_day),
		cmocka_unit_test(a_library_is_loaded_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
