/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - artifacts that this handle's stores give to other hosts and take from them: brig/exchange.h */
#include <brig/exchange.h>

#include <jansson.h>
#include <string.h>

#include "api/handle.h"
#include "api/stores.h"
#include "base/clock.h"
#include "base/str.h"
#include "executor/environment.h"
#include "executor/exchange.h"
#include "store/entry.h"

int brig_exchange_set(struct brig *b, const struct brig_exchange *x, struct brig_error *err)
{
	if (!b || !x || x->size < sizeof(*x))
		return err_set(err, BRIG_E_USAGE, 0, "brig_exchange_set needs a handle and a struct of this version");
	b->exchange = *x;
	return 0;
}

/* The store that has contents of this kind. */
static int read_key(const char *kind, const char *key, struct store_key *ret, enum store_form *form,
		    struct brig_error *err)
{
	if (!kind || !key || strncmp(kind, EXCHANGE_PREFIX, strlen(EXCHANGE_PREFIX)) != 0 ||
	    !str_copy(ret->kind, sizeof(ret->kind), kind) || !store_unhex(key, ret->hash))
		return err_set(err, BRIG_E_USAGE, 0, "that is no key of what is exchanged");
	*form = str_eq(kind, EXCHANGE_PREFIX "compile") ? STORE_BYTES : STORE_TREES;
	return 0;
}

void brig_exchange_environment(const char *name, char key[BRIG_EXCHANGE_HEX + 1])
{
	environment_parcel_key(name ? name : "", key);
}

/* ---- listing ------------------------------------------------------------------------------------ */

static int by_use(const void *a, const void *b)
{
	const struct store_info *x = a, *y = b;

	return x->used_ns > y->used_ns ? -1 : x->used_ns < y->used_ns;
}

/* Both stores, most recently used entries first. */
static int gather(struct brig *b, struct store_list *all, struct brig_error *err)
{
	static const enum store_form forms[] = { STORE_BYTES, STORE_TREES };
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(forms) && rc >= 0; i++) {
		struct store_list list = { .row = NULL };
		struct store *s = NULL;
		struct store_info *row;

		rc = handle_open_store(b, forms[i], /* make= */ false, &s, err);
		if (rc > 0)
			rc = store_list(s, &list, err);
		store_close(s);
		row = rc >= 0 ? reallocarray(all->row, all->n + list.n + 1, sizeof(*row)) : NULL;
		if (row) {
			all->row = row;
			if (list.n > 0)
				memcpy(row + all->n, list.row, list.n * sizeof(*row));
			all->n += list.n;
		}
		store_list_release(&list);
	}
	if (rc >= 0 && all->n > 0)
		qsort(all->row, all->n, sizeof(*all->row), by_use);
	return rc < 0 ? rc : 0;
}

int brig_exchange_list_json(struct brig *b, uint32_t most, char **ret, struct brig_error *err)
{
	struct store_list all = { .row = NULL };
	json_t *kept, *doc;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_exchange_list_json needs a handle and a place for the text");
	rc = gather(b, &all, err);
	kept = json_array();
	for (size_t i = 0; rc == 0 && i < all.n && json_array_size(kept) < most; i++) {
		char hex[STORE_HEX_LEN + 1];

		store_hex(all.row[i].key.hash, hex);
		if (strncmp(all.row[i].key.kind, EXCHANGE_PREFIX, strlen(EXCHANGE_PREFIX)) == 0)
			(void)json_array_append_new(kept, json_sprintf("%s:%s", all.row[i].key.kind, hex));
	}
	store_list_release(&all);
	doc = json_pack("{s:o}", "kept", kept);
	*ret = rc == 0 && doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return rc < 0 ? rc : *ret ? 0 : err_nomem(err);
}

/* ---- packing and unpacking ----------------------------------------------------------------------- */

static int pack_environment(struct brig *b, const char *key, uint64_t most, int out, struct brig_parcel *ret,
			    struct brig_error *err)
{
	struct environment_parcel p;
	int rc = environment_pack(&b->recorder, policy_base(b->policy), key, most, out, &p, err);

	if (rc > 0) {
		(void)str_copy(ret->content, sizeof(ret->content), p.content);
		ret->created = p.created_s;
	}
	return rc;
}

int brig_exchange_pack(struct brig *b, const char *kind, const char *key, uint64_t most, int out,
		       struct brig_parcel *ret, struct brig_error *err)
{
	struct store_key k;
	struct store_info info = { 0 };
	struct store *s = NULL;
	enum store_form form = STORE_BYTES;
	int rc;

	if (!b || !ret || ret->size < sizeof(*ret))
		return err_set(err, BRIG_E_USAGE, 0, "brig_exchange_pack needs a handle and a place for the parcel");
	if (kind && key && str_eq(kind, ENVIRONMENT_PARCEL))
		return pack_environment(b, key, most, out, ret, err);
	rc = read_key(kind, key, &k, &form, err);
	if (rc == 0)
		rc = handle_open_store(b, form, /* make= */ false, &s, err);
	if (rc > 0) {
		rc = store_pack(s, &k, most, out, &info, err);
		rc = rc < 0 ? rc : rc == STORE_HIT;
	}
	store_close(s);
	if (rc > 0) {
		store_hex(info.content, ret->content);
		ret->created = info.created_ns / NS_PER_SEC;
	}
	return rc;
}

int brig_exchange_take(struct brig *b, const char *kind, const char *key, const struct brig_parcel *p, int in,
		       struct brig_error *err)
{
	struct store_given g = { .in = in };
	struct store_key k;
	struct store *s = NULL;
	enum store_form form = STORE_BYTES;
	int rc;

	if (!b || !p || p->size < sizeof(*p) || !store_unhex(p->content, g.content))
		return err_set(err, BRIG_E_USAGE, 0, "brig_exchange_take needs a handle and a parcel");
	if (kind && key && str_eq(kind, ENVIRONMENT_PARCEL))
		return environment_unpack(&b->recorder, policy_base(b->policy), key, p->content, in, err);
	g.max = policy_base(b->policy)->packages_size / 4;
	g.created_ns = p->created * NS_PER_SEC;
	rc = read_key(kind, key, &k, &form, err);
	if (rc == 0)
		rc = handle_open_store(b, form, /* make= */ true, &s, err);
	if (rc > 0)
		rc = store_unpack(s, &k, &g, err);
	store_close(s);
	if (rc == STORE_TOO_LARGE)
		return err_set(err, BRIG_E_REFUSED, 0, "it is more than a quarter of what the store may take");
	return rc < 0 ? rc : 0;
}
