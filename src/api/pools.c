/* SPDX-License-Identifier: Apache-2.0 */
/* pools.c - cells kept ready for requests: brig_pools_json(). */
#include <jansson.h>

#include "api/handle.h"
#include "keeper/keeper.h"
#include "model/json.h"

#define ROWS_MAX ((size_t)(8 * KEEP_POOLS_MAX))

static json_t *fork_state(const struct keep_pool *p)
{
	if (!p->forks)
		return json_null();
	return json_string(p->fork_ready ? "ready" : "building");
}

static json_t *pool_row(const struct keep_pool *p)
{
	const char *trust = p->trust < TRUST_COUNT ? trust_name[p->trust] : "";
	uint64_t misses = p->asked > p->hits ? p->asked - p->hits : 0;

	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:b}", "language",
			 json_text(p->language), "step", json_text(p->step), "environment",
			 json_text_or_null(p->environment), "trust", trust, "memory_limit", json_count(p->memory_limit),
			 "ready", (json_int_t)p->ready, "building", (json_int_t)p->building, "in_use",
			 (json_int_t)p->in_use, "wanted", (json_int_t)p->wanted, "forks", fork_state(p), "made",
			 json_count(p->made), "hits", json_count(p->hits), "misses", json_count(misses), "memory_bytes",
			 json_count(p->bytes), "given_up", (int)p->is_given_up);
}

int brig_pools_json(struct brig *b, char **ret, struct brig_error *err)
{
	AUTO_FREE struct keep_pool *pools = calloc(ROWS_MAX, sizeof(*pools));
	json_t *rows = json_array();
	size_t n;

	if (!b || !ret) {
		json_decref(rows);
		return err_set(err, BRIG_E_USAGE, 0, "brig_pools_json needs a handle and a place for the text");
	}
	n = pools ? warm_pools(&b->warm, pools, ROWS_MAX) : 0;
	for (size_t i = 0; rows && i < n; i++)
		if (json_array_append_new(rows, pool_row(&pools[i])) < 0) {
			json_decref(rows);
			rows = NULL;
		}
	return json_list_document("pools", rows, ret, err);
}
