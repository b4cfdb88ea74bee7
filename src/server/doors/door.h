/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doors: requests in the wire format of an existing client, which become the same messages to the runner that the API's own do.
 *
 * A door is a folder here, a row in server/doors.def with a row for each of its paths, and a file of tests.  All of it runs in the front
 * (server/front/front.h): it reads text of strangers, and has nothing but the right to ask the runner what the client's key allows.
 * So inspection, limits, evidence, audit and quotas hold for it without its doing anything.
 *
 *	head -> the table finds the row -> key, length, body         (door.c: begin; refusals are worded by NAME_error())
 *	     -> HANDLER(c)                                           the request is whole: req->body, req->content_type, call->id, call->path
 *	          door_reply()                                       answers at once, or
 *	          door_fields(), message_put_...(), door_ask()       asks the runner, as a route of routes.def
 *	     -> call->on_event(c, kind, text)                        if it asked for events (FIELD_stream): each as it comes
 *	     -> call->on_answer(c, status, m)                        answers, or asks again: several asks follow each other
 *
 * A handler keeps what it needs between two asks in call->state, which call->release() frees, whenever and however the request
 * ends: the client may be gone at any time, and then no function of the door is called any more.  An answer may be streamed
 * (door_stream_begin(), _put(), _end()), or the connection become a WebSocket (front/websocket.h), whose messages go to
 * call->on_message.
 *
 * What every handler has to do:
 *	- read JSON with door_json(), which bounds its depth and number of values, and check every type: members may be anything;
 *	- after anything that sends, look at what it returned: false means that client and request are gone;
 *	- leave no request without an answer, and answer once.
 *
 * To add one: a DOOR row and its DOOR_ROUTE and DOOR_NOTE rows, `void NAME_error(struct client *c, unsigned status, const char *message)`
 * and its handlers, both declared by the table itself; the file in src/server/meson.build; tests in tests/doors.
 */
#ifndef SERVER_DOORS_DOOR_H
#define SERVER_DOORS_DOOR_H

#include <jansson.h>

#include "server/doors.h"
#include "server/front/front.h"

/* A request that came through a door: struct request has it, NULL: it came to the API. */
struct door_call {
	enum door door;
	const struct door_route *route;
	char id[65], path[4097]; /* of the path, as in routes.def; "": the row has none */
	char session[65];        /* of a SESSION row, when its session was found; "": not yet */
	bool has_id;             /* it was named: asks have its id */
	char query[8193];        /* raw, without the question mark; cut where it is longer */
	struct buf head;         /* fields of every ask: who asks, through which door */
	struct buf lines;        /* of the head: DOOR_LINE rows, each name and value with a NUL */
	void *state;
	void (*release)(void *state); /* NULL: it need not be */
	void (*on_answer)(struct client *c, unsigned status, const struct message *m);
	void (*on_event)(struct client *c, enum event_kind kind, const char *text,
			 size_t len);       /* NULL: they are left out */
	void (*on_quiet)(struct client *c); /* a stream had nothing to send for 15 s; NULL: it may be so */
	bool pings_soon;                    /* 5 s instead */
	bool is_fresh;                      /* the languages were asked for with this call's key */
	void (*then)(struct client *c, json_t *languages); /* of door_with_languages() */
	void (*then_let_in)(struct client *c);             /* of door_when_let_in() */
	char websocket_key[25];                            /* of a handshake; "": it is none */
};

struct door_route {
	enum door door;
	const char *method, *path, *summary;
	enum door_body body;
	enum door_access access;
	void (*handler)(struct client *c);
};

/* ---- for doors ---------------------------------------------------------------------------------------- */

/* The body as a document, a new reference; NULL: it is none, and err says why. */
json_t *door_json(struct client *c, struct brig_error *err);
/* Likewise of text that came otherwise. */
json_t *door_parse(const char *text, size_t len, struct brig_error *err);
/* The value of a parameter of the query, decoded; false: it is not there, or cannot be read. */
bool door_query(const struct client *c, const char *name, char *dst, size_t size);

/* What a line of the head says, of several with a comma and a blank between them; NULL: there was none, or no DOOR_LINE names it. */
const char *door_line(const struct client *c, const char *name);

/*
 * Of a DOOR_LINE with a star: the next line that begins with the prefix, from *at (0 at first) on; its name is the prefix and then in
 * small letters, with its value in *ret_value.  NULL: no more.
 */
