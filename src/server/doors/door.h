/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doors: requests in the wire format of an existing client, translated to the same runner messages that the API's own
 * routes send.
 *
 * A door is a folder here, a row in server/doors.def with one row for each of its paths, and a test file. All of its
 * code runs in the front (server/front/front.h): it parses untrusted text, and its only privilege is to ask the runner
 * for what the client's key allows. Inspection, limits, evidence, audit and quotas therefore apply to it without any
 * code of its own.
 *
 *	request head -> the table finds the row -> key, length, body  (door.c: begin; NAME_error() words the refusals)
 *	     -> HANDLER(c)                                            the request is complete: req->body, req->content_type,
 *	                                                              call->id, call->path
 *	          door_reply()                                        answers at once, or
 *	          door_fields(), message_put_...(), door_ask()        asks the runner, as a route of routes.def does
 *	     -> call->on_event(c, kind, text)                         for each event, if it asked for events (FIELD_stream)
 *	     -> call->on_answer(c, status, m)                         answers, or asks again: requests to the runner may
 *	                                                              follow each other
 *
 * A handler keeps its state between two runner requests in call->state, which call->release() frees whenever and
 * however the request ends: the client may disconnect at any time, and after that no function of the door is called. A
 * response may be streamed (door_stream_begin(), _put(), _end()), or the connection may become a WebSocket
 * (front/websocket.h), whose messages go to call->on_message.
 *
 * Rules for every handler:
 *   - read JSON with door_json(), which bounds depth and number of values, and check every type: members may be
 *     anything;
 *   - check the result of every function that sends: false means that client and request are gone;
 *   - answer every request exactly once.
 *
 * To add a door: a DOOR row with its DOOR_ROUTE and DOOR_NOTE rows, `void NAME_error(struct client *c, unsigned status,
 * const char *message)` and the handlers (the table declares both); the file in src/server/meson.build; tests in
 * tests/doors.
 */
#ifndef SERVER_DOORS_DOOR_H
#define SERVER_DOORS_DOOR_H

#include <jansson.h>

#include "server/doors.h"
#include "server/front/front.h"

/* A request that came through a door. struct request owns it; NULL there means that the request came to the API. */
struct door_call {
	enum door door;
	const struct door_route *route;
	char id[65], path[4097]; /* from the path, as in routes.def; "": the row has no such part */
	char session[65];        /* for SESSION rows, once the session was found; "": not yet */
	bool has_id;             /* the client named the session: head already carries its id */
	char query[8193];        /* raw, without the question mark; truncated if longer */
	struct buf head;         /* fields of every request to the runner: the key, the door */
	struct buf lines;        /* header fields with a DOOR_LINE row: each name and value, NUL-terminated */
	void *state;
	void (*release)(void *state); /* NULL: nothing to free */
	void (*on_answer)(struct client *c, unsigned status, const struct message *m);
	void (*on_event)(struct client *c, enum event_kind kind, const char *text,
			 size_t len);       /* NULL: events are dropped */
	void (*on_quiet)(struct client *c); /* the stream sent nothing for 15 s; NULL: nothing is sent then */
	bool pings_soon;                    /* after 5 s instead */
	bool is_fresh;                      /* the languages were fetched with this call's key */
	void (*then)(struct client *c, json_t *languages); /* continuation of door_with_languages() */
	void (*then_let_in)(struct client *c);             /* continuation of door_when_let_in() */
	char websocket_key[25];                            /* of a WebSocket handshake; "": none */
	json_t *variables; /* for SESSION rows: what programs get unless the request sets it; NULL: nothing */
};

/* Why a port of a session has no server: the session has ended or never existed, it is paused, nothing listens. */
enum door_absence { DOOR_NO_SESSION, DOOR_PAUSED, DOOR_PORT_CLOSED };

struct door_route {
	enum door door;
	const char *method, *path, *summary;
	enum door_body body;
	enum door_access access;
	void (*handler)(struct client *c);
};

/* ---- for doors ---------------------------------------------------------------------------------------- */

/* The body as a JSON document (a new reference); NULL: it is not JSON, and err says why. */
json_t *door_json(struct client *c, struct brig_error *err);
/* The same for text from elsewhere. */
json_t *door_parse(const char *text, size_t len, struct brig_error *err);
/* The decoded value of a query parameter; false if it is missing or malformed. */
bool door_query(const struct client *c, const char *name, char *dst, size_t size);

/*
 * The value of a header field; repeated fields are joined with ", ". NULL: the field is missing, or no DOOR_LINE row
 * names it.
 */
const char *door_line(const struct client *c, const char *name);

/*
 * For a DOOR_LINE row with a star: the next header field whose name begins with prefix, from *at (initially 0) on.
 * Returns the prefix followed by the rest of the name in lower case, with the value in *ret_value; NULL: no more.
 */
const char *door_next_line(const struct client *c, const char *prefix, size_t *at, const char **ret_value);

