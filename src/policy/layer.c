/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* A file's line is enough for provenance. */
static void origin_fill(struct policy_origin *o, const struct layer *l, const struct layer_entry *e)
{
	o->layer = l->kind;
	if (e->line)
		(void)snprintf(o->place, sizeof(o->place), "%.60s:%u%s%s", l->label, e->line,
			       e->implied_by ? " by " : "", e->implied_by ? e->implied_by : "");
	else
		(void)snprintf(o->place, sizeof(o->place), "%s", *l->label ? l->label : e->spelling);
	o->place[str_utf8_prefix(o->place, strlen(o->place))] = '\0';
}

static void complain_twice(const struct layer_entry *first, const char *spelled, const struct place *at,
			   struct policy_diags *diags)
{
	char where[64] = "";

	if (first->line)
		(void)snprintf(where, sizeof(where), " in line %u, column %u", first->line, first->column);
	if (str_eq(first->spelling, spelled))
		diag_add(diags, at, "%s is set twice, first%s; keep one", spelled, where);
	else
		diag_add(diags, at, "%s sets what %s%s sets already; keep one", spelled, first->spelling, where);
}

struct layer_entry *layer_entry(struct layer *l, enum setting_key k)
{
	if (!l->at[k])
		l->at[k] = calloc(1, sizeof(*l->at[k]));
	l->no_memory |= !l->at[k];
	return l->at[k];
}

bool layer_put(struct layer *l, const struct spelling *sp, const char *spelled, const struct raw_value *raw,
	       const struct place *at, const struct place *value_at, struct policy_diags *diags)
{
	struct layer_entry *e = layer_entry(l, sp->key);
	char why[POLICY_WHY_MAX];

	if (!e)
		return false;
	if (*e->spelling) {
		complain_twice(e, spelled, at, diags);
		return false;
	}
	e->line = at->line;
	e->column = at->column;
	(void)str_copy(e->spelling, sizeof(e->spelling), spelled);
	if (!value_read(sp, raw, l->scratch, why)) {
		diag_add(diags, value_at, "%s", why);
		return false;
	}
	e->set = value_pack(sp->key, l->scratch, &e->val);
	l->no_memory |= !e->set;
	return e->set;
}

/* Whether the rule of an entry lets it change what is there now. */
static bool rule_allows(const struct layer_entry *e, enum setting_key k, const void *now)
{
	enum strictness s;
	union slot v;

	if (!e->only_stricter && !e->only_looser)
		return true;
	if (e->only_stricter && setting_info[k].stricter == STRICTER_SAME)
		return true; /* it has no direction to go wrong in */
	value_unpack_slot(k, &e->val, &v);
	s = value_compare(k, &v, now);
	return s == (e->only_stricter ? VALUE_STRICTER : VALUE_LOOSER);
}

void layer_apply_key(const struct layer *l, enum setting_key k, struct settings *set, struct policy_origin *origin)
{
	const struct layer_entry *e = l->at[k];
	void *now = setting_at(set, k);

	if (!layer_has(l, k) || !rule_allows(e, k, now))
		return;
	value_unpack(k, &e->val, now);
	origin_fill(origin, l, e);
}

void layer_apply(const struct layer *l, struct settings *set, struct policy_origin origin[SETTING_COUNT])
{
	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		layer_apply_key(l, k, set, &origin[k]);
}

void layer_release(struct layer *l)
{
	for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
		if (l->at[k])
			free(l->at[k]->val.text);
		free(l->at[k]);
	}
}
