/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 (RFC 1928), of which a program gets CONNECT without a password.  Names are resolved here, not in the cell. */
#include <string.h>

#include "base/str.h"
#include "egress/request.h"

#define VERSION        5
#define METHOD_OPEN    0
#define COMMAND_CONN   1
#define TYPE_V4        1
#define TYPE_NAME      3
#define TYPE_V6        4
#define REQUEST_PREFIX 4 /* version, command, reserved, type */

static enum parse bad(struct request *r, enum why why)
{
	r->why = why;
	return PARSE_BAD;
}

enum parse socks_parse_greeting(const char *bytes, size_t len, struct request *ret)
{
	*ret = (struct request){ .why = WHY_ok };
	if (len >= 1 && bytes[0] != VERSION)
		return bad(ret, WHY_not_http);
	if (len < 2 || len < 2 + (size_t)(unsigned char)bytes[1])
		return PARSE_MORE;
	ret->used = 2 + (size_t)(unsigned char)bytes[1];
	return memchr(bytes + 2, METHOD_OPEN, ret->used - 2) ? PARSE_DONE : bad(ret, WHY_socks_method);
}

static bool take_address(const char *bytes, bool v6, struct host *ret)
{
	struct address a = { .v6 = v6 };
	char text[ADDRESS_TEXT_MAX];

	memcpy(a.byte, bytes, v6 ? 16 : 4);
	(void)address_text(&a, text);
	/* By its text, so that what is no host in a request of HTTP is none here. */
	return host_parse(text, strlen(text), false, ret);
}

/* A name may not carry what looks like an address in brackets: there is a type for those. */
static bool take_name(const char *bytes, size_t len, struct host *ret)
{
	return host_parse(bytes, len, true, ret) && (len == 0 || bytes[0] != '[');
}

enum parse socks_parse_request(const char *bytes, size_t len, struct request *ret)
{
	size_t size, from = REQUEST_PREFIX;
	bool ok;

	*ret = (struct request){ .why = WHY_ok };
	if (len >= 1 && bytes[0] != VERSION)
		return bad(ret, WHY_not_http);
	if (len < REQUEST_PREFIX + 1)
		return PARSE_MORE;
	if (bytes[3] != TYPE_V4 && bytes[3] != TYPE_V6 && bytes[3] != TYPE_NAME)
		return bad(ret, WHY_strange_host);
	size = bytes[3] == TYPE_V4 ? 4 : 16;
	if (bytes[3] == TYPE_NAME)
		size = (unsigned char)bytes[from++];
	if (len < from + size + 2)
		return PARSE_MORE;
	ret->used = from + size + 2;
	ret->port = (uint16_t)((unsigned char)bytes[from + size] << 8 | (unsigned char)bytes[from + size + 1]);
	ok = bytes[3] == TYPE_NAME ? take_name(bytes + from, size, &ret->host)
				   : take_address(bytes + from, bytes[3] == TYPE_V6, &ret->host);
	if (bytes[1] != COMMAND_CONN)
		return bad(ret, WHY_socks_command);
	if (bytes[2] != 0)
		return bad(ret, WHY_not_http);
	return ok && ret->port != 0 ? PARSE_DONE : bad(ret, WHY_strange_host);
}
