/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy file sets binds the layers above it.  Anyone who starts brig under another's policy is a requester,
 * whether the setting comes as an option or as a variable; so of what a file sets, the environment can loosen what a
 * trusted request can (rows of keys.def with loosen TRUSTED: resources), and tighten anything.  The same holds for the
 * preset that a file names.
 */
#include "policy/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

void binding_collect(const struct layer *file, const struct layer *preset, bool ret[SETTING_COUNT])
{
	bool isolates = false;

	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		ret[k] = layer_has(file, k) || (preset && layer_has(preset, k));
	if (layer_has(file, SET_backends)) {
		const struct packed *v = &file->at[SET_backends]->val;
		const char *item = v->text;

		isolates = true;
		for (uint32_t i = 0; i < v->n; i++, item += strlen(item) + 1)
			isolates &= !str_eq(item, backend_kind_name[BACKEND_DIRECT]);
	}
	/* The other two ways to `direct` are closed with it. */
	ret[SET_enable_sandbox] |= isolates;
	ret[SET_fallback] |= isolates;
}

bool binding_judges(const bool set[SETTING_COUNT])
{
	return set[SET_inspection] || set[SET_rules] || set[SET_default_trust] || set[SET_max_trust];
}

static bool is_bound(const struct binding *b, enum setting_key k)
{
	return b->bound[k] || (setting_info[k].loosen == LOOSEN_PERSON && binding_judges(b->bound));
}

void binding_check_environment(const struct layer *env, const struct binding *b, struct policy_diags *diags)
{
	char asked[128], now[128], why[160];

	for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
		const void *below = setting_at_const(b->set, k);
		enum setting_key who = k == SET_enable_sandbox || k == SET_fallback ? SET_backends : k;
		struct place at;

		if (!layer_has(env, k) || !is_bound(b, k) || setting_info[k].loosen == LOOSEN_TRUSTED ||
		    k == SET_backend) /* backends tells */
			continue;
		value_unpack_slot(k, &env->at[k]->val, env->scratch);
		if (value_compare(k, env->scratch, below) != VALUE_LOOSER)
			continue;
		at = (struct place){ .name = env->at[k]->line ? env->label : env->at[k]->spelling,
				     .line = env->at[k]->line,
				     .column = env->at[k]->column };
		if (b->origin[k].layer != LAYER_BUILTIN)
			who = k;
		(void)snprintf(why, sizeof(why),
			       b->bound[k] ? "%s sets"
					   : "holds under a policy file that says how code is judged or who is trusted",
			       b->origin[who].place);
		diag_add(diags, &at,
			 "would loosen %s to %s from %s, which %s; the environment can only tighten that: unset "
			 "the variable, or change the policy file",
			 setting_info[k].name, value_text(k, env->scratch, asked, sizeof(asked)),
			 value_text(k, below, now, sizeof(now)), why);
	}
}

void binding_settle_trust(const struct layer *l, const char *name, struct settings *set, struct policy_origin *origin,
			  struct policy_diags *diags)
{
	const struct layer_entry *e = l->at[SET_default_trust];
	struct place at;

	if (set->default_trust <= set->max_trust)
		return;
	if (layer_has(l, SET_default_trust)) {
		at = (struct place){ .name = *name ? name : e->spelling, .line = e->line, .column = e->column };
		diag_add(diags, &at,
			 "default_trust '%s' is above max_trust '%s', which %s sets; lower it, or raise max_trust",
			 trust_name[set->default_trust], trust_name[set->max_trust], origin[SET_max_trust].place);
	}
	set->default_trust = set->max_trust;
	origin[SET_default_trust] = origin[SET_max_trust];
}

void binding_check_preset(const char *chosen, const char *of_file, const char *place, struct policy_diags *diags)
{
	if (!*of_file ||
	    name_index(preset_names, preset_count, chosen) >= name_index(preset_names, preset_count, of_file))
		return;
	diag_add(diags, &(struct place){ .name = place },
		 "preset '%s' is looser than '%s', which the policy file names; only a stricter one can be asked for",
		 chosen, of_file);
}
