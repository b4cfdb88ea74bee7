/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to servers in sessions of other nodes: bytes between a front and the node that has the session.
 *
 *	client - front process - socket pair - runner of the front = brokers = runner of the node - socket - server in the cell
 *
 * A tunnel has two ends, and the name of the request that opened it (forward.h): the front's id and its number.  Each end reads its
 * descriptor, and sends what it read in sealed pieces ("bytes"), each with its place in the stream; the other end writes them to its
 * own, and says how far it is.  No end sends more than TUNNEL_WINDOW bytes that were not written yet, so nothing grows.  Core NATS
 * may lose a piece: then the places do not fit, and the connection ends, as any connection may.
 *
 *   RULE T1  Bytes are those of the other end, in their order and whole, up to where the connection ends.
 *   RULE T2  An end whose other end says nothing for TUNNEL_SILENCE_NS is closed.
 */
#ifndef SERVER_RUNNER_TUNNEL_H
#define SERVER_RUNNER_TUNNEL_H

#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "server/message.h"

#define TUNNELS_MAX       256
#define TUNNEL_WINDOW     ((size_t)(256 * KiB))
#define TUNNEL_PIECE      ((size_t)(32 * KiB))
#define TUNNEL_SAYS_NS    (5 * NS_PER_SEC) /* between two words to the other end that this one is there */
#define TUNNEL_SILENCE_NS (30 * NS_PER_SEC)

struct service;
struct tunnel;
TAILQ_HEAD(tunnel_list, tunnel);

struct tunnels {
	struct tunnel_list all;
	size_t n;
	int epoll; /* of all descriptors */
};

/* What a tunnel is called, and where its other end is. */
struct tunnel_name {
	const char *front; /* the id of the front */
	uint64_t serial;
	const char *subject; /* of the other end */
	const char *key;     /* that the other end seals with */
};

void tunnels_init(struct tunnels *t);
int tunnels_open(struct tunnels *t, struct brig_error *err);
void tunnels_close(struct service *s);
/* Takes the descriptor, of a stream socket.  False: there are too many, or no memory, and it is still the caller's. */
bool tunnel_begin(struct service *s, const struct tunnel_name *name, int *fd);
void tunnel_on_told(struct service *s, const struct message *m);
void tunnels_go_on(struct service *s); /* the epoll is readable */
void tunnels_tick(struct service *s);

#endif
