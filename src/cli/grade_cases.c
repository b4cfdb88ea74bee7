/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of `brig grade`: lines of JSON as in a job's "cases", or pairs of files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/batch_lines.h"
#include "cli/grade.h"
#include "cli/request.h"

/* Appends a case with default values. */
static struct batch_case *add_case(struct grade_cases *c, const struct judge_expected *how, struct brig_error *err)
{
	if ((c->n & (c->n + 1)) == 0) { /* at 0, 1, 3, 7 ...: doubles the capacity */
		struct batch_case *item = reallocarray(c->item, 2 * c->n + 1, sizeof(*item));
		void *name = item ? reallocarray(c->name, 2 * c->n + 1, sizeof(*c->name)) : NULL;

		c->item = item ? item : c->item;
		c->name = name ? name : c->name;
		if (!name) {
			(void)err_nomem(err);
			return NULL;
		}
	}
	if (c->n == BATCH_CASES_MAX) {
		(void)err_set(err, BRIG_E_USAGE, 0, "there are more than %d cases", BATCH_CASES_MAX);
		return NULL;
	}
	c->item[c->n] = (struct batch_case){ .expected = *how, .points = 1 };
	return &c->item[c->n++];
}

static void name_case(struct grade_cases *c, const char *name)
{
	char *to = c->name[c->n - 1];

	(void)str_copy(to, sizeof(*c->name), name);
	to[str_utf8_prefix(to, strlen(to))] = '\0';
}

/* ---- a file of lines ---------------------------------------------------------------------------- */

static int take_line(struct grade_cases *c, const struct judge_expected *how, const char *line, size_t len,
		     uint64_t number, struct brig_error *err)
{
	struct batch_case *item;
	char text[24];

	if (strspn(line, " \t\r") >= len)
		return 0;
	item = add_case(c, how, err);
	if (!item)
		return -err->code;
	if (batch_case_read(c->owner, line, len, item, err) < 0)
		return err_wrap(err, "line %llu", (unsigned long long)number);
	(void)snprintf(text, sizeof(text), "%zu", c->n);
	name_case(c, item->name ? item->name : text);
	return 0;
}

static int load_lines(int fd, const struct judge_expected *how, struct grade_cases *c, struct brig_error *err)
{
	struct batch_lines lines = BATCH_LINES_INIT(fd, BATCH_LINE_MAX);
	enum batch_line got = BATCH_LINE_WAIT;
	const char *line = NULL;
	size_t len = 0;
	int rc = 0;

	while (rc == 0 && got != BATCH_LINE_END) {
		got = batch_lines_next(&lines, &line, &len);
		if (got == BATCH_LINE_WAIT)
			rc = batch_lines_read(&lines);
		if (rc < 0)
			rc = rc == -EAGAIN ? 0 : err_set(err, BRIG_E_SYSTEM, -rc, "cannot read it");
		else if (got == BATCH_LINE_TOO_LONG || lines.offset > GRADE_BYTES_MAX)
			rc = err_set(err, BRIG_E_USAGE, 0, "line %llu: it is too long",
				     (unsigned long long)lines.number);
		else if (got == BATCH_LINE_GOOD)
			rc = take_line(c, how, line, len, lines.number, err);
	}
	batch_lines_release(&lines);
	return rc;
}

/* ---- a folder of pairs ----------------------------------------------------------------------------- */

static int load_file(struct grade_cases *c, int dir, const char *name, size_t *left, struct bytes *ret,
		     struct brig_error *err)
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t n;
	char *data;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, BRIG_E_USAGE, errno, "cannot open '%.100s'", name);
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size > *left)
		return err_set(err, BRIG_E_USAGE, 0, "'%.100s' is no regular file, or there is too much of all", name);
	data = batch_job_alloc(c->owner, (size_t)st.st_size + 1, 1);
	if (!data)
		return err_nomem(err);
	n = fd_read_all(fd, data, (size_t)st.st_size);
	if (n < 0)
		return err_set(err, BRIG_E_SYSTEM, (int)-n, "cannot read '%.100s'", name);
	*left -= (size_t)n;
	*ret = (struct bytes){ data, (size_t)n };
	return 0;
}

static int is_input(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 3 && str_eq(entry->d_name + len - 3, ".in");
}

static int load_pair(struct grade_cases *c, const struct judge_expected *how, int dir, const char *input, size_t *left,
		     struct brig_error *err)
{
	struct batch_case *item = add_case(c, how, err);
	char name[NAME_MAX + 8];
	int stem = (int)strlen(input) - 3;

	if (!item || load_file(c, dir, input, left, &item->input, err) < 0)
		return -err->code;
	(void)snprintf(name, sizeof(name), "%.*s.out", stem, input);
	if (load_file(c, dir, name, left, &item->expected.out, err) < 0)
		return err_wrap(err, "what is expected for '%.100s'", input);
	name[stem] = '\0';
	name_case(c, name);
	return 0;
}

static int load_folder(int dir, const struct judge_expected *how, struct grade_cases *c, struct brig_error *err)
{
	struct dirent **list = NULL;
	size_t left = GRADE_BYTES_MAX;
	int n = scandirat(dir, ".", &list, is_input, versionsort), rc = 0;

	if (n < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot list it");
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = load_pair(c, how, dir, list[i]->d_name, &left, err);
		free(list[i]);
	}
	free(list);
	return rc;
}

int grade_cases_load(const char *path, const struct judge_expected *how, struct grade_cases *ret,
		     struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;
	struct stat st;
	int rc;

	ret->owner = batch_job_new();
	if (!ret->owner)
		return err_nomem(err);
	fd = request_open(path, FILE_FOLDERS, err);
	if (fd < 0)
		return err_wrap(err, "the cases");
	rc = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? load_folder(fd, how, ret, err)
							: load_lines(fd, how, ret, err);
	if (rc == 0 && ret->n == 0)
		rc = err_set(err, BRIG_E_USAGE, 0,
			     "there is no case: give lines of JSON, or a folder of NAME.in and NAME.out");
	for (size_t i = 0; i < ret->n; i++) {
		ret->item[i].expected.is_given = true;
		ret->points += ret->item[i].points;
	}
	return rc < 0 ? err_wrap(err, "the cases in '%.200s'", path) : 0;
}

void grade_cases_release(struct grade_cases *c)
{
	batch_job_free(c->owner);
	free(c->item);
	free(c->name);
	*c = (struct grade_cases){ 0 };
}
