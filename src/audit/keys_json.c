/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "audit/audit.h"
#include "audit/keys.h"
#include "model/json.h"

static json_t *key_json(const struct public_key *k)
{
	char hex[2 * SIGN_PUB_LEN + 1];

	return json_pack("{s:s, s:s, s:s, s:o, s:b}", "id", k->id, "public", hex_put(hex, k->pub, SIGN_PUB_LEN), "from",
			 k->from, "until", json_text_or_null(k->until), "current", !*k->until);
}

int audit_keys_json(const struct statedir *state, bool make, char **ret, struct brig_error *err)
{
	AUTO_FREE struct keyring *ring = calloc(1, sizeof(*ring));
	json_t *rows;
	int rc;

	if (!ring)
		return err_nomem(err);
	rc = keyring_load(state, make, ring, err);
	if (rc < 0)
		return rc;
	rows = json_array();
	for (size_t i = 0; i < ring->n; i++)
		if (json_array_append_new(rows, key_json(&ring->key[i])) < 0) {
			json_decref(rows);
			return err_nomem(err);
		}
	return json_list_document("keys", rows, ret, err);
}
