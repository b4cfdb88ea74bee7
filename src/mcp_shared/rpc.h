/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 as MCP uses it: parses lines into messages, and builds messages to send.
 *
 * The parser is strict, because two parsers that interpret a message differently allow rules to be bypassed: valid
 * UTF-8, bounded length and depth, no duplicate members, no batches.  An invalid message is answered with the error of
 * the specification, which includes the message's id if it could be read.
 */
#ifndef MCP_SHARED_RPC_H
#define MCP_SHARED_RPC_H

#include <jansson.h>

#include "base/buf.h"

#define RPC_LINE_MAX  (8 * MiB)
#define RPC_DEPTH_MAX 64

enum rpc_code {
	RPC_PARSE = -32700,   /* not JSON, or beyond the parser's limits */
	RPC_INVALID = -32600, /* JSON, but not a message */
	RPC_NO_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_BUSY = -32000, /* the server runs and queues as many calls as it can */
	RPC_NO_RESOURCE = -32002,
	RPC_HEADER = -32020,  /* an HTTP header is missing or contradicts the message */
	RPC_VERSION = -32022, /* the protocol version is not supported */
};

/* ---- lines ---------------------------------------------------------------------------------------- */

struct rpc_lines {
	struct buf part; /* an incomplete line */
	bool skipping;   /* skipping the rest of a line that is too long */
};
#define RPC_LINES_INIT                         \
	{                                      \
		.part = BUF_INIT(RPC_LINE_MAX) \
	}
/* line NULL: a line longer than RPC_LINE_MAX. Blank lines are skipped. */
typedef void (*rpc_line_fn)(void *user, const char *line, size_t len);
void rpc_lines_feed(struct rpc_lines *l, const char *data, size_t len, rpc_line_fn fn, void *user);
void rpc_lines_release(struct rpc_lines *l);

/* ---- received messages ----------------------------------------------------------------------------- */

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE, RPC_BAD };

struct rpc_message {
	enum rpc_kind kind;
	json_t *doc;        /* owns the members below */
	const json_t *id;   /* a string or an integer; NULL: none */
	const char *method; /* without NUL; for requests and notifications */
	json_t *params;     /* an object; NULL: none */
	enum rpc_code code; /* if kind is RPC_BAD */
	char why[160];
};

/* line NULL: the line was too long. */
void rpc_read(const char *line, size_t len, struct rpc_message *ret);
/* Marks the message as bad, for a reason found outside the parser. */
void rpc_bad(struct rpc_message *m, enum rpc_code code, const char *why);
void rpc_release(struct rpc_message *m);

/* ---- messages to send: for json_decref(); NULL: no memory ----------------------------------------------- */

/* Takes result and data; data may be NULL. */
json_t *rpc_result(const json_t *id, json_t *result);
/* id NULL: the id is unknown. */
json_t *rpc_error(const json_t *id, enum rpc_code code, const char *why, json_t *data);
json_t *rpc_notification(const char *method, json_t *params);
json_t *rpc_request(const char *id, const char *method);

#endif
