/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submissions.  Their directory is treated as hostile: a link could lead to the cases, and the program could then read
 * them.  So no link is followed, and a directory that contains the cases is not a submission.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/grade.h"

static const struct entry {
	const char *language, *file;
} entries[] = {
#define ENTRY(language, file) { language, file },
#include "cli/entries.def"
};

static void read_code(struct grade_submission *s, int dir, const char *name)
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_set(&s->bad, BRIG_E_USAGE, errno, "cannot open '%.100s'", name);
	} else if (!S_ISREG(st.st_mode)) {
		(void)err_set(&s->bad, BRIG_E_USAGE, 0, "'%.100s' is %s", name, file_kind(st.st_mode));
	} else if (st.st_size > BRIG_CODE_MAX) {
		(void)err_set(&s->bad, BRIG_E_USAGE, 0, "'%.100s' is longer than a program may be", name);
	} else {
		s->code = malloc((size_t)st.st_size + 1);
		n = s->code ? fd_read_all(fd, s->code, (size_t)st.st_size) : -ENOMEM;
		s->code_len = n > 0 ? (size_t)n : 0;
		if (n < 0)
			(void)err_set(&s->bad, BRIG_E_USAGE, (int)-n, "cannot read '%.100s'", name);
	}
}

/* The only entry file at the top of the directory. */
static const struct entry *find_entry(struct grade_submission *s, int dir)
{
	const struct entry *found = NULL;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		if (strchr(entries[i].file, '/') || fstatat(dir, entries[i].file, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (found && str_eq(found->language, entries[i].language)))
			continue;
		if (found) {
			(void)err_set(&s->bad, BRIG_E_USAGE, 0, "more than one program begins in it: %s and %s",
				      found->file, entries[i].file);
			return NULL;
		}
		found = &entries[i];
	}
	if (!found)
		(void)err_set(&s->bad, BRIG_E_USAGE, 0, "no program begins in it: main.py, index.js, main.go ...");
	return found;
}

/* Whether path is folder or below it, after resolving links. */
static bool is_within(const char *path, const char *folder)
{
	char a[PATH_MAX], b[PATH_MAX];
	size_t len;

	if (!realpath(path, a) || !realpath(folder, b))
		return true; /* unknown: assume so */
	len = strlen(b);
	return strncmp(a, b, len) == 0 && (a[len] == '\0' || a[len] == '/');
}

static void read_folder(struct grade_submission *s, int parent, const char *cases)
{
	AUTO_FD dir = openat(parent, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct entry *entry;

	if (dir < 0) {
		(void)err_set(&s->bad, BRIG_E_USAGE, errno, "cannot open it");
		return;
	}
	if (is_within(cases, s->workspace)) {
		(void)err_set(&s->bad, BRIG_E_REFUSED, 0, "the cases are in it, and a program must not see them");
		return;
	}
	entry = find_entry(s, dir);
	if (!entry)
		return;
	s->entry = strdup(entry->file);
	read_code(s, dir, entry->file);
}

static int add_submission(struct grade_submissions *list, int dir, const char *path, const char *name,
			  const char *cases, struct brig_error *err)
{
	struct grade_submission *s = &list->item[list->n];
	char full[PATH_MAX];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* removed meanwhile */
	if ((size_t)snprintf(full, sizeof(full), "%s/%s", path, name) >= sizeof(full))
		return err_set(err, BRIG_E_USAGE, 0, "'%.100s' has too long a path", name);
	if ((S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) && is_within(full, cases))
		return 0; /* the cases themselves */
	*s = (struct grade_submission){ .name = strdup(name) };
	if (!s->name)
		return err_nomem(err);
	list->n++;
	if (S_ISDIR(st.st_mode)) {
		s->workspace = strdup(full);
		if (!s->workspace)
			return err_nomem(err);
		read_folder(s, dir, cases);
	} else {
		read_code(s, dir, name);
	}
	return 0;
}

static int is_no_dot_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int grade_submissions_load(const char *dir, const char *cases, struct grade_submissions *ret, struct brig_error *err)
{
	AUTO_FD fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **list = NULL;
	int n = fd < 0 ? -1 : scandirat(fd, ".", &list, is_no_dot_file, versionsort), rc = 0;

	if (n < 0)
		return err_set(err, BRIG_E_USAGE, errno, "cannot list the submissions in '%.200s'", dir);
	ret->item = calloc((size_t)n + 1, sizeof(*ret->item));
	if (!ret->item)
		rc = err_nomem(err);
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = add_submission(ret, fd, dir, list[i]->d_name, cases, err);
		free(list[i]);
	}
	free(list);
	if (rc == 0 && ret->n == 0)
		rc = err_set(err, BRIG_E_USAGE, 0, "there is no submission in '%.200s'", dir);
	return rc;
}

void grade_submissions_release(struct grade_submissions *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->item[i].name);
		free(s->item[i].workspace);
		free(s->item[i].entry);
		free(s->item[i].code);
	}
	free(s->item);
	*s = (struct grade_submissions){ 0 };
}
