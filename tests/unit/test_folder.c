/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into somebody's folder: which folder it is, and what never comes into it. */
#include "workspace_bed.h"

#include "files/folder.h"
#include "files/foreign.h"
#include "files/place.h"

#define ID "abcdefghijklmnop"

static void assert_applied(const char *id)
{
	struct brig_error err;

	if (apply_as(id, NULL, &err) < 0)
		fail_msg("%s", err.msg);
}

static void assert_refused(const char *id, const char *word)
{
	struct brig_error err;

	assert_int_equal(apply_as(id, NULL, &err), -BRIG_E_REFUSED);
	if (!strstr(err.msg, word))
		fail_msg("'%s' is not in: %s", word, err.msg);
}

/* ---- names, links, permissions ------------------------------------------------------------------ */

static void test_names_of_git(void **state)
{
	static const char *const gits[] = {
		".git",   "a/.git/b",  ".GIT/x",         ".git./x",           ".git ",
		"GIT~1",  "x/git~1/y", ".git::$DATA",    ".g\xe2\x80\x8cit/", "\xef\xbb\xbf.git",
		".git..", ".Git . .",  ".git:stream/foo"
	};
	static const char *const others[] = { ".gitignore", "git", "a.git", ".github/x", "git~10x", ".gi", "git~", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(gits); i++)
		if (!path_has_git(gits[i]))
			fail_msg("'%s' passes", gits[i]);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (path_has_git(others[i]))
			fail_msg("'%s' is taken for git's", others[i]);
	assert_true(path_has_hidden("a/.b/c") && path_has_hidden(".x") && !path_has_hidden("a.b/c."));
	assert_int_equal(foreign_mode(06777, 0), 0755);
	assert_int_equal(foreign_mode(0777, 0664), 0775);
	assert_int_equal(foreign_mode(0600, 0666), 0600);
}

