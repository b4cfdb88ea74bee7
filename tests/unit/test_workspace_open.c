/* SPDX-License-Identifier: Apache-2.0 */
/* Opening workspaces: what is no project, and which of its files are hidden. */
#include "workspace_bed.h"

#include "workspace/internal.h"
#include "workspace/secrets.h"

static void test_places_that_are_no_projects(void **state)
{
	static const char *const bad[] = { "/",     "/etc", "/usr", "/usr/bin", "/proc", "/proc/self", "/sys", "/dev",
					   "/root", "/run", "/var", "/tmp",     "/home", "/var/log",   "/boot" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct workspace *w = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (access(bad[i], F_OK) == 0 && workspace_open(bad[i], NULL, &set, &w, &err) != -BRIG_E_REFUSED)
			fail_msg("'%s' is taken", bad[i]);
	put("project/file", "");
	assert_int_equal(workspace_open(in_folder("project/file"), NULL, &set, &w, &err), -BRIG_E_REFUSED);
	assert_int_equal(workspace_open(in_folder("absent"), NULL, &set, &w, &err), -BRIG_E_REFUSED);
	/* The state folder, above it, in it; also one that is not there yet, and by a link. */
	assert_int_equal(workspace_open(folder, in_folder("state"), &set, &w, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "BRIG_STATE"));
	assert_int_equal(workspace_open(in_folder("state"), in_folder("state"), &set, &w, &err), -BRIG_E_REFUSED);
	assert_int_equal(workspace_open(in_folder("project"), folder, &set, &w, &err), -BRIG_E_REFUSED);
	assert_int_equal(workspace_open(folder, in_folder("new/state"), &set, &w, &err), -BRIG_E_REFUSED);
	put_link("link", "project");
	assert_int_equal(workspace_open(in_folder("project"), in_folder("link/s"), &set, &w, &err), -BRIG_E_REFUSED);
}

static bool lists(const char *const *list, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i], path))
			return true;
	return false;
}

static void test_secrets_are_found(void **state)
{
	static const char *const hidden[] = {
		".env",
		"deep/er/.env.local",
		".ssh",
		"sub/id_rsa",
		"tls/server.key",
		"private.pem",
		".netrc",
		".npmrc",
		".aws",
		".docker/config.json",
		".git/config",
		"sub/.git/config",
		"deep/.kube",
		"target-of-env",
		".git/modules/m/config",
		"own/notes.txt",
	};
	static const char *const shown[] = { ".env.example", "cert.pem", "sub/id_rsa.pub", "sub/.npmrc", "main.c",
					     "config",       ".docker",  "own/.env",       "env" };
	struct workspace *w;
	const struct plan_workspace *p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "project/%s", hidden[i]);
		if (!strchr("shk", path[strlen(path) - 1]) && !str_eq(hidden[i], ".aws") &&
		    !str_eq(hidden[i], "deep/.kube"))
			put(path, "x");
	}
	put("project/.ssh/config", "x");
	put("project/.aws/credentials", "x");
	put("project/deep/.kube/config", "x");
	put("project/private.pem", "-----BEGIN RSA PRIVATE KEY-----");
	put("project/cert.pem", "-----BEGIN CERTIFICATE-----");
	put("project/.npmrc", "//registry/:_authToken=abc");
	put("project/sub/.npmrc", "save-exact=true");
	put("project/.git/config", "[remote \"o\"]\n\turl = https://me:pw@example.org/x\n");
	put("project/sub/.git/config", "[http]\n\textraheader = AUTHORIZATION: basic x\n");
	put("project/.git/modules/m/config", "url = https://token@example.org/x\n");
	put("project/sub/id_rsa", "x");
	put("project/sub/id_rsa.pub", "x");
	put("project/tls/server.key", "x");
	put("project/.env.example", "x");
	put("project/own/.env", "x");
	put_link("project/.env.link", "target-of-env");
	put_link("project/.env.out", "../../etc/passwd");
	put_link("project/.env.loop", ".env.loop");
	assert_true(setting_list_add(&set.workspace_hide, "own/*.txt"));
	assert_true(setting_list_add(&set.workspace_show, "own/.env"));
	w = open_project();
	p = workspace_plan(w);
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (!lists(p->hidden, p->n_hidden, hidden[i]))
			fail_msg("'%s' is shown", hidden[i]);
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (lists(p->hidden, p->n_hidden, shown[i]))
			fail_msg("'%s' is hidden", shown[i]);
	assert_int_equal(p->n_hidden, ARRAY_LEN(hidden));
	assert_int_equal(w->git.n, 2);
	assert_string_equal(w->git.item[0], ".git");
	assert_string_equal(w->git.item[1], "sub/.git");
	workspace_close(w);
}

