/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/util.h"
#include "lang/lang.h"

/* ---- the table ------------------------------------------------------------------------------- */

static void check_step(const struct language *lang, const struct lang_step *step)
{
	size_t n = 0;

	assert_true(step->family < FAMILY_COUNT);
	assert_null(step->argv[LANG_ARGV_MAX - 1]);
	assert_null(step->env[LANG_ENV_MAX - 1]);
	for (size_t i = 0; step->env[i]; i++)
		assert_non_null(strchr(step->env[i], '='));
	if (!step->tool[0]) {
		assert_true(lang->compiles);
		assert_null(step->argv[0]);
		return;
	}
	assert_non_null(step->program);
	assert_non_null(step->install);
	assert_null(step->companions[LANG_COMPANIONS_MAX - 1]);
	for (size_t i = 0; step->argv[i]; i++)
		n += strstr(step->argv[i], "%s") || strstr(step->argv[i], "%o");
	assert_true(n > 0);
}

static void table_rows_are_complete(void **state)
{
	(void)state;
	assert_true(language_count >= 7);
	for (size_t i = 0; i < language_count; i++) {
		const struct language *l = &languages[i];
		char name[LANG_NAME_MAX + 1];

		assert_non_null(l->name);
		assert_non_null(l->title);
		assert_non_null(l->extensions[0]);
		assert_string_equal(lang_source_name(l, l->source_name, name, sizeof(name)), l->source_name);
		assert_string_equal(lang_source_name(l, NULL, name, sizeof(name)), l->source_name);
		assert_int_equal(l->compiles, l->output_name != NULL);
		if (l->compiles)
			check_step(l, &l->compile);
		check_step(l, &l->run);
		assert_true(!l->variant_of || lang_by_name(l->variant_of));
		assert_true(!l->preferred_variant || lang_by_name(l->preferred_variant));
	}
}

/* Every name, alias, extension and interpreter leads back to its own row: none is taken twice. */
static void table_words_are_unique(void **state)
{
	const struct language *got = NULL;
	char text[64];

	(void)state;
	for (size_t i = 0; i < language_count; i++) {
		const struct language *l = &languages[i];

		assert_ptr_equal(lang_by_name(l->name), l);
		for (size_t j = 0; j < ARRAY_LEN(l->aliases) && l->aliases[j]; j++)
			assert_ptr_equal(lang_by_name(l->aliases[j]), l);
		for (size_t j = 0; j < ARRAY_LEN(l->extensions) && l->extensions[j]; j++) {
			assert_int_equal(l->extensions[j][0], '.');
			(void)snprintf(text, sizeof(text), "some.dir/file%s", l->extensions[j]);
			assert_int_equal(lang_detect(NULL, text, "", 0, &got, NULL), 0);
			assert_ptr_equal(got, l);
		}
		for (size_t j = 0; j < ARRAY_LEN(l->interpreters) && l->interpreters[j]; j++) {
			(void)snprintf(text, sizeof(text), "#!/usr/bin/%s\n", l->interpreters[j]);
			assert_int_equal(lang_detect(NULL, NULL, text, strlen(text), &got, NULL), 0);
			assert_ptr_equal(got, l);
		}
	}
}

/* ---- detection ------------------------------------------------------------------------------- */

