/* SPDX-License-Identifier: Apache-2.0 */
/* Paths: every reading of an encoded path, the boundary, what is sensitive, and what only looks so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/str.h"
#include "inspect/judge.h"
#include "inspect/paths.h"

static struct rule_set *rules;

static struct findings inspect(const char *text, size_t len, const char *workspace)
{
	struct inspect_request req = {
		.kind = INSPECT_PATH, .level = INSPECTION_GUARD, .text = text, .len = len, .workspace = workspace
	};
	struct findings found = { 0 };

	assert_int_equal(inspect_text(rules, &req, &found, NULL), 0);
	return found;
}

static bool found_rule(const char *text, size_t len, const char *workspace, const char *rule)
{
	struct findings f = inspect(text, len, workspace);
	bool found = rule == NULL && f.n == 0;

	for (size_t i = 0; rule && i < f.n; i++)
		found |= str_eq(f.row[i].rule, rule);
	findings_release(&f);
	return found;
}

struct row {
	const char *rule; /* NULL: none at all */
	const char *path;
};

static void check_rows(const struct row *row, size_t n, const char *workspace)
{
	for (size_t i = 0; i < n; i++) {
		bool right = found_rule(row[i].path, strlen(row[i].path), workspace, row[i].rule);

		if (!right)
			print_error("'%s': wanted %s\n", row[i].path, row[i].rule ? row[i].rule : "nothing");
		assert_true(right);
	}
}

static void every_reading_counts(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "path-accounts", "../../../../etc/passwd" },
		{ "path-accounts", "/workspace/../etc/passwd" },
		{ "path-accounts", "/tmp/../etc/shadow" },
		{ "path-accounts", "//etc/./passwd" },
		{ "path-accounts", "..%2f..%2fetc%2fpasswd" },
		{ "path-accounts", "..%252f..%252fetc%252fpasswd" },
		{ "path-accounts", "%25252e%25252e/etc/passwd" },
		{ "path-accounts", "..%c0%af..%c0%afetc/passwd" },
		{ "path-accounts", "%u002e%u002e/etc/passwd" },
		{ "path-accounts", "..\\..\\etc\\passwd" },
		{ "path-accounts", "..%5c..%5cetc%5cpasswd" },
		{ "path-accounts",
		  "\xef\xbc\x8e\xef\xbc\x8e/\xef\xbc\x8e\xef\xbc\x8e/etc/passwd" }, /* fullwidth dots */
		{ "path-accounts", "..\xef\xbc\x8f..\xef\xbc\x8f"
				   "etc/passwd" },              /* fullwidth slashes */
		{ "path-accounts", "\xe2\x80\xa5/etc/passwd" }, /* two dot leader */
		{ "path-accounts", "/etc/pass\xe2\x80\x8bwd" }, /* zero width space */
		{ "path-accounts", "..;/..;/etc/passwd" },
		{ "path-accounts", " /etc/passwd " },
		{ "path-accounts", "file:///etc/passwd" },
		{ "path-accounts", "FILE://localhost/etc/passwd" },
		{ "path-accounts", "file:///%65tc/passwd" },
		{ "path-secrets", "\xef\xbc\x8e"
				  "env" },
		/* Harmless when decoded, but not before; and the other way round. */
		{ "path-traversal", "a%2fb/../../x" },
		{ "path-traversal", "a/%2e%2e/%2e%2e/x" },
		{ "path-nul", "report.txt%00/../x" },
		{ "path-encoding", "%2525252525252525252e/x" },
	};

	check_rows(rows, ARRAY_LEN(rows), NULL);
}

static void boundary(void **state UNUSED)
{
	static const struct row rows[] = {
		{ NULL, "data/input.csv" },
		{ NULL, "src/../tests/test_a.py" },
		{ NULL, "/srv/job" },
		{ NULL, "/srv/job/a/../b" },
		{ NULL, "/tmp/out.txt" },
		{ NULL, "/dev/null" },
		{ NULL, "a..b.txt" },
		{ NULL, "..." },
		{ NULL, "..data" },
		{ NULL, "100%.txt" },
		{ NULL, "../job/x" },
		{ NULL, "etc/passwd" },
		{ "path-traversal", ".." },
		{ "path-traversal", "../sibling" },
		{ "path-traversal", "a/../../job2" },
		{ "path-outside", "/srv/job2/x" },
		{ "path-outside", "/srv" },
		{ "path-outside", "/tmpx/y" },
		{ "path-outside", "/" },
		{ "path-outside", "~/x" },
		{ "path-outside", "$HOME/x" },
		{ "path-outside", "~someone/x" },
		{ "path-outside", "C:\\Users\\x" },
		{ "path-outside", "/usr/bin/env" },
		{ "path-outside", "\\\\server\\share" },
	};

	check_rows(rows, ARRAY_LEN(rows), "/srv/job");
}

