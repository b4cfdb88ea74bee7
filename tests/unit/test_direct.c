/* SPDX-License-Identifier: Apache-2.0 */
/* The direct backend's parts, and the names by which native cells are found: words, folders, families, owners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "backend/direct/direct.h"
#include "base/id.h"
#include "base/str.h"

/* Of backend/native/cell.h, whose struct cell is another one. */
void cell_group_id(const char *id, pid_t owner, char dst[59]);
bool cell_group_parse(const char *name, char id[RUN_ID_LEN + 1], uint64_t ret[3]);

#define WORK "/tmp/x/work"
#define TEMP "/tmp/x/tmp"

static const struct scratch place = { .work = WORK, .temp = TEMP };

static void workspace_paths_become_paths_of_the_host(void **state UNUSED)
{
	static const struct {
		const char *word, *want;
	} rows[] = {
		{ "/workspace/main.py", WORK "/main.py" },
		{ "/workspace", WORK },
		{ "--outfile=/workspace/a", "--outfile=" WORK "/a" },
		{ "GOPATH=/workspace/.go:/workspace", "GOPATH=" WORK "/.go:" WORK },
		{ "x='/workspace';y=\"/workspace\"", "x='" WORK "';y=\"" WORK "\"" },
		{ "/workspaces/a", "/workspaces/a" },
		{ "/home/workspace/a", "/home/workspace/a" },
		{ "plain", "plain" },
		{ "", "" },
	};
	const char *words[ARRAY_LEN(rows) + 1] = { NULL };
	const struct plan plan = { .argv = NULL };
	char **got;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		words[i] = rows[i].word;
	got = words_on_host(&plan, &place, words);
	assert_non_null(got);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(got[i], rows[i].want);
	assert_null(got[ARRAY_LEN(rows)]);
	free(got);
}

static void temporary_files_have_a_place_of_their_own(void **state UNUSED)
{
	static const char *const words[] = {
		"HOME=/tmp",      "GOCACHE=/tmp/go-build", "A=/tmpfs", "B=x:/tmp", "C=/tmp:/usr",
		"D=/workspace/a", "E=/tmp/../workspace",   "/tmp",     NULL
	};
	static const char *const want[] = {
		"HOME=" TEMP,   "GOCACHE=" TEMP "/go-build", "A=/tmpfs", "B=x:/tmp", "C=/tmp:/usr",
		"D=" WORK "/a", "E=" TEMP "/../workspace",   "/tmp"
	};
	const struct plan plan = { .envp = words };
	char **got = words_on_host(&plan, &place, words);

	assert_non_null(got);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_string_equal(got[i], want[i]);
	free(got);
}

static void a_shown_tool_is_run_where_it_is(void **state UNUSED)
{
	const struct plan_bind bind = { .source = "/home/u/esbuild", .target = "/opt/brig/esbuild" };
	const char *const argv[] = { "/opt/brig/esbuild", "/opt/brig/esbuild", NULL };
	const struct plan plan = { .argv = argv, .binds = &bind, .n_binds = 1 };
	char **got = words_on_host(&plan, &place, argv);

	assert_non_null(got);
	assert_string_equal(got[0], "/home/u/esbuild");
	assert_string_equal(got[1], "/opt/brig/esbuild");
	free(got);
}

struct seen {
	const char *id;
	int count, orphans;
};

static int see(void *arg, const struct cell_entry *e)
{
	struct seen *s = arg;

	if (str_eq(e->id, s->id)) {
		s->count++;
		s->orphans += e->orphan;
	}
	return 0;
}

