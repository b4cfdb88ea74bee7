/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite, loaded when it is needed: a run only appends to the spool and must not pay for a database library that
 * only readers and every few hundredth writer use.
 */
#ifndef HISTORY_SQLITE_H
#define HISTORY_SQLITE_H

#include <sqlite3.h>

#include "base/err.h"

#define SQLITE_LIBRARY "libsqlite3.so.0"

struct sqlite {
#define SQLITE(name) __typeof__(&sqlite3_##name) name;
#include "history/sqlite.def"
};

/* The library stays in the process once it is there: loading it again costs nothing. */
int sqlite_load(struct sqlite *ret, struct brig_error *err);

#endif
