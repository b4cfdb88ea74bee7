/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker says of the keys of a bucket: whatever that is, the runner gets a message, and takes keys of batches for such and nothing else. */
#include <stdlib.h>
#include <string.h>

#include "server/link/link.h"
#include "server/runner/queue.h"

static void look_at_key(const char *key)
{
	const char *id = batch_key_id(key);

	if (id && (strlen(key) != BATCH_KEY_LEN || strlen(id) != EXECUTION_ID_LEN ||
		   id + strlen(id) != key + strlen(key) || strpbrk(key, "*> \n\"") || !ops_is_pattern(key)))
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	AUTO_BUF out = BUF_INIT(MiB);
	char *text = malloc(len + 1);
	const char *why, *key;
	size_t n_strange, at = 0, key_len;
	struct message m;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	look_at_key(text);
	(void)ops_is_pattern(text);
	(void)list_read(text, len, "$KV.brig-batches.", &out, &n_strange);
	if (!out.full && !out.no_memory && !message_read(out.data, out.len, &m, &why))
		abort();
	while (!out.full && !out.no_memory && (key = message_next(&m, FIELD_listed, &at, &key_len)))
		look_at_key(key);
	free(text);
	return 0;
}
