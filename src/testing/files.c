/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the test files of a project before the first test runs. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "files/glob.h"
#include "files/walk.h"
#include "testing/internal.h"

#define ENTRIES_MAX 1000000

static const struct {
	const char *language, *pattern;
} patterns[] = {
#define TEST_FILES(language, pattern) { language, pattern },
#define TEST_PART(language, pattern)  { language, pattern },
#include "testing/frameworks.def"
};

struct listing {
	struct test_run *run;
	struct brig_error *err;
	int rc;
};

static bool is_test(const char *language, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		if (str_eq(patterns[i].language, language) && glob_matches(patterns[i].pattern, path, false))
			return true;
	return false;
}

static int add_file(struct test_run *t, const char *path, struct brig_error *err)
{
	if (t->n_files == TEST_FILES_MAX)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the workspace has more than %d test files, too many to be held as they are while tests "
			       "run: make a folder below it the workspace",
			       TEST_FILES_MAX);
	if (t->n_files == t->files_cap) {
		size_t cap = t->files_cap ? 2 * t->files_cap : 64;
		char **grown = reallocarray(t->files, cap, sizeof(*grown));

		if (!grown)
			return err_nomem(err);
		t->files = grown;
		t->files_cap = cap;
	}
	t->files[t->n_files] = strdup(path);
	if (!t->files[t->n_files])
		return err_nomem(err);
	t->n_files++;
	return 0;
}

static enum walk_next consider(void *arg, const struct walk_entry *e)
{
	struct listing *l = arg;

	if (S_ISDIR(e->st->st_mode))
		return tests_is_foreign(e->name) ? WALK_SKIP : WALK_ON;
	if (S_ISLNK(e->st->st_mode) && is_test(l->run->language, e->path))
		l->run->has_links = true;
	if (S_ISREG(e->st->st_mode) && is_test(l->run->language, e->path))
		l->rc = add_file(l->run, e->path, l->err);
	return l->rc < 0 ? WALK_STOP : WALK_ON;
}

/* Orders by folder: '/' is less than every other character of a name. */
static int by_folder(const void *a, const void *b)
{
	const unsigned char *x = *(const unsigned char *const *)a, *y = *(const unsigned char *const *)b;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : *x ? *x + 1 : 0) - (*y == '/' ? 1 : *y ? *y + 1 : 0);
}

int tests_list_files(int project, struct test_run *t, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX, .kinds_only = true };
	struct listing l = { .run = t, .err = err };
	struct walk_outcome outcome;
	int rc = walk_tree(project, &caps, consider, &l, &outcome, err);

	if (rc < 0 || l.rc < 0)
		return rc < 0 ? rc : l.rc;
	if (outcome.cut)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"the workspace has more than %d files, or folders nested too deep: not all test files can "
			"be found; make a smaller folder the workspace",
			ENTRIES_MAX);
	if (t->n_files > 0)
		qsort(t->files, t->n_files, sizeof(*t->files), by_folder);
	return 0;
}
