/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of files: what tar and Python make can be read, what could lead elsewhere is refused, and ours can be read by all. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cmocka.h>

#include "base/fd.h"
#include "files/tar.h"
#include "temp_folder.h"

static const struct untar_caps roomy = { .entries = 1000, .bytes = 64 * MiB };
static char folder[128];
static int dir = FD_NONE;

static int make_folder(void **state)
{
	(void)state;
	if (temp_folder_make(folder, sizeof(folder), "tar") < 0)
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void)state;
	fd_closep(&dir);
	return temp_folder_remove(folder);
}

/* ---- making archives by hand -------------------------------------------------------------------- */

struct entry {
	const char *name;
	char type;
	const char *content;
	const char *mode; /* NULL: 0644 */
};

static void put_entry(int out, const struct entry *e)
{
	unsigned char block[TAR_BLOCK] = { 0 };
	char *text = (char *)block;
	size_t len = e->content ? strlen(e->content) : 0;
	unsigned sum = 8 * ' ';

	memcpy(text, e->name, strlen(e->name) < 100 ? strlen(e->name) : 100);
	(void)snprintf(text + 100, 8, "%s", e->mode ? e->mode : "0000644");
	(void)snprintf(text + 124, 12, "%011o", (unsigned)len);
	text[156] = e->type;
	memcpy(text + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof(block); i++)
		sum += block[i];
	(void)snprintf(text + 148, 8, "%06o", sum);
	assert_int_equal(fd_write_all(out, block, sizeof(block)), 0);
	memset(block, 0, sizeof(block));
	if (len > 0) {
		assert_int_equal(fd_write_all(out, e->content, len), 0);
		assert_int_equal(fd_write_all(out, block, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK), 0);
	}
}

