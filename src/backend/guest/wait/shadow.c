/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program's folder has a file that would have come before a module of the warm list.
 *
 * A program that is started cold finds `json.py` beside it when it imports json.  One that waited has the library's json already.
 * So the names in the folder are compared with those that the list has brought, before the program is let go: such a
 * request is for a cell that did not warm anything.
 */
#include <dirent.h>
#include <string.h>

#include "backend/guest/wait/library.h"

/* "json.py", "json", "json.cpython-311-x86_64-linux-gnu.so": a module called json, as far as the name tells. */
static bool hides(const char *entry, bool (*brought)(const char *module))
{
	char module[sizeof(((struct dirent *)NULL)->d_name)];
	size_t len = strcspn(entry, ".");

	memcpy(module, entry, len);
	module[len] = '\0';
	return len > 0 && brought(module);
}

bool shadow_found(const char *program, bool (*brought)(const char *module))
{
	char folder[WAIT_TEXT_MAX];
	size_t len = (size_t)(strrchr(program, '/') - program);
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	memcpy(folder, program, len);
	memcpy(folder + len, "/", 2);
	dir = opendir(folder);
	if (!dir)
		wait_give_up();
	while (!found && (entry = readdir(dir)) != NULL)
		found = hides(entry->d_name, brought);
	closedir(dir);
	return found;
}