static void detection_follows_the_order(void **state)
{
	static const struct {
		const char *name, *file, *code, *want;
	} cases[] = {
		{ "python", NULL, "", "python" },
		{ "PY", NULL, "", "python" },
		{ "JavaScript", NULL, "", "javascript" },
		{ "golang", "x.py", "#!/bin/sh", "go" },
		{ NULL, "x.py", "#!/bin/sh", "python" },
		{ "", "x.ts", "", "typescript" },
		{ NULL, "X.PY", "", "python" },
		{ NULL, "/a/b.c/x.mjs", "", "javascript" },
		{ NULL, "notes.txt", "#!/usr/bin/env node\n", "javascript" },
		{ NULL, "tool", "#!/usr/bin/env -S python3 -u\nprint()", "python" },
		{ NULL, "tool", "#!/usr/bin/python3.11\r\nprint()", "python" },
		{ NULL, NULL, "#! /usr/bin/env python3\r\n", "python" },
		{ NULL, NULL, "#!/usr/bin/env -Spython3 -u\n", "python" },
		{ NULL, NULL, "#!/usr/bin/env -i -u HOME A=1 bash\n", "bash" },
		{ NULL, NULL, "\xef\xbb\xbf#!/bin/sh\n", "shell" },
		{ NULL, NULL, "#!/bin/bash", "bash" },
		{ NULL, NULL, "#!/usr/bin/env tsx", "typescript" },
		{ NULL, "x.sh", "", "shell" },
		{ NULL, "x.bash", "", "bash" },
		{ NULL, "x.bash", "#!/bin/sh", "bash" },
		{ NULL, "x.sh", "#!/bin/bash\n", "bash" },
		{ NULL, "x.sh", "#!/usr/bin/python3\n", "shell" },
		{ "shell", NULL, "#!/usr/bin/env bash\n", "bash" },
		{ "shell", "x.bash", "", "bash" },
		{ "sh", NULL, "#!/bin/bash\n", "shell" },
		{ "sh", "x.bash", "", "shell" },
		{ "bash", "x.sh", "#!/bin/sh", "bash" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct language *got = NULL;
		struct brig_error err = BRIG_ERROR_INIT;

		if (lang_detect(cases[i].name, cases[i].file, cases[i].code, strlen(cases[i].code), &got, &err) < 0)
			fail_msg("case %zu: %s", i, err.msg);
		if (!str_eq(got->name, cases[i].want))
			fail_msg("case %zu: got %s, want %s", i, got->name, cases[i].want);
	}
}

static void only_general_words_leave_the_choice(void **state)
{
	static const struct {
		const char *lang, *name, *code;
		bool open;
	} cases[] = {
		{ "shell", NULL, "echo\n", true }, { "shell", "", "echo\n", true },
		{ "shell", "Shell", "", true },    { "shell", "sh", "echo\n", false },
		{ "shell", "dash", "", false },    { "shell", NULL, "#!/bin/sh\n", false },
		{ "bash", NULL, "echo\n", false }, { "python", NULL, "x\n", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (lang_is_open(lang_by_name(cases[i].lang), cases[i].name, cases[i].code, strlen(cases[i].code)) !=
		    cases[i].open)
			fail_msg("case %zu", i);
	assert_string_equal(lang_by_name("shell")->preferred_variant, "bash");
	assert_string_equal(lang_by_name("C++")->name, "cpp");
}

static void detection_explains_what_it_cannot_tell(void **state)
{
	static const struct {
		const char *name, *file, *code, *word, *other;
	} cases[] = {
		{ "pyhton", NULL, "", "did you mean 'python'", "known: python, javascript" },
		{ "zsh", NULL, "", "unknown language 'zsh'", "bash" },
		{ "qqqqqqqqqqqq", NULL, "", "unknown language 'qqqqqqqqqqqq'; known", "c" },
		{ "a\033[2Jb", NULL, "", "'a?[2Jb'", "known" },
		{ NULL, "x.zig", "", "extension '.zig'", "--lang" },
		{ NULL, "script", "echo", "'script'", "--lang" },
		{ NULL, NULL, "echo", "no file extension", "--lang" },
		{ NULL, ".py", "x", "no file extension", "--lang" },
		{ NULL, "x.tcl", "#!/usr/bin/tclsh -w\n", "'tclsh'", "--lang" },
		{ NULL, NULL, "#!/usr/bin/python2\n", "'python2'", "--lang" },
		{ NULL, NULL, "#!/usr/bin/python3x\n", "'python3x'", "--lang" },
		{ NULL, NULL, "#!/usr/bin/python3.\n", "'python3.'", "--lang" },
		{ NULL, NULL, "#!/usr/bin/env\n", "no #! line", "--lang" },
		{ NULL, NULL, "#!\n", "no #! line", "--lang" },
		{ NULL, NULL, "#!", "no #! line", "--lang" },
		{ NULL, NULL, "#!/bin/\n", "no #! line", "--lang" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct language *got = NULL;
		struct brig_error err = BRIG_ERROR_INIT;

		assert_int_equal(
			lang_detect(cases[i].name, cases[i].file, cases[i].code, strlen(cases[i].code), &got, &err),
			-BRIG_E_USAGE);
		assert_null(got);
		if (!strstr(err.msg, cases[i].word) || !strstr(err.msg, cases[i].other))
			fail_msg("case %zu: %s", i, err.msg);
	}
}

static void detection_survives_hostile_code(void **state)
{
	static const char nul[] = "#!/bin/\0sh\n";
	const struct language *got = NULL;
	char longest[5000], name[3000];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "#!/", 3);
	assert_int_equal(lang_detect(NULL, NULL, longest, sizeof(longest), &got, NULL), -BRIG_E_USAGE);
	assert_int_equal(lang_detect(NULL, NULL, nul, sizeof(nul) - 1, &got, NULL), -BRIG_E_USAGE);
	assert_int_equal(lang_detect(NULL, NULL, NULL, 0, &got, NULL), -BRIG_E_USAGE);
	memset(name, 'y', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(lang_detect(name, NULL, "", 0, &got, NULL), -BRIG_E_USAGE);
	assert_int_equal(lang_detect(NULL, name, "", 0, &got, NULL), -BRIG_E_USAGE);
	assert_null(got);
}

/* ---- source names ---------------------------------------------------------------------------- */

static void source_names_are_sanitized(void **state)
{
	static const struct {
		const char *lang, *file, *want;
	} cases[] = {
		{ "python", "hello.py", "hello.py" },
		{ "python", "/etc/passwd", "passwd" },
		{ "python", "../../x.py", "x.py" },
		{ "python", "dir/", "main.py" },
		{ "python", "..", "main.py" },
		{ "python", "", "main.py" },
		{ "python", "-rf.py", "rf.py" },
		{ "python", "...hidden.py", "hidden.py" },
		{ "python", "a\nb\033.py", "a_b_.py" },
		{ "python", "a\xc2\x9b.py", "a__.py" },
		{ "python", "a\xff.py", "a_.py" },
		{ "python", "\xc3\xa4 b.py", "\xc3\xa4 b.py" },
		{ "python", "__main__.py", "__main__.py" },
		{ "python", "tool", "tool" },
		{ "javascript", "tool", "tool.js" },
		{ "javascript", "m.mjs", "m.mjs" },
		{ "javascript", "M.CJS", "M.cjs" },
		{ "javascript", "a.ts", "a.ts.js" },
		{ "typescript", "a.tsx", "a.tsx" },
		{ "typescript", "-", "main.ts" },
		{ "go", "x_test.go", "x_test_.go" },
		{ "go", "_x.go", "x.go" },
		{ "go", "_.go", "main.go" },
		{ "go", "prog", "prog.go" },
		{ "c", "HELLO.C", "HELLO.c" },
		{ "c", "program", "program.c" },
		{ "bash", "install", "install" },
	};
	char name[LANG_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(lang_source_name(lang_by_name(cases[i].lang), cases[i].file, name, sizeof(name)),
				    cases[i].want);
}

static void source_names_are_short(void **state)
{
	char file[4096], name[LANG_NAME_MAX + 1];

	(void)state;
	memset(file, 'n', sizeof(file));
	memcpy(file + sizeof(file) - 4, ".py", 4);
	for (size_t i = 0; i < language_count; i++) {
		size_t len = strlen(lang_source_name(&languages[i], file, name, sizeof(name)));

		assert_in_range(len, 64, LANG_NAME_MAX);
	}
	assert_string_equal(lang_source_name(lang_by_name("python"), file, name, sizeof(name)) + strlen(name) - 4,
			    "n.py");
	/* A name that is cut inside a character stays valid. */
	for (size_t i = 0; i + 1 < sizeof(file); i++)
		file[i] = "\xc3\xa4"[i % 2];
	file[sizeof(file) - 1] = '\0';
	(void)lang_source_name(lang_by_name("c"), file, name, sizeof(name));
	assert_true(str_is_utf8(name, strlen(name)));
}

/* ---- tools ----------------------------------------------------------------------------------- */

static char scratch[64];

static int make_scratch(void **state)
{
	(void)state;
	(void)str_copy(scratch, sizeof(scratch), "/tmp/unit-test-lang-XXXXXX");
	return mkdtemp(scratch) ? 0 : -1;
}

static int drop_scratch(void **state)
{
	char path[256];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/tool", scratch);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/link", scratch);
	(void)unlink(path);
	return rmdir(scratch);
}

static const char *put_tool(const char *name, mode_t mode)
{
	static char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", scratch, name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static void missing_tool_says_what_to_install(void **state)
{
	static const struct {
		const char *lang, *want;
	} cases[] = {
		{ "python", "python3 is not installed: apt-get install python3" },
		{ "go", "go is not installed: apt-get install golang-go" },
		{ "typescript", "esbuild is not installed: npm install --prefix /usr/local/lib/brig esbuild" },
	};
	struct brig_error err = BRIG_ERROR_INIT;
	char path[PATH_MAX] = "untouched";
	bool bind = true;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct language *l = lang_by_name(cases[i].lang);
		struct lang_step step = l->compiles ? l->compile : l->run;

		memset(step.tool, 0, sizeof(step.tool));
		step.tool[0] = "/usr/bin/brig-no-such-tool";
		step.tool[1] = "no-such-package/bin/tool";
		assert_int_equal(lang_find_tool(l, &step, path, sizeof(path), &bind, &err), -BRIG_E_REFUSED);
		assert_string_equal(err.msg, cases[i].want);
		assert_string_equal(path, "untouched");
		assert_true(bind);
	}
}

static void first_program_wins_and_is_shown_in_the_cell(void **state)
{
	const struct language *l = lang_by_name("python");
	struct lang_step step = l->run;
	struct lang_command cmd;
	char want[256];

	(void)state;
	(void)str_copy(want, sizeof(want), put_tool("tool", 0600));
	memset(step.tool, 0, sizeof(step.tool));
	step.tool[0] = scratch; /* a directory is no program */
	step.tool[1] = want;    /* nor is a file that cannot be executed */
	assert_int_equal(lang_command_make(l, &step, "a b%s.py", &cmd, NULL), -BRIG_E_REFUSED);
	(void)put_tool("tool", 0755);
	assert_int_equal(lang_command_make(l, &step, "a b%s.py", &cmd, NULL), 0);
	assert_string_equal(cmd.tool, want);
	assert_string_equal(cmd.tool_target, "/opt/brig/tool");
	assert_string_equal(cmd.argv[0], "/opt/brig/tool");
	assert_string_equal(cmd.argv[1], "/workspace/a b%s.py");
	assert_null(cmd.argv[2]);
	assert_int_equal(cmd.argc, 2);
}

static void packages_come_from_libexec_and_not_from_path(void **state)
{
	const struct language *l = lang_by_name("typescript");
	struct lang_step step = l->compile;
	char path[PATH_MAX], want[256], *old = getenv("PATH");
	bool bind = false;

	(void)state;
	old = old ? strdup(old) : NULL;
	(void)str_copy(want, sizeof(want), put_tool("tool", 0755));
	memset(step.tool, 0, sizeof(step.tool));
	step.tool[0] = "tool";
	assert_int_equal(setenv("PATH", scratch, 1), 0);
	assert_int_equal(unsetenv("BRIG_LIBEXEC"), 0);
	assert_int_equal(lang_find_tool(l, &step, path, sizeof(path), &bind, NULL), -BRIG_E_REFUSED);
	assert_int_equal(setenv("BRIG_LIBEXEC", scratch, 1), 0);
	assert_int_equal(lang_find_tool(l, &step, path, sizeof(path), &bind, NULL), 0);
	assert_string_equal(path, want);
	assert_true(bind);
	assert_int_equal(setenv("BRIG_LIBEXEC", "relative", 1), 0);
	assert_int_equal(lang_find_tool(l, &step, path, sizeof(path), &bind, NULL), -BRIG_E_REFUSED);
	assert_int_equal(unsetenv("BRIG_LIBEXEC"), 0);
	if (old)
		assert_int_equal(setenv("PATH", old, 1), 0);
	free(old);
}

/* A link outside /usr that leads below it is replaced by its target, which the cell has. */
static void links_are_resolved(void **state)
{
	const struct language *l = lang_by_name("shell");
	struct lang_step step = l->run;
	char path[PATH_MAX], real[PATH_MAX], link[256];
	bool bind = true;

	(void)state;
	assert_non_null(realpath("/bin/sh", real));
	if (strncmp(real, "/usr/", 5) != 0)
		skip();
	(void)snprintf(link, sizeof(link), "%s/link", scratch);
	assert_int_equal(symlink("/bin/sh", link), 0);
	memset(step.tool, 0, sizeof(step.tool));
	step.tool[0] = link;
	assert_int_equal(lang_find_tool(l, &step, path, sizeof(path), &bind, NULL), 0);
	assert_string_equal(path, real);
	assert_false(bind);
}

static void compiled_output_runs_itself(void **state)
{
	const struct language *l = lang_by_name("c");
	struct lang_command cmd;

	(void)state;
	assert_int_equal(lang_command_make(l, &l->run, "main.c", &cmd, NULL), 0);
	assert_string_equal(cmd.argv[0], "/workspace/program");
	assert_int_equal(cmd.argc, 1);
	assert_string_equal(cmd.tool, "");
	assert_string_equal(cmd.tool_target, "");
}

/* Whatever is installed here: every command of the table can be made, or its absence is explained. */
static void every_command_can_be_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * language_count; i++) {
		const struct language *l = &languages[i / 2];
		const struct lang_step *step = i % 2 ? &l->run : &l->compile;
		struct brig_error err = BRIG_ERROR_INIT;
		struct lang_command cmd;

		if (step == &l->compile && !l->compiles)
			continue;
		if (lang_command_make(l, step, l->source_name, &cmd, &err) < 0) {
			assert_int_equal(err.code, BRIG_E_REFUSED);
			assert_non_null(strstr(err.msg, step->install));
			continue;
		}
		assert_int_equal(cmd.argv[0][0], '/');
		assert_null(cmd.argv[cmd.argc]);
		for (size_t j = 1; j < cmd.argc; j++)
			assert_null(strchr(cmd.argv[j], '%'));
	}
}

/* ---- identity --------------------------------------------------------------------------------- */

static const char *identity_path(const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static void write_text(const char *name, const char *text)
{
	int fd = open(identity_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void identity_of(const struct lang_step *step, struct buf *ret)
{
	char tool[PATH_MAX];

	buf_release(ret);
	*ret = (struct buf)BUF_INIT(64 * KiB);
	(void)str_copy(tool, sizeof(tool), identity_path("bin/tool"));
	assert_true(lang_tool_identity(step, tool, IDENTITY_HERE, ret));
}

/* Another content of the same size and date, as an attacker or a careful installer would leave it. */
static void replace_quietly(const char *name, const char *text)
{
	struct stat before, after;

	assert_int_equal(stat(identity_path(name), &before), 0);
	do { /* the clock of file systems ticks slowly */
		const struct timespec times[] = { before.st_atim, before.st_mtim };

		write_text(name, text);
		assert_int_equal(utimensat(AT_FDCWD, identity_path(name), times, 0), 0);
		assert_int_equal(stat(identity_path(name), &after), 0);
	} while (memcmp(&after.st_ctim, &before.st_ctim, sizeof(after.st_ctim)) == 0);
}

static void toolchains_are_told_apart(void **state)
{
	const struct lang_step step = { .program = "tool", .companions = { "%r/lib/*/part", "/nonexistent/*" } };
	AUTO_BUF first = BUF_INIT(0), again = BUF_INIT(0);

	(void)state;
	assert_int_equal(mkdir(identity_path("bin"), 0755), 0);
	assert_int_equal(mkdir(identity_path("lib"), 0755), 0);
	assert_int_equal(mkdir(identity_path("lib/x"), 0755), 0);
	write_text("bin/tool", "one");
	write_text("lib/x/part", "one");
	identity_of(&step, &first);
	assert_non_null(strstr(buf_str(&first), "lib/x/part"));
	identity_of(&step, &again);
	assert_string_equal(buf_str(&again), buf_str(&first));
	replace_quietly("lib/x/part", "two");
	identity_of(&step, &again);
	assert_string_not_equal(buf_str(&again), buf_str(&first));
	identity_of(&step, &first);
	replace_quietly("bin/tool", "two");
	identity_of(&step, &again);
	assert_string_not_equal(buf_str(&again), buf_str(&first));
	assert_int_equal(unlink(identity_path("lib/x/part")), 0);
	identity_of(&step, &first);
	assert_null(strstr(buf_str(&first), "lib/x/part"));
	assert_int_equal(unlink(identity_path("bin/tool")), 0);
	assert_false(lang_tool_identity(&step, identity_path("bin/tool"), IDENTITY_HERE, &first)); /* nobody knows */
	assert_int_equal(rmdir(identity_path("lib/x")), 0);
	assert_int_equal(rmdir(identity_path("lib")), 0);
	assert_int_equal(rmdir(identity_path("bin")), 0);
}

static void identity_elsewhere(const struct lang_step *step, struct buf *ret)
{
	char tool[PATH_MAX];

	buf_release(ret);
	*ret = (struct buf)BUF_INIT(256 * KiB);
	(void)str_copy(tool, sizeof(tool), identity_path("bin/tool"));
	assert_true(lang_tool_identity(step, tool, IDENTITY_ANYWHERE, ret));
}

/* What machines give each other is known by the bytes of the toolchain: other files with the same bytes are the same one. */
static void toolchains_are_the_same_elsewhere(void **state)
{
	const struct lang_step step = { .program = "tool", .companions = { "%r/lib" } };
	AUTO_BUF first = BUF_INIT(0), again = BUF_INIT(0);

	(void)state;
	assert_int_equal(mkdir(identity_path("bin"), 0755), 0);
	assert_int_equal(mkdir(identity_path("lib"), 0755), 0);
	write_text("bin/tool", "one");
	write_text("lib/part", "one");
	identity_elsewhere(&step, &first);
	assert_int_equal(unlink(identity_path("bin/tool")), 0);
	write_text("bin/other", "keeps the inode");
	write_text("bin/tool", "one");
	identity_elsewhere(&step, &again);
	assert_string_equal(buf_str(&again), buf_str(&first));
	replace_quietly("lib/part", "two");
	identity_elsewhere(&step, &again);
	assert_string_not_equal(buf_str(&again), buf_str(&first));
	replace_quietly("lib/part", "one");
	replace_quietly("bin/tool", "two");
	identity_elsewhere(&step, &again);
	assert_string_not_equal(buf_str(&again), buf_str(&first));
	replace_quietly("bin/tool", "one");
	identity_elsewhere(&step, &again);
	assert_string_equal(buf_str(&again), buf_str(&first));
	write_text("lib/more", "");
	identity_elsewhere(&step, &again);
	assert_string_not_equal(buf_str(&again), buf_str(&first));
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(
			unlink(identity_path((const char *[]){ "bin/tool", "bin/other", "lib/part", "lib/more" }[i])),
			0);
	assert_int_equal(rmdir(identity_path("lib")), 0);
	assert_int_equal(rmdir(identity_path("bin")), 0);
}

static void programs_belong_to_languages(void **state UNUSED)
{
	static const struct {
		const char *program, *language;
	} rows[] = { { "python3", "python" }, { "/usr/bin/python3.11", "python" },
		     { "pytest", "python" },  { "npm", "javascript" },
		     { "go", "go" },          { "gcc", "c" },
		     { "bash", "bash" },      { "ls", NULL },
		     { "pythonic", NULL } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct language *l = lang_by_program(rows[i].program);

		assert_string_equal(l ? l->name : "none", rows[i].language ? rows[i].language : "none");
	}
	assert_string_equal(lang_label("PY"), "python");
	assert_string_equal(lang_label("command"), "command");
	assert_null(lang_label("cobol"));
	assert_null(lang_by_name("command")); /* nothing is detected as one */
}

/* I1: variables by which code comes in that nobody inspected. */
static void i1_environment_below_trusted(void **state)
{
	static const struct {
		const char *entry;
		enum trust up_to; /* refused at this trust and below; TRUST_COUNT: never */
	} rows[] = {
		{ "LD_PRELOAD=/tmp/x.so", TRUST_UNKNOWN },
		{ "GLIBC_TUNABLES=x", TRUST_UNKNOWN },
		{ "PYTHONWARNINGS=all:0:antigravity.x:0:0", TRUST_UNKNOWN },
		{ "BROWSER=/bin/sh -c id #%s", TRUST_UNKNOWN },
		{ "PYTHONPATH=/workspace", TRUST_UNKNOWN },
		{ "PYTHONHASHSEED=0", TRUST_COUNT },
		{ "PYTHONUNBUFFERED=1", TRUST_COUNT },
		{ "NODE_OPTIONS=--import=data:text/javascript,1", TRUST_UNKNOWN },
		{ "NODE_ENV=production", TRUST_COUNT },
		{ "npm_config_node_options=x", TRUST_UNKNOWN },
		{ "NPM_CONFIG_SCRIPT_SHELL=x", TRUST_UNKNOWN },
		{ "BASH_ENV=x", TRUST_UNKNOWN },
		{ "ENV=x", TRUST_UNKNOWN },
		{ "BASH_FUNC_echo%%=() { id; }", TRUST_UNKNOWN },
		{ "GREETING=() { :; }; id", TRUST_UNKNOWN },
		{ "GREETING=  () { :; }", TRUST_UNKNOWN },
		{ "a.b=1", TRUST_UNKNOWN },
		{ "1A=1", TRUST_UNKNOWN },
		{ "=1", TRUST_UNKNOWN },
		{ "PERL5OPT=-Mx", TRUST_UNKNOWN },
		{ "RUBYOPT=-rx", TRUST_UNKNOWN },
		{ "GOFLAGS=-toolexec=x", TRUST_UNKNOWN },
		{ "TS_NODE_COMPILER=x", TRUST_UNKNOWN },
		{ "ESBUILD_BINARY_PATH=x", TRUST_UNKNOWN },
		{ "CC=x", TRUST_UNKNOWN },
		{ "JAVA_TOOL_OPTIONS=-javaagent:x", TRUST_UNKNOWN },
		{ "PYTEST_ADDOPTS=-p x", TRUST_UNKNOWN },
		{ "GIT_SSH_COMMAND=x", TRUST_UNKNOWN },
		{ "LESSOPEN=|x", TRUST_UNKNOWN },
		{ "TAR_OPTIONS=--to-command=x", TRUST_UNKNOWN },
		{ "AWKPATH=x", TRUST_UNKNOWN },
		{ "OPENSSL_CONF=x", TRUST_UNKNOWN },
		{ "PS4=$(id)", TRUST_UNKNOWN },
		{ "PATH=/workspace", TRUST_UNKNOWN },
		{ "HOME=/workspace", TRUST_UNKNOWN },
		{ "FROBTOOL_STARTUP=x", TRUST_UNTRUSTED },
		{ "FROBRC=x", TRUST_UNTRUSTED },
		{ "TMPDIR=/tmp/x", TRUST_UNTRUSTED },
		{ "GREETING=good morning", TRUST_COUNT },
		{ "GOAL=(1, 2)", TRUST_COUNT },
		{ "LESSON=3", TRUST_COUNT },
		{ "NODES=3", TRUST_COUNT },
		{ "_PYTHON_SYSCONFIGDATA_NAME=x", TRUST_UNKNOWN },
		{ "RIPGREP_CONFIG_PATH=x", TRUST_UNKNOWN },
		{ "LANG=C", TRUST_COUNT },
		{ "TZ=UTC", TRUST_COUNT },
		{ "SEED=7", TRUST_COUNT },
	};
	char why[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum trust t = 0; t < TRUST_COUNT; t++) {
			bool refused = rows[i].up_to != TRUST_COUNT && t <= rows[i].up_to;

			if (lang_env_is_refused(rows[i].entry, t, false, why, sizeof(why)) != refused)
				fail_msg("%s at %s", rows[i].entry, trust_name[t]);
			if (refused)
				assert_true(strlen(why) > 20);
		}
}

/* Of a session's programs only what every program obeys is refused, but where whoever asks is taken for hostile. */
static void variables_of_sessions(void **state)
{
	static const struct {
		const char *entry;
		enum trust up_to; /* TRUST_COUNT: refused nowhere */
	} rows[] = {
		{ "PATH=/workspace/bin:/usr/bin", TRUST_UNTRUSTED },
		{ "HOME=/tmp", TRUST_UNTRUSTED },
		{ "PYTHONPATH=/workspace/lib", TRUST_UNTRUSTED },
		{ "NODE_OPTIONS=--max-old-space-size=64", TRUST_UNTRUSTED },
		{ "PS1=$ ", TRUST_UNTRUSTED },
		{ "LD_PRELOAD=x.so", TRUST_UNKNOWN },
		{ "LD_LIBRARY_PATH=/workspace", TRUST_UNKNOWN },
		{ "GLIBC_TUNABLES=x", TRUST_UNKNOWN },
		{ "BASH_FUNC_ls%%=() { id; }", TRUST_UNKNOWN },
		{ "X=() { id; }", TRUST_UNKNOWN },
		{ "SEED=7", TRUST_COUNT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum trust t = 0; t < TRUST_COUNT; t++)
			if (lang_env_is_refused(rows[i].entry, t, true, NULL, 0) !=
			    (rows[i].up_to != TRUST_COUNT && t <= rows[i].up_to))
				fail_msg("%s at %s", rows[i].entry, trust_name[t]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_rows_are_complete),
		cmocka_unit_test(variables_of_sessions),
		cmocka_unit_test(table_words_are_unique),
		cmocka_unit_test(detection_follows_the_order),
		cmocka_unit_test(only_general_words_leave_the_choice),
		cmocka_unit_test(detection_explains_what_it_cannot_tell),
		cmocka_unit_test(detection_survives_hostile_code),
		cmocka_unit_test(source_names_are_sanitized),
		cmocka_unit_test(source_names_are_short),
		cmocka_unit_test(missing_tool_says_what_to_install),
		cmocka_unit_test_setup_teardown(first_program_wins_and_is_shown_in_the_cell, make_scratch,
						drop_scratch),
		cmocka_unit_test_setup_teardown(packages_come_from_libexec_and_not_from_path, make_scratch,
						drop_scratch),
		cmocka_unit_test_setup_teardown(links_are_resolved, make_scratch, drop_scratch),
		cmocka_unit_test_setup_teardown(toolchains_are_told_apart, make_scratch, drop_scratch),
		cmocka_unit_test_setup_teardown(toolchains_are_the_same_elsewhere, make_scratch, drop_scratch),
		cmocka_unit_test(compiled_output_runs_itself),
		cmocka_unit_test(every_command_can_be_made),
		cmocka_unit_test(programs_belong_to_languages),
		cmocka_unit_test(i1_environment_below_trusted),
	};

	return cmocka_run_group_tests_name("lang", tests, NULL, NULL);
}