static int archive_of(const struct entry *e, size_t n)
{
	static const char end[2 * TAR_BLOCK];
	int fd = memfd_create("archive", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++)
		put_entry(fd, &e[i]);
	assert_int_equal(fd_write_all(fd, end, sizeof(end)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int read_entries(const struct entry *e, size_t n, const struct untar_caps *caps, struct brig_error *err)
{
	AUTO_FD in = archive_of(e, n);

	*err = (struct brig_error)BRIG_ERROR_INIT;
	return untar(in, dir, caps, -1, err);
}

static void assert_content(const char *path, const char *want)
{
	AUTO_FD fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char got[256] = "";

	assert_true(fd >= 0);
	assert_true(fd_read_all(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, want);
}

/* ---- reading --------------------------------------------------------------------------------------- */

static void test_files_and_folders(void **state)
{
	static const struct entry e[] = { { "./", '5', NULL, NULL },
					  { "./a.txt", '0', "hello", NULL },
					  { "sub/run.sh", '\0', "echo", "0000755" },
					  { "empty/", '0', NULL, NULL },
					  { "deep/er/x", '7', "", "0000777" } };
	struct brig_error err;
	struct stat st;

	(void)state;
	assert_int_equal(read_entries(e, ARRAY_LEN(e), &roomy, &err), 0);
	assert_content("a.txt", "hello");
	assert_content("deep/er/x", "");
	assert_int_equal(fstatat(dir, "sub/run.sh", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(fstatat(dir, "empty", &st, 0), 0);
	assert_true(S_ISDIR(st.st_mode));
}

static void test_long_names(void **state)
{
	char name[161], record[200];
	const struct entry gnu[] = { { "././@LongLink", 'L', name, NULL }, { "cut", '0', "gnu", NULL } };
	const struct entry pax[] = { { "pax", 'x', record, NULL }, { "cut", '0', "pax", NULL } };
	struct brig_error err;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[80] = '/';
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(read_entries(gnu, ARRAY_LEN(gnu), &roomy, &err), 0);
	assert_content(name, "gnu");
	name[0] = 'p';
	(void)snprintf(record, sizeof(record), "170 path=%s\n19 mtime=1.2345678\n", name);
	assert_int_equal(read_entries(pax, ARRAY_LEN(pax), &roomy, &err), 0);
	assert_content(name, "pax");
}

static void test_what_is_refused(void **state)
{
	static const struct {
		struct entry e;
		const char *word;
	} rows[] = {
		{ { "link", '2', NULL, NULL }, "is a link" },
		{ { "hard", '1', NULL, NULL }, "a hard link" },
		{ { "dev", '3', NULL, NULL }, "a device" },
		{ { "fifo", '6', NULL, NULL }, "a FIFO" },
		{ { "sparse", 'S', NULL, NULL }, "holes" },
		{ { "what", 'Z', NULL, NULL }, "not known" },
		{ { "../up", '0', "x", NULL }, "'..'" },
		{ { "a/../../up", '0', "x", NULL }, "'..'" },
		{ { "/etc/passwd", '0', "x", NULL }, "below its folder" },
		{ { "a//b", '0', "x", NULL }, "below its folder" },
		{ { "a", '0', "x", "00zz644" }, "mode" },
		{ { "pax", 'x', "12 path=", NULL }, "pax header" },
		{ { "pax", 'x', "999999 path=x\n", NULL }, "pax header" },
		{ { "pax", 'x', "13 size=nine\n", NULL }, "no number" },
	};
	struct brig_error err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(read_entries(&rows[i].e, 1, &roomy, &err) < 0);
		assert_int_equal(err.code, BRIG_E_USAGE);
		if (!strstr(err.msg, rows[i].word))
			fail_msg("'%s' does not say '%s'", err.msg, rows[i].word);
	}
	assert_int_equal(faccessat(dir, "../up", F_OK, 0), -1);
}

static void test_twice(void **state)
{
	static const struct entry e[] = { { "a", '0', "1", NULL }, { "a", '0', "2", NULL } };
	static const struct entry in_file[] = { { "f", '0', "1", NULL }, { "f/b", '0', "2", NULL } };
	struct brig_error err;

	(void)state;
	assert_true(read_entries(e, 2, &roomy, &err) < 0);
	assert_non_null(strstr(err.msg, "'a'"));
	assert_true(read_entries(in_file, 2, &roomy, &err) < 0);
}

static void test_caps(void **state)
{
	static const struct entry e[] = { { "a", '0', "1", NULL }, { "b", '0', "2", NULL } };
	static const struct untar_caps one = { .entries = 1, .bytes = MiB }, page = { .entries = 9, .bytes = 4096 };
	struct brig_error err;

	(void)state;
	assert_true(read_entries(e, 2, &one, &err) < 0);
	assert_int_equal(err.code, BRIG_E_REFUSED);
	assert_int_equal(unlinkat(dir, "a", 0), 0);
	assert_true(read_entries(e, 2, &page, &err) < 0);
	assert_int_equal(err.code, BRIG_E_REFUSED);
}

/* Cut at every byte, an archive is never taken for a whole one. */
static void test_cut(void **state)
{
	static const struct entry e[] = { { "a", '0', "hello", NULL } };
	AUTO_FD whole = archive_of(e, 1);
	char bytes[4 * TAR_BLOCK];
	struct brig_error err;

	(void)state;
	assert_int_equal(fd_read_all(whole, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	for (size_t len = 0; len < 3 * TAR_BLOCK; len++) {
		AUTO_FD in = memfd_create("cut", MFD_CLOEXEC);

		assert_int_equal(fd_write_all(in, bytes, len), 0);
		assert_int_equal(lseek(in, 0, SEEK_SET), 0);
		err = (struct brig_error)BRIG_ERROR_INIT;
		assert_true(untar(in, dir, &roomy, -1, &err) < 0);
		(void)unlinkat(dir, "a", 0);
	}
}

static void test_bad_sum(void **state)
{
	static const struct entry e[] = { { "a", '0', "hello", NULL } };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD in = archive_of(e, 1);

	(void)state;
	assert_int_equal(pwrite(in, "b", 1, 0), 1);
	assert_true(untar(in, dir, &roomy, -1, &err) < 0);
	assert_non_null(strstr(err.msg, "no sound tar archive"));
}

/* A writer that never writes is waited for only as long as somebody wants the files. */
static void test_cancel(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int quiet[2], cancel[2];

	(void)state;
	assert_int_equal(pipe2(quiet, O_CLOEXEC), 0);
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	assert_int_equal(write(cancel[1], "x", 1), 1);
	assert_true(untar(quiet[0], dir, &roomy, cancel[0], &err) < 0);
	assert_int_equal(err.sys, ECANCELED);
	for (size_t i = 0; i < 2; i++) {
		(void)close(quiet[i]);
		(void)close(cancel[i]);
	}
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
	AUTO_FD out = memfd_create("out", MFD_CLOEXEC);
	AUTO_FD content = memfd_create("content", MFD_CLOEXEC);
	struct brig_error err = BRIG_ERROR_INIT;
	char path[300];

	(void)state;
	memset(path, 'p', sizeof(path));
	path[100] = path[200] = '/';
	path[sizeof(path) - 1] = '\0';
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ftruncate(content, 0), 0);
		assert_int_equal(pwrite(content, "content", 7, 0), 7);
		assert_int_equal(lseek(content, 0, SEEK_SET), 0);
		assert_int_equal(tar_put_file(out, i ? path : "short", 0700, 7, content, -1), 0);
	}
	assert_int_equal(tar_put_end(out, -1), 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	assert_int_equal(untar(out, dir, &roomy, -1, &err), 0);
	assert_content("short", "content");
	assert_content(path, "content");
}

static void test_write_trouble(void **state)
{
	AUTO_FD content = memfd_create("content", MFD_CLOEXEC);
	int full[2], cancel[2];

	(void)state;
	assert_int_equal(pipe2(full, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	assert_int_equal(write(cancel[1], "x", 1), 1);
	assert_int_equal(tar_put_file(full[1], "short", 0644, 5, content, -1), -ENODATA);
	assert_int_equal(ftruncate(content, MiB), 0);
	assert_int_equal(tar_put_file(full[1], "nobody reads", 0644, MiB, content, cancel[0]), -ECANCELED);
	for (size_t i = 0; i < 2; i++) {
		(void)close(full[i]);
		(void)close(cancel[i]);
	}
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_files_and_folders),
		CASE(test_long_names),
		CASE(test_what_is_refused),
		CASE(test_twice),
		CASE(test_caps),
		CASE(test_cut),
		CASE(test_bad_sum),
		CASE(test_cancel),
		CASE(test_round_trip),
		CASE(test_write_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
