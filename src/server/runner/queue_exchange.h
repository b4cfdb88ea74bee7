/* SPDX-License-Identifier: Apache-2.0 */
/* Package sets, compiled programs and environments that nodes give each other: see queue_exchange.c. */
#ifndef SERVER_RUNNER_QUEUE_EXCHANGE_H
#define SERVER_RUNNER_QUEUE_EXCHANGE_H

#include "base/buf.h"
#include "server/message.h"

#define QUEUE_SUBJECT_GIVE "brig.give."
#define QUEUE_SETS_MAX     64 /* that are told others in an entry, of each kind */
#define QUEUE_SET_HEX      32

struct service;
struct delivery;
struct queue_sealed;

/* The handle is a new one, or the channel is: who lacks something asks here, and others are heard. */
void exchange_begin(struct service *s);
void exchange_release(struct service *s);
/* Once in a turn: the milliseconds that may be waited. */
int exchange_step(struct service *s, int wait_ms);
/* True: it was for us. */
bool exchange_on_told(struct service *s, const char *subject, const struct message *m);
/* For the entry of this node: what it has. */
void exchange_put(struct service *s, struct buf *m);

/* Asks for the environment of this name, if somebody offers it; word: as in entries.  It is here when worker_look_at_classes() sees it. */
void exchange_get_environment(struct service *s, const char *name, const char *word);
/* Whether it was asked for in vain a moment ago. */
bool exchange_is_vain(const struct service *s, const char *word);

/* A job that names packages has ended well here: its set is here, too. */
void sets_note(struct service *s, const struct message *job);
/* Whether this job is to go back, because its set is not here but at another node that has a place. */
bool sets_are_elsewhere(const struct service *s, const struct message *job, const char *ack);

#endif
