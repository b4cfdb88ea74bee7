/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks every backend of this build in turn. An unavailable backend (no engine runs) becomes a note in the document; one
 * that fails does too, and makes "ok" false.
 */
#include "api/cells.h"

#include <jansson.h>

#include "backend/backend.h"
#include "executor/pool.h"
#include "model/json.h"
#include "policy/policy.h"

#define CELLS_MAX 100000 /* upper limit for the document */

struct gathering {
	const struct backend_ops *backend;
	json_t *rows, *notes;
	bool ok;
	struct brig_error *err;
};

static int add_cell(void *arg, const struct cell_entry *e)
{
	struct gathering *g = arg;
	json_t *row;

	if (json_array_size(g->rows) >= CELLS_MAX)
		return 0;
	row = json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:b, s:I}", "backend", g->backend->name, "id", json_text(e->id),
			"name", json_text(e->name), "language", json_text_or_null(e->language), "owner",
			e->owner > 0 ? json_integer(e->owner) : json_null(), "orphan", e->orphan, "waiting", e->waiting,
			"age_ms", (json_int_t)e->age_ms);
	return json_array_append_new(g->rows, row) < 0 ? err_nomem(g->err) : 0;
}

static int add_note(struct gathering *g, const struct brig_error *why)
{
	json_t *note = json_pack("{s:s, s:o}", "backend", g->backend->name, "note", json_text(why->msg));

	if (why->code != BRIG_E_REFUSED)
		g->ok = false;
	return json_array_append_new(g->notes, note) < 0 ? err_nomem(g->err) : 0;
}

static int ask_all(struct gathering *g, const struct settings *set, bool reap)
{
	for (size_t i = 0; (g->backend = backend_at(i)); i++) {
		int (*ask)(const struct settings *, cell_entry_fn, void *, struct brig_error *) =
			reap ? g->backend->reap : g->backend->list;
		struct brig_error why = BRIG_ERROR_INIT;

		g->err->code = 0;
		if (!ask || ask(set, add_cell, g, &why) >= 0)
			continue;
		if (g->err->code) /* out of memory in add_cell() */
			return -g->err->code;
		if (add_note(g, &why) < 0)
			return -g->err->code;
	}
	return 0;
}

static int make_document(const struct policy *policy, bool reap, char **ret, struct brig_error *err)
{
	AUTO_FREE struct policy_resolved *resolved = calloc(1, sizeof(*resolved));
	struct brig_error scrap = BRIG_ERROR_INIT;
	struct gathering g = { .rows = json_array(), .notes = json_array(), .ok = true, .err = err ? err : &scrap };
	json_t *doc = NULL;
	int rc = resolved ? policy_resolve(policy, NULL, NULL, 0, resolved, g.err) : err_nomem(g.err);

	if (rc == 0)
		rc = ask_all(&g, &resolved->set, reap);
	if (rc == 0) {
		doc = json_pack("{s:b, s:O, s:O}", "ok", g.ok, reap ? "removed" : "cells", g.rows, "notes", g.notes);
		*ret = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
		rc = *ret ? 0 : err_nomem(g.err);
	}
	json_decref(doc);
	json_decref(g.rows);
	json_decref(g.notes);
	return rc;
}

int cells_pool(const struct policy *policy, const struct brig_pool *what, struct brig_error *err)
{
	const struct pool_wish wish = { .languages = what->languages,
					.n = what->n_languages,
					.trust = what->trust,
					.options = what->options,
					.n_options = what->n_options,
					.size = what->containers,
					.stop_fd = what->stop_fd,
					.notice = what->on_notice,
					.arg = what->user };

	if (what->containers < 1 || what->containers > BRIG_POOL_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "a pool keeps 1 to %d containers of a kind", BRIG_POOL_MAX);
	if (what->n_languages > 0 && !what->languages)
		return err_set(err, BRIG_E_USAGE, 0, "languages is NULL");
	return executor_pool(policy, &wish, err);
}

int cells_json(const struct policy *policy, char **ret, struct brig_error *err)
{
	return make_document(policy, /* reap= */ false, ret, err);
}

int cells_reap_json(const struct policy *policy, char **ret, struct brig_error *err)
{
	return make_document(policy, /* reap= */ true, ret, err);
}
