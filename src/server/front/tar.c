/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - normalises an archive from a client */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/archive.h"
#include "server/front/front.h"

struct names {
	char **item;
	size_t n;
};

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->item[i]);
	free(names->item);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Refuses duplicate names, and files that are also directories of others: later entries would replace earlier ones. */
static int check_names(struct names *names, struct brig_error *err)
{
	qsort(names->item, names->n, sizeof(*names->item), compare);
	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->item[i];
		char above[ARCHIVE_PATH_MAX + 1], *slash, *key = above;

		if (i > 0 && strcmp(names->item[i - 1], name) == 0)
			return err_set(err, BRIG_E_USAGE, 0, "the archive has '%.200s' twice", name);
		(void)str_copy(above, sizeof(above), name);
		while ((slash = strrchr(above, '/'))) {
			*slash = '\0';
			if (bsearch(&key, names->item, names->n, sizeof(*names->item), compare))
				return err_set(err, BRIG_E_USAGE, 0,
					       "the archive has '%.200s' as a file and as a folder", above);
		}
	}
	return 0;
}

static int copy_files(struct archive *from, struct buf *to, struct names *names, struct brig_error *err)
{
	struct archive_file f;
	int rc;

	while ((rc = archive_next(from, &f, err)) > 0) {
		if (names->n == ARCHIVE_FILES_MAX)
			return err_set(err, BRIG_E_USAGE, 0, "the archive has more than %d files", ARCHIVE_FILES_MAX);
		names->item[names->n] = strdup(f.path);
		if (!names->item[names->n])
			return err_nomem(err);
		names->n++;
		if (!archive_put(to, &f))
			return to->no_memory ? err_nomem(err)
					     : err_set(err, BRIG_E_USAGE, 0, "the archive has more than %llu MB",
						       (unsigned long long)(ARCHIVE_BYTES_MAX / MiB));
	}
	return rc;
}

int tar_to_file(const char *bytes, size_t len, int *ret_files, struct brig_error *err)
{
	struct archive from = { .bytes = bytes, .len = len };
	AUTO_BUF to = BUF_INIT(ARCHIVE_BYTES_MAX);
	struct names names = { .item = calloc(ARCHIVE_FILES_MAX, sizeof(char *)) };
	int rc;

	if (!names.item)
		return err_nomem(err);
	rc = copy_files(&from, &to, &names, err);
	if (rc == 0)
		rc = check_names(&names, err);
	names_release(&names);
	if (rc < 0) {
		json_read_mend(err); /* a path may have been truncated within a character */
		return rc;
	}
	*ret_files = ustar_to_file(&to);
	return *ret_files < 0 ? err_set(err, BRIG_E_SYSTEM, -*ret_files, "there is no room for the archive") : 0;
}
