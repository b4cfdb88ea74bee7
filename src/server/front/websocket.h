/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that become WebSockets (RFC 6455): frames are libwslay's, which is loaded before the front gives everything up.
 *
 *	websocket_check()    a head that asks for it: method, version, key; Origin was looked at before (check.c)
 *	websocket_accept()   101, and from then on messages go to on_message until either side closes
 *
 * The request lives as long as the connection.  What a client sends is bounded by WEBSOCKET_MESSAGE_MAX, what waits for it by
 * FRONT_STREAM_MAX; one that is silent is pinged, and gone if it does not answer until the next ping.
 */
#ifndef SERVER_FRONT_WEBSOCKET_H
#define SERVER_FRONT_WEBSOCKET_H

#include "server/front/front.h"

#define WEBSOCKET_MESSAGE_MAX (1 * MiB)
#define WEBSOCKET_REASON_MAX  123 /* bytes, as the protocol says */

struct websocket_use {
	void (*on_message)(struct client *c, const char *text, size_t len, bool is_text);
	void (*on_late)(
		struct client *c); /* DEADLINE_OPENING was over before websocket_opened(); NULL: there is none */
};

/* Before the front is confined: 0 or -BRIG_E_REFUSED, and what to install. */
int websocket_load(struct brig_error *err);
/* Answers and returns false if a head of a door's route is no handshake. */
bool websocket_check(struct client *c, const char *bytes, const struct http1_head *head);
/* False: the client is gone. */
bool websocket_accept(struct client *c, const struct websocket_use *use);
/* The client has said what it has to say first. */
void websocket_opened(struct client *c);
/* A message of text; what comes after a close is left out.  False: the client is gone. */
bool websocket_send(struct client *c, const char *text, size_t len);
/* The last word; the connection ends when the client has answered it, or soon. */
void websocket_close(struct client *c, uint16_t code, const char *reason);

/* For client.c: bytes have come; a deadline is over. */
void websocket_on_bytes(struct client *c, const char *bytes, size_t len);
void websocket_on_deadline(struct client *c);
/* What was put is out. */
void websocket_on_drained(struct client *c);
void websocket_free(struct websocket *w); /* NULL is fine; after the round, for a callback of it may be under way */

#endif
