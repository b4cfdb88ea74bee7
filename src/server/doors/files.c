/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - input files of a run, from any door
 *
 * Clients name files freely: twice the same, or "./a" beside "a". The runner, which unpacks the archive, refuses both, so
 * they are resolved here: the last file with a path is passed. A file where another one needs a directory cannot be
 * resolved, and is refused with both names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/archive.h"
#include "server/doors/door.h"

bool door_path(const char *path, char *dst, size_t size)
{
	size_t n = 0;

	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");
		bool is_root = at == path && len == 0, is_part = len > 0 && !(len == 1 && at[0] == '.');

		if (is_root || (is_part && n > 0 && dst[n - 1] != '/')) {
			if (n + 1 >= size)
				return false;
			dst[n++] = '/';
		}
		if (is_part) {
			if (n + len >= size)
				return false;
			memcpy(dst + n, at, len);
			n += len;
		}
		at += len + (at[len] == '/');
	}
	dst[n] = '\0';
	return n > 0;
}

/* ---- which files are passed ---------------------------------------------------------------------------------- */

/* A file of the archive, with its header and padding. */
struct entry {
	char *path;
	size_t begin, end;
	bool is_replaced;
};

struct entries {
	struct entry *item;
	size_t n, cap;
};

static void entries_release(struct entries *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i].path);
	free(list->item);
}

static bool entries_add(struct entries *list, const char *path, size_t begin, size_t end)
{
	struct entry *item = list->item;

	if (list->n == list->cap) {
		list->cap = list->cap ? 2 * list->cap : 64;
		item = reallocarray(list->item, list->cap, sizeof(*item));
		if (!item)
			return false;
		list->item = item;
	}
	item[list->n] = (struct entry){ .path = strdup(path), .begin = begin, .end = end };
	return item[list->n++].path != NULL;
}

/* By path; files with the same path in their order. */
static int by_path(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_place(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int is_at(const void *path, const void *entry)
{
	return strcmp(path, ((const struct entry *)entry)->path);
}

/* list is in the order of paths. */
static int check_folders(const struct entries *list, const char *path, struct brig_error *err)
{
	char above[ARCHIVE_PATH_MAX + 1], *slash;

	(void)str_copy(above, sizeof(above), path);
	while ((slash = strrchr(above, '/'))) {
		*slash = '\0';
		if (bsearch(above, list->item, list->n, sizeof(*list->item), is_at))
			return err_set(
				err, BRIG_E_USAGE, 0,
				"the files '%.150s' and '%.150s' cannot both be placed: the first one would have to be "
				"a directory; rename one of them, or leave it out",
				above, path);
	}
	return 0;
}

static int resolve(struct entries *list, struct brig_error *err)
{
	int rc = 0;

	if (list->n == 0)
		return 0;
	qsort(list->item, list->n, sizeof(*list->item), by_path);
	for (size_t i = 0; i + 1 < list->n; i++)
		list->item[i].is_replaced = str_eq(list->item[i].path, list->item[i + 1].path);
	for (size_t i = 0; i < list->n && rc == 0; i++)
		rc = check_folders(list, list->item[i].path, err);
	return rc;
}

static void remove_replaced(struct buf *tar, struct entries *list)
{
	size_t n = 0;

	qsort(list->item, list->n, sizeof(*list->item), by_place);
	for (size_t i = 0; i < list->n; i++) {
		const struct entry *e = &list->item[i];

		if (e->is_replaced)
			continue;
		memmove(tar->data + n, tar->data + e->begin, e->end - e->begin);
		n += e->end - e->begin;
	}
	tar->len = n;
	tar->data[n] = '\0';
}

static int settle(struct buf *tar, struct entries *list, struct brig_error *err)
{
	struct archive a = { .bytes = buf_str(tar), .len = tar->len };
	struct archive_file f;
	struct brig_error own = BRIG_ERROR_INIT;
	size_t begin = 0;
	int rc;

	while ((rc = archive_next(&a, &f, &own)) > 0) {
		if (!entries_add(list, f.path, begin, a.at))
			return err_nomem(err);
		begin = a.at;
	}
	if (rc < 0)
		return 0; /* a name that only the runner judges, which unpacks the archive */
	rc = resolve(list, err);
	if (rc == 0 && list->n > 0)
		remove_replaced(tar, list);
	return rc;
}

int door_files(struct buf *tar, int *ret_files, struct brig_error *err)
{
	struct entries list = { .n = 0 };
	int rc = settle(tar, &list, err), fd;

	entries_release(&list);
	if (rc < 0) {
		json_read_mend(err); /* a name may have been truncated within a character */
		return rc;
	}
	if (tar->len == 0)
		return 0;
	fd = ustar_to_file(tar);
	if (fd < 0)
		return err_set(err, BRIG_E_SYSTEM, -fd, "there is no room for the files that were sent");
	*ret_files = fd;
	return 0;
}
