/* SPDX-License-Identifier: Apache-2.0 */
/* Folders whose loss is a disaster: "/", "/etc", "~", "/home/me".  No program removes them on purpose. */
#include "inspect/paths.h"

#include <string.h>

bool path_is_precious(const char *workspace, const char *text, size_t len)
{
	char resolved[PATH_READING_MAX];
	size_t n, slashes = 0;

	if (len >= PATH_READING_MAX / 2)
		return false;
	n = path_resolve(workspace, text, len, resolved, sizeof(resolved), &(bool){ false });
	for (size_t i = 0; i < n; i++)
		slashes += resolved[i] == '/';
	if (n > 6 && memcmp(resolved, "/home/", 6) == 0)
		return slashes <= 2;
	return slashes <= 1 && strcmp(resolved, "/tmp") != 0 && strcmp(resolved, workspace) != 0;
}
