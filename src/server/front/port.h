/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers of sessions, as clients of the service reach them.
 *
 *	port_access.c  which port of which session a request is for, and by what its client may
 *	port_head.c    heads of requests for such a server, and of its answers for the client
 *	port.c         the connection: bytes both ways
 *
 * A server has two addresses.
 *
 *	/v1/sessions/ID/ports/PORT/...   on the service's own origin, where the console is, too.  What the server sends is a stranger's:
 *	                                 a page of it must not act as one of the service.  So it has an origin of its own (a policy of
 *	                                 "sandbox"), sets no cookie and none of what browsers remember for a whole origin, and redirects
 *	                                 nobody out of its own paths, for a client would send its token there again.
 *	PORT-ID.DOMAIN                   a host, and so an origin, of its own, for browsers.  Cookies are the server's, but for one that the
 *	                                 service sets: it lets a browser in that has opened a link (/v1/sessions/ID/links).  It goes to
 *	                                 nobody else, and no page of another origin can use it.
 *
 *   RULE P1  Credentials of the service never reach the server: by whatever line they came, it is left out.
 *   RULE P2  Heads are written anew, from lines that were read strictly, and so is how long bodies are: nobody's framing is passed on.
 *   RULE P3  A connection to a server is for one request, or one WebSocket.  What a server says unasked is for nobody.
 *   RULE P4  What waits for either side is bounded; the other one is not read meanwhile.
 */
#ifndef SERVER_FRONT_PORT_H
#define SERVER_FRONT_PORT_H

#include "server/front/front.h"

#define PORT_WINDOW      (128 * KiB) /* what waits for one side before the other is not read any more */
#define PORT_HEAD_MAX    (48 * KiB)  /* of a head that was written anew */
#define PORTS_OF_SESSION 64          /* connections at one time */
#define PORT_INTERIM_MAX 16          /* answers of 1xx before the one that counts */
#define PORT_COOKIE      "brig-port"
#define PORT_PARAMETER   "brig_token"

enum port_state {
	PORT_ASKED,  /* the runner has it */
	PORT_HEAD,   /* the server is to answer; meanwhile the request's body is passed on */
	PORT_BODY,   /* the answer's body */
	PORT_TUNNEL, /* a WebSocket */
};

struct port {
	struct source source;
	struct client *client; /* NULL: it is over, and freed at the end of the round */
	LIST_ENTRY(port) in_all;
	struct port *next_dead;
	enum port_state state;
	char id[65];
	uint16_t number;
	bool by_host, by_browser /* let in by nothing that a page of a stranger's could not send, too */;
	bool wants_upgrade, is_of_head, expects_continue, only_check;
	char link[96];  /* as the cookie has it; "": none */
	struct buf out; /* for the server */
	size_t out_at;
	struct buf in; /* its head, as far as it has come */
	size_t seen;
	unsigned n_interim;
	struct http1_body_reader reader; /* of its answer */
	bool is_chunked;                 /* as the client gets it */
	char redirect[4096];             /* the address without the link */
};

/* port_access.c: true: the request is for a server of a session, and port.c has it, or it has been answered. */
bool port_take_host(struct client *c, const char *bytes,
		    const struct http1_head *head); /* before the service's names are looked at */
bool port_take_path(struct client *c, const char *bytes, const struct http1_head *head);
/* Whether a credential in Authorization is one of the service. */
bool port_is_ours(const char *text, size_t len);
/* How the client calls the service, for links. */
void port_put_origin(struct client *c, const char *bytes, const struct http1_head *head);

/* port.c: asks for a connection; what it may use is among the request's fields.  Takes the port, whose out has the head. */
void port_ask(struct client *c, struct port *p, const struct http1_head *head);
struct port *port_new(struct client *c);
void port_close(struct port *p); /* NULL is fine */
void port_on_answer(struct client *c, struct record *r, const struct message *m);
void port_on_event(struct port *p, uint32_t events);
/* Of its client. */
void port_on_client(struct client *c, uint32_t events);
void port_on_deadline(struct client *c);
void ports_free_closed(struct front *f);

/* port_head.c: the head of a request; target: path and query as the server is to see them. */
void port_write_request(struct port *p, const char *bytes, const struct http1_head *head, struct http1_text host,
			const struct bytes target[2]);
/* Of its answer; in what form the body follows is in p->is_chunked. */
void port_write_answer(struct port *p, const char *bytes, const struct http1_head *answer, struct buf *out);

#endif