static void test_w1_links_that_stay(void **state)
{
	static const struct {
		const char *path, *target;
		bool stays;
	} rows[] = {
		{ "a", "b", true },
		{ "a/b", "../c", true },
		{ "a/b", "../../c", false },
		{ "a", "..", false },
		{ "a/b", "..", true },
		{ "x", "d/up/../../secret", false },
		{ "x", "/etc", false },
		{ "a/b", "./../c", true },
		{ "a/b", "..//c", true },
		{ "x", "", false },
		{ "a/b/c", "../../d", true },
		{ "a/b", "c/..", false },
		{ "a/b", ".././../c", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (link_stays(rows[i].path, rows[i].target) != rows[i].stays)
			fail_msg("'%s' -> '%s'", rows[i].path, rows[i].target);
}

/* Each is inside by its words; together they are not. */
static void test_w1_links_that_lead_out_together(void **state)
{
	AUTO_BUF skipped = BUF_INIT(4096);
	struct brig_error err;

	(void)state;
	put("./secret", "canary");
	put("project/keep", "x");
	put("project/folder/in/file", "x");
	put_link("project/outwards", "..");
	put_link("project/own", "folder/in/../../keep"); /* the project's own: as long as folder/in is a folder */
	put("view/d/x", "x");
	put_link("view/d/up", "..");
	put_link("view/x", "d/up/../../secret");
	put_link("view/through", "outwards/secret"); /* a link of the project's own leads it out */
	put_link("view/again", "through");
	put_link("view/good", "d/x");
	collect_as(ID);
	assert_int_equal(apply_as(ID, &skipped, &err), 0);
	assert_false(is_there("project/x") || is_there("project/through") || is_there("project/again"));
	assert_true(is_there("project/good") && is_there("project/d/up"));
	assert_non_null(strstr(buf_str(&skipped), "through: it is a link"));
}

static void test_w1_a_link_in_place_of_a_folder(void **state)
{
	(void)state;
	put("project/keep", "x");
	put("project/a/b/file", "x");
	put_link("project/own", "a/b/../../keep");
	assert_int_equal(beneath_make_dirs(top, "view/a"), 0);
	put_link("view/a/b", "..");
	put("view/new", "new");
	collect_as(ID);
	assert_applied(ID);
	assert_true(is_there("project/new"));
	assert_int_equal(mode_of("project/a/b"), 0755); /* a folder still */
}

static void test_w5_permissions_are_masked(void **state)
{
	AUTO_BUF text = BUF_INIT(1 * MiB);
	AUTO_FREE char *json = NULL;
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	put("project/shared", "one\n");
	set_mode("project/shared", 0664);
	put("project/only", "same");
	put("project/script", "same");
	put("project/dir/x", "x");
	set_mode("project/dir", 02775);
	put("view/shared", "two\n");
	set_mode("view/shared", 0666);
	put("view/only", "same");
	set_mode("view/only", 0666); /* no change is left of that */
	put("view/script", "same");
	set_mode("view/script", 06777);
	put("view/new", "x");
	set_mode("view/new", 0777);
	put("view/newdir/x", "x");
	set_mode("view/newdir", 03777);
	put("view/dir/y", "y");
	set_mode("view/dir", 0770);
	collect_as(ID);
	for (size_t i = 0; i < changes.n; i++)
		assert_string_not_equal(changes.row[i].path, "only");
	assert_int_equal(changeset_diff(&state_dir, ID, &text, &err), 0);
	assert_non_null(strstr(buf_str(&text), "old mode 100644\nnew mode 100755\n"));
	assert_non_null(strstr(buf_str(&text), "# folder, mode 0775 before, 0770 now: dir\n"));
	assert_non_null(strstr(buf_str(&text), "new file mode 100755\n"));
	assert_int_equal(changeset_show_json(&state_dir, ID, &json, &err), 0);
	assert_non_null(strstr(json, "\"mode\":493,\"mode_before\":420,\"path\":\"script\""));
	assert_applied(ID);
	assert_int_equal(mode_of("project/shared"), 0664);
	assert_int_equal(mode_of("project/only"), 0644);
	assert_int_equal(mode_of("project/script"), 0755);
	assert_int_equal(mode_of("project/new"), 0755);
	assert_int_equal(mode_of("project/newdir"), 0755);
	assert_int_equal(mode_of("project/dir"), 02770);
}

static void put_git_folder(const char *where)
{
	static const char *const names[] = { "HEAD", "config", "objects/x", "refs/heads/x", "hooks/post-checkout" };
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", where, names[i]);
		put(path, "x");
	}
}

static void test_w9_git_folders_of_other_names(void **state)
{
	(void)state;
	put("project/half/objects/x", "x"); /* the rest comes with the changes */
	put("project/half/refs/x", "x");
	put_git_folder("project/bare.git"); /* one that the project has */
	put_git_folder("view/sub/innocent");
	put("view/half/HEAD", "x");
	put("view/half/config", "x");
	put("view/bare.git/hooks/pre-commit", "x");
	put("view/linked/HEAD", "x");
	put("view/linked/commondir", "../elsewhere");
	put("view/plain/HEAD", "x");
	put("view/plain/objects/x", "x");
	collect_as(ID);
	assert_applied(ID);
	assert_false(is_there("project/sub/innocent") || is_there("project/half/HEAD") ||
		     is_there("project/half/config") || is_there("project/bare.git/hooks/pre-commit") ||
		     is_there("project/linked/HEAD") || is_there("project/linked/commondir"));
	assert_true(is_there("project/plain/HEAD") && is_there("project/plain/objects/x"));
}

/* Deleting what holds one takes away the rest. */
static void test_w9_a_git_folder_is_not_deleted(void **state)
{
	(void)state;
	put_git_folder("project/dir/bare.git");
	put("project/dir/file", "x");
	put_whiteout("view/dir");
	collect_as(ID);
	assert_applied(ID);
	assert_true(is_there("project/dir/bare.git/HEAD"));
	assert_false(is_there("project/dir/file"));
}

static void test_w9_a_git_folder_at_the_top(void **state)
{
	(void)state;
	put_git_folder("view");
	put("view/new", "new");
	collect_as(ID);
	assert_applied(ID);
	assert_true(is_there("project/new"));
	assert_false(is_there("project/HEAD") || is_there("project/config") || is_there("project/objects") ||
		     is_there("project/refs") || is_there("project/hooks"));
}

/* ---- which folder it is -------------------------------------------------------------------------- */

static void put_edit(void)
{
	put("project/edit", "one\n");
	put("view/edit", "two\n");
	put("view/new", "new");
}

static void test_w2_another_folder_is_refused(void **state)
{
	AUTO_BUF text = BUF_INIT(65536);
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	put_edit();
	collect_as(ID);
	assert_int_equal(renameat(top, "project", top, "was"), 0);
	/* A link to the folder itself, then to another, then another folder with the same files in it. */
	put_link("project", "was");
	assert_refused(ID, "link");
	assert_int_equal(unlinkat(top, "project", 0), 0);
	put("outside/edit", "one\n");
	put_link("project", "outside");
	assert_refused(ID, "link");
	assert_int_equal(changeset_diff(&state_dir, ID, &text, &err), -BRIG_E_REFUSED);
	assert_int_equal(text.len, 0);
	assert_int_equal(unlinkat(top, "project", 0), 0);
	put("project/edit", "one\n");
	assert_refused(ID, "not the folder that the run worked in");
	assert_int_equal(changeset_diff(&state_dir, ID, &text, &err), -BRIG_E_REFUSED);
	assert_false(is_there("project/new") || is_there("outside/new") || is_there("was/new"));
	/* The folder itself, put back. */
	assert_int_equal(renameat2(top, "project", top, "was", RENAME_EXCHANGE), 0);
	assert_applied(ID);
	assert_text("project/edit", "two\n");
}

/* The folder above may be a link by now, too. */
static void test_w2_a_link_above_the_project_is_refused(void **state)
{
	(void)state;
	put_edit();
	collect_as(ID);
	{
		char moved[128];

		(void)snprintf(moved, sizeof(moved), "%s-moved", folder);
		assert_int_equal(rename(folder, moved), 0);
		assert_int_equal(symlink(moved, folder), 0);
		assert_refused(ID, "link");
		assert_int_equal(unlink(folder), 0);
		assert_int_equal(rename(moved, folder), 0);
	}
	assert_applied(ID);
}

/* Of a path that somebody names: a link is followed if it is ours, or leads to what belongs to its owner. */
static void test_w2_links_of_others_on_the_way(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct folder f = FOLDER_INIT;

	(void)state;
	put("a/b/file", "x");
	put_link("ours", "a");
	put_link("theirs", "a/../a");
	put_link("absolute", in_folder("theirs/b"));
	assert_int_equal(folder_open(in_folder("ours/b"), "folder", false, &f, &err), 0);
	assert_string_equal(f.path, in_folder("a/b"));
	folder_close(&f);
	assert_int_equal(folder_open(in_folder("absolute/"), "folder", false, &f, &err), 0);
	assert_string_equal(f.path, in_folder("a/b"));
	folder_close(&f);
	assert_int_equal(folder_open(in_folder("ours/b/file"), "folder", false, &f, &err), -BRIG_E_REFUSED);
	assert_int_equal(folder_open(in_folder("ours/absent"), "folder", false, &f, &err), -BRIG_E_REFUSED);
	if (geteuid() != 0)
		skip();
	assert_int_equal(fchownat(top, "theirs", 12345, 12345, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(folder_open(in_folder("absolute"), "folder", false, &f, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "somebody else's"));
	assert_int_equal(fchownat(top, "a/b", 12345, 12345, 0), 0);
	assert_int_equal(folder_open(in_folder("absolute"), "folder", false, &f, &err), 0);
	folder_close(&f);
}

/* While the run holds the project, its path does not matter. */
static void test_w2_a_held_folder_is_written_itself(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct workspace *w;

	(void)state;
	put_edit();
	collect_as(ID);
	w = open_project();
	assert_int_equal(renameat(top, "project", top, "was"), 0);
	put("outside/edit", "one\n");
	put_link("project", "outside");
	if (changeset_apply(&state_dir, ID, workspace_folder(w), false, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	workspace_close(w);
	assert_text("was/edit", "two\n");
	assert_text("outside/edit", "one\n");
	assert_false(is_there("outside/new"));
}

static void test_w2_changes_without_identity_are_refused(void **state)
{
	static const char head[] = "{\"version\":1,\"id\":\"" ID "\",\"mode\":\"cow\",\"created_ns\":1,\"added\":1,"
				   "\"modified\":0,\"deleted\":0,\"bytes\":3,\"project\":\"%s/project\"}";
	char text[512];

	(void)state;
	put_edit();
	collect_as(ID);
	(void)snprintf(text, sizeof(text), head, folder);
	put("state/workspaces/" ID "/head.json", text);
	assert_refused(ID, "run the program again");
	assert_false(is_there("project/new"));
}

static void test_an_apply_that_was_killed_is_named(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	put_edit();
	collect_as(ID);
	put("project/.brig-apply-" ID "/old-0", "the only copy");
	assert_refused(ID, "was killed");
	assert_text("project/.brig-apply-" ID "/old-0", "the only copy");
	assert_int_equal(temp_folder_remove(in_folder("project/.brig-apply-" ID)), 0);
	/* No program makes one: the next apply could not tell. */
	put("view/.brig-apply-" ID "/x", "x");
	assert_int_equal(changeset_discard(&state_dir, ID, &err), 0);
	collect_as(ID);
	assert_applied(ID);
	assert_false(is_there("project/.brig-apply-" ID));
	assert_text("project/new", "new");
}

static void test_homes_are_refused(void **state)
{
	static const char *const bad[] = { "/home/somebody", "/home", "/root", "/etc/x", "/usr/local", "/var/home/x" };
	static const char *const good[] = { "/home/somebody/project", "/srv/x", "/tmp/x", "/root/x", "/var/home/x/y" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct folder f = FOLDER_INIT;

	(void)state;
	f.fd = open_at("project");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)str_copy(f.path, sizeof(f.path), bad[i]);
		if (place_check(&f, "workspace", NULL, &err) != -BRIG_E_REFUSED)
			fail_msg("'%s' is taken", bad[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)str_copy(f.path, sizeof(f.path), good[i]);
		if (place_check(&f, "workspace", NULL, &err) < 0)
			fail_msg("%s", err.msg);
	}
	/* The home of an account of the system's. */
	(void)str_copy(f.path, sizeof(f.path), "/var/www");
	if (system("grep -q :/var/www: /etc/passwd") == 0)
		assert_int_equal(place_check(&f, "workspace", NULL, &err), -BRIG_E_REFUSED);
	folder_close(&f);
}

/* ---- artifacts ----------------------------------------------------------------------------------- */

static void fetch(bool overwrite, struct buf *why, struct artifacts *ret)
{
	AUTO_FOLDER out = FOLDER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;

	assert_int_equal(folder_open(in_folder("out"), "folder", false, &out, &err), 0);
	assert_int_equal(fetch_into(&out, overwrite, why, ret), 0);
}

static void test_w4_nothing_is_replaced_or_hidden(void **state)
{
	AUTO_BUF why = BUF_INIT(65536);
	struct artifacts got = { .row = NULL };

	(void)state;
	put("out/Makefile", "mine");
	put("out/.git/config", "mine");
	put("out/.git/hooks/sample", "mine");
	put_git_folder("out/bare");
	put("out/half/HEAD", "mine");
	put("out/half/refs/x", "mine");
	put("view/Makefile", "evil");
	put("view/.git/config", "evil");
	put("view/.git/hooks/post-checkout", "evil");
	put("view/.bashrc", "evil");
	put("view/sub/.envrc", "evil");
	put("view/GIT~1/config", "evil");
	put("view/bare/hooks/pre-push", "evil");
	put("view/half/objects/x", "evil");
	put("view/new/HEAD", "x");
	put("view/new/objects/x", "x");
	put("view/new/refs/x", "x");
	put("view/result", "good");
	fetch(false, &why, &got);
	assert_text("out/Makefile", "mine");
	assert_text("out/.git/config", "mine");
	assert_text("out/result", "good");
	assert_false(is_there("out/.git/hooks/post-checkout") || is_there("out/.bashrc") ||
		     is_there("out/sub/.envrc") || is_there("out/GIT~1") || is_there("out/bare/hooks/pre-push") ||
		     is_there("out/half/objects") || is_there("out/new/refs"));
	assert_non_null(strstr(buf_str(&why), "Makefile: there is something of that name already; --overwrite"));
	assert_non_null(strstr(buf_str(&why), ".bashrc: names that begin with a dot"));
	artifacts_release(&got);
	/* Asked for: files are replaced, all else is as before. */
	fetch(true, NULL, &got);
	assert_text("out/Makefile", "evil");
	assert_text("out/.git/config", "mine");
	assert_false(is_there("out/.bashrc") || is_there("out/half/objects"));
	artifacts_release(&got);
}

/* Whatever our own temporary files are called. */
static void test_w10_artifacts_of_any_name_survive(void **state)
{
	struct artifacts got = { .row = NULL };

	(void)state;
	put("view/brig-artifact", "1");
	put("view/x/artifact", "2");
	put("view/a", "3");
	put("out/x/.brig-artifact", "mine");
	put("out/.brig-artifact", "mine");
	fetch(false, NULL, &got);
	assert_int_equal(got.n, 3);
	assert_text("out/brig-artifact", "1");
	assert_text("out/x/artifact", "2");
	assert_text("out/.brig-artifact", "mine");
	assert_text("out/x/.brig-artifact", "mine");
	artifacts_release(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_git),
		cmocka_unit_test(test_w1_links_that_stay),
		TEST(test_w1_links_that_lead_out_together),
		TEST(test_w1_a_link_in_place_of_a_folder),
		TEST(test_w2_another_folder_is_refused),
		TEST(test_w2_a_link_above_the_project_is_refused),
		TEST(test_w2_links_of_others_on_the_way),
		TEST(test_w2_a_held_folder_is_written_itself),
		TEST(test_w2_changes_without_identity_are_refused),
		TEST(test_w4_nothing_is_replaced_or_hidden),
		TEST(test_w5_permissions_are_masked),
		TEST(test_w9_git_folders_of_other_names),
		TEST(test_w9_a_git_folder_is_not_deleted),
		TEST(test_w9_a_git_folder_at_the_top),
		TEST(test_w10_artifacts_of_any_name_survive),
		TEST(test_an_apply_that_was_killed_is_named),
		TEST(test_homes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