/* However the caller writes it, the workspace is one folder; no name at all is not the whole disk. */
static void names_of_the_workspace(void **state UNUSED)
{
	static const char *const names[] = { "/srv/job", "/srv/job/", "//srv/./job", "/srv/x/../job" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_true(found_rule("/srv/job/a", 10, names[i], NULL));
		assert_true(found_rule("../x", 4, names[i], "path-traversal"));
		assert_true(found_rule("/srv/x", 6, names[i], "path-outside"));
	}
	assert_true(found_rule("/opt/x", 6, "", "path-outside"));
	assert_true(found_rule("/workspace/x", 12, "", NULL));
}

static void sensitive_names(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "path-secrets", ".env" },
		{ "path-secrets", "config/.env.production" },
		{ "path-secrets", "/workspace/.ENV" },
		{ "path-ssh", "~/.ssh/id_rsa" },
		{ "path-ssh", "/home/user/.ssh/id_ed25519" },
		{ "path-ssh", "${HOME}/.ssh" },
		{ "path-cloud", "~/.aws/credentials" },
		{ "path-cloud", "/home/me/.config/gcloud/x.json" },
		{ "path-keys", "certs/server.key" },
		{ "path-process", "/proc/self/environ" },
		{ "path-kernel", "/dev/sda" },
		{ "path-kernel", "/sys/kernel" },
		{ "path-service", "/var/run/docker.sock" },
		{ "path-start-up", "~/.bashrc" },
		{ "path-start-up", "/root/.bashrc" },
		{ "path-root-home", "/root/x" },
		{ NULL, "src/env.py" },
		{ NULL, ".env.example" },
		{ NULL, ".gitignore" },
		{ NULL, "tokenizer.json" },
		{ NULL, "docs/id_rsa.md/x" },
		{ NULL, "password_strength.py" },
	};

	check_rows(rows, ARRAY_LEN(rows), NULL);
}

