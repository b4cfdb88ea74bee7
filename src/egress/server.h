/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy's inside, shared by server.c (the loop), conn.c (one connection until it is connected) and relay.c (after). */
#ifndef EGRESS_SERVER_H
#define EGRESS_SERVER_H

#include "egress/names.h"
#include "egress/request.h"
#include "egress/resolve.h"
#include "egress/table.h"

#define OPEN_MAX_CONNS    128 /* at once; more wait in the socket's queue */
#define PIPE_BYTES        ((size_t)32768)
#define HEAD_NS           (10 * NS_PER_SEC)
#define LOOKUP_NS         (15 * NS_PER_SEC)
#define CONNECT_NS        (15 * NS_PER_SEC) /* for all addresses together */
#define LINGER_NS         (2 * NS_PER_SEC)
#define LINGER_BYTES      ((size_t)65536)
#define DRAIN_NS          (1 * NS_PER_SEC) /* after the program's end, for what it sent before */
#define ATTEMPTS_PER_CONN 8                /* so many attempts may a run make for each of its connections */
#define LOOKUPS_PER_CONN  64               /* ... and so many names ask for */
#define SOCKET_BUFFER     131072           /* kernel memory that belongs to no cell: bounded, not tuned */

struct server {
	const struct rule_list *rules;
	uint64_t connections_max, bytes_max;
	struct table *table;
	struct resolver *resolver;
	struct names names;
	int listener[EGRESS_PLACES_MAX]; /* the proxy's own, and one for each address and port that stand for a host */
	size_t n_listeners;
	int lookups; /* datagrams; FD_NONE: no longer */
	int epoll, channel;
	int doors;      /* an epoll set of all listeners */
	bool listening; /* which is in the first one, as long as there is room for connections */
	bool draining;
	uint64_t drain_until;
	uint64_t attempts, n_lookups, connections, bytes;
	uint64_t tickets;
	struct conn *conn[OPEN_MAX_CONNS];
	size_t n_conns;
};

enum conn_state {
	CONN_HEAD,    /* the request is coming in */
	CONN_LOOKUP,  /* the resolver has its name */
	CONN_CONNECT, /* to one of its addresses */
	CONN_RELAY,
	CONN_LINGER, /* the answer is out; what still comes is thrown away, so that the client gets to read it */
	CONN_DEAD,   /* freed at the end of the round */
};

/* Bytes on their way; they lie in data[first .. first + len). */
struct pipe {
	char data[PIPE_BYTES];
	size_t first, len;
	bool ended;  /* no more will come in */
	bool closed; /* and the receiver knows */
};

struct conn;

struct end {
	struct conn *conn;
	int fd;
	uint32_t events; /* what epoll watches for */
};

struct conn {
	struct server *server;
	struct end client, host;
	enum conn_state state;
	uint64_t deadline; /* 0: none */
	uint64_t ticket;
	bool socks, greeted;
	bool direct; /* no request: the address that the program connected to says which host is meant */
	struct request req;
	size_t seen;    /* of the head */
	struct pipe up; /* client to host */
	struct pipe down;
	struct http1_body_reader body; /* of a forwarded request */
	size_t sendable;               /* of up: what belongs to it */
	bool request_over;             /* forwarded whole: nothing more of the client's goes to the host */
	size_t lingered;
	struct address address[RESOLVE_ADDRESSES_MAX];
	size_t n_addresses, next_address;
	struct table_row *row; /* of a connection that was made; NULL: the table is full */
};

/* server.c */
_Noreturn void server_run(struct server *s);
/* Has epoll watch a conn's ends for what it can use. */
void conn_watch(struct conn *c);
void conn_close(struct conn *c);

/* conn.c */
struct conn *conn_new(struct server *s, int fd);
/* Of one that was made to an address of the cell: as if its host and port had been asked for. */
void conn_begin(struct conn *c);
void conn_on_event(struct conn *c, const struct end *e);
void conn_on_answer(struct conn *c, const struct answer *a);
void conn_on_deadline(struct conn *c);

/* lookups.c */
void lookups_serve(struct server *s);

/* relay.c */
void pipe_put(struct pipe *p, const char *bytes, size_t len);
size_t pipe_room(const struct pipe *p);
void pipe_drop(struct pipe *p, size_t len);
/* Reads what there is room for.  1, 0 if there is nothing now, -1 if the connection is broken; sets ended. */
int pipe_fill(struct pipe *p, int fd, size_t max);
/* Sends the first max bytes as far as they go.  How many; -1: broken. */
ssize_t pipe_flush(struct pipe *p, int fd, size_t max);
/* What the run may still move. */
size_t relay_bytes_left(const struct server *s);
void relay_begin(struct conn *c);
void relay(struct conn *c);
void relay_linger(struct conn *c);

#endif