static void test_git_configurations(void **state)
{
	static const struct {
		const char *text;
		bool secret;
	} cases[] = {
		{ "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://github.com/a/b.git\n", false },
		{ "\turl = git@github.com:a/b.git\n", false },
		{ "\turl = ssh://git@github.com/a/b.git\n", false },
		{ "\turl = ssh://git:word@host/a\n", true },
		{ "\turl = https://user:word@host/a\n", true },
		{ "\turl = https://ghp_token@host/a\n", true },
		{ "[credential]\n\thelper = store\n", true },
		{ "[http]\n\textraHeader = x\n", true },
		{ "\turl = https://host/path@x\n", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (secret_in_text(cases[i].text, strlen(cases[i].text), SECRET_GIT) != cases[i].secret)
			fail_msg("%s: not %d", cases[i].text, cases[i].secret);
}

static void test_name_at_top(void **state)
{
	struct workspace *w;
	unsigned mode = 0;

	(void)state;
	put("project/same.py", "print(1)");
	put("project/other.py", "print(2)");
	put("project/.env", "print(1)");
	put("project/dir/x", "");
	put_link("project/link.py", "same.py");
	w = open_project();
	assert_int_equal(workspace_at(w, "same.py", "print(1)", 8, &mode), WORKSPACE_SAME);
	assert_int_equal(workspace_at(w, "other.py", "print(1)", 8, &mode), WORKSPACE_OTHER);
	assert_int_equal(workspace_at(w, "same.py", "print(1)\n", 9, &mode), WORKSPACE_OTHER);
	assert_int_equal(workspace_at(w, ".env", "print(1)", 8, &mode), WORKSPACE_OTHER);
	assert_int_equal(workspace_at(w, "dir", "", 0, &mode), WORKSPACE_OTHER);
	assert_int_equal(workspace_at(w, "link.py", "print(1)", 8, &mode), WORKSPACE_OTHER);
	assert_int_equal(workspace_at(w, "absent.py", "", 0, &mode), WORKSPACE_ABSENT);
	assert_int_equal(workspace_at(w, "../project/same.py", "print(1)", 8, &mode), WORKSPACE_OTHER);
	workspace_close(w);
}

static void test_caches_of_tools(void **state)
{
	static const char *const caches[] = {
		"__pycache__",         "a/__pycache__/x.cpython-311.pyc",      "old.pyc",
		".pytest_cache/v/x",   "web/node_modules/.cache/babel/1.json", ".mypy_cache",
		"tsconfig.tsbuildinfo"
	};
	static const char *const others[] = { "pycache",           "a/__pycache__x/y", "x.py",
					      "node_modules/x.js", ".cache/x",         "cache/go-build",
					      ".pytest_cache.txt", "a.pyc.txt" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(caches); i++)
		if (!is_tool_cache(caches[i]))
			fail_msg("'%s' is taken for a change", caches[i]);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (is_tool_cache(others[i]))
			fail_msg("'%s' is taken for a cache", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_places_that_are_no_projects),
		TEST(test_secrets_are_found),
		cmocka_unit_test(test_caches_of_tools),
		cmocka_unit_test(test_git_configurations),
		TEST(test_name_at_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
