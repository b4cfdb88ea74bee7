/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program's directory has a file that takes precedence over a module of the warm list.
 *
 * A program that is started cold and imports json finds `json.py` beside it.  One that waited has already imported the
 * library's json.  So the names in the directory are compared with the modules that were imported, before the program
 * starts: such a request needs a cell that imported nothing.
 */
#include <dirent.h>
#include <string.h>

#include "backend/guest/wait/library.h"

/* "json.py", "json", "json.cpython-311-x86_64-linux-gnu.so": names that may be a module called json. */
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