static void globs(void **state UNUSED)
{
	static const struct {
		const char *glob, *path;
		bool matches;
	} rows[] = {
		{ "/etc/shadow", "/etc/shadow", true },
		{ "/etc/shadow", "/etc/shadow/x", false },
		{ "/etc/", "/etc", true },
		{ "/etc/", "/etc/a/b", true },
		{ "/etc/", "/etcetera", false },
		{ "/", "/etc", false },
		{ "*.pem", "/a/b.pem", true },
		{ "*.pem", "/a.pem/b", false },
		{ "*a*b*c", "/xaxbxc", true },
		{ "*a*b*c", "/xaxcxb", false },
		{ ".ssh/", "/home/u/.ssh/x", true },
		{ ".ssh/", "/home/u/x.ssh/x", false },
		{ ".git/config", "/w/.git/config", true },
		{ ".git/config", "/w/x.git/config", false },
		{ "~/.vimrc", "/home/u/.vimrc", true },
		{ "~/.vimrc", "/root/.vimrc", true },
		{ "~/.vimrc", "/home/u/sub/.vimrc", false },
		{ "~/", "/home/u/x", true },
		{ "~", "/home/u", false },
		{ "a/?", "/w/A/b", true },
		{ "", "/a", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(path_glob_matches(rows[i].glob, rows[i].path, strlen(rows[i].path)), rows[i].matches);
}

/* In code at guard: secrets of the workspace itself are a note, everything that says something of the host is not. */
static void paths_in_code(void **state UNUSED)
{
	static const struct {
		const char *code;
		enum severity guard, strict;
	} rows[] = {
		{ "open('.env')", SEVERITY_MEDIUM, SEVERITY_CRITICAL },
		{ "open('config/id_rsa')", SEVERITY_MEDIUM, SEVERITY_CRITICAL },
		{ "open('/workspace/certs/server.pem')", SEVERITY_MEDIUM, SEVERITY_CRITICAL },
		{ "open('../.env')", SEVERITY_CRITICAL, SEVERITY_CRITICAL },
		{ "open('/home/user/.env')", SEVERITY_CRITICAL, SEVERITY_CRITICAL },
		{ "open('.git/hooks/pre-commit', 'w')", SEVERITY_CRITICAL, SEVERITY_CRITICAL },
		{ "open('/proc/self/environ')", SEVERITY_CRITICAL, SEVERITY_CRITICAL },
		{ "open('/dev/sda')", SEVERITY_CRITICAL, SEVERITY_CRITICAL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int strict = 0; strict < 2; strict++) {
			struct inspect_request req = { .kind = INSPECT_PYTHON,
						       .level = strict ? INSPECTION_STRICT : INSPECTION_GUARD,
						       .text = rows[i].code,
						       .len = strlen(rows[i].code) };
			enum severity worst = SEVERITY_NONE;
			struct findings f = { 0 };

			assert_int_equal(inspect_text(rules, &req, &f, NULL), 0);
			for (size_t k = 0; k < f.n; k++)
				if (strstr(f.row[k].rule, "path-") && f.row[k].severity > worst)
					worst = f.row[k].severity;
			if (worst != (strict ? rows[i].strict : rows[i].guard))
				print_error("%s: %s\n", rows[i].code, severity_name[worst]);
			assert_int_equal(worst, strict ? rows[i].strict : rows[i].guard);
			findings_release(&f);
		}
}

static void facts_are_no_secrets(void **state UNUSED)
{
	static const char *const facts[] = { "/proc/self/status", "/proc/mounts", "/sys/fs/cgroup/cpu.max",
					     "/proc/self/fd/0" };

	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		struct findings f = inspect(facts[i], strlen(facts[i]), NULL);

		assert_int_equal(f.worst, SEVERITY_LOW);
		findings_release(&f);
	}
}

static void what_looks_like_a_path(void **state UNUSED)
{
	static const char *const paths[] = { "/etc/passwd",
					     "~/.ssh",
					     "../x",
					     "a/../../b",
					     "file:///x",
					     ".env",
					     "$HOME/x",
					     "/home/me/x",
					     "..%2f..%2fetc",
					     "backup/id_rsa",
					     "..\\x",
					     "/proc/<pid>/environ",
					     "/home/{user}/.ssh/id_rsa" };
	static const char *const others[] = { "/",
					      "a",
					      "/api/users",
					      "hello world",
					      "/etc/passwd is a file",
					      "and/or",
					      "a..b",
					      "key.pem",
					      "1/2",
					      "http://example.org/x",
					      "~",
					      "/\n",
					      "/home/<name>",
					      "/run/:id",
					      "/media?size=2",
					      "/home/{user}/posts" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_true(judge_looks_like_path(paths[i], strlen(paths[i])));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(judge_looks_like_path(others[i], strlen(others[i])));
}

static void long_and_odd_ones(void **state UNUSED)
{
	char path[PATH_READING_MAX + 10];

	memset(path, 'a', sizeof(path));
	assert_true(found_rule(path, sizeof(path), NULL, "path-too-long"));
	assert_true(found_rule(path, 3000, NULL, NULL));
	for (size_t i = 0; i + 3 <= sizeof(path); i += 3)
		memcpy(path + i, "../", 3);
	assert_true(found_rule(path, 3999, NULL, "path-traversal"));
	memset(path, '%', sizeof(path));
	assert_true(found_rule(path, 4000, NULL, NULL));
	assert_true(found_rule("a\nb", 3, NULL, "path-control"));
	assert_true(found_rule("a\0b", 3, NULL, "nul-byte"));
	assert_true(found_rule("", 0, NULL, NULL));
}

static int setup(void **state UNUSED)
{
	return rules_builtin(&rules, NULL);
}

static int teardown(void **state UNUSED)
{
	rules_free(rules);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reading_counts),
		cmocka_unit_test(boundary),
		cmocka_unit_test(names_of_the_workspace),
		cmocka_unit_test(sensitive_names),
		cmocka_unit_test(globs),
		cmocka_unit_test(paths_in_code),
		cmocka_unit_test(facts_are_no_secrets),
		cmocka_unit_test(what_looks_like_a_path),
		cmocka_unit_test(long_and_odd_ones),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
