/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program says to the proxy in HTTP.  Whole or byte by byte, the same is decided; what is let through has a host
 * that is one, and what goes on to it has one Host line, one end and no hop-by-hop header; no byte behind a body is part of it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "egress/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (2 * REQUEST_HEAD_MAX)

static enum parse parse_in_pieces(const char *bytes, size_t len, struct request *ret)
{
	enum parse p = PARSE_MORE;
	size_t seen = 0;

	for (size_t n = 1; n <= len && p == PARSE_MORE; n++)
		p = http_parse(bytes, n, &seen, ret);
	return p;
}

static size_t count_lines(const char *head, size_t len, const char *name)
{
	size_t found = 0, n = strlen(name);

	for (size_t i = 2; i + n < len; i++)
		if (memcmp(head + i - 2, "\r\n", 2) == 0 && strncasecmp(head + i, name, n) == 0)
			found++;
	return found;
}

static void check_rewritten(const char *bytes, const struct request *r)
{
	static char out[OUT_MAX];
	size_t n = http_rewrite(bytes, r, out, sizeof(out));

	if (n < 4 || memcmp(out + n - 4, "\r\n\r\n", 4) != 0 || memmem(out, n - 1, "\r\n\r\n", 4))
		abort();
	if (count_lines(out, n, "host:") != 1 || count_lines(out, n, "connection:") != 1 ||
	    count_lines(out, n, "upgrade:") != 0 ||
	    count_lines(out, n, "content-length:") + count_lines(out, n, "transfer-encoding:") > 1)
		abort();
	if (memchr(out, '\0', n))
		abort();
}

static void check_body(const char *bytes, size_t len, const struct request *r)
{
	struct http1_body_reader whole = r->body, single = whole;
	size_t taken = http_body_take(&whole, bytes, len), n = 0;

	while (n < len && !single.done && !single.bad)
		n += http_body_take(&single, bytes + n, 1);
	if (taken > len || taken != n || whole.done != single.done || whole.bad != single.bad)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct request r, again = { .why = WHY_ok };
	struct host host;
	size_t seen = 0;
	enum parse p = http_parse(bytes, size, &seen, &r), q = parse_in_pieces(bytes, size, &again);

	if (size > 0 && (p != q || r.why != again.why || r.used != again.used))
		abort();
	if (p != PARSE_DONE)
		return 0;
	if (r.used > size || r.port == 0 || !host_parse(r.host.text, strlen(r.host.text), false, &host) ||
	    strcmp(host.text, r.host.text) != 0)
		abort();
	if (!r.forward)
		return 0;
	check_rewritten(bytes, &r);
	check_body(bytes + r.used, size - r.used, &r);
	return 0;
}
