/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the loader, the index and the build-time generator (tools/gen-rules.c). */
#ifndef INSPECT_RULES_INTERNAL_H
#define INSPECT_RULES_INTERNAL_H

#include "inspect/rules.h"

#define RULES_FILE_MAX    (1 * MiB)
#define RULES_ROWS_MAX    1024 /* per file */
#define RULE_NAMES_MAX    1024
#define RULE_EXAMPLES_MAX 64
#define RULE_NAME_LEN     127 /* fits into struct finding */
#define RULE_ID_LEN       47
#define RULE_MESSAGE_LEN  160 /* leaves room for the name before it */
#define RULE_REMEDY_LEN   239
#define RULE_EXAMPLE_LEN  4096

/* Rules as written in a file.  `memory` owns all their data, which is freed at once. */
struct rule_list {
	struct rule *row;
	size_t n, cap;
	struct rule_memory *memory;
};

/* Memory that lives as long as the list; NULL: no memory. */
void *rule_list_keep(struct rule_list *list, size_t size);
/* rules_file.c.  Stops at the first error: -BRIG_E_POLICY and "name:line: why". */
int rule_list_parse(const char *name, const char *text, size_t len, struct rule_list *ret, struct brig_error *err);
void rule_list_release(struct rule_list *list);

/* One name of one rule in one language.  No pointers: they would have to be relocated at every start of the program. */
struct rule_entry {
	uint32_t hash;
	uint16_t rule; /* index of its row */
	uint16_t name; /* index in the rule's names */
	uint8_t language, kind;
};

/* Rows sorted by kind, and a hash table with open addressing over all their names.  slot[] holds entry + 1. */
struct rule_table {
	const struct rule *row;
	size_t n;
	size_t kind_start[RULE_KIND_COUNT + 1];
	const struct rule_entry *entry;
	size_t n_entries;
	const uint16_t *slot;
	uint32_t slot_mask;
};

/* rules_index.c */
uint32_t rule_hash(enum rule_language lang, enum rule_kind kind, const char *name, size_t len);
/* Sorts rows and fills *ret; entry and slot are heap.  Two rules that claim one name: refused, naming both. */
int rule_table_build(struct rule *row, size_t n, struct rule_table *ret, struct brig_error *err);
/* The entry for exactly this name. */
const struct rule_entry *rule_table_find(const struct rule_table *t, enum rule_language lang, enum rule_kind kind,
					 const char *name, size_t len);

static inline const char *rule_entry_name(const struct rule_table *t, const struct rule_entry *e)
{
	return t->row[e->rule].names[e->name];
}

/* Made by tools/gen-rules. */
extern const struct rule_table rule_table_builtin;

#endif