const char *door_next_line(const struct client *c, const char *prefix, size_t *at, const char **ret_value);

/* Answers.  Takes the document; NULL: there was no memory for it. */
void door_reply(struct client *c, unsigned status, json_t *doc);
void door_reply_bytes(struct client *c, unsigned status, const char *content_type, const void *body, size_t len);

/* The fields of the next ask, which messages are put to; what an earlier one had is gone. */
struct buf *door_fields(struct client *c);
/* Asks the runner what it was put.  files, input: descriptors beside the message, FD_NONE: none; they stay the caller's. */
void door_ask(struct client *c, enum route route, int files, int input,
	      void (*on_answer)(struct client *c, unsigned status, const struct message *m));
/* The next ask leaves the body where it is, for another one; else asking frees it. */
void door_keep_body(struct client *c);
/* What was asked is to end, and its answer is not waited for. */
void door_give_up(struct client *c);
/* Calls then() if the key is good; else the request is answered. */
void door_when_let_in(struct client *c, void (*then)(struct client *c));
/* A setting that the program is to run with, where the policy's own is not lower. */
void door_put_option(struct buf *fields, const char *key, uint64_t n);
/* The document of an answer, a new reference; NULL: it has none. */
json_t *door_answer_json(const struct message *m);
/* The sentence of an error's document, which stays the document's. */
const char *door_answer_message(const json_t *doc);

/*
 * The languages of the service (GET /v1/languages): then() is called with them, or the request is answered.  Those of the last seconds
 * will do unless is_fresh; then nobody has looked at the key yet, so nothing may be answered: who has something to refuse asks again,
 * for fresh ones (call->is_fresh tells).
 */
void door_with_languages(struct client *c, bool is_fresh, void (*then)(struct client *c, json_t *languages));
/* The language of this name, or with it among its other names; NULL: there is none, or its runtime is not installed. */
json_t *door_language(json_t *languages, const char *name);

/* Text of a result or an event, which may be base64 of bytes: text. */
json_t *door_text(const char *text, size_t len, bool is_base64);
/* What the program wrote, from a result: text, with U+FFFD where it was none. */
json_t *door_output(const json_t *result, const char *stream);
/* What an inspection found, as lines for people. */
void door_findings_text(const json_t *result, struct buf *out);

/* An answer of unknown length; each _put() is sent at once.  False: the client is gone. */
bool door_stream_begin(struct client *c, const char *content_type);
bool door_stream_put(struct client *c, const void *bytes, size_t len);
void door_stream_end(struct client *c);

/* ---- for the front ---------------------------------------------------------------------------------------- */

/* Whether a line of the head makes this a request for one door: then door_find_route() finds it, whatever its path. */
bool door_owns(const struct client *c, const char *bytes, const struct http1_head *head);
/* The row of a door that is open, and what of the path it names.  False: none has it. */
bool door_find_route(struct client *c, const char *bytes, const struct http1_head *head);
/* Whether a port of every session is a service of a door that is open; a request to its name is answered by that door. */
bool door_has_port(const struct client *c, uint16_t port);
void door_begin_port(struct client *c, const char *bytes, const struct http1_head *head, const char *session,
		     uint16_t port);
/* A name of a port, when the session is paused, has ended or never was; false: no door that is open has an answer of its own. */
bool door_reply_absent(struct client *c, const char *session, bool is_paused);
/* Its head is read: on to the body, the handler or a refusal. */
void door_begin(struct client *c, const char *bytes, const struct http1_head *head);
void door_call_free(struct door_call *call); /* NULL is fine */
/* A refusal in the door's own words. */
void door_error(struct client *c, unsigned status, const char *message);

#define DOOR(name, title, keys, trust, move)                           void name##_error(struct client *c, unsigned status, const char *message);
#define DOOR_ROUTE(door, method, path, body, access, handler, summary) void handler(struct client *c);
#define DOOR_OWN(door, name, handler)                                  void handler(struct client *c);
#define DOOR_PORT(door, port, session_line, port_line, handler)        void handler(struct client *c);
#define DOOR_ABSENT(door, handler)                                     void handler(struct client *c, const char *session, bool is_paused);
#define DOOR_GUARD(door, handler)                                      bool handler(struct client *c);
#include "server/doors.def"

#endif
