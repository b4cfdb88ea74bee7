/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a caller names, and the one of a project that a staged file covers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "files/pack.h"
#include "model/workspace.h"
#include "tree_bed.h"

static const struct pack_caps roomy = { .entries = 10000, .bytes = 64 * MiB };
static const struct unpack_options into = { .caps = { .entries = 10000, .bytes = 64 * MiB },
					    .uid = UINT32_MAX,
					    .gid = UINT32_MAX };

/* Whatever a caller's path leads to, only what was asked for is opened, and nothing waits. */
static void fifo_is_never_opened_by_name(void **state)
{
	struct stat st;
	char path[128];
	int ends[2];

	(void)state;
	put_file(tree, "plain", "x");
	assert_int_equal(mkfifoat(tree, "fifo", 0600), 0);
	assert_int_equal(symlinkat("fifo", tree, "link"), 0);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/tree/%s", folder, i == 0 ? "fifo" : "link");
		assert_int_equal(file_open(path, FILE_STREAMS | FILE_FOLDERS | FILE_DEVICES, &st), -EINVAL);
		assert_string_equal(file_kind(st.st_mode), "a FIFO");
	}
	assert_int_equal(file_open("/dev/null", FILE_STREAMS, &st), -EINVAL);
	assert_int_equal(file_open(folder, FILE_STREAMS, &st), -EINVAL);
	assert_int_equal(file_open("/no/such/file", 0, &st), -ENOENT);
	(void)snprintf(path, sizeof(path), "%s/tree/plain", folder);
	{
		AUTO_FD fd = file_open(path, 0, &st);
		AUTO_FD device = file_open("/dev/null", FILE_DEVICES, &st);

		assert_true(fd >= 0 && device >= 0);
	}
	/* A pipe that we hold is a stream, by its number. */
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	{
		AUTO_FD fd = file_open(path, FILE_STREAMS, &st);

		assert_true(fd >= 0 && S_ISFIFO(st.st_mode));
		assert_int_equal(file_open(path, 0, &st), -EINVAL);
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
}

struct swapping {
	atomic_bool over;
};

static void *swap_main(void *arg)
{
	struct swapping *s = arg;

	while (!atomic_load(&s->over)) {
		(void)renameat(outside, "other", tree, "main.py");
		(void)renameat(tree, "main.py", outside, "other");
	}
	return NULL;
}

/* A file that is covered does not travel, however often its owner swaps it. */
static void i2_covered_file_is_never_packed(void **state)
{
	const struct plan_workspace w = { .fd = tree, .covered = "main.py" };
	struct swapping s = { .over = false };
	AUTO_FD copy = fresh("copy");
	pthread_t thread;

	(void)state;
	put_file(outside, "other", "print('swapped')");
	put_file(tree, "sib.py", "x = 1");
	assert_int_equal(pthread_create(&thread, NULL, swap_main, &s), 0);
	for (int i = 0; i < 1000; i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		struct pack_counts counts;
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		assert_int_equal(
			pack_tree(tree, &roomy, plan_workspace_hides, (void *)(uintptr_t)&w, pair[0], &counts, &err),
			0);
		assert_int_equal(unpack_tree(copy, pair[1], &into, &counts), 0);
		assert_int_equal(faccessat(copy, "main.py", F_OK, AT_SYMLINK_NOFOLLOW), -1);
		assert_int_equal(unlinkat(copy, "sib.py", 0), 0);
		(void)close(pair[0]);
		(void)close(pair[1]);
	}
	atomic_store(&s.over, true);
	(void)pthread_join(thread, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fifo_is_never_opened_by_name),
		TEST(i2_covered_file_is_never_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
