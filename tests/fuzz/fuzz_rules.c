/* SPDX-License-Identifier: Apache-2.0 */
/* A user's file of rules: the loader and the index over it. */
#include <string.h>

#include "inspect/rules_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_table(struct rule_list *list)
{
	struct rule_table table;

	if (rule_table_build(list->row, list->n, &table, NULL) < 0)
		return;
	for (size_t i = 0; i < table.n_entries; i++) {
		const struct rule_entry *e = &table.entry[i];
		const char *name = rule_entry_name(&table, e);

		if (!rule_table_find(&table, e->language, e->kind, name, strlen(name)))
			abort();
	}
	free((void *)(uintptr_t)table.entry);
	free((void *)(uintptr_t)table.slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_list list;

	if (rule_list_parse("fuzz.yaml", (const char *)data, size, &list, &err) < 0) {
		/* Every refusal names its place. */
		if (strncmp(err.msg, "fuzz.yaml:", 10) != 0 && err.code != BRIG_E_NOMEM)
			abort();
		return 0;
	}
	check_table(&list);
	rule_list_release(&list);
	return 0;
}
