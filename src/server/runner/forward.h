/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions on other nodes of the queue (docs/QUEUE.md): a session stays on its node, and any front forwards requests to
 * it.
 *
 *	session_addresses   addresses of sessions in a bucket: sealed by the session's node, and again when it ends
 *	snapshot_addresses  the same for snapshots, which outlive their node's process
 *	forward             on a front: sends requests to the node; answers and events come back
 *	gathering           on a front: lists across all nodes
 *	forwarded           on a node: requests of other fronts, handled as if they came from its own front
 *
 *	client -> front: which node?  bucket -> "ask" to brig.node.ID -> handler of the route
 *	client <- front <- brig.front.ID <- "answer": events and the answer, as for a client of the node
 *
 * A node's ID is random and changes with each start of its runner, since sessions end with it.  A front states the
 * requester: the token's name, whether it is an administrator, and its quota.  The node trusts every front in its list
 * of peers, as it does for jobs.
 *
 * Core NATS does not guarantee delivery.  A front without a response probes repeatedly whether the node has the request
 * ("word", probe), and reports failure if nothing comes; a node executes each request once, even if it is repeated, and
 * drops those whose front has stopped probing.
 *
 *   RULE F1  Each request is answered once, and within bounded time if its node is gone.
 *   RULE F2  A node executes requests that are sealed by a front, addressed to it, recent, and not executed before.
 */
#ifndef SERVER_RUNNER_FORWARD_H
#define SERVER_RUNNER_FORWARD_H

#include <sys/queue.h>

#include "server/channel.h"
#include "server/runner/queue.h"

#define FORWARDS_MAX         1024
#define FORWARDS_BYTES_MAX   ((size_t)(256 * MiB)) /* of requests not yet acknowledged */
#define FORWARD_ISSUED_S     60                    /* tolerance for clock differences and transit time */
#define FORWARD_SUBJECT_NODE "brig.node."

struct request;
struct service;
struct server_session;
struct forward;
struct forwarded;
struct gathering;
struct snapshot;
struct snapshot_ask;
LIST_HEAD(snapshot_ask_list, snapshot_ask);
TAILQ_HEAD(forward_list, forward);
LIST_HEAD(gathering_list, gathering);
LIST_HEAD(forwarded_list, forwarded);
struct asking_front;
LIST_HEAD(asking_front_list, asking_front);

struct forwards {
	struct forward_list all;
	size_t n, bytes;
	uint64_t last_serial;
	struct gathering_list gatherings;
	uint64_t last_gathering;
	struct snapshot_ask_list snapshot_asks;
	size_t n_snapshot_asks;
	uint64_t last_snapshot_ask;
	/* on a node */
	struct forwarded_list forwarded;
	struct asking_front_list fronts;
	size_t n_forwarded, n_fronts;
	uint32_t last_tag;
};

/* Fields about the requester and the transport, which are not part of the request itself. */
bool forward_is_envelope(enum field f);
/* Whether requests of this route can be executed on another node. */
bool forward_is_possible(enum route route);

/* ---- forward.c ----------------------------------------------------------------------------------------------------- */

/*
 * True: the request concerns a session on another node, creates one there, or lists those of all nodes, and has been
 * taken.
 */
bool forward_takes(struct service *s, struct request *req);
/*
 * Whether a request with a link or a session's key may concern a session on another node; then forward_takes() takes
 * it, or the session does not exist.
 */
bool forward_lets_in(const struct service *s, struct request *req);
/* An answer from a node. */
void forward_on_told(struct service *s, const struct message *m);
void forward_tick(struct service *s);
bool forward_gone(struct service *s, uint32_t tag);
bool forward_cancel(struct service *s, uint32_t tag);
void forward_all_gone(struct service *s);
void forward_release(struct service *s);

/* Creates a session on a worker if the request says so; false: it does not. */
bool forward_places(struct service *s, struct request *req);
/* The session with this address was requested before: answers as if it had just been created. */
void forward_made(struct service *s, const struct request *req, const char *id, const struct queue_sealed *address);
/*
 * Forwards a request to this node; job: of a session to create there, or NULL.  If it cannot be forwarded, it has been
 * answered.
 */
struct queue_node;
struct job;
void forward_to(struct service *s, const struct request *req, const struct job *job, struct queue_node *node);
/* Forwards a request to this node; the answer becomes part of the list.  False: too many are pending. */
bool forward_for_list(struct service *s, const struct request *req, const struct queue_node *node,
		      struct gathering *of);

/* ---- gathering.c --------------------------------------------------------------------------------------------------- */

/* Lists across all nodes. */
bool gathering_is_possible(enum route route);
bool gathering_takes(struct service *s, const struct request *req);
/* Looks up an execution in the histories of other nodes; false: there are none. */
bool gathering_looks(struct service *s, const struct request *req, const char *id);
/* The recorder's answer to a request that is part of a list, as for recorded_fn. */
void gathering_recorded(struct service *s, const struct request *req, int rc, char *text, const struct brig_error *err);
/* A node's answer; that a node did not answer; and that one part of the list is done. */
void gathering_add(struct gathering *g, const struct message *m, const char *node_name, bool is_front);
void gathering_miss(struct gathering *g, const char *node_name);
void gathering_end_one(struct service *s, struct gathering *g);
bool gathering_gone(const struct service *s, uint32_t tag);
void gatherings_all_gone(struct service *s);
void gatherings_release(struct service *s);
/* gathering_put() adds an item that no node returned, taking ownership; gathering_has(): whether a node returned it. */
void gathering_put(struct gathering *g, json_t *item);
bool gathering_has(const struct gathering *g, const char *id);
bool gathering_is_of(const struct gathering *g, uint32_t tag);
void gathering_all_gone(struct gathering *g);

/* ---- forwarded.c --------------------------------------------------------------------------------------------------- */

/* Subscribes through a new link. */
void forwarded_listen(struct service *s);
void forwarded_on_told(struct service *s, const struct message *m);
/* Whether a tag belongs to a request of another front, to which answers then go. */
bool forwarded_is_tag(uint32_t tag);
void forwarded_send(struct service *s, const struct record *r);
void forwarded_tick(struct service *s);
void forwarded_release(struct service *s);

/* ---- session_addresses.c ------------------------------------------------------------------------------------------- */

/* Publishes the session's address.  False: there is no queue or no broker, so do not wait for it. */
bool session_address_put(struct server_session *x);
void session_address_end(struct server_session *x);
void session_addresses_tick(struct service *s);
/* Publishes periodically that this front is alive. */
void front_beat(struct service *s);
/* Name of this node on the queue; NULL: there is no queue. */
const char *session_node_name(const struct service *s);

/* ---- snapshot_addresses.c ------------------------------------------------------------------------------------------ */

/* As for sessions. */
bool snapshot_address_put(struct service *s, struct snapshot *x);
void snapshot_addresses_tick(struct service *s);
/* True: the request concerns a snapshot on another node, or a session from one, and has been taken. */
bool snapshot_asks_take(struct service *s, const struct request *req);
bool snapshot_asks_place(struct service *s, const struct request *req);
bool snapshot_asks_gone(struct service *s, uint32_t tag);
void snapshot_asks_release(struct service *s);

#endif
