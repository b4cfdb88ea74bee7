/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces without cells: what counts as changed, what is moved over and what never is. */
#include "workspace_bed.h"

#include <sys/mman.h>

#include "files/pack.h"

#define ID "abcdefghijklmnop"

/* Collects view/ into changes. */
static void collect(bool whole)
{
	static const char *const ours[] = { "main.py" };

	collect_view(ID, whole, ours, ARRAY_LEN(ours));
}

/* "+added ~modified -deleted", types as / for folders, @ for links, ! for others. */
static void assert_changes(const char *want)
{
	AUTO_BUF text = BUF_INIT(65536);

	for (size_t i = 0; i < changes.n; i++)
		(void)buf_addf(&text, "%s%c%s%.1s", i ? " " : "", "+~-"[changes.row[i].kind], changes.row[i].path,
			       (const char *[]){ "", "/", "@", "!" }[changes.row[i].type]);
	assert_string_equal(buf_str(&text), want);
}

static int apply(struct brig_error *err)
{
	AUTO_BUF skipped = BUF_INIT(4096);

	*err = (struct brig_error)BRIG_ERROR_INIT;
	return changeset_apply(&state_dir, ID, NULL, false, &skipped, err);
}

static void assert_applied(void)
{
	struct brig_error err;

	if (apply(&err) < 0)
		fail_msg("%s", err.msg);
	assert_false(is_there("project/.brig-apply-" ID));
	assert_false(is_there("state/workspaces/" ID));
}

static void assert_refused(const char *word)
{
	struct brig_error err;

	assert_int_equal(apply(&err), -BRIG_E_REFUSED);
	if (!strstr(err.msg, word))
		fail_msg("'%s' is not in: %s", word, err.msg);
	assert_false(is_there("project/.brig-apply-" ID));
}

/* ---- collecting -------------------------------------------------------------------------------- */

static void put_project(void)
{
	put("project/same", "same");
	put("project/edit", "one\ntwo\nthree\n");
	put("project/gone", "gone");
	put("project/dir/a", "a");
	put("project/dir/sub/b", "b");
	put("project/mode", "mode");
	put("project/.env", "SECRET=1");
	put("project/.git/HEAD", "ref");
	put_link("project/link", "same");
}

static void put_edits_of_overlay(void)
{
	put("view/same", "same"); /* written again */
	put("view/edit", "one\n2\nthree\n");
	put("view/new", "new");
	put("view/newdir/x", "x");
	put_whiteout("view/gone");
	put_whiteout("view/dir");
	put("view/mode", "mode");
	assert_int_equal(fchmodat(top, "view/mode", 0755, 0), 0);
	put("view/main.py", "staged");
}

static const char edited[] = "-dir/ -dir/a -dir/sub/ -dir/sub/b ~edit -gone ~mode +new +newdir/ +newdir/x";

static void test_collect_overlay(void **state)
{
	(void)state;
	put_project();
	put_edits_of_overlay();
	collect(false);
	assert_changes(edited);
	assert_int_equal(changes.state, CHANGES_KEPT);
	assert_int_equal(changes.added, 3);
	assert_int_equal(changes.modified, 2);
	assert_int_equal(changes.deleted, 5);
	assert_int_equal(changes.bytes, 12 + 4 + 3 + 1);
	assert_true(changes.row[4].hashed);
}

/* The same as a complete tree, through a stream as a rootless cell gets and returns it. */
static bool skip_hidden(void *arg, const char *path, bool is_dir)
{
	(void)arg;
	(void)is_dir;
	return str_eq(path, ".env");
}

static void pack_project(void)
{
	const struct pack_caps caps = { .entries = 1000, .bytes = MiB };
	const struct unpack_options o = { .caps = caps, .uid = UINT32_MAX, .gid = UINT32_MAX };
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts;
	AUTO_FD from = open_at("project"), to = open_at("view"), stream = memfd_create("s", MFD_CLOEXEC);

	assert_int_equal(pack_tree(from, &caps, skip_hidden, NULL, stream, &counts, &err), 0);
	assert_int_equal(lseek(stream, 0, SEEK_SET), 0);
	assert_int_equal(unpack_tree(to, stream, &o, &counts), 0);
}

