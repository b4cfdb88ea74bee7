/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing into somebody's folder while somebody else does, or swaps folders under our hands: of two applies one is refused,
 * what an editor writes is not lost, and in a thousand rounds nothing outside is written or changed.  As root the one who
 * swaps is an ordinary user.
 */
#include "workspace_bed.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "files/folder.h"

#define ID     "abcdefghijklmnop"
#define OTHER  "qrstuvwxyzabcdef"
#define ROUNDS 500 /* of each race; there are two against applies, and two against the copying of artifacts */

/* ---- two writers --------------------------------------------------------------------------------- */

static void test_w6_an_apply_waits_for_the_lock(void **state)
{
	AUTO_FOLDER project = FOLDER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD lock = FD_NONE, other = FD_NONE;

	(void)state;
	assert_int_equal(folder_open(in_folder("project"), "project", true, &project, &err), 0);
	assert_int_equal(folder_lock(&project, &lock, &err), 0);
	other = open_at("project");
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	fd_closep(&lock);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
}

/* In another process; its exit status is 0 if it was applied, 1 if it was refused. */
static pid_t apply_beside(const char *id, int gate)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct brig_error err;
		char go;
		int rc;

		(void)!read(gate, &go, 1);
		rc = apply_as(id, NULL, &err);
		_exit(rc == 0 ? 0 : rc == -BRIG_E_REFUSED ? 1 : 2);
	}
	return pid;
}

static int status_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_w6_of_two_applies_one_is_refused(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		struct brig_error err;
		int gate[2], first, second;
		pid_t a, b;

		put("project/edit", "one\n");
		put("view/edit", "two\n");
		collect_as(ID);
		put("view/edit", "three\n");
		collect_as(OTHER);
		assert_int_equal(pipe(gate), 0);
		a = apply_beside(ID, gate[0]);
		b = apply_beside(OTHER, gate[0]);
		assert_int_equal(write(gate[1], "go", 2), 2);
		first = status_of(a);
		second = status_of(b);
		(void)close(gate[0]);
		(void)close(gate[1]);
		if (first + second != 1)
			fail_msg("round %d: %d and %d", i, first, second);
		assert_text("project/edit", first == 0 ? "two\n" : "three\n");
		(void)changeset_discard(&state_dir, ID, &err);
		(void)changeset_discard(&state_dir, OTHER, &err);
	}
}

/* An editor that knows no lock: it writes a file beside, and gives it the name at some moment of the apply. */
static pid_t edit_beside(int gate, unsigned after_us)
{
	pid_t pid = fork();
	char go;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)!read(gate, &go, 1);
	(void)usleep(after_us);
	_exit(renameat(top, "edited", top, "project/edit") < 0);
}

static bool has_text(const char *path, const char *want)
{
	char text[64];
	AUTO_FD fd = beneath_open_file(top, path, NULL);
	ssize_t n = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return str_eq(text, want);
}

/* Whenever it comes: before, and the apply is refused; after, and it stands; in between, and it is put back. */
static void test_w6_an_editor_is_noticed_at_the_exchange(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 150; i++) {
		struct brig_error err;
		int gate[2];
		pid_t editor;
		bool kept;

		put("project/edit", "one\n");
		put("view/edit", "guest\n");
		put("./edited", "editor\n");
		collect_as(ID);
		assert_int_equal(pipe(gate), 0);
		editor = edit_beside(gate[0], 3 * i);
		assert_int_equal(write(gate[1], "g", 1), 1);
		(void)apply_as(ID, NULL, &err);
		assert_int_equal(status_of(editor), 0);
		(void)close(gate[0]);
		(void)close(gate[1]);
		kept = has_text("project/edit", "editor\n") || has_text("project/.brig-apply-" ID "/new-0", "editor\n");
		if (!kept)
			fail_msg("round %u: what the editor wrote is lost (%s)", i, err.msg);
		(void)changeset_discard(&state_dir, ID, &err);
		(void)temp_folder_remove(in_folder("project/.brig-apply-" ID));
	}
}

/* ---- swapped folders ----------------------------------------------------------------------------- */

#define OWNER 12345 /* an ordinary user who owns the project and the folder above it */

/* Changes places as fast as it can, as the owner, until it is killed; it has begun when this returns. */
static pid_t swap_for_ever(const char *a, const char *b)
{
	int begun[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(begun), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(OWNER) < 0 || setuid(OWNER) < 0))
			_exit(1);
		if (renameat2(top, a, top, b, RENAME_EXCHANGE) < 0 || write(begun[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)renameat2(top, a, top, b, RENAME_EXCHANGE);
	}
	(void)close(begun[1]);
	assert_int_equal(read(begun[0], &byte, 1), 1);
	(void)close(begun[0]);
	return pid;
}

