/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an install cell gets of a project: the files that name its dependencies, and nothing else.
 *
 * Requirement files name others with -r and -c, in folders of their own; a cell gets files by name only.  So each is
 * given as requirements-N.txt, and the lines that name it are rewritten.  That is all that is understood of them: what
 * else they say is for pip to judge, inside.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "packages/packages.h"

#define MANIFEST_PATH_MAX 512

void package_files_release(struct package_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free((void *)(uintptr_t)f->file[i].name);
		free((void *)(uintptr_t)f->file[i].data);
	}
	*f = (struct package_files){ .n = 0 };
}

/* Takes the buffer's content. */
static int add_file(struct package_files *f, const char *name, struct buf *text, struct brig_error *err)
{
	struct plan_file *one = &f->file[f->n];

	if (text->no_memory)
		return err_nomem(err);
	f->bytes += text->len;
	if (text->full || f->bytes > PACKAGES_TEXT_MAX)
		return err_set(err, BRIG_E_REFUSED, 0, "'%s' and what belongs to it have more than %u bytes", name,
			       PACKAGES_TEXT_MAX);
	*one = (struct plan_file){ .name = strdup(name), .len = text->len, .mode = 0644 };
	one->data = text->len ? buf_take(text) : strdup("");
	f->n++; /* from here on it is released with the others */
	return one->name && one->data ? 0 : err_nomem(err);
}

/* A requirements file must not reveal what programs may not see. */
static bool is_hidden(const struct plan_workspace *project, const char *path)
{
	for (size_t i = 0; i < project->n_hidden; i++) {
		size_t len = strlen(project->hidden[i]);

		if (strncmp(path, project->hidden[i], len) == 0 && (path[len] == '\0' || path[len] == '/'))
			return true;
	}
	return false;
}

/* 1: *ret has its bytes; 0: there is no such file. */
static int read_file(const struct plan_workspace *project, const char *path, struct buf *ret, struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;
	char piece[16384];
	ssize_t n;

	if (is_hidden(project, path))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%s' of the workspace is hidden from programs, and so from installers", path);
	fd = beneath_open_file(project->fd, path, NULL);

	if (fd == -ENOENT)
		return 0;
	if (fd == -EINVAL || fd == -ELOOP || fd == -EXDEV)
		return err_set(err, BRIG_E_REFUSED, 0, "'%s' of the workspace is not a regular file in it", path);
	if (fd < 0)
		return err_set(err, BRIG_E_REFUSED, -fd, "cannot read '%s' of the workspace", path);
	while ((n = fd_read_all(fd, piece, sizeof(piece))) > 0)
		if (buf_add(ret, piece, (size_t)n) < (size_t)n)
			break;
	return n < 0 ? err_set(err, BRIG_E_REFUSED, (int)-n, "cannot read '%s' of the workspace", path) : 1;
}

/* ---- requirement files --------------------------------------------------------------------------- */

struct queue {
	char path[PACKAGES_FILES_MAX][MANIFEST_PATH_MAX]; /* below the project */
	size_t n;
};

/* Joins the folder of from and name, without "." and ".." in the outcome.  False: it leads out, or is too long. */
static bool join(const char *from, const char *name, size_t len, char dst[MANIFEST_PATH_MAX])
{
	const char *slash = strrchr(from, '/');
	size_t used = slash ? (size_t)(slash - from) : 0, part;

	if (len == 0 || *name == '/')
		return false;
	memcpy(dst, from, used);
	for (size_t at = 0; at < len; at += part + 1) {
		const char *end = memchr(name + at, '/', len - at);

		part = end ? (size_t)(end - name) - at : len - at;
		if (part == 0 || (part == 1 && name[at] == '.'))
			continue;
		if (part == 2 && name[at] == '.' && name[at + 1] == '.') {
			if (used == 0)
				return false;
			while (used > 0 && dst[used - 1] != '/')
				used--;
			used -= used > 0;
			continue;
		}
		if (used + part + 2 > MANIFEST_PATH_MAX)
			return false;
		if (used > 0)
			dst[used++] = '/';
		memcpy(dst + used, name + at, part);
		used += part;
	}
	dst[used] = '\0';
	return used > 0;
}

/* Whether the line names another file: its option, and the name in *ret. */
static const char *names_file(const char *line, size_t len, const char **ret, size_t *ret_len)
{
	static const char *const options[] = { "--requirement", "--constraint", "-r", "-c" };
	size_t skip = 0, end;

	while (skip < len && (line[skip] == ' ' || line[skip] == '\t'))
		skip++;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		size_t n = strlen(options[i]), at = skip + n;
		bool is_long = options[i][1] == '-';

		if (len - skip <= n || strncmp(line + skip, options[i], n) != 0 ||
		    (is_long && !strchr(" \t=", line[at])))
			continue;
		while (at < len && strchr(" \t=", line[at]))
			at++;
		for (end = at; end < len && !strchr(" \t\r", line[end]);)
			end++;
		*ret = line + at;
		*ret_len = end - at;
		return i % 2 ? "-c" : "-r";
	}
	return NULL;
}

