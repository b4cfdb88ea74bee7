/* SPDX-License-Identifier: Apache-2.0 */
/* What brokers carry: what is understood of it is a message that is written again as the same bytes, so that a seal fits what is used. */
#include <stdlib.h>
#include <string.h>

#include "server/seal.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	AUTO_BUF inner = BUF_INIT(MESSAGE_MAX);
	AUTO_BUF again = BUF_INIT(MESSAGE_MAX);
	char *exact = malloc(len + 1);
	uint8_t sig[SIGN_LEN];
	struct message m;
	const char *why;

	if (!exact)
		return 0;
	memcpy(exact, data, len);
	if (!seal_read(exact, len, &inner, sig)) {
		if (!message_read(inner.data ? inner.data : "", inner.len, &m, &why) || !seal_write(&m, sig, &again))
			abort();
		if (again.len != len || memcmp(again.data, exact, len) != 0)
			abort();
	}
	free(exact);
	return 0;
}
