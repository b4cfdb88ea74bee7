/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Connect protocol, JSON only, for requests to the daemon of a sandbox (process.c, filesystem.c).
 *
 *	unary   application/json both ways; an error is an HTTP status with { "code", "message" }
 *	stream  application/connect+json both ways: frames of one flag byte, a 4-byte big-endian length, and JSON. The last
 *	        frame has flag 2 and carries the outcome. An error in a stream is such a frame after status 200, because
 *	        clients look at nothing else
 *
 * A handler reads its request with connect_request() and answers once, with connect_reply() or connect_fail(); a stream
 * is any number of connect_put(), then connect_end() or connect_fail(). The request's Content-Type decides between
 * unary and stream, and the functions here follow it.
 */
#ifndef SERVER_DOORS_E2B_CONNECT_H
#define SERVER_DOORS_E2B_CONNECT_H

#include "server/doors/e2b/e2b.h"

enum connect_code {
#define CONNECT_CODE(name, status) CONNECT_##name,
#include "server/doors/e2b/connect.def"
	CONNECT_CODES
};

enum connect_frame { CONNECT_FRAME, CONNECT_NO_MORE, CONNECT_BAD };
/* Reads the message at *at from a body of frames and advances *at; CONNECT_BAD: *ret_why tells the reason. */
enum connect_frame connect_next(const char *bytes, size_t len, size_t *at, struct bytes *ret, const char **ret_why);

/* The request message, an object (a new reference); NULL: it was refused. */
json_t *connect_request(struct client *c);
/* All messages of a client stream, as a list. */
json_t *connect_requests(struct client *c);

/* These take the document; false: the client is gone. */
void connect_reply(struct client *c, json_t *message);
bool connect_put(struct client *c, json_t *message);
void connect_end(struct client *c);
void connect_fail(struct client *c, enum connect_code code, const char *fmt, ...) PRINTF(3, 4);
/* Relays a refusal of the runner, by its errno if it has one. */
void connect_refuse(struct client *c, unsigned status, const struct message *m);
enum connect_code connect_code_of(int error); /* CONNECT_CODES: no specific code */

/* True if the user exists; "" does. */
bool connect_is_user(const char *name);
/* True if the user in the Authorization header exists; false: the request was refused. */
bool connect_check_user(struct client *c);

/*
 * Defines a handler e2b_NAME() that reads one message and calls fn(c, message) for a running sandbox; the message
 * belongs to the caller.
 */
void connect_serve(struct client *c, void (*fn)(struct client *c, const json_t *request));
#define CONNECT_HANDLER(name, fn)                            \
	static void name##_found(struct client *c)           \
	{                                                    \
		connect_serve(c, fn);                        \
	}                                                    \
	void e2b_##name(struct client *c)                    \
	{                                                    \
		e2b_with_sandbox(c, E2B_ENVD, name##_found); \
	}

/* Members in proto3 JSON: an enum is its name or number, and a number may be a string. */
const char *connect_text(const json_t *object, const char *name); /* "": missing */
uint64_t connect_number(const json_t *object, const char *name);  /* 0: missing */
/* Decodes base64; NULL: not base64, or no memory. */
char *connect_bytes(const json_t *object, const char *name, size_t *ret_len);

#endif
