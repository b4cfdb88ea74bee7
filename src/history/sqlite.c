/* SPDX-License-Identifier: Apache-2.0 */
#include "history/sqlite.h"

#include "base/library.h"

#define OLDEST_VERSION 3031000 /* SQLITE_OPEN_NOFOLLOW */

int sqlite_load(struct sqlite *ret, struct brig_error *err)
{
	static const char *const names[] = { SQLITE_LIBRARY, NULL };
	static const struct library_function functions[] = {
#define SQLITE(name) { "sqlite3_" #name, offsetof(struct sqlite, name) },
#include "history/sqlite.def"
	};
	const struct library sqlite = { names, functions, ARRAY_LEN(functions) };
	const char *why;
	void *stays;
	int rc = library_load(&sqlite, ret, &stays, &why);

	if (rc < 0)
		return err_set(
			err, BRIG_E_SYSTEM, 0,
			"the history needs SQLite, which cannot be loaded (%s%.160s); install the package libsqlite3-0",
			rc == -ENOSYS ? "it has no function " : "", why);
	if (ret->libversion_number() < OLDEST_VERSION)
		return err_set(err, BRIG_E_SYSTEM, 0, "the history needs SQLite 3.31 or newer, and here is %d",
			       ret->libversion_number());
	return 0;
}
