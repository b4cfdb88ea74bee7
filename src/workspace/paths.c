/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/paths.h"

#include <limits.h>
#include <string.h>

bool paths_add(struct path_list *l, const char *path)
{
	if (l->n == l->cap) {
		size_t more = l->cap ? 2 * l->cap : 16;
		char **bigger = reallocarray(l->item, more, sizeof(*bigger));

		if (!bigger)
			return false;
		l->item = bigger;
		l->cap = more;
	}
	l->item[l->n] = strdup(path);
	return l->item[l->n] && ++l->n;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void paths_sort(struct path_list *l)
{
	size_t kept = 0;

	if (l->n == 0)
		return;
	qsort(l->item, l->n, sizeof(*l->item), by_path);
	for (size_t i = 1; i < l->n; i++)
		if (strcmp(l->item[kept], l->item[i]) == 0)
			free(l->item[i]);
		else
			l->item[++kept] = l->item[i];
	l->n = kept + 1;
}

bool paths_cover(const struct path_list *l, const char *path)
{
	char part[PATH_MAX];
	const char *key = part;
	size_t len = strlen(path);

	if (l->n == 0 || len >= sizeof(part))
		return l->n != 0;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && path[i] != '/') {
			part[i] = path[i];
			continue;
		}
		part[i] = '\0';
		if (bsearch(&key, l->item, l->n, sizeof(*l->item), by_path))
			return true;
		part[i] = '/';
	}
	return false;
}

/* Whether a folder that path is in is one of them. */
static bool is_below_one(const struct path_list *l, const char *path)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || (size_t)(slash - path) >= sizeof(parent))
		return false;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	return paths_cover(l, parent);
}

void paths_prune(struct path_list *l)
{
	/* From the back: what is below a path comes after it, so those that cover are still there. */
	for (size_t i = l->n; i-- > 0;)
		if (is_below_one(l, l->item[i])) {
			free(l->item[i]);
			memmove(&l->item[i], &l->item[i + 1], (l->n - i - 1) * sizeof(*l->item));
			l->n--;
		}
}

void paths_release(struct path_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->item[i]);
	free(l->item);
	*l = (struct path_list){ .item = NULL };
}

void path_say(struct buf *lines, const char *path, const char *why)
{
	while (*path) {
		size_t len = strcspn(path, "\n");

		(void)buf_add(lines, path, len);
		path += len;
		if (*path == '\n') {
			(void)buf_adds(lines, "\\n");
			path++;
		}
	}
	(void)buf_addf(lines, ": %s\n", why);
}
