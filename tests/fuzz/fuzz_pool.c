/* SPDX-License-Identifier: Apache-2.0 */
/* The two messages between a pool of warm containers and those who claim one. */
#include <stdint.h>
#include <string.h>

#include "backend/docker/answer.h"
#include "backend/docker/pool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char again[POOL_REPLY_BYTES];
	struct pool_claim claim;
	struct pool_reply reply;

	/* What is accepted is exactly what would be sent for it: no byte is passed over. */
	if (pool_claim_decode((const char *)data, size, &claim)) {
		pool_claim_encode(&claim, again);
		if (size != POOL_CLAIM_BYTES || memcmp(again, data, size) != 0)
			abort();
	}
	if (pool_reply_decode((const char *)data, size, &reply)) {
		pool_reply_encode(&reply, again);
		if (size != POOL_REPLY_BYTES || memcmp(again, data, size) != 0)
			abort();
		if ((reply.answer == POOL_HERE) != answer_is_id(reply.container))
			abort();
	}
	return 0;
}
