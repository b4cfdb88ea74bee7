/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects which tests a project has, by the names of its files: a project may have a package.json for its documentation
 * only.  If there are tests in several languages, nothing is guessed: the caller must choose.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/glob.h"
#include "files/walk.h"
#include "testing/internal.h"

#define LOOKED_AT_MAX 50000 /* maximum number of entries to visit: a test file is usually found long before */

static const struct framework frameworks[] = {
#define FRAMEWORK(name, language, runner) { name, language, RUNNER_##runner },
#include "testing/frameworks.def"
};

/* Languages in the order of the table, each once. */
static const char *const test_languages[] = { "python", "javascript", "go" };

static const struct {
	const char *language, *pattern;
} patterns[] = {
#define TEST_FILES(language, pattern) { language, pattern },
#include "testing/frameworks.def"
};

const struct framework *framework_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(frameworks); i++)
		if (str_eq(frameworks[i].name, name))
			return &frameworks[i];
	return NULL;
}

const struct framework *framework_of(const char *language)
{
	for (size_t i = 0; i < ARRAY_LEN(frameworks); i++)
		if (str_eq(frameworks[i].language, language))
			return &frameworks[i];
	return NULL;
}

/* ---- files ----------------------------------------------------------------------------------------- */

struct sight {
	bool seen[ARRAY_LEN(test_languages)];
	const char *prefix; /* prefix of the visited paths, relative to the project */
};

static void see_file(struct sight *s, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		for (size_t l = 0; l < ARRAY_LEN(test_languages); l++)
			if (!s->seen[l] && str_eq(patterns[i].language, test_languages[l]) &&
			    glob_matches(patterns[i].pattern, path, false))
				s->seen[l] = true;
}

bool tests_is_foreign(const char *name)
{
	static const char *const names[] = { "node_modules", "vendor", "venv", "__pycache__", "site-packages" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(names[i], name))
			return true;
	return name[0] == '.';
}

static enum walk_next look_at(void *arg, const struct walk_entry *e)
{
	struct sight *s = arg;
	char path[WALK_PATH_MAX + PATH_MAX];
	bool all = true;

	if (S_ISDIR(e->st->st_mode))
		return tests_is_foreign(e->name) ? WALK_SKIP : WALK_ON;
	if (!S_ISREG(e->st->st_mode))
		return WALK_ON;
	(void)snprintf(path, sizeof(path), "%s%s%s", s->prefix, *s->prefix ? "/" : "", e->path);
	see_file(s, path);
	for (size_t i = 0; i < ARRAY_LEN(s->seen); i++)
		all = all && s->seen[i];
	return all ? WALK_STOP : WALK_ON;
}

/* The extension of a single file decides its language, whatever its name. */
static void see_ending(struct sight *s, const char *path)
{
	static const struct {
		const char *ending, *language;
	} rows[] = { { ".py", "python" },      { ".js", "javascript" }, { ".mjs", "javascript" },
		     { ".cjs", "javascript" }, { ".ts", "javascript" }, { ".tsx", "javascript" },
		     { ".jsx", "javascript" }, { ".go", "go" } };
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_LEN(rows); i++)
		for (size_t l = 0; l < ARRAY_LEN(test_languages); l++)
			if (str_eq(rows[i].ending, dot) && str_eq(rows[i].language, test_languages[l]))
				s->seen[l] = true;
}

static int look_round(int project, const char *path, struct sight *s, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = LOOKED_AT_MAX, .kinds_only = true };
	struct walk_outcome outcome;
	AUTO_FD dir = FD_NONE;
	struct stat st;
	int fd = beneath_look(project, path, &st);

	if (fd < 0)
		return err_set(err, BRIG_E_REFUSED, -fd, "there are no tests at '%.200s' in the workspace", path);
	(void)close(fd);
	if (S_ISREG(st.st_mode)) {
		see_ending(s, path);
		return 0;
	}
	dir = beneath_open_dir(project, path);
	if (dir < 0)
		return err_set(err, BRIG_E_REFUSED, -dir, "'%.200s' of the workspace is neither a file nor a folder",
			       path);
	s->prefix = path;
	return walk_tree(dir, &caps, look_at, s, &outcome, err);
}

