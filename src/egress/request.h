/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs send to the proxy.  Both parsers are given all bytes received so far, again and again, until they have
 * seen a complete request; neither keeps anything between two calls.  They are strict: anything ambiguous is refused,
 * because the server behind us is the other parser.  HTTP itself is read by net/http1.h; here are the rules about what
 * a proxy is asked for and what it passes on.
 */
#ifndef EGRESS_REQUEST_H
#define EGRESS_REQUEST_H

#include "egress/rules.h"
#include "egress/why.h"
#include "net/http1.h"

#define REQUEST_HEAD_MAX ((size_t)16384)

enum parse { PARSE_MORE, PARSE_DONE, PARSE_BAD };

struct request {
	enum why why; /* of PARSE_BAD */
	struct host host;
	uint16_t port;
	size_t used;                   /* bytes that belong to it */
	bool forward;                  /* plain HTTP: the request itself goes to the host; else a tunnel */
	struct http1_body_reader body; /* only if forward: before its first byte */
};

/* seen: how far earlier calls have looked; 0 before the first. */
enum parse http_parse(const char *bytes, size_t len, size_t *seen, struct request *ret);
/* The head that a forwarded request goes on with: no hop-by-hop header, our own Host, Connection: close.  Its length;
 * 0: it does not fit. */
size_t http_rewrite(const char *head, const struct request *req, char *dst, size_t size);

/*
 * Of what has come behind the head: how many bytes belong to the body of a forwarded request.  Behind it nothing is
 * passed on: a server that keeps the connection open nevertheless must not find a second request there, with an
 * unchecked Host.
 */
size_t http_body_take(struct http1_body_reader *body, const char *bytes, size_t len);

/* The client's greeting: which methods it knows. */
enum parse socks_parse_greeting(const char *bytes, size_t len, struct request *ret);
enum parse socks_parse_request(const char *bytes, size_t len, struct request *ret);

#endif
