/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of tools by their names (caches.def). */
#include <fnmatch.h>
#include <string.h>

#include "base/str.h"
#include "workspace/internal.h"

static const char *const patterns[] = {
#define CACHE(pattern) pattern,
#include "workspace/caches.def"
};

/* The end of the component that begins at s. */
static size_t component(const char *s)
{
	return strcspn(s, "/");
}

/* Whether the pattern's components are those that the path goes on with from here. */
static bool begins_with(const char *path, const char *pattern)
{
	char part[NAME_MAX + 1];
	size_t len = component(path);

	if (strchr(pattern, '/') && path[len] == '/')
		len += 1 + component(path + len + 1);
	if (len >= sizeof(part))
		return false;
	memcpy(part, path, len);
	part[len] = '\0';
	return fnmatch(pattern, part, FNM_PATHNAME) == 0;
}

bool is_tool_cache(const char *path)
{
	for (;;) {
		for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
			if (begins_with(path, patterns[i]))
				return true;
		path += component(path);
		if (!*path)
			return false;
		path++;
	}
}