/* A folder as deep and as odd as a program may leave it. */
static void litter(int dir)
{
	assert_int_equal(mkdirat(dir, "closed", 0700), 0);
	assert_int_equal(symlinkat("/etc", dir, "link"), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	for (int i = 0; i < 200; i++) {
		int next;

		assert_int_equal(mkdirat(dir, "deep", 0700), 0);
		next = openat(dir, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		if (i > 0)
			(void)close(dir);
		dir = next;
	}
	(void)close(dir);
}

static void a_folder_has_an_owner_while_its_lock_is_held(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct scratch s = { .lock = FD_NONE, .dir = FD_NONE };
	char id[RUN_ID_LEN + 1], path[SCRATCH_PATH_MAX];
	struct seen seen = { .id = id };

	assert_int_equal(id_random(id, RUN_ID_LEN), 0);
	assert_int_equal(scratch_make(&s, id, &err), 0);
	litter(s.dir);
	assert_int_equal(scratch_list(NULL, see, &seen, &err), 0);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.orphans, 0);
	seen.count = 0;
	assert_int_equal(scratch_reap(NULL, see, &seen, &err), 0);
	assert_int_equal(seen.count, 0); /* a living owner's is not touched */
	assert_int_equal(access(s.path, F_OK), 0);
	(void)str_copy(path, sizeof(path), s.path);
	fd_closep(&s.dir);
	fd_closep(&s.lock); /* what the kernel does for an owner that dies */
	assert_int_equal(scratch_reap(NULL, see, &seen, &err), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access("/etc/passwd", F_OK), 0); /* the link was not followed */
}

static void a_removed_folder_is_gone_whatever_is_in_it(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct scratch s = { .lock = FD_NONE, .dir = FD_NONE };
	char id[RUN_ID_LEN + 1], path[SCRATCH_PATH_MAX];

	assert_int_equal(id_random(id, RUN_ID_LEN), 0);
	assert_int_equal(scratch_make(&s, id, &err), 0);
	assert_true(scratch_make(&(struct scratch){ .lock = FD_NONE, .dir = FD_NONE }, id, &err) < 0); /* taken */
	litter(s.dir);
	(void)str_copy(path, sizeof(path), s.path);
	assert_int_equal(scratch_remove(&s), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(scratch_remove(&s), 0); /* once more is fine */
}

/* A hard link to somebody's file, as kernels without fs.protected_hardlinks let everybody make it. */
static void files_of_others_are_not_read_back(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cell c = { .scratch = { .lock = FD_NONE, .dir = FD_NONE }, .uid = geteuid() + 1, .left = 0 };
	struct workspace_view view;
	char id[RUN_ID_LEN + 1];
	int fd;

	assert_int_equal(id_random(id, RUN_ID_LEN), 0);
	assert_int_equal(scratch_make(&c.scratch, id, &err), 0);
	fd = openat(c.scratch.dir, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && close(fd) == 0);
	assert_int_equal(direct_open_output(&c, "file"), -EPERM);
	c.spec.own_ids = true;
	assert_int_equal(direct_workspace(&c, &view, &err), 0);
	assert_true(view.whole && view.in_part);
	assert_int_equal(faccessat(view.fd, "file", F_OK, 0), -1);
	(void)close(view.fd);
	c.left = 1; /* somebody may still write */
	assert_true(direct_workspace(&c, &view, &err) < 0);
	assert_int_equal(scratch_remove(&c.scratch), 0);
}

static void descendants_are_found(void **state UNUSED)
{
	struct tree t = { .row = NULL };
	int ready[2], found = 0;
	pid_t child;
	char c;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		if (fork() == 0) {
			(void)!write(ready[1], "r", 1);
			(void)pause();
			_exit(0);
		}
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(tree_open(&t), 0);
	assert_int_equal(tree_read(&t, getpid()), 0);
	for (size_t i = 0; i < t.n; i++) {
		assert_false(t.row[i].inside && t.row[i].pid == getpid());
		found += t.row[i].inside;
	}
	assert_int_equal(found, 2);
	for (size_t i = 0; i < t.n; i++)
		if (t.row[i].inside)
			(void)kill(t.row[i].pid, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	tree_close(&t);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

static void a_group_names_its_owner(void **state UNUSED)
{
	static const char *const no_cells[] = {
		"brig-supervisor",
		"brig",
		"brig-abcdefghij234567",
		"brig-abcdefghij234567-1-2",
		"brig-abcdefghij234567-0-2-3",
		"brig-abcdefghij234567-1-2-3-4",
		"brig-abcdefghij234567--2-3",
		"brig-abcdefghij234567-1-x-3",
		"brig-ABCDEFGHIJ234567-1-2-3",
		"brig-abcdefghij23456-1-2-3",
		"brig-abcdefghij234567-99999999999-2-3",
	};
	char id[RUN_ID_LEN + 1], made[59], name[80];
	uint64_t owner[3];
	struct stat ns;

	cell_group_id("abcdefghij234567", getpid(), made);
	(void)snprintf(name, sizeof(name), "brig-%s", made);
	assert_true(cell_group_parse(name, id, owner));
	assert_string_equal(id, "abcdefghij234567");
	assert_int_equal(owner[0], getpid());
	assert_int_equal(stat("/proc/self/ns/pid", &ns), 0);
	assert_true(owner[2] == ns.st_ino);
	for (size_t i = 0; i < ARRAY_LEN(no_cells); i++)
		assert_false(cell_group_parse(no_cells[i], id, owner));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workspace_paths_become_paths_of_the_host),
		cmocka_unit_test(temporary_files_have_a_place_of_their_own),
		cmocka_unit_test(a_shown_tool_is_run_where_it_is),
		cmocka_unit_test(a_folder_has_an_owner_while_its_lock_is_held),
		cmocka_unit_test(a_removed_folder_is_gone_whatever_is_in_it),
		cmocka_unit_test(files_of_others_are_not_read_back),
		cmocka_unit_test(descendants_are_found),
		cmocka_unit_test(a_group_names_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
