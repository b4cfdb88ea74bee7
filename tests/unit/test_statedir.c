/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: where it is, how it is made, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/statedir.h"
#include "temp_folder.h"

struct bed {
	char base[64];
	char path[128];
};

static int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	(void)str_copy(b->base, sizeof(b->base), "/tmp/test-statedir-XXXXXX");
	assert_non_null(mkdtemp(b->base));
	(void)snprintf(b->path, sizeof(b->path), "%s/a/b/state", b->base);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *b = *state;

	(void)temp_folder_remove(b->base);
	free(b);
	return 0;
}

static struct statedir open_made(const struct bed *b)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct statedir d = STATEDIR_INIT;

	if (statedir_open(b->path, true, &d, &err) < 0)
		fail_msg("%s", err.msg);
	return d;
}

static void expect_refusal(const char *path, int sys, const char *words)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct statedir d = STATEDIR_INIT;

	assert_int_equal(statedir_open(path, true, &d, &err), -BRIG_E_REFUSED);
	assert_int_equal(d.fd, FD_NONE);
	if (sys)
		assert_int_equal(err.sys, sys);
	if (!strstr(err.msg, words))
		fail_msg("'%s' is not in '%s'", words, err.msg);
}

static void it_is_made_for_us_alone(void **state)
{
	struct bed *b = *state;
	struct statedir d;
	struct stat st;
	mode_t was = umask(0);

	d = open_made(b);
	(void)umask(was);
	assert_int_equal(fstat(d.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_string_equal(d.path, b->path);
	statedir_close(&d);
	d = open_made(b); /* it is there now */
	statedir_close(&d);
}

static void it_is_not_made_for_readers(void **state)
{
	struct bed *b = *state;
	struct brig_error err = BRIG_ERROR_INIT;
	struct statedir d = STATEDIR_INIT;

	assert_int_equal(statedir_open(b->path, false, &d, &err), -BRIG_E_REFUSED);
	assert_int_equal(err.sys, ENOENT);
	assert_int_equal(access(b->path, F_OK), -1);
}

static void links_are_refused(void **state)
{
	struct bed *b = *state;
	char link[160], slash[170];
	struct statedir d = open_made(b);

	statedir_close(&d);
	(void)snprintf(link, sizeof(link), "%s/link", b->base);
	assert_int_equal(symlink(b->path, link), 0);
	expect_refusal(link, ELOOP, "link");
	(void)snprintf(slash, sizeof(slash), "%s///", link);
	expect_refusal(slash, ELOOP, "link");
}

static void what_others_can_write_is_refused(void **state)
{
	struct bed *b = *state;
	struct statedir d = open_made(b);

	statedir_close(&d);
	assert_int_equal(chmod(b->path, 0770), 0);
	expect_refusal(b->path, 0, "can be written by others");
	assert_int_equal(chmod(b->path, 0702), 0);
	expect_refusal(b->path, 0, "chmod go-w");
	assert_int_equal(chmod(b->path, 0755), 0);
	d = open_made(b);
	statedir_close(&d);
}

static void a_file_in_its_place_is_refused(void **state)
{
	struct bed *b = *state;
	char file[160];
	int fd;

	(void)snprintf(file, sizeof(file), "%s/file", b->base);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	close(fd);
	expect_refusal(file, ENOTDIR, "stands where");
}

static void the_folder_of_another_user_is_refused(void **state)
{
	struct bed *b = *state;
	struct statedir d;

	if (geteuid() != 0)
		skip(); /* only root can give it away */
	d = open_made(b);
	statedir_close(&d);
	assert_int_equal(chown(b->path, 12345, 12345), 0);
	expect_refusal(b->path, 0, "belongs to user 12345");
}

static void places_follow_the_environment(void **state)
{
	struct bed *b = *state;
	struct brig_error err = BRIG_ERROR_INIT;
	char path[256], was[256] = "";

	if (getenv("BRIG_STATE"))
		(void)str_copy(was, sizeof(was), getenv("BRIG_STATE"));
	assert_int_equal(setenv("BRIG_STATE", b->path, 1), 0);
	assert_int_equal(statedir_path(NULL, path, sizeof(path), &err), 0);
	assert_string_equal(path, b->path);
	assert_int_equal(statedir_path("/wanted", path, sizeof(path), &err), 0);
	assert_string_equal(path, "/wanted");
	assert_int_equal(unsetenv("BRIG_STATE"), 0);
	assert_int_equal(statedir_path("", path, sizeof(path), &err), 0);
	if (geteuid() == 0)
		assert_string_equal(path, "/var/lib/brig");
	else
		assert_non_null(strstr(path, "/brig"));
	if (*was)
		assert_int_equal(setenv("BRIG_STATE", was, 1), 0);
}

/* ---- files ---------------------------------------------------------------------------------------- */

static void files_are_for_us_alone(void **state)
{
	struct statedir d = open_made(*state);
	struct brig_error err = BRIG_ERROR_INIT;
	mode_t was = umask(0);
	struct stat st;
	int fd = statedir_open_file(&d, "file", O_RDWR | O_CREAT, &err);

	(void)umask(was);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fchmod(fd, 0620), 0);
	close(fd);
	assert_int_equal(statedir_open_file(&d, "file", O_RDONLY, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "can be written by others"));
	statedir_close(&d);
}

static void planted_things_are_refused(void **state)
{
	struct statedir d = open_made(*state);
	struct brig_error err = BRIG_ERROR_INIT;

	assert_int_equal(symlinkat("/etc/passwd", d.fd, "link"), 0);
	assert_int_equal(statedir_open_file(&d, "link", O_RDONLY, &err), -BRIG_E_REFUSED);
	assert_int_equal(err.sys, ELOOP);
	assert_int_equal(symlinkat("nowhere", d.fd, "dangling"), 0);
	assert_int_equal(statedir_open_file(&d, "dangling", O_RDWR | O_CREAT, &err), -BRIG_E_REFUSED);
	assert_int_equal(mkfifoat(d.fd, "fifo", 0600), 0);
	assert_int_equal(statedir_open_file(&d, "fifo", O_RDONLY, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "not a regular file"));
	assert_int_equal(mkdirat(d.fd, "folder", 0700), 0);
	assert_true(statedir_open_file(&d, "folder", O_RDONLY, &err) < 0);
	assert_int_equal(symlinkat("folder", d.fd, "sub"), 0);
	assert_int_equal(statedir_open_sub(&d, "sub", true, &d, &err), -BRIG_E_REFUSED);
	assert_int_equal(err.sys, ELOOP);
	statedir_close(&d);
}

static void small_files_are_replaced_whole(void **state)
{
	struct statedir d = open_made(*state);
	struct brig_error err = BRIG_ERROR_INIT;
	char text[8];

	assert_int_equal(statedir_replace(&d, "small", "one", 3, &err), 0);
	assert_int_equal(statedir_read(&d, "small", text, sizeof(text), &err), 3);
	assert_string_equal(text, "one");
	assert_int_equal(statedir_replace(&d, "small", "seven77", 7, &err), 0);
	assert_int_equal(statedir_read(&d, "small", text, sizeof(text), &err), 7);
	assert_int_equal(statedir_replace(&d, "small", "eight888", 8, &err), 0);
	assert_true(statedir_read(&d, "small", text, sizeof(text), &err) < 0);
	assert_int_equal(err.sys, EFBIG);
	assert_int_equal(faccessat(d.fd, "small.new", F_OK, 0), -1);
	statedir_close(&d);
}

static void locks_have_patience(void **state)
{
	struct statedir d = open_made(*state);
	struct brig_error err = BRIG_ERROR_INIT;
	int a = statedir_open_file(&d, "lock", O_RDWR | O_CREAT, &err);
	int b = statedir_open_file(&d, "lock", O_RDWR, &err);

	assert_int_equal(fd_lock(a, LOCK_EX, 0), 0);
	assert_int_equal(fd_lock(b, LOCK_EX, 0), -ETIMEDOUT);
	assert_int_equal(fd_lock(b, LOCK_SH, 20 * NS_PER_MS), -ETIMEDOUT);
	close(a); /* as the kernel does when a holder dies */
	assert_int_equal(fd_lock(b, LOCK_EX, 60 * NS_PER_SEC), 0);
	close(b);
	assert_int_equal(fd_lock(-1, LOCK_EX, 0), -EBADF);
	statedir_close(&d);
}

static void the_time_of_day_moves(void **state UNUSED)
{
	assert_true(clock_wall_ns() > 1600000000 * NS_PER_SEC);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_is_made_for_us_alone),
		CASE(it_is_not_made_for_readers),
		CASE(links_are_refused),
		CASE(what_others_can_write_is_refused),
		CASE(a_file_in_its_place_is_refused),
		CASE(the_folder_of_another_user_is_refused),
		CASE(places_follow_the_environment),
		CASE(files_are_for_us_alone),
		CASE(planted_things_are_refused),
		CASE(small_files_are_replaced_whole),
		CASE(locks_have_patience),
		CASE(the_time_of_day_moves),
	};

	return cmocka_run_group_tests_name("statedir", tests, NULL, NULL);
}
