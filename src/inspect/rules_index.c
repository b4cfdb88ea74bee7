/* SPDX-License-Identifier: Apache-2.0 */
/* The index over all names of all rules: made by the generator for the built-in ones, here for those of users. */
#include "inspect/rules_internal.h"

#include <string.h>

/* FNV-1a: names are short, and the author of rules gains nothing from collisions in the own table. */
uint32_t rule_hash(enum rule_language lang, enum rule_kind kind, const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	h = (h ^ (uint32_t)lang) * 16777619u;
	h = (h ^ (uint32_t)kind) * 16777619u;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h;
}

const struct rule_entry *rule_table_find(const struct rule_table *t, enum rule_language lang, enum rule_kind kind,
					 const char *name, size_t len)
{
	uint32_t h = rule_hash(lang, kind, name, len);

	for (uint32_t at = h & t->slot_mask; t->slot[at]; at = (at + 1) & t->slot_mask) {
		const struct rule_entry *e = &t->entry[t->slot[at] - 1];

		if (e->hash == h && e->language == lang && e->kind == kind) {
			const char *own = rule_entry_name(t, e);

			if (strncmp(own, name, len) == 0 && own[len] == '\0')
				return e;
		}
	}
	return NULL;
}

/* Stable: within a kind, users' rules come after the built-in ones. */
static bool sort_by_kind(struct rule *row, size_t n)
{
	struct rule *sorted = malloc((n + 1) * sizeof(*sorted));
	size_t at = 0;

	if (!sorted)
		return false;
	for (unsigned kind = 0; kind < RULE_KIND_COUNT; kind++)
		for (size_t i = 0; i < n; i++)
			if (row[i].kind == kind)
				sorted[at++] = row[i];
	memcpy(row, sorted, at * sizeof(*row));
	free(sorted);
	return true;
}

/* Commands and paths are distinguished by patterns, allow-lists by level: two rules may have the same name. */
static bool names_are_unique(enum rule_kind kind)
{
	switch (kind) {
	case RULE_MODULE_ALLOW:
	case RULE_MEMBER_ALLOW:
	case RULE_COMMAND:
	case RULE_COMMAND_ALLOW:
	case RULE_PATH_DENY:
		return false;
	default:
		return true;
	}
}

static size_t count_entries(const struct rule *row, size_t n)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += row[i].n_names * (size_t)__builtin_popcount(row[i].languages);
	return total;
}

struct builder {
	struct rule_table *table;
	struct rule_entry *entry;
	uint16_t *slot;
};

static int add_entry(struct builder *b, size_t rule, enum rule_language lang, size_t which, struct brig_error *err)
{
	struct rule_table *t = b->table;
	const struct rule *r = &t->row[rule];
	const char *name = r->names[which];
	const struct rule_entry *there = rule_table_find(t, lang, r->kind, name, strlen(name));
	uint32_t at;

	if (there && names_are_unique(r->kind))
		return err_set(err, BRIG_E_POLICY, 0, "%s:%u: rule %s: %s '%s' (%s) belongs to rule %s already",
			       r->file, r->line, r->id, rule_kind_name[r->kind], name, rule_language_name[lang],
			       t->row[there->rule].id);
	b->entry[t->n_entries] = (struct rule_entry){
		.hash = rule_hash(lang, r->kind, name, strlen(name)),
		.rule = (uint16_t)rule,
		.name = (uint16_t)which,
		.language = (uint8_t)lang,
		.kind = (uint8_t)r->kind,
	};
	at = b->entry[t->n_entries].hash & t->slot_mask;
	while (b->slot[at])
		at = (at + 1) & t->slot_mask;
	b->slot[at] = (uint16_t)++t->n_entries;
	return 0;
}

static int add_rule(struct builder *b, size_t rule, struct brig_error *err)
{
	const struct rule *r = &b->table->row[rule];

	for (unsigned lang = 0; lang < RULE_LANGUAGE_COUNT; lang++)
		for (size_t i = 0; (r->languages & 1u << lang) && i < r->n_names; i++) {
			int rc = add_entry(b, rule, (enum rule_language)lang, i, err);

			if (rc < 0)
				return rc;
		}
	return 0;
}

int rule_table_build(struct rule *row, size_t n, struct rule_table *ret, struct brig_error *err)
{
	size_t entries = count_entries(row, n), slots = 64;
	AUTO_FREE struct rule_entry *entry = NULL;
	AUTO_FREE uint16_t *slot = NULL;
	struct builder b;

	if (n > UINT16_MAX || entries >= UINT16_MAX)
		return err_set(err, BRIG_E_POLICY, 0, "the rules hold %zu names; %d are the most", entries,
			       UINT16_MAX - 1);
	while (slots < 2 * entries)
		slots *= 2;
	entry = calloc(entries + 1, sizeof(*entry));
	slot = calloc(slots, sizeof(*slot));
	if (!entry || !slot || (n > 0 && !sort_by_kind(row, n)))
		return err_nomem(err);
	*ret = (struct rule_table){
		.row = row, .n = n, .entry = entry, .slot = slot, .slot_mask = (uint32_t)slots - 1
	};
	b = (struct builder){ ret, entry, slot };
	for (size_t i = 0; i < n; i++) {
		int rc = add_rule(&b, i, err);

		if (rc < 0)
			return rc;
		ret->kind_start[row[i].kind + 1] = i + 1;
	}
	for (size_t k = 1; k <= RULE_KIND_COUNT; k++)
		ret->kind_start[k] = max_u64(ret->kind_start[k], ret->kind_start[k - 1]);
	(void)MOVE_PTR(entry);
	(void)MOVE_PTR(slot);
	return 0;
}