static void put_edits_of_tree(void)
{
	put("view/edit", "one\n2\nthree\n");
	put("view/new", "new");
	put("view/newdir/x", "x");
	assert_int_equal(unlinkat(top, "view/gone", 0), 0);
	assert_int_equal(temp_folder_remove(in_folder("view/dir")), 0);
	assert_int_equal(fchmodat(top, "view/mode", 0755, 0), 0);
	put("view/main.py", "staged");
}

static void test_collect_whole_tree(void **state)
{
	(void)state;
	put_project();
	assert_int_equal(mkfifoat(top, "project/fifo", 0644), 0); /* not packed, and so not deleted either */
	pack_project();
	collect(true);
	assert_changes("");
	assert_int_equal(changes.state, CHANGES_NONE);
	assert_false(is_there("state/workspaces/" ID));
	put_edits_of_tree();
	put("view/.git/HEAD", "changed"); /* git's own */
	put("view/.env", "SECRET=2");     /* hidden */
	collect(true);
	assert_changes(edited);
	assert_int_equal(changes.state, CHANGES_KEPT);
}

static void test_collect_opaque_and_replaced(void **state)
{
	(void)state;
	put_project();
	put("project/tree/x", "x");
	put("project/tree/y", "y");
	put("project/becomes-dir", "file");
	put_opaque("view/dir"); /* removed and made again */
	put("view/dir/a", "other");
	put("view/tree", "a file now");
	put("view/becomes-dir/in", "in");
	assert_int_equal(symlinkat("edit", top, "view/link"), 0);
	collect(false);
	assert_changes("~becomes-dir/ +becomes-dir/in ~dir/a -dir/sub/ -dir/sub/b ~link@ ~tree -tree/x -tree/y");
	assert_applied();
	assert_text("project/becomes-dir/in", "in");
	assert_text("project/dir/a", "other");
	assert_text("project/tree", "a file now");
	assert_false(is_there("project/dir/sub"));
}

static void test_collect_hostile(void **state)
{
	char name[32];
	AUTO_FD big = FD_NONE;

	(void)state;
	put("outside/x", "canary");
	put("project/a", "a");
	put_link("view/to-outside", "../outside/x");
	put_link("view/absolute", "/etc/passwd");
	put_link("view/inside", "a");
	assert_int_equal(mkfifoat(top, "view/fifo", 0644), 0);
	put("view/two\nlines", "x");
	put("view/not\xff\xfeutf8", "x");
	put("view/suid", "x");
	assert_int_equal(fchmodat(top, "view/suid", 06755, 0), 0);
	put("view/.git/hooks/post-commit", "#!/bin/sh");
	put("view/sub/.GIT/config", "x");
	put("view/.env", "planted");
	put("view/.aws/credentials", "planted");
	collect(false);
	assert_changes(
		"+.aws/ +.aws/credentials +.env +.git/ +absolute@ +fifo! +inside@ +not\xff\xfeutf8 +sub/ +sub/.GIT/ "
		"+suid +to-outside@ +two\nlines");
	assert_int_equal(changes.state, CHANGES_KEPT);
	for (size_t i = 0; i < changes.n; i++)
		assert_int_equal(changes.row[i].mode & ~0777u, 0);
	assert_applied();
	assert_true(is_there("project/inside") && is_there("project/not\xff\xfeutf8") &&
		    is_there("project/two\nlines"));
	assert_false(is_there("project/to-outside") || is_there("project/absolute") || is_there("project/fifo"));
	assert_false(is_there("project/.git") || is_there("project/.env") || is_there("project/.aws"));
	assert_false(is_there("project/sub/.GIT"));
	assert_text("outside/x", "canary");
	/* A terabyte that is none, and more files than are listed. */
	big = openat(top, "view/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(big, (off_t)1 << 40), 0);
	collect(false);
	assert_int_equal(changes.state, CHANGES_INCOMPLETE);
	assert_int_equal(unlinkat(top, "view/sparse", 0), 0);
	set.changes_limit = 20;
	for (int i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "view/f%d", i);
		put(name, "x");
	}
	collect(false);
	assert_int_equal(changes.state, CHANGES_INCOMPLETE);
	assert_int_equal(changes.n, 20);
	assert_true(changes.dropped >= 30);
	assert_false(is_there("state/workspaces/" ID) || is_there("state/workspaces/.new-" ID));
}

