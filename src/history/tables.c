/* SPDX-License-Identifier: Apache-2.0 */
#include "history/tables.h"

#include <assert.h>

const struct column_info column_info[] = {
#define TABLE(name, many, help)
#define COLUMN(table, name, kind, help) [COLUMN_##table##_##name] = { #name, KIND_OF_##kind },
#include "history/tables.def"
};
static_assert(ARRAY_LEN(column_info) == COLUMN_END, "column_info[] misses a column");

const struct table_info table_info[] = {
#define TABLE(name, many, help) { #name, many, FIRST_##name },
#define COLUMN(table, name, kind, help)
#include "history/tables.def"
};
static_assert(ARRAY_LEN(table_info) == TABLE_COUNT, "table_info[] misses a table");
