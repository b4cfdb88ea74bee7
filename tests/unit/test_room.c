/* SPDX-License-Identifier: Apache-2.0 */
/* Room for changesets: a ceiling for all together, the oldest first, holes stay holes, and several at once. */
#include "workspace_bed.h"

#include <sys/file.h>
#include <sys/wait.h>

#define BLOCKS (300 * KiB) /* of one changeset, so that three fit below 1 MiB */

/* Collects view/ under an id; 0, or what workspace_collect() says. */
static int keep_as(const char *id, struct changes *ret)
{
	struct workspace *w = open_project();
	struct workspace_view view = { .fd = open_at("view"), .whole = true };
	const struct collect_ask ask = { .workspace = w, .view = &view, .state = &state_dir, .id = id, .set = &set };
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = workspace_collect(&ask, ret, &err);

	(void)close(view.fd);
	workspace_close(w);
	return rc;
}

static void put_bytes(const char *path, size_t len, char byte)
{
	char *data = malloc(len + 1);

	assert_non_null(data);
	memset(data, byte, len);
	data[len] = '\0';
	put(path, data);
	free(data);
}

static void keep(const char *id, size_t len)
{
	put_bytes("view/file", len, *id);
	changes_release(&changes);
	assert_int_equal(keep_as(id, &changes), 0);
}

static bool is_kept(const char *id)
{
	char path[80];

	(void)snprintf(path, sizeof(path), "state/workspaces/%s", id);
	return is_there(path);
}

/* Made so many seconds after the first second. */
static void set_age(const char *id, long sec)
{
	const struct timespec then[2] = { { .tv_sec = sec }, { .tv_sec = sec } };
	char path[80];

	(void)snprintf(path, sizeof(path), "state/workspaces/%s/head.json", id);
	assert_int_equal(utimensat(top, path, then, 0), 0);
}

static uint64_t usage(uint64_t *count)
{
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t bytes;

	assert_int_equal(changeset_usage(&state_dir, count, &bytes, &err), 0);
	return bytes;
}

static void d2_the_oldest_go_first(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_equal(usage(&n), 0);
	assert_int_equal(n, 0);
	set.changes_size = 1 * MiB;
	keep("aaa", BLOCKS);
	set_age("aaa", 3000);
	keep("bbb", BLOCKS);
	set_age("bbb", 1000); /* the oldest, though not the first by name */
	keep("ccc", BLOCKS);
	set_age("ccc", 2000);
	assert_int_equal(changes.forgotten, 0);
	assert_true(is_kept("aaa") && is_kept("bbb") && is_kept("ccc"));
	keep("ddd", BLOCKS);
	assert_int_equal(changes.state, CHANGES_KEPT);
	assert_int_equal(changes.forgotten, 1);
	assert_true(is_kept("aaa") && !is_kept("bbb") && is_kept("ccc") && is_kept("ddd"));
	assert_in_range(usage(&n), 3 * BLOCKS, set.changes_size);
	assert_int_equal(n, 3);
	keep("eee", 2 * BLOCKS);
	assert_int_equal(changes.forgotten, 2);
	assert_true(!is_kept("aaa") && !is_kept("ccc") && is_kept("ddd") && is_kept("eee"));
}

static void d2_one_that_is_too_large_is_not_kept(void **state)
{
	uint64_t n;

	(void)state;
	set.changes_size = 1 * MiB;
	keep("aaa", BLOCKS);
	keep("bbb", 2 * MiB);
	assert_int_equal(changes.state, CHANGES_INCOMPLETE);
	assert_true(changes.too_large);
	assert_int_equal(changes.n, 1);
	assert_true(changes.row[0].hashed); /* listed as ever */
	assert_true(is_kept("aaa") && !is_kept("bbb") && !is_kept(".new-bbb"));
	(void)usage(&n);
	assert_int_equal(n, 1);
	keep("ccc", BLOCKS);
	assert_int_equal(changes.state, CHANGES_KEPT);
}

/* Somebody looks at it or applies it just now. */
static void d2_one_in_use_stays(void **state)
{
	AUTO_FD used = FD_NONE;

	(void)state;
	set.changes_size = 1 * MiB;
	keep("aaa", BLOCKS);
	set_age("aaa", 1000);
	keep("bbb", BLOCKS);
	set_age("bbb", 2000);
	keep("ccc", BLOCKS);
	used = open_at("state/workspaces/aaa");
	assert_int_equal(flock(used, LOCK_EX), 0);
	keep("ddd", BLOCKS);
	assert_true(is_kept("aaa") && !is_kept("bbb") && is_kept("ccc") && is_kept("ddd"));
}

static void d2_holes_stay_holes(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD fd = FD_NONE;
	struct stat st;
	uint64_t n;

	(void)state;
	set.changes_size = 1 * MiB;
	put("view/sparse", "head");
	fd = openat(top, "view/sparse", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "tail", 4, 32 * MiB), 4);
	assert_int_equal(ftruncate(fd, 48 * MiB), 0);
	changes_release(&changes);
	assert_int_equal(keep_as("aaa", &changes), 0);
	assert_int_equal(changes.state, CHANGES_KEPT);
	assert_in_range(usage(&n), 1, 256 * KiB);
	/* And what is applied is the same file, with its holes. */
	assert_int_equal(changeset_apply(&state_dir, "aaa", NULL, false, NULL, &err), 0);
	assert_int_equal(fstatat(top, "project/sparse", &st, 0), 0);
	assert_int_equal(st.st_size, 48 * MiB);
	assert_in_range(st.st_blocks * 512, 1, 256 * KiB);
}

/* The same bytes under many names are kept, and counted, once. */
static void d2_equal_contents_count_once(void **state)
{
	(void)state;
	set.changes_size = 1 * MiB;
	for (int i = 0; i < 8; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "view/copy%d", i);
		put_bytes(path, BLOCKS, 'x');
	}
	changes_release(&changes);
	assert_int_equal(keep_as("aaa", &changes), 0);
	assert_int_equal(changes.state, CHANGES_KEPT);
}

static void d2_several_at_once_stay_below(void **state)
{
	enum { KEEPERS = 6, ROUNDS = 5 };
	uint64_t n;
	int status;

	(void)state;
	set.changes_size = 1 * MiB;
	put_bytes("view/file", BLOCKS, 'x');
	for (int k = 0; k < KEEPERS; k++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (child > 0)
			continue;
		for (int i = 0; i < ROUNDS; i++) {
			struct changes own = { .known = false };
			char id[32];

			(void)snprintf(id, sizeof(id), "run%d%d", k, i);
			if (keep_as(id, &own) < 0 || own.state != CHANGES_KEPT)
				_exit(1);
			changes_release(&own);
		}
		_exit(0);
	}
	for (int k = 0; k < KEEPERS; k++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_in_range(usage(&n), 3 * BLOCKS, set.changes_size);
	assert_int_equal(n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(d2_the_oldest_go_first),       TEST(d2_one_that_is_too_large_is_not_kept),
		TEST(d2_one_in_use_stays),          TEST(d2_holes_stay_holes),
		TEST(d2_equal_contents_count_once), TEST(d2_several_at_once_stay_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
