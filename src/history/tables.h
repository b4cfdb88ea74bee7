/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of tables.def. */
#ifndef HISTORY_TABLES_H
#define HISTORY_TABLES_H

#include "base/util.h"

enum history_table {
#define TABLE(name, many, help) TABLE_##name,
#define COLUMN(table, name, kind, help)
#include "history/tables.def"
	TABLE_COUNT
};

/* One number per column, through all tables.  A table's first column has the number of its FIRST_. */
enum history_column {
#define TABLE(name, many, help)         FIRST_##name, BEFORE_##name = FIRST_##name - 1,
#define COLUMN(table, name, kind, help) COLUMN_##table##_##name,
#include "history/tables.def"
	COLUMN_END
};

enum column_kind { KIND_OF_NUM, KIND_OF_REAL, KIND_OF_BOOL, KIND_OF_TEXT, KIND_OF_BYTES };

struct column_info {
	const char *name;
	enum column_kind kind;
};

struct table_info {
	const char *name;
	bool many;
	size_t first; /* into column_info[] */
};

extern const struct column_info column_info[COLUMN_END];
extern const struct table_info table_info[TABLE_COUNT];

/* How many columns a table has, besides the two that join it to its execution. */
static inline size_t table_columns(enum history_table t)
{
	return (t + 1 < TABLE_COUNT ? table_info[t + 1].first : (size_t)COLUMN_END) - table_info[t].first;
}
#define TABLE_COLUMNS_MAX 32

#endif
