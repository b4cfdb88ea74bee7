/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSocket connections (RFC 6455).  Frames are handled by libwslay, loaded before the front is confined.
 *
 *	websocket_check()    validates a handshake: method, version, key; Origin was checked before (check.c)
 *	websocket_accept()   answers 101; messages then go to on_message until either side closes
 *
 * The request lives as long as the connection.  Received messages are bounded by WEBSOCKET_MESSAGE_MAX, unsent data by
 * FRONT_STREAM_MAX.  A silent client is pinged, and disconnected if it does not respond before the next ping.
 */
#ifndef SERVER_FRONT_WEBSOCKET_H
#define SERVER_FRONT_WEBSOCKET_H

#include "server/front/front.h"

#define WEBSOCKET_MESSAGE_MAX (1 * MiB)
#define WEBSOCKET_REASON_MAX  123 /* bytes, limit of the protocol */

struct websocket_use {
	void (*on_message)(struct client *c, const char *text, size_t len, bool is_text);
	void (*on_late)(
		struct client *c); /* DEADLINE_OPENING expired before websocket_opened(); NULL: no such deadline */
};

/* Must be called before the front is confined: 0 or -BRIG_E_REFUSED, with the package to install. */
int websocket_load(struct brig_error *err);
/* Answers and returns false if a request to a door's WebSocket route is not a valid handshake. */
bool websocket_check(struct client *c, const char *bytes, const struct http1_head *head);
/* False: the connection was closed. */
bool websocket_accept(struct client *c, const struct websocket_use *use);
/* The client has sent the required first message. */
void websocket_opened(struct client *c);
/* Sends a text message; ignored after a close.  False: the connection was closed. */
bool websocket_send(struct client *c, const char *text, size_t len);
/* Sends a close frame; the connection ends when the client has answered it, or soon. */
void websocket_close(struct client *c, uint16_t code, const char *reason);

/* For client.c: data was received; a deadline has expired. */
void websocket_on_bytes(struct client *c, const char *bytes, size_t len);
void websocket_on_deadline(struct client *c);
/* All data is sent. */
void websocket_on_drained(struct client *c);
/* NULL is allowed; at the end of the round only, since a callback may be active */
void websocket_free(struct websocket *w);

#endif
