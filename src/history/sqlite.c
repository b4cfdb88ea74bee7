/* SPDX-License-Identifier: Apache-2.0 */
#include "history/sqlite.h"

#include <dlfcn.h>
#include <string.h>

#define OLDEST_VERSION 3031000 /* SQLITE_OPEN_NOFOLLOW */

static int missing(struct brig_error *err)
{
	const char *why = dlerror();

	return err_set(err, BRIG_E_SYSTEM, 0,
		       "the history needs SQLite, which cannot be loaded (%.160s); install the package libsqlite3-0",
		       why ? why : SQLITE_LIBRARY);
}

int sqlite_load(struct sqlite *ret, struct brig_error *err)
{
	static const struct {
		const char *name;
		size_t offset;
	} functions[] = {
#define SQLITE(name) { "sqlite3_" #name, offsetof(struct sqlite, name) },
#include "history/sqlite.def"
	};
	void *lib = dlopen(SQLITE_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!lib)
		return missing(err);
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *function = dlsym(lib, functions[i].name);

		if (!function) {
			(void)dlclose(lib);
			return missing(err);
		}
		memcpy((char *)ret + functions[i].offset, &function, sizeof(function));
	}
	(void)dlclose(lib); /* RTLD_NODELETE: only our count of it */
	if (ret->libversion_number() < OLDEST_VERSION)
		return err_set(err, BRIG_E_SYSTEM, 0, "the history needs SQLite 3.31 or newer, and here is %d",
			       ret->libversion_number());
	return 0;
}