/* ---- applying ---------------------------------------------------------------------------------- */

static void collect_edits(void)
{
	put_project();
	put_edits_of_overlay();
	collect(false);
	assert_int_equal(changes.state, CHANGES_KEPT);
}

static void test_apply(void **state)
{
	struct brig_error err;
	struct stat st;

	(void)state;
	collect_edits();
	assert_applied();
	assert_text("project/edit", "one\n2\nthree\n");
	assert_text("project/new", "new");
	assert_text("project/newdir/x", "x");
	assert_text("project/.env", "SECRET=1");
	assert_text("project/.git/HEAD", "ref");
	assert_false(is_there("project/gone") || is_there("project/dir") || is_there("project/main.py"));
	assert_int_equal(fstatat(top, "project/mode", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(apply(&err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "brig workspace list"));
}

static void test_apply_keeps_owners(void **state)
{
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	put_project();
	assert_int_equal(fchownat(top, "project", 1234, 1235, 0), 0);
	assert_int_equal(fchownat(top, "project/edit", 2234, 2235, 0), 0);
	put_edits_of_overlay();
	collect(false);
	assert_applied();
	assert_int_equal(fstatat(top, "project/edit", &st, 0), 0);
	assert_true(st.st_uid == 2234 && st.st_gid == 2235);
	assert_int_equal(fstatat(top, "project/newdir/x", &st, 0), 0);
	assert_true(st.st_uid == 1234 && st.st_gid == 1235);
	assert_int_equal(fstatat(top, "project/newdir", &st, 0), 0);
	assert_true(st.st_uid == 1234);
}

static void assert_untouched(void)
{
	assert_text("project/gone", "gone");
	assert_text("project/dir/sub/b", "b");
	assert_false(is_there("project/new") || is_there("project/newdir"));
	assert_true(is_there("state/workspaces/" ID));
}

static void test_apply_refuses_when_the_project_moved_on(void **state)
{
	(void)state;
	collect_edits();
	put("project/edit", "one\ntwo\nfour!\n"); /* another content of the same length */
	assert_refused("'edit'");
	assert_untouched();
	assert_text("project/edit", "one\ntwo\nfour!\n");
	put("project/edit", "one\ntwo\nthree\n");
	put("project/new", "mine");
	assert_refused("'new'");
	assert_int_equal(unlinkat(top, "project/new", 0), 0);
	put("project/dir/mine", "mine"); /* in a folder that is to go: found after much was moved */
	assert_refused("'dir'");
	assert_untouched();
	assert_text("project/dir/a", "a");
	assert_text("project/dir/mine", "mine");
	assert_text("project/edit", "one\ntwo\nthree\n");
	assert_int_equal(unlinkat(top, "project/dir/mine", 0), 0);
	assert_applied();
}

static void test_apply_does_not_follow_links(void **state)
{
	(void)state;
	put_project();
	put("outside/x", "canary");
	put("view/dir/sub/new", "new");
	collect(false);
	assert_int_equal(renameat(top, "project/dir/sub", top, "project/dir/was"), 0);
	put_link("project/dir/sub", "../../outside");
	{
		struct brig_error err;

		assert_true(apply(&err) < 0);
	}
	assert_false(is_there("outside/new"));
	assert_false(is_there("project/.brig-apply-" ID));
}

static void test_apply_notices_a_changed_changeset(void **state)
{
	char name[128], hex[SHA256_HEX + 1];

	(void)state;
	collect_edits();
	(void)snprintf(name, sizeof(name), "state/workspaces/" ID "/%s",
		       hex_put(hex, changes.row[4].sha256, SHA256_LEN));
	assert_text(name, "one\n2\nthree\n");
	put(name, "one\n3\nthree\n");
	assert_refused("not what the run left");
	assert_untouched();
}

static void test_discard_and_expire(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	AUTO_FREE char *json = NULL;

	(void)state;
	collect_edits();
	assert_int_equal(changeset_list_json(&state_dir, &json, &err), 0);
	assert_non_null(strstr(json, "\"id\":\"" ID "\""));
	assert_non_null(strstr(json, "\"deleted\":5"));
	assert_int_equal(changeset_expire(&state_dir, 7, &err), 0);
	assert_true(is_there("state/workspaces/" ID));
	assert_int_equal(changeset_discard(&state_dir, ID, &err), 0);
	assert_false(is_there("state/workspaces/" ID));
	assert_int_equal(changeset_discard(&state_dir, ID, &err), -BRIG_E_REFUSED);
	assert_int_equal(changeset_discard(&state_dir, "../x", &err), -BRIG_E_REFUSED);
	collect(false);
	put("state/workspaces/.new-killed/rows.json", "");
	assert_int_equal(utimensat(top, "state/workspaces/" ID "/head.json", old, 0), 0);
	assert_int_equal(changeset_expire(&state_dir, 7, &err), 0);
	assert_false(is_there("state/workspaces/" ID) || is_there("state/workspaces/.new-killed"));
}

/* ---- diff -------------------------------------------------------------------------------------- */

static void test_diff_of_changes(void **state)
{
	static const char want[] = "diff --git a/dir/a b/dir/a\n"
				   "deleted file mode 100644\n"
				   "--- a/dir/a\n"
				   "+++ /dev/null\n"
				   "@@ -1,1 +0,0 @@\n"
				   "-a\n"
				   "\\ No newline at end of file\n";
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF text = BUF_INIT(1 * MiB);
	AUTO_FREE char *json = NULL;

	(void)state;
	put_project();
	put_edits_of_overlay();
	put("view/binary", "x");
	assert_int_equal(unlinkat(top, "view/binary", 0), 0);
	{
		AUTO_FD fd = openat(top, "view/binary", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		assert_int_equal(fd_write_all(fd, "\0\1\2", 3), 0);
	}
	put_link("view/out", "/etc/passwd");
	put("view/with\ttab", "x\n");
	collect(false);
	assert_int_equal(changeset_diff(&state_dir, ID, &text, &err), 0);
	assert_non_null(strstr(buf_str(&text), want));
	assert_non_null(strstr(buf_str(&text), "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"));
	assert_non_null(strstr(buf_str(&text), "Binary files /dev/null and b/binary differ\n"));
	assert_non_null(strstr(buf_str(&text), "# not applied: out\n"));
	assert_non_null(strstr(buf_str(&text), "old mode 100644\nnew mode 100755\n"));
	assert_non_null(strstr(buf_str(&text), "+++ \"b/with\\011tab\"\n"));
	assert_int_equal(changeset_show_json(&state_dir, ID, &json, &err), 0);
	assert_non_null(strstr(json, "\"not_applied\":\"it is a link"));
}

/* ---- artifacts --------------------------------------------------------------------------------- */

static bool overwrite;

static int fetch(const char *const *patterns, size_t n, bool among_changes, bool copy, struct artifacts *ret)
{
	static const char *const ours[] = { "main.py" };
	struct workspace_view view = { .fd = open_at("view"), .whole = true };
	AUTO_FOLDER out = FOLDER_INIT;
	const struct artifacts_ask ask = { .view = &view,
					   .pattern = patterns,
					   .n_patterns = n,
					   .changes = among_changes ? &changes : NULL,
					   .out = copy ? &out : NULL,
					   .overwrite = overwrite,
					   .ours = ours,
					   .n_ours = 1,
					   .set = &set };
	struct brig_error err = BRIG_ERROR_INIT;
	int rc;

	assert_int_equal(folder_open(in_folder("out"), "folder", false, &out, &err), 0);
	rc = workspace_artifacts(&ask, ret, &err);
	(void)close(view.fd);
	return rc;
}

static void test_artifacts(void **state)
{
	static const char *const patterns[] = { "*.png", "dist/" };
	struct artifacts got = { .row = NULL };
	struct stat st;

	(void)state;
	put("outside/x.png", "canary");
	put("view/a.png", "a");
	put("view/sub/b.png", "bb");
	put("view/dist/x/y", "yyy");
	put("view/other", "no");
	put("view/main.py", "no");
	put_link("view/link.png", "../outside/x.png");
	assert_int_equal(mkfifoat(top, "view/fifo.png", 0644), 0);
	assert_int_equal(fchmodat(top, "view/dist/x/y", 04755, 0), 0);
	assert_int_equal(fetch(patterns, 2, false, true, &got), 0);
	assert_int_equal(got.n, 3);
	assert_int_equal(got.dropped, 2);
	assert_text("out/a.png", "a");
	assert_text("out/sub/b.png", "bb");
	assert_text("out/dist/x/y", "yyy");
	assert_int_equal(fstatat(top, "out/dist/x/y", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_false(is_there("out/link.png") || is_there("out/other") || is_there("out/fifo.png"));
	artifacts_release(&got);
	/* Again, over what is there; and a link in the way is not followed. */
	put("view/a.png", "new");
	assert_int_equal(unlinkat(top, "out/sub/b.png", 0), 0);
	assert_int_equal(unlinkat(top, "out/sub", AT_REMOVEDIR), 0);
	put_link("out/sub", "../project");
	overwrite = true;
	assert_int_equal(fetch(patterns, 2, false, true, &got), 0);
	overwrite = false;
	assert_text("out/a.png", "new");
	assert_false(is_there("project/b.png"));
	assert_int_equal(got.n, 2);
	assert_int_equal(got.dropped, 3);
	artifacts_release(&got);
}

static void test_artifacts_end_at_their_caps(void **state)
{
	static const char *const all[] = { "**" };
	struct artifacts got = { .row = NULL };
	AUTO_FD big = FD_NONE;
	char name[32];

	(void)state;
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof(name), "view/f%d", i);
		put(name, "12345");
	}
	big = openat(top, "view/a-sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(big, (off_t)1 << 40), 0);
	set.artifacts_limit = 4;
	assert_int_equal(fetch(all, 1, false, false, &got), 0);
	assert_int_equal(got.n, 4);
	assert_int_equal(got.dropped, 7);
	artifacts_release(&got);
	set.artifacts_limit = 100;
	set.artifacts_size = 12;
	assert_int_equal(fetch(all, 1, false, true, &got), 0);
	assert_int_equal(got.n, 2);
	assert_false(is_there("out/f2") || is_there("out/a-sparse") || is_there("out/.brig-artifact"));
	artifacts_release(&got);
}

/* Of a project only what the run changed. */
static void test_artifacts_of_a_project(void **state)
{
	static const char *const all[] = { "**" };
	struct artifacts got = { .row = NULL };

	(void)state;
	put_project();
	pack_project();
	put_edits_of_tree();
	collect(true);
	assert_int_equal(fetch(all, 1, true, true, &got), 0);
	assert_int_equal(got.n, 4); /* edit, mode, new, newdir/x */
	assert_false(is_there("out/same") || is_there("out/.git") || is_there("out/.env"));
	artifacts_release(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_collect_overlay),
		TEST(test_collect_whole_tree),
		TEST(test_collect_opaque_and_replaced),
		TEST(test_collect_hostile),
		TEST(test_apply),
		TEST(test_apply_keeps_owners),
		TEST(test_apply_refuses_when_the_project_moved_on),
		TEST(test_apply_does_not_follow_links),
		TEST(test_apply_notices_a_changed_changeset),
		TEST(test_discard_and_expire),
		TEST(test_diff_of_changes),
		TEST(test_artifacts),
		TEST(test_artifacts_end_at_their_caps),
		TEST(test_artifacts_of_a_project),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