/* Sends the response. Takes the document; NULL stands for out of memory. */
void door_reply(struct client *c, unsigned status, json_t *doc);
void door_reply_bytes(struct client *c, unsigned status, const char *content_type, const void *body, size_t len);

/* The fields of the next request to the runner; those of the previous one are discarded. */
struct buf *door_fields(struct client *c);
/* Sends the request to the runner. files, input: descriptors to pass with it, FD_NONE: none; the caller keeps them. */
void door_ask(struct client *c, enum route route, int files, int input,
	      void (*on_answer)(struct client *c, unsigned status, const struct message *m));
/*
 * Input files of a run. door_path() normalises a name: "./a//b/" becomes "a/b"; ".." and a leading slash remain, which
 * the runner refuses. False: nothing is left, or it is too long.
 */
bool door_path(const char *path, char *dst, size_t size);
/*
 * Ends an archive (base/ustar.h) and returns it for door_ask(); *ret_files stays as it is without any file. Of several
 * files with one path only the last one remains, in tar, too. -BRIG_E_USAGE: a file is where another one needs a
 * directory, and err names both.
 */
int door_files(struct buf *tar, int *ret_files, struct brig_error *err);
/* Keeps req->body across the next door_ask(), which otherwise frees it. */
void door_keep_body(struct client *c);
/* Cancels the pending request to the runner; its answer is ignored. */
void door_give_up(struct client *c);
/* Calls then() if the key is good; otherwise answers the request. */
void door_when_let_in(struct client *c, void (*then)(struct client *c));
/* An option for the run; the policy's own value stays if it is lower. */
void door_put_option(struct buf *fields, const char *key, uint64_t n);
/* The document of a runner answer (a new reference); NULL: it has none. */
json_t *door_answer_json(const struct message *m);
/* The message of an error document, which owns it. */
const char *door_answer_message(const json_t *doc);

/*
 * The languages of the service (GET /v1/languages): calls then() with them, or answers the request. Unless is_fresh, a
 * list cached for some seconds is good enough; the key is then not checked yet, so then() must not answer: to refuse,
 * it calls again for a fresh list (call->is_fresh tells).
 */
void door_with_languages(struct client *c, bool is_fresh, void (*then)(struct client *c, json_t *languages));
/* The language with this name or alias; NULL: unknown, or its runtime is not installed. */
json_t *door_language(json_t *languages, const char *name);

/* The text of a result or event, decoded from base64 if need be. */
json_t *door_text(const char *text, size_t len, bool is_base64);
/* What the program wrote to stream, from a result; invalid UTF-8 becomes U+FFFD. */
json_t *door_output(const json_t *result, const char *stream);
/* The findings of an inspection, as lines for people. */
void door_findings_text(const json_t *result, struct buf *out);

/* A response of unknown length; each _put() is sent at once. False: the client is gone. */
bool door_stream_begin(struct client *c, const char *content_type);
bool door_stream_put(struct client *c, const void *bytes, size_t len);
void door_stream_end(struct client *c);

/* ---- for the front ---------------------------------------------------------------------------------------- */

/*
 * True if a header field (DOOR_OWN) claims the request for one door; door_find_route() then looks among that door's
 * rows only.
 */
bool door_owns(const struct client *c, const char *bytes, const struct http1_head *head);
/* Finds the row among the open doors, and the parts of the path that it names. False: no row matches. */
bool door_find_route(struct client *c, const char *bytes, const struct http1_head *head);
/*
 * True if the port of every session is a service of an open door (DOOR_PORT); that door answers requests to its host
 * name.
 */
bool door_has_port(const struct client *c, uint16_t port);
void door_begin_port(struct client *c, const char *bytes, const struct http1_head *head, const char *session,
		     uint16_t port);
/* The door's answer at the name of a port that has no server; false: no open door has one. */
bool door_reply_absent(struct client *c, const char *session, uint16_t port, enum door_absence why);
/* Called when the head is read: continues with the body, the handler or a refusal. */
void door_begin(struct client *c, const char *bytes, const struct http1_head *head);
void door_call_free(struct door_call *call); /* accepts NULL */
/* Refuses the request in the door's own error format. */
void door_error(struct client *c, unsigned status, const char *message);

#define DOOR(name, title, keys, trust, move)                           void name##_error(struct client *c, unsigned status, const char *message);
#define DOOR_ROUTE(door, method, path, body, access, handler, summary) void handler(struct client *c);
#define DOOR_OWN(door, name, handler)                                  void handler(struct client *c);
#define DOOR_PORT(door, port, session_line, port_line, handler)        void handler(struct client *c);
#define DOOR_ABSENT(door, handler) \
	void handler(struct client *c, const char *session, uint16_t port, enum door_absence why);
#define DOOR_GUARD(door, handler) bool handler(struct client *c);
#include "server/doors.def"

#endif
