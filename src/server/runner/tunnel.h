/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels: connections to servers in sessions of other nodes, between a front and the session's node.
 *
 *	client - front process - socket pair - runner of the front = brokers = runner of the node - socket - server in the cell
 *
 * A tunnel has two ends and is named after the request that opened it (forward.h): the front's id and a serial number.
 * Each end reads from its socket and sends sealed messages ("bytes") with the data and its offset in the stream; the
 * other end writes the data to its own socket and acknowledges how much it has written.  An end sends at most
 * TUNNEL_WINDOW unacknowledged bytes, so queues are bounded.  Core NATS may lose a message; then the offsets do not
 * match and the connection is closed.
 *
 *   RULE T1  The bytes of the other end arrive in order and without gaps, up to the point where the connection ends.
 *   RULE T2  An end that receives nothing from the other for TUNNEL_SILENCE_NS closes the connection.
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
#define TUNNEL_SAYS_NS    (5 * NS_PER_SEC) /* interval of keep-alives */
#define TUNNEL_SILENCE_NS (30 * NS_PER_SEC)

struct service;
struct tunnel;
TAILQ_HEAD(tunnel_list, tunnel);

struct tunnels {
	struct tunnel_list all;
	size_t n;
	int epoll; /* of all sockets */
};

/* Name of a tunnel and address of its other end. */
struct tunnel_name {
	const char *front; /* id of the front */
	uint64_t serial;
	const char *subject; /* where the other end listens */
	const char *key;     /* public key with which the other end seals */
};

void tunnels_init(struct tunnels *t);
int tunnels_open(struct tunnels *t, struct brig_error *err);
void tunnels_close(struct service *s);
/* Takes a stream socket.  False: too many tunnels, or out of memory; the socket stays the caller's. */
bool tunnel_begin(struct service *s, const struct tunnel_name *name, int *fd);
void tunnel_on_told(struct service *s, const struct message *m);
void tunnels_go_on(struct service *s); /* to be called when the epoll descriptor is readable */
void tunnels_tick(struct service *s);

#endif