/* ---- the choice --------------------------------------------------------------------------------- */

static int found_nothing(const char *path, const char *foreign, struct brig_error *err)
{
	AUTO_BUF list = BUF_INIT(1024);

	if (*foreign)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "package.json tests with %s, which brig does not know; 'brig exec' can run it", foreign);
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		if (!strchr(patterns[i].pattern, '?') && strncmp(patterns[i].pattern, "**/", 3) != 0)
			buf_addf(&list, "%s%s", list.len ? ", " : "", patterns[i].pattern);
	return err_set(err, BRIG_E_REFUSED, 0,
		       "no tests were found%s%.100s: looked for %s, and for jest or vitest in package.json; if they "
		       "are called "
		       "otherwise name the framework",
		       path ? " in " : "", path ? path : "", buf_str(&list));
}

/* wanted is a known name of a framework or language. */
static const struct framework *fitting(const char *wanted, const struct framework *packaged)
{
	const struct framework *f = framework_by_name(wanted);

	if (f)
		return f;
	return packaged && str_eq(wanted, packaged->language) ? packaged : framework_of(wanted);
}

static int choose(const struct sight *s, const struct framework *packaged, const char *path, const char *foreign,
		  const struct framework **ret, struct brig_error *err)
{
	AUTO_BUF names = BUF_INIT(256);
	size_t n = 0;

	for (size_t l = 0; l < ARRAY_LEN(test_languages); l++) {
		bool named = packaged && str_eq(packaged->language, test_languages[l]);
		const struct framework *f = named ? packaged : framework_of(test_languages[l]);

		/* A framework in package.json may find tests in other places. */
		if (!s->seen[l] && !(named && !path))
			continue;
		if (*foreign && str_eq(test_languages[l], "javascript") && !named)
			continue;
		*ret = f;
		buf_addf(&names, "%s%s", n++ ? ", " : "", f->name);
	}
	if (n == 0)
		return found_nothing(path, foreign, err);
	if (n > 1)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the workspace has tests for several frameworks: %s; name one of them", buf_str(&names));
	return 0;
}

static int unknown_framework(const char *wanted, struct brig_error *err)
{
	AUTO_BUF known = BUF_INIT(256);

	for (size_t i = 0; i < ARRAY_LEN(frameworks); i++)
		buf_addf(&known, "%s%s", i ? ", " : "", frameworks[i].name);
	return err_set(err, BRIG_E_USAGE, 0, "framework '%.40s' is not known; known: %s", wanted, buf_str(&known));
}

/* Removes the "::" part, a single test, from a result of tests_clean_path(). */
static void cut_test(const char *path, char *dst, size_t size)
{
	char *colons;

	(void)str_copy(dst, size, path);
	colons = strstr(dst, "::");
	if (colons)
		*colons = '\0';
}

int tests_choose(int project, const char *wanted, const char *path, const struct framework **ret,
		 struct brig_error *err)
{
	const struct framework *packaged = NULL;
	char file[PATH_MAX], foreign[24] = "";
	struct sight s = { .prefix = "" };
	int rc = 0;

	if (path)
		cut_test(path, file, sizeof(file));
	if (wanted && !framework_by_name(wanted) && !framework_of(wanted))
		return unknown_framework(wanted, err);
	if (rc == 0)
		rc = look_round(project, path ? file : ".", &s, err);
	if (rc == 0)
		rc = package_framework(project, &packaged, foreign, err);
	if (rc < 0)
		return rc;
	if (!wanted)
		return choose(&s, packaged, path, foreign, ret, err);
	*ret = fitting(wanted, packaged);
	return 0;
}
