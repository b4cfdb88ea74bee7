/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns and paths, both from strangers: it ends, reads nothing beyond them, and obeys a few laws. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not strndup(): with strict_string_checks a sanitizer wants a NUL that is not there. */
static char *text_of(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	if (!text)
		abort();
	memcpy(text, data, len);
	text[len] = '\0';
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *pattern, *path;
	size_t half;

	if (size < 2 || size > 4096)
		return 0;
	half = (size_t)data[0] * (size - 1) / 255;
	pattern = text_of(data + 1, half);
	path = text_of(data + 1 + half, size - 1 - half);
	(void)glob_is_pattern(pattern);
	/* A file that matches matches as a folder, too; "**" takes every path. */
	if (glob_matches(pattern, path, false) && !glob_matches(pattern, path, true))
		abort();
	if (*path && *path != '/' && !strstr(path, "//") && !glob_matches("/**", path, false))
		abort();
	/* Without anything wild a path matches itself. */
	if (*path && *path != '/' && path[strlen(path) - 1] != '/' && strchr(path, '/') && !strpbrk(path, "*?[\\") &&
	    !glob_matches(path, path, false))
		abort();
	free(pattern);
	free(path);
	return 0;
}
