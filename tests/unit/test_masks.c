/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the objects over hidden files were opened: each once, whatever was done with it, and by nobody but the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/native/masks.h"

#define FILES 5

static const char *const hidden[FILES] = { ".env", "keys/id_rsa", "secret", "gone.pem", "untouched" };

static char folder[] = "/tmp/test_masks-XXXXXX";
static int folder_fd = -1;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* "3" was not in the project, so nothing covers it. */
	if (close(openat(folder_fd, "0", O_WRONLY | O_CREAT | O_CLOEXEC, 0444)) < 0 ||
	    close(openat(folder_fd, "1", O_WRONLY | O_CREAT | O_CLOEXEC, 0444)) < 0 ||
	    mkdirat(folder_fd, "2", 0555) < 0)
		return -1;
	return close(openat(folder_fd, "4", O_WRONLY | O_CREAT | O_CLOEXEC, 0444));
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlinkat(folder_fd, "0", 0);
	(void)unlinkat(folder_fd, "1", 0);
	(void)unlinkat(folder_fd, "2", AT_REMOVEDIR);
	(void)unlinkat(folder_fd, "4", 0);
	(void)close(folder_fd);
	return rmdir(folder);
}

static void open_it(const char *name, int times)
{
	for (int i = 0; i < times; i++) {
		int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(close(fd), 0);
	}
}

static void what_was_opened_is_listed_once(void **state)
{
	struct denied d = { .n = 0 };
	struct masks_watch *w = masks_begin(folder_fd, FILES);
	struct stat st;

	(void)state;
	assert_non_null(w);
	open_it("1", 3);
	open_it("2", 1);
	open_it("1", 20000); /* more than an inotify queue holds */
	assert_int_equal(fstatat(folder_fd, "0", &st, 0), 0);
	masks_end(w);
	open_it("4", 1); /* ours, after the program's end */
	masks_list(w, hidden, &d);
	assert_int_equal(d.n, 2);
	assert_null(d.unseen);
	assert_int_equal(d.row[0].kind, DENIED_FILE);
	assert_string_equal(d.row[0].what, "keys/id_rsa");
	assert_string_equal(d.row[0].fix, "workspace_show: keys/id_rsa");
	assert_int_equal(d.row[0].count, 1);
	assert_string_equal(d.row[1].what, "secret");
	masks_free(w);
	denied_release(&d);
}

static void nothing_opened_is_nothing_listed(void **state)
{
	struct denied d = { .n = 0 };
	struct masks_watch *w = masks_begin(folder_fd, FILES);

	(void)state;
	masks_end(w);
	masks_end(w);
	masks_list(w, hidden, &d);
	assert_int_equal(d.n, 0);
	assert_null(d.unseen);
	masks_free(w);
	masks_end(NULL);
	masks_list(NULL, hidden, &d);
	masks_free(NULL);
}

/* As when the user has no watch left: what cannot be seen is said. */
static void what_cannot_be_watched_is_said(void **state)
{
	struct denied d = { .n = 0 };
	int file = openat(folder_fd, "0", O_RDONLY | O_CLOEXEC);
	struct masks_watch *w = masks_begin(file, FILES); /* no folder, so nothing in it */

	(void)state;
	assert_non_null(w);
	masks_end(w);
	masks_list(w, hidden, &d);
	assert_int_equal(d.n, 0);
	assert_non_null(d.unseen);
	masks_free(w);
	assert_int_equal(close(file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_opened_is_listed_once),
		cmocka_unit_test(nothing_opened_is_nothing_listed),
		cmocka_unit_test(what_cannot_be_watched_is_said),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
