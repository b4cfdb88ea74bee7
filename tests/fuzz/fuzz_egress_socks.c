/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says to the proxy in SOCKS5: nothing is decided early, and what is let through has a host that is one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const char *bytes, size_t size)
{
	struct request r, early;
	struct host host;

	if (socks_parse_request(bytes, size, &r) != PARSE_DONE)
		return;
	if (r.used > size || r.port == 0 || r.forward || !host_parse(r.host.text, strlen(r.host.text), false, &host) ||
	    strcmp(host.text, r.host.text) != 0)
		abort();
	for (size_t n = 0; n < r.used; n++)
		if (socks_parse_request(bytes, n, &early) != PARSE_MORE)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct request r;

	check_request(bytes, size);
	if (socks_parse_greeting(bytes, size, &r) != PARSE_DONE)
		return 0;
	if (r.used > size)
		abort();
	check_request(bytes + r.used, size - r.used);
	return 0;
}
