/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs say to the proxy.  Both parsers are given all bytes that have come so far, again and again, until they
 * have seen a whole request; neither keeps anything between two calls.  They are strict: what two readers could
 * understand in two ways is refused, because the server behind us is the other reader.
 */
#ifndef EGRESS_REQUEST_H
#define EGRESS_REQUEST_H

#include "egress/rules.h"
#include "egress/why.h"

#define REQUEST_HEAD_MAX  ((size_t)16384)
#define REQUEST_LINES_MAX 128

enum parse { PARSE_MORE, PARSE_DONE, PARSE_BAD };

enum body_kind { BODY_NONE, BODY_LENGTH, BODY_CHUNKED };

struct request {
	enum why why; /* of PARSE_BAD */
	struct host host;
	uint16_t port;
	size_t used;  /* bytes that belong to it */
	bool forward; /* plain HTTP: the request itself goes to the host; else a tunnel */
	/* Only if forward: */
	enum body_kind body;
	uint64_t length; /* BODY_LENGTH */
	size_t method_len;
	size_t path, path_len; /* where it stands in the head; no length: "/" */
	bool path_is_query;    /* "?a=b" right behind the host */
	bool http_1_0;
};

/* seen: how far earlier calls have looked; 0 before the first. */
enum parse http_parse(const char *bytes, size_t len, size_t *seen, struct request *ret);
/* The head that a forwarded request goes on with: no hop-by-hop header, our own Host, Connection: close.  Its length;
 * 0: it does not fit. */
size_t http_rewrite(const char *head, const struct request *req, char *dst, size_t size);

/* The client's greeting: which methods it knows. */
enum parse socks_parse_greeting(const char *bytes, size_t len, struct request *ret);
enum parse socks_parse_request(const char *bytes, size_t len, struct request *ret);

/* ---- the body of a forwarded request ----------------------------------------------------------------------- */

enum chunk_state { CHUNK_SIZE, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF, CHUNK_LAST_CR, CHUNK_LAST_LF };

struct body {
	enum body_kind kind;
	uint64_t left; /* of the body, or of the chunk */
	enum chunk_state state;
	unsigned digits;
	bool last;
	bool done, bad;
};

struct body body_of(const struct request *req);
/* How many of the bytes belong to the body; sets done at its end, bad if the chunks are unsound. */
size_t body_take(struct body *b, const char *bytes, size_t len);

#endif