static void stop(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void give_all(void)
{
	static const char *const names[] = { ".",   "project", "project/edit", "project/sub", "project/sub/x",
					     "out", "out/sub" };

	for (size_t i = 0; i < ARRAY_LEN(names) && geteuid() == 0; i++)
		if (is_there(names[i]))
			assert_int_equal(fchownat(top, names[i], OWNER, OWNER, AT_SYMLINK_NOFOLLOW), 0);
}

/* The folder above all is the owner's; what must not be written is root's, and he has a link to it. */
static void assert_outside_untouched(void)
{
	AUTO_FD fd = open_at("outside");
	struct stat st;

	assert_text("outside/edit", "one\n");
	assert_int_equal(fstatat(fd, "sub/x", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(faccessat(fd, "new", F_OK, 0), -1);
	assert_int_equal(faccessat(fd, "sub/new", F_OK, 0), -1);
	assert_int_equal(mode_of("outside/sub"), 0755);
}

static void put_outside(void)
{
	put("outside/edit", "one\n");
	put("outside/sub/x", "x");
	put_link("decoy", "outside");
}

/* What is in the project after a round is all of the old or all of the new. */
static void assert_all_or_nothing(const char *project, bool applied)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/edit", project);
	assert_text(path, applied ? "two\n" : "one\n");
	(void)snprintf(path, sizeof(path), "%s/new", project);
	assert_int_equal(is_there(path), applied);
	(void)snprintf(path, sizeof(path), "%s/.brig-apply-" ID, project);
	assert_false(is_there(path));
}

static void reset_project(const char *project)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/edit", project);
	put(path, "one\n");
	(void)snprintf(path, sizeof(path), "%s/new", project);
	(void)unlinkat(top, path, 0);
	(void)snprintf(path, sizeof(path), "%s/sub/new", project);
	(void)unlinkat(top, path, 0);
}

/* The project changes places with a link to root's folder, all the time. */
static void test_w2_swapped_project(void **state)
{
	size_t done = 0;

	(void)state;
	put_outside();
	put("project/edit", "one\n");
	put("project/sub/x", "x");
	put("view/edit", "two\n");
	put("view/new", "new");
	put("view/sub/new", "new");
	set_mode("view/sub", 0700);
	give_all();
	for (int i = 0; i < ROUNDS; i++) {
		struct brig_error err;
		const char *project;
		pid_t swapper;
		bool applied;

		reset_project("project");
		set_mode("project/sub", 0755);
		if (!is_there("state/workspaces/" ID)) /* applied in the last round; keeping waits for the disk */
			collect_as(ID);
		swapper = swap_for_ever("project", "decoy");
		applied = apply_as(ID, NULL, &err) == 0;
		stop(swapper);
		if (!applied && err.code != BRIG_E_REFUSED)
			fail_msg("round %d: %s", i, err.msg);
		project = faccessat(top, "decoy", F_OK, AT_SYMLINK_NOFOLLOW) == 0 && mode_of("decoy") != 0777
				  ? "decoy"
				  : "project";
		assert_all_or_nothing(project, applied);
		assert_outside_untouched();
		if (str_eq(project, "decoy"))
			assert_int_equal(renameat2(top, "project", top, "decoy", RENAME_EXCHANGE), 0);
		done += applied;
	}
	print_message("%zu of %d rounds were applied\n", done, ROUNDS);
}

/* A folder in the project changes places with one of root's, whose permissions must stay. */
static void test_w7_swapped_folder(void **state)
{
	(void)state;
	put("project/edit", "one\n");
	put("project/sub/x", "x");
	put("project/roots/x", "x"); /* not the owner's, but he may rename it: the folder above is his */
	put("view/edit", "two\n");
	put("view/new", "new");
	put("view/sub/new", "new");
	set_mode("view/sub", 0711);
	give_all();
	for (int i = 0; i < ROUNDS; i++) {
		struct brig_error err;
		struct stat roots;
		pid_t swapper;
		AUTO_FD held = open_at("project/roots");

		reset_project("project");
		set_mode("project/sub", 0755);
		if (!is_there("state/workspaces/" ID)) /* applied in the last round; keeping waits for the disk */
			collect_as(ID);
		swapper = swap_for_ever("project/sub", "project/roots");
		(void)apply_as(ID, NULL, &err);
		stop(swapper);
		assert_int_equal(fstat(held, &roots), 0);
		if ((roots.st_mode & 07777) != 0755)
			fail_msg("round %d: root's folder has mode %04o", i, roots.st_mode & 07777);
		/* What came into the one folder cannot be taken back from the other: then brig says so, and this stays. */
		(void)temp_folder_remove(in_folder("project/.brig-apply-" ID));
		{
			AUTO_FD now = open_at("project/roots");
			struct stat st;

			assert_int_equal(fstat(now, &st), 0);
			if (st.st_ino != roots.st_ino)
				assert_int_equal(renameat2(top, "project/sub", top, "project/roots", RENAME_EXCHANGE),
						 0);
		}
		(void)unlinkat(top, "project/roots/new", 0);
	}
}

/* ---- artifacts ----------------------------------------------------------------------------------- */

/* The folder for artifacts, and one in it, change places with links to root's folder. */
static void race_of_artifacts(const char *a, const char *b)
{
	AUTO_FOLDER out = FOLDER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct artifacts got = { .row = NULL };
	pid_t swapper;

	put_outside();
	assert_int_equal(beneath_make_dirs(top, "out/sub"), 0);
	assert_int_equal(renameat(top, "decoy", top, b), 0);
	put("view/new", "new");
	put("view/sub/new", "new");
	give_all();
	assert_int_equal(folder_open(in_folder("out"), "folder", false, &out, &err), 0);
	swapper = swap_for_ever(a, b);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(fetch_into(&out, i % 2, NULL, &got), 0);
		artifacts_release(&got);
		(void)unlinkat(out.fd, "new", 0);
	}
	stop(swapper);
	assert_outside_untouched();
}

static void test_w4_swapped_folder_for_artifacts(void **state)
{
	(void)state;
	race_of_artifacts("out", "decoy");
}

static void test_w4_swapped_folder_in_it(void **state)
{
	(void)state;
	race_of_artifacts("out/sub", "out/decoy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_w2_swapped_project),
		TEST(test_w4_swapped_folder_for_artifacts),
		TEST(test_w4_swapped_folder_in_it),
		TEST(test_w6_an_apply_waits_for_the_lock),
		TEST(test_w6_of_two_applies_one_is_refused),
		TEST(test_w6_an_editor_is_noticed_at_the_exchange),
		TEST(test_w7_swapped_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
