/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of other nodes of the queue (docs/QUEUE.md): each stays where it is, and any front forwards to it.
 *
 *	session_addresses  where a session is, in a bucket: sealed by the node that has it, and again when it ends
 *	snapshot_addresses  likewise snapshots, which outlive the processes of their node
 *	forward            of a front: asks go to the node, answers and events come back
 *	gathering          of a front: lists of what all nodes have
 *	forwarded          of a node: asks of other fronts, as if they had been asked here
 *
 *	client -> front: who has it?  bucket -> "ask" to brig.node.ID -> handler of the route
 *	client <- front <- brig.front.ID <- "answer": events, and the answer, as they would have gone to a client of the node
 *
 * A node's ID is random and made anew with each life of its runner, since sessions end with it.  A front says who asks: its token's
 * name, whether that is an administrator, and its quota; the node believes every front in its list, as it does for jobs.
 *
 * Core NATS promises nothing.  A front that hears nothing asks again and again whether the node has the request ("word", probe), and
 * says so if nothing comes; a node does each request once, whoever repeats it, and forgets those whose front does not ask any more.
 *
 *   RULE F1  Each ask is answered once, and in bounded time if its node is away.
 *   RULE F2  A node does what is sealed by a front, for it, lately, and not done before.
 */
#ifndef SERVER_RUNNER_FORWARD_H
#define SERVER_RUNNER_FORWARD_H

#include <sys/queue.h>

#include "server/channel.h"
#include "server/runner/queue.h"

#define FORWARDS_MAX         1024
#define FORWARDS_BYTES_MAX   ((size_t)(256 * MiB)) /* of asks that were not heard of yet */
#define FORWARD_ISSUED_S     60                    /* that clocks may differ, and a request may take */
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
	/* of a node */
	struct forwarded_list forwarded;
	struct asking_front_list fronts;
	size_t n_forwarded, n_fronts;
	uint32_t last_tag;
};

/* Fields that say who asks, and how, and are no part of what is asked. */
bool forward_is_envelope(enum field f);
/* Whether such a request can be done at another node. */
bool forward_is_possible(enum route route);

/* ---- forward.c ----------------------------------------------------------------------------------------------------- */

/* True: the request is of a session of another node, or for one, or for the sessions of all, and has been taken. */
bool forward_takes(struct service *s, struct request *req);
/* Whether a request with a link, or the key of a session, may be of a session elsewhere: then forward_takes() takes it, or there is no such session. */
bool forward_lets_in(const struct service *s, struct request *req);
/* A node answers. */
void forward_on_told(struct service *s, const struct message *m);
void forward_tick(struct service *s);
bool forward_gone(struct service *s, uint32_t tag);
bool forward_cancel(struct service *s, uint32_t tag);
void forward_all_gone(struct service *s);
void forward_release(struct service *s);

/* A session is made on a worker, if that is asked for; false: it is not. */
bool forward_places(struct service *s, struct request *req);
/* The session of this address was asked for before, and is told as one that was just made. */
void forward_made(struct service *s, const struct request *req, const char *id, const struct queue_sealed *address);
/* Something that this node has, or, with a job, a session that is to be made there; it has been answered if it cannot go there. */
struct queue_node;
struct job;
void forward_to(struct service *s, const struct request *req, const struct job *job, struct queue_node *node);
/* The ask goes to this node, and what it answers to the list.  False: too many are on their way. */
bool forward_for_list(struct service *s, const struct request *req, const struct queue_node *node,
		      struct gathering *of);

/* ---- gathering.c --------------------------------------------------------------------------------------------------- */

/* Lists of what all nodes have. */
bool gathering_is_possible(enum route route);
bool gathering_takes(struct service *s, const struct request *req);
/* An entry of the history, which is not in that of this node, is looked for in those of others; false: there are none. */
bool gathering_looks(struct service *s, const struct request *req, const char *id);
/* What the recorder has answered to a request that is a part of one, as of recorded_fn. */
void gathering_recorded(struct service *s, const struct request *req, int rc, char *text, const struct brig_error *err);
/* What one node answers; that it does not; and that it is done with. */
void gathering_add(struct gathering *g, const struct message *m, const char *node_name, bool is_front);
void gathering_miss(struct gathering *g, const char *node_name);
void gathering_end_one(struct service *s, struct gathering *g);
bool gathering_gone(const struct service *s, uint32_t tag);
void gatherings_all_gone(struct service *s);
void gatherings_release(struct service *s);
/* One that no node tells of, which is taken; whether somebody has told of it. */
void gathering_put(struct gathering *g, json_t *item);
bool gathering_has(const struct gathering *g, const char *id);
bool gathering_is_of(const struct gathering *g, uint32_t tag);
void gathering_all_gone(struct gathering *g);

/* ---- forwarded.c --------------------------------------------------------------------------------------------------- */

/* There is a new link. */
void forwarded_listen(struct service *s);
void forwarded_on_told(struct service *s, const struct message *m);
/* Whether a tag is of a request of another front's: then what goes back goes there. */
bool forwarded_is_tag(uint32_t tag);
void forwarded_send(struct service *s, const struct record *r);
void forwarded_tick(struct service *s);
void forwarded_release(struct service *s);

/* ---- session_addresses.c ------------------------------------------------------------------------------------------- */

/* It begins: false: there is no queue, or no broker, and nobody has to be waited for. */
bool session_address_put(struct server_session *x);
void session_address_end(struct server_session *x);
void session_addresses_tick(struct service *s);
/* Of a front, once in a while: that it is there. */
void front_beat(struct service *s);
/* Where it is: NULL: here, or there is no queue. */
const char *session_node_name(const struct service *s);

/* ---- snapshot_addresses.c ------------------------------------------------------------------------------------------ */

/* As of sessions. */
bool snapshot_address_put(struct service *s, struct snapshot *x);
void snapshot_addresses_tick(struct service *s);
/* True: it is about a snapshot of another node, or a session of one, and has been taken. */
bool snapshot_asks_take(struct service *s, const struct request *req);
bool snapshot_asks_place(struct service *s, const struct request *req);
bool snapshot_asks_gone(struct service *s, uint32_t tag);
void snapshot_asks_release(struct service *s);

#endif
