/* SPDX-License-Identifier: Apache-2.0 */
/* The request as a worker of the inspection reads it that was there before the text. */
#include <string.h>

#include "inspect/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *exact = malloc(size + 1);
	AUTO_BUF again = BUF_INIT(WIRE_ASK_MAX);
	struct wire_ask ask;

	if (!exact)
		return 0;
	memcpy(exact, data, size);
	if (size >= WIRE_ASK_HEAD && wire_ask_size(exact) > WIRE_ASK_MAX)
		abort();
	/* What was understood is written the same. */
	if (wire_ask_decode(exact, size, &ask) &&
	    (!wire_ask_encode(&ask.req, &again) || again.len != size || memcmp(again.data, exact, size) != 0))
		abort();
	wire_ask_release(&ask);
	return 0;
}
