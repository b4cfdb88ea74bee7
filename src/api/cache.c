/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the stores of compiled programs and of packages, listed and maintained: brig_cache_*_json(). */
#include <jansson.h>
#include <string.h>

#include "api/handle.h"
#include "api/stores.h"
#include "base/clock.h"
#include "base/when.h"
#include "store/store.h"

#define DAY_NS (86400 * NS_PER_SEC)

static const enum store_form forms[] = { STORE_BYTES, STORE_TREES };

int handle_open_store(struct brig *b, enum store_form form, bool make, struct store **ret, struct brig_error *err)
{
	const struct settings *set = policy_base(b->policy);
	bool trees = form == STORE_TREES;
	const struct store_limits limits = { .bytes = trees ? set->packages_size : set->cache_size,
					     .ttl_ns = (trees ? set->packages_days : set->cache_days) * DAY_NS };
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	int rc = statedir_open(b->recorder.state, make, &dir, &why);

	if (rc == 0)
		rc = store_open(&dir, form, make, &limits, ret, &why);
	if (rc == 0)
		return 1;
	if (why.sys == ENOENT)
		return 0;
	if (err)
		*err = why;
	return rc;
}

static json_t *json_size(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

static json_t *json_moment(uint64_t ns)
{
	char text[WHEN_TEXT_MAX];

	return json_string(when_utc(text, sizeof(text), ns));
}

static json_t *json_entry(const struct store_info *e)
{
	char key[STORE_HEX_LEN + 1], content[STORE_HEX_LEN + 1];
	uint64_t now = clock_wall_ns();

	(void)hex_put(key, e->key.hash, STORE_HASH_LEN);
	(void)hex_put(content, e->content, STORE_HASH_LEN);
	return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "key", key, "kind", e->key.kind, "content",
			 content, "pinned", e->pinned, "bytes", json_size(e->size), "hits", json_size(e->hits),
			 "created", json_moment(e->created_ns), "used", json_moment(e->used_ns), "age_ms",
			 json_size(now > e->created_ns ? (now - e->created_ns) / NS_PER_MS : 0));
}

/* Takes the document. */
static int hand_out(json_t *doc, char **ret, struct brig_error *err)
{
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

/* ---- list ------------------------------------------------------------------------------------- */

static int list_entries(struct store *s, json_t *rows, uint64_t *ret_bytes, struct brig_error *err)
{
	struct store_list list = { .row = NULL };
	int rc = store_list(s, &list, err), failed = 0;

	for (size_t i = 0; i < list.n; i++)
		failed |= json_array_append_new(rows, json_entry(&list.row[i]));
	*ret_bytes = list.bytes;
	store_list_release(&list);
	return failed ? err_nomem(err) : rc;
}

/* Totals and limits of one store. */
static json_t *json_room(uint64_t bytes, uint64_t max_bytes, uint64_t max_days)
{
	return json_pack("{s:o, s:o, s:o}", "bytes", json_size(bytes), "max_bytes", json_size(max_bytes), "max_days",
			 json_size(max_days));
}

int brig_cache_list_json(struct brig *b, char **ret, struct brig_error *err)
{
	uint64_t bytes[ARRAY_LEN(forms)] = { 0 };
	const struct settings *set;
	json_t *rows, *doc;
	int rc = 0;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_cache_list_json needs a handle and a place for the text");
	set = policy_base(b->policy);
	rows = json_array();
	for (size_t i = 0; i < ARRAY_LEN(forms) && rc >= 0; i++) {
		struct store *s = NULL;

		rc = handle_open_store(b, forms[i], /* make= */ false, &s, err);
		if (rc > 0)
			rc = list_entries(s, rows, &bytes[i], err);
		store_close(s);
	}
	if (rc < 0) {
		json_decref(rows);
		return rc;
	}
	doc = json_room(bytes[0], set->cache_size, set->cache_days);
	if (json_object_set_new(doc, "entries", rows) < 0 ||
	    json_object_set_new(doc, "packages", json_room(bytes[1], set->packages_size, set->packages_days)) < 0) {
		json_decref(doc);
		doc = NULL;
	}
	return hand_out(doc, ret, err);
}

/* ---- prune and verify ------------------------------------------------------------------------- */

static json_t *json_care(const struct store_care *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "entries", json_size(c->entries), "bytes",
			 json_size(c->bytes), "removed", json_size(c->removed), "removed_bytes",
			 json_size(c->removed_bytes), "expired", json_size(c->expired), "damaged",
			 json_size(c->damaged), "stray", json_size(c->stray));
}

static void add_care(struct store_care *sum, const struct store_care *one)
{
	sum->entries += one->entries;
	sum->bytes += one->bytes;
	sum->removed += one->removed;
	sum->removed_bytes += one->removed_bytes;
	sum->expired += one->expired;
	sum->damaged += one->damaged;
	sum->stray += one->stray;
}

int brig_cache_prune_json(struct brig *b, uint32_t flags, char **ret, struct brig_error *err)
{
	struct store_care care = { .entries = 0 };
	int rc = 0;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_cache_prune_json needs a handle and a place for the text");
	if (flags & ~BRIG_PRUNE_ALL)
		return err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", flags);
	for (size_t i = 0; i < ARRAY_LEN(forms) && rc >= 0; i++) {
		struct store_care one = { .entries = 0 };
		struct store *s = NULL;

		rc = handle_open_store(b, forms[i], /* make= */ false, &s, err);
		if (rc > 0)
			rc = store_prune(s, flags & BRIG_PRUNE_ALL, &one, err);
		store_close(s);
		add_care(&care, &one);
	}
	return rc < 0 ? rc : hand_out(json_care(&care), ret, err);
}

struct bad_list {
	json_t *rows;
	int failed;
};

static void add_bad(void *arg, const struct store_info *info, const char *why)
{
	struct bad_list *list = arg;
	char key[STORE_HEX_LEN + 1];

	(void)hex_put(key, info->key.hash, STORE_HASH_LEN);
	list->failed |= json_array_append_new(
		list->rows, json_pack("{s:s, s:s, s:s}", "key", key, "kind", info->key.kind, "why", why));
}

int brig_cache_verify_json(struct brig *b, char **ret, struct brig_error *err)
{
	struct bad_list bad = { .failed = 0 };
	struct store_care care = { .entries = 0 };
	json_t *doc;
	int rc = 0;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_cache_verify_json needs a handle and a place for the text");
	bad.rows = json_array();
	for (size_t i = 0; i < ARRAY_LEN(forms) && rc >= 0; i++) {
		struct store_care one = { .entries = 0 };
		struct store *s = NULL;

		rc = handle_open_store(b, forms[i], /* make= */ false, &s, err);
		if (rc > 0)
			rc = store_verify(s, add_bad, &bad, &one, err);
		store_close(s);
		add_care(&care, &one);
	}
	if (rc < 0 || bad.failed) {
		json_decref(bad.rows);
		return rc < 0 ? rc : err_nomem(err);
	}
	doc = json_care(&care);
	if (json_object_set_new(doc, "bad", bad.rows) < 0) {
		json_decref(doc);
		doc = NULL;
	}
	rc = hand_out(doc, ret, err);
	return rc < 0 ? rc : care.damaged || care.stray ? 1 : 0;
}
