/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to servers in sessions.
 *
 *	port_access.c  which port of which session a request is for, and the client's credentials
 *	port_head.c    heads of requests to such a server, and of its answers to the client
 *	port.c         the connection: bytes in both directions
 *
 * A server has two addresses.
 *
 *   /v1/sessions/ID/ports/PORT/...  on the service's own origin, like the console.  The server is not trusted: a page
 *   it serves must not act as one of the service.  So answers get an opaque origin (Content-Security-Policy: sandbox),
 *   may not set cookies or other per-origin browser state, and redirect only within their own path, since the client
 *   would send its token again.
 *   PORT-ID.DOMAIN  a host of its own, and thus an origin of its own, for browsers.  Cookies belong to the server,
 *   except one that the service sets: it authenticates a browser that has opened a link (/v1/sessions/ID/links).  It is
 *   not forwarded to the server, and pages of other origins cannot use it.
 *
 *   RULE P1  Credentials of the service never reach the server: the header with them is removed, whichever it is.
 *   RULE P2  Heads are generated from strictly parsed ones, and so is the framing of bodies: no framing is passed
 *   through.
 *   RULE P3  A connection to a server is used for one request, or one WebSocket.  Unsolicited data is discarded.
 *   RULE P4  The buffer for each side is bounded; while it is full, the other side is not read (backpressure).
 */
#ifndef SERVER_FRONT_PORT_H
#define SERVER_FRONT_PORT_H

#include "server/front/front.h"

#define PORT_WINDOW      (128 * KiB) /* buffered for one side, above which the other is not read */
#define PORT_HEAD_MAX    (48 * KiB)  /* of a generated head */
#define PORTS_OF_SESSION 64          /* concurrent connections */
#define PORT_INTERIM_MAX 16          /* 1xx answers before the final one */
#define PORT_COOKIE      "brig-port"
#define PORT_PARAMETER   "brig_token"

enum port_state {
	PORT_ASKED,  /* waiting for the runner */
	PORT_HEAD,   /* waiting for the server's head; meanwhile the request's body is forwarded */
	PORT_BODY,   /* forwarding the answer's body */
	PORT_TUNNEL, /* a WebSocket */
};

struct port {
	struct source source;
	struct client *client; /* NULL: closed, and freed at the end of the round */
	LIST_ENTRY(port) in_all;
	struct port *next_dead;
	enum port_state state;
	char id[65];
	uint16_t number;
	bool by_host,
		by_browser /* the request has no credentials beyond what a browser sends by itself, even for pages of other origins */
		;
	bool wants_upgrade, is_of_head, expects_continue, only_check;
	char link[96];  /* the value for the cookie; "": none */
	struct buf out; /* buffered for the server */
	size_t out_at;
	struct buf in; /* the server's head, as far as received */
	size_t seen;
	unsigned n_interim;
	struct http1_body_reader reader; /* of the server's answer */
	bool is_chunked;                 /* towards the client */
	char redirect[4096];             /* the address without the link */
};

/* port_access.c: true: the request is for a server in a session and was taken by port.c, or it has been answered. */
bool port_take_host(struct client *c, const char *bytes,
		    const struct http1_head *head); /* before the service's own names are checked */
bool port_take_path(struct client *c, const char *bytes, const struct http1_head *head);
/* Whether a credential in Authorization belongs to the service. */
bool port_is_ours(const char *text, size_t len);
/* Records how the client addresses the service, for links. */
void port_put_origin(struct client *c, const char *bytes, const struct http1_head *head);

/*
 * port.c: requests a connection from the runner; credentials are in the request's fields.  Takes the port, whose `out`
 * has the head.
 */
void port_ask(struct client *c, struct port *p, const struct http1_head *head);
struct port *port_new(struct client *c);
void port_close(struct port *p); /* NULL is allowed */
void port_on_answer(struct client *c, struct record *r, const struct message *m);
void port_on_event(struct port *p, uint32_t events);
/* Events of its client. */
void port_on_client(struct client *c, uint32_t events);
void port_on_deadline(struct client *c);
void ports_free_closed(struct front *f);

/* port_head.c: writes the head of a request; target: path and query for the server. */
void port_write_request(struct port *p, const char *bytes, const struct http1_head *head, struct http1_text host,
			const struct bytes target[2]);
/* Writes the head of the answer; p->is_chunked says how the body is framed. */
void port_write_answer(struct port *p, const char *bytes, const struct http1_head *answer, struct buf *out);

#endif