/* The number under which the queue has a path, which is added if it is new; negative: the queue is full. */
static int number_of(struct queue *q, const char *path)
{
	size_t i;

	for (i = 0; i < q->n; i++)
		if (str_eq(q->path[i], path))
			return (int)i;
	if (i == PACKAGES_FILES_MAX)
		return -1;
	(void)str_copy(q->path[i], sizeof(q->path[i]), path);
	q->n++;
	return (int)i;
}

static void put_name(char *dst, size_t size, int number)
{
	if (number == 0)
		(void)snprintf(dst, size, "requirements.txt");
	else
		(void)snprintf(dst, size, "requirements-%d.txt", number);
}

static int rewrite_line(struct queue *q, size_t self, const char *line, size_t len, struct buf *ret,
			struct brig_error *err)
{
	char path[MANIFEST_PATH_MAX], given[64];
	const char *name = "", *option;
	size_t name_len = 0;
	int number;

	option = names_file(line, len, &name, &name_len);
	/* An address is for pip to ask, within what the cell may reach. */
	if (!option || memmem(name, name_len, "://", 3)) {
		(void)buf_add(ret, line, len);
		return 0;
	}
	if (!join(q->path[self], name, name_len, path))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%s' of the workspace names '%.*s', which is not in the workspace", q->path[self],
			       (int)min_u64(name_len, 200), name);
	number = number_of(q, path);
	if (number < 0)
		return err_set(err, BRIG_E_REFUSED, 0, "'%s' of the workspace needs more than %d requirement files",
			       q->path[0], PACKAGES_FILES_MAX);
	put_name(given, sizeof(given), number);
	(void)buf_addf(ret, "%s %s", option, given);
	return 0;
}

static int rewrite(struct queue *q, size_t self, const struct buf *text, struct buf *ret, struct brig_error *err)
{
	for (size_t at = 0; at < text->len;) {
		const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
		size_t len = end ? (size_t)(end - line) : text->len - at;
		int rc = rewrite_line(q, self, line, len, ret, err);

		if (rc < 0)
			return rc;
		(void)buf_adds(ret, "\n");
		at += len + 1;
	}
	return 0;
}

static int read_requirements(const struct plan_workspace *project, const char *manifest, struct package_files *ret,
			     struct brig_error *err)
{
	AUTO_FREE struct queue *q = calloc(1, sizeof(*q));
	int rc = 0;

	if (!q)
		return err_nomem(err);
	(void)number_of(q, manifest);
	for (size_t i = 0; rc == 0 && i < q->n; i++) {
		AUTO_BUF text = BUF_INIT(PACKAGES_TEXT_MAX + 1), ours = BUF_INIT(PACKAGES_TEXT_MAX + 1);
		char name[64];

		rc = read_file(project, q->path[i], &text, err);
		if (rc == 0)
			return err_set(err, BRIG_E_REFUSED, 0, "there is no '%s' in the workspace", q->path[i]);
		if (rc > 0)
			rc = rewrite(q, i, &text, &ours, err);
		put_name(name, sizeof(name), (int)i);
		if (rc == 0)
			rc = add_file(ret, name, &ours, err);
	}
	return rc;
}

/* ---- others -------------------------------------------------------------------------------------- */

static int read_one(const struct plan_workspace *project, const char *name, bool needed, struct package_files *ret,
		    struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(PACKAGES_TEXT_MAX + 1);
	int rc = read_file(project, name, &text, err);

	if (rc == 0 && needed)
		return err_set(err, BRIG_E_REFUSED, 0, "there is no '%s' in the workspace", name);
	return rc <= 0 ? rc : add_file(ret, name, &text, err);
}

int package_files_read(const struct ecosystem *e, const struct plan_workspace *project, struct package_files *ret,
		       struct brig_error *err)
{
	int rc;

	*ret = (struct package_files){ .n = 0 };
	if (str_eq(e->manifest, "requirements.txt"))
		rc = read_requirements(project, e->manifest, ret, err);
	else
		rc = read_one(project, e->manifest, true, ret, err);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(e->also) && e->also[i]; i++)
		rc = read_one(project, e->also[i], false, ret, err);
	if (rc < 0)
		package_files_release(ret);
	return rc;
}
