/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer of package sets, compiled programs and environments between nodes: see queue_exchange.c. */
#ifndef SERVER_RUNNER_QUEUE_EXCHANGE_H
#define SERVER_RUNNER_QUEUE_EXCHANGE_H

#include "base/buf.h"
#include "server/message.h"

#define QUEUE_SUBJECT_GIVE "brig.give."
#define QUEUE_SETS_MAX     64 /* of each kind, in a node's entry */
#define QUEUE_SET_HEX      32

struct service;
struct delivery;
struct queue_sealed;

/* To be called with a new handle or a new channel: registers for missing items, and for requests of other nodes. */
void exchange_begin(struct service *s);
void exchange_release(struct service *s);
/* Called once per turn; returns the poll timeout in milliseconds. */
int exchange_step(struct service *s, int wait_ms);
/* True: the message was for this module. */
bool exchange_on_told(struct service *s, const char *subject, const struct message *m);
/* Adds what this node has to its entry. */
void exchange_put(struct service *s, struct buf *m);

/*
 * Fetches an environment, if a node offers it; word: as in entries.  When it has arrived, worker_look_at_classes()
 * finds it.
 */
void exchange_get_environment(struct service *s, const char *name, const char *word);
/* Whether fetching it has failed recently. */
bool exchange_is_vain(const struct service *s, const char *word);

/* A job with packages has succeeded here, so its package set is on this node. */
void sets_note(struct service *s, const struct message *job);
/* Whether to return a job, because another node with a free slot has its package set. */
bool sets_are_elsewhere(const struct service *s, const struct message *job, const char *ack);

#endif
