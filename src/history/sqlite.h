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

/* What we call of it.  To use another function: add its name behind sqlite3_. */
#define SQLITE_FUNCTIONS(X)                                                                                           \
	X(open_v2)                                                                                                    \
	X(close_v2) X(exec) X(prepare_v2) X(step) X(reset) X(finalize) X(clear_bindings) X(bind_int64) X(bind_double) \
		X(bind_text) X(bind_blob) X(bind_null) X(column_int64) X(column_double) X(column_text) X(column_blob) \
			X(column_bytes) X(column_type) X(column_count) X(column_name) X(changes) X(last_insert_rowid) \
				X(errmsg) X(extended_errcode) X(busy_timeout) X(libversion_number)

struct sqlite {
#define X(name) __typeof__(&sqlite3_##name) name;
	SQLITE_FUNCTIONS(X)
#undef X
};

/* The library stays in the process once it is there: loading it again costs nothing. */
int sqlite_load(struct sqlite *ret, struct brig_error *err);

#endif
