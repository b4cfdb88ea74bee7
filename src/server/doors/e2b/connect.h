/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Connect protocol, JSON only: what is asked of the daemon in a sandbox (process.c, filesystem.c).
 *
 *	unary	application/json both ways; an error is a status with { "code", "message" }
 *	stream	application/connect+json both ways: frames of a flag, a length of four bytes with the first one highest, and JSON.  The last
 *		one has flag 2 and says how it went.  An error of a stream is such a frame behind a status of 200: clients look at nothing else
 *
 * A handler reads its request with connect_request(), and answers once, with connect_reply() or connect_fail(); a stream with any number of
 * connect_put() and then connect_end() or connect_fail().  Which of the two a request is its row says, and the functions here know.
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
/* The message at *at of a body of frames, and *at behind it; CONNECT_BAD: *ret_why says why. */
enum connect_frame connect_next(const char *bytes, size_t len, size_t *at, struct bytes *ret, const char **ret_why);

/* The message of the request, an object, a new reference; NULL: it was refused. */
json_t *connect_request(struct client *c);
/* Of a stream of messages to us: all of them, as a list. */
json_t *connect_requests(struct client *c);

/* Each takes the document; false: the client is gone. */
void connect_reply(struct client *c, json_t *message);
bool connect_put(struct client *c, json_t *message);
void connect_end(struct client *c);
void connect_fail(struct client *c, enum connect_code code, const char *fmt, ...) PRINTF(3, 4);
/* What the runner refused, by its errno if it has one. */
void connect_refuse(struct client *c, unsigned status, const struct message *m);
enum connect_code connect_code_of(int error); /* CONNECT_CODES: none in particular */

/* Whether a name is one of the users that there are; "" is. */
bool connect_is_user(const char *name);
/* Whether the user that the head names is; false: it was refused. */
bool connect_check_user(struct client *c);

/* A handler e2b_NAME() that reads one message and calls fn(c, message) for a sandbox that runs; the message is not fn's to keep. */
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

/* Members as proto's JSON has them: an enum is its name or its number, a number may be text. */
const char *connect_text(const json_t *object, const char *name); /* "": there is none */
uint64_t connect_number(const json_t *object, const char *name);  /* 0: likewise */
/* Bytes of base64; NULL: they are none, or there is no memory. */
char *connect_bytes(const json_t *object, const char *name, size_t *ret_len);

#endif
