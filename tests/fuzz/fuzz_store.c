/* SPDX-License-Identifier: Apache-2.0 */
/* The store's index: a record of any bytes is refused or safe to use.  The sum is corrected first, or nothing passes it. */
#include <string.h>

#include "store/entry.h"

#define SUM_OFFSET 216

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *bytes, size_t size)
{
	unsigned char again[STORE_RECORD_SIZE];
	char hex[STORE_HEX_LEN + 1];
	unsigned char hash[STORE_HASH_LEN];
	struct store_entry e, twice;

	if (!store_entry_decode(bytes, size, &e))
		return;
	if (strnlen(e.key.kind, sizeof(e.key.kind)) >= sizeof(e.key.kind) || e.size > INT64_MAX)
		abort();
	store_hex(e.content, hex);
	if (!store_unhex(hex, hash) || memcmp(hash, e.content, sizeof(hash)) != 0)
		abort();
	store_entry_encode(&e, again);
	if (!store_entry_decode(again, sizeof(again), &twice) ||
	    memcmp(&twice.key.hash, &e.key.hash, sizeof(hash)) != 0 || twice.size != e.size || twice.hits != e.hits)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t record[STORE_RECORD_SIZE];

	check(data, size);
	if (size != sizeof(record))
		return 0;
	memcpy(record, data, size);
	sha256(record, SUM_OFFSET, record + SUM_OFFSET);
	check(record, size);
	return 0;
}
