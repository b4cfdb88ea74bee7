/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source says without writing it:
 *
 *	default_trust: untrusted      max_trust is untrusted too, if a file says so and names no other
 *	backend: docker               a request may choose docker and nothing else
 *	backend: [docker, native]     docker is the default, and a request may choose among the two
 *	backends: [docker, native]    the same
 *
 * So a layer that names one of backend and backends holds both, and the two always come from one source.
 */
#include "policy/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

bool backend_within(const struct setting_list *backends, int kind)
{
	if (kind == BACKEND_AUTO)
		return setting_list_has(backends, backend_kind_name[BACKEND_NATIVE]) &&
		       setting_list_has(backends, backend_kind_name[BACKEND_DOCKER]);
	return setting_list_has(backends, backend_kind_name[kind]);
}

/* The value in scratch becomes the entry of k, at the place of the one that implies it. */
static void imply(struct layer *l, enum setting_key k, enum setting_key by)
{
	const struct layer_entry *from = l->at[by];
	struct layer_entry *e = layer_entry(l, k);

	if (!e)
		return;
	e->set = value_pack(k, l->scratch, &e->val);
	l->no_memory |= !e->set;
	e->line = from->line;
	e->column = from->column;
	e->implied_by = setting_info[by].name;
	(void)str_copy(e->spelling, sizeof(e->spelling), from->spelling);
}

static void imply_backends(struct layer *l)
{
	int kind = (int)l->at[SET_backend]->val.num;
	struct setting_list *list = &l->scratch->list;

	list->n = list->used = 0;
	if (kind == BACKEND_AUTO) {
		(void)setting_list_add(list, backend_kind_name[BACKEND_NATIVE]);
		(void)setting_list_add(list, backend_kind_name[BACKEND_DOCKER]);
	} else {
		(void)setting_list_add(list, backend_kind_name[kind]);
	}
	imply(l, SET_backends, SET_backend);
}

/* The first of the list is the default. */
static void imply_backend(struct layer *l)
{
	const char *first = l->at[SET_backends]->val.text;

	l->scratch->choice = (int)name_index(backend_kind_name, BACKEND_KIND_COUNT, first);
	imply(l, SET_backend, SET_backends);
}

static void check_pair(struct layer *l, const char *name, struct policy_diags *diags)
{
	const struct layer_entry *e = l->at[SET_backend];
	struct place at = { .name = *name ? name : e->spelling, .line = e->line, .column = e->column };
	char allowed[128];

	value_unpack_slot(SET_backends, &l->at[SET_backends]->val, l->scratch);
	if (!backend_within(&l->scratch->list, (int)e->val.num))
		diag_add(diags, &at,
			 "backend '%s' is not in backends %s; name it there, or write one list: backend: [a, b]",
			 backend_kind_name[e->val.num], value_text(SET_backends, l->scratch, allowed, sizeof(allowed)));
}

void layer_imply(struct layer *l, const char *name, struct policy_diags *diags)
{
	bool one = layer_has(l, SET_backend), many = layer_has(l, SET_backends);

	if (one && many)
		check_pair(l, name, diags);
	else if (one)
		imply_backends(l);
	else if (many)
		imply_backend(l);
	if (l->kind == LAYER_FILE && layer_has(l, SET_default_trust) && !layer_has(l, SET_max_trust)) {
		l->scratch->choice = (int)l->at[SET_default_trust]->val.num;
		imply(l, SET_max_trust, SET_default_trust);
	}
}

bool backend_is_list(const struct spelling *sp, const struct raw_value *raw)
{
	return sp->key == SET_backend && (raw->list || strpbrk(raw->text, ",["));
}

bool layer_put_backends(struct layer *l, const char *spelled, const struct raw_value *raw, const struct place *at,
			const struct place *value_at, struct policy_diags *diags)
{
	struct spelling one = { "backend", SET_backend, UNIT_NONE, 1, NULL };
	struct spelling many = { "backend", SET_backends, UNIT_NONE, 1, NULL };
	const char *first = raw->list ? raw->list->text : raw->text + strspn(raw->text, "[ ");
	char word[SETTING_ITEM_MAX];

	if (!layer_put(l, &many, spelled, raw, at, value_at, diags))
		return false;
	(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(first, ",] "), first);
	return layer_put(l, &one, spelled, &(struct raw_value){ .text = word }, at, value_at, diags);
}
