/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/internal.h"

#include <assert.h>
#include <stdio.h>

#include "base/str.h"

const char *const preset_names[] = { "standard", "strict" };
const size_t preset_count = ARRAY_LEN(preset_names);

struct preset_row {
	const char *preset;
	enum setting_key key;
	const char *value;
};

static const struct preset_row preset_rows[] = {
#define PRESET_VALUE(preset, key, value) { #preset, SET_##key, value },
#include "policy/builtin.def"
};

struct trust_row {
	enum trust trust;
	bool only_stricter;
	enum setting_key key;
	const char *value;
};

#define RULE_only_stricter true
#define RULE_only_looser   false
static const struct trust_row trust_rows[] = {
#define TRUST_VALUE(trust, rule, key, value) { TRUST_##trust, RULE_##rule, SET_##key, value },
#include "policy/builtin.def"
};

static struct layer_entry *put(struct layer *l, enum setting_key k, const char *value)
{
	struct spelling sp = { setting_info[k].name, k, setting_info[k].unit, 1 };
	struct raw_value raw = { .text = value };
	struct layer_entry *e = layer_entry(l, k);
	char why[POLICY_WHY_MAX];
	bool ok = value_read(&sp, &raw, l->scratch, why);

	assert(ok); /* a row of ours; the unit tests read every one */
	if (!e)
		return NULL;
	e->set = ok && value_pack(k, l->scratch, &e->val);
	l->no_memory |= !e->set;
	return e;
}

void builtin_layer(struct layer *ret)
{
	ret->kind = LAYER_BUILTIN;
	(void)str_copy(ret->label, sizeof(ret->label), "built-in");
	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		(void)put(ret, k, setting_info[k].builtin);
}

void preset_layer(const char *name, struct layer *ret)
{
	ret->kind = LAYER_PRESET;
	(void)snprintf(ret->label, sizeof(ret->label), "preset %s", name);
	for (size_t i = 0; i < ARRAY_LEN(preset_rows); i++)
		if (str_eq(preset_rows[i].preset, name))
			(void)put(ret, preset_rows[i].key, preset_rows[i].value);
}

void trust_layer(enum trust t, struct layer *ret)
{
	ret->kind = LAYER_TRUST;
	(void)snprintf(ret->label, sizeof(ret->label), "trust %s", trust_name[t]);
	for (size_t i = 0; i < ARRAY_LEN(trust_rows); i++) {
		struct layer_entry *e;

		if (trust_rows[i].trust != t)
			continue;
		e = put(ret, trust_rows[i].key, trust_rows[i].value);
		if (!e)
			return;
		e->only_stricter = trust_rows[i].only_stricter;
		e->only_looser = !trust_rows[i].only_stricter;
	}
}
