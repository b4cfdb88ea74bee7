/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answerers: child processes that each answer one potentially slow request, so that the runner's loop does not block.
 *
 * An answerer is a fork of the runner at the time of the request, so it has copies of the request, the token and the
 * library's handle, and nothing needs to be serialised.  Of the runner's descriptors it keeps only its end of a
 * channel.  It must open what it needs and must not touch what the handle has open (runs, the keeper); handlers run
 * this way must therefore find their files by path.  It runs the ordinary handler, whose answer goes to this channel
 * instead of the front's.
 *
 *	asked -> waits for its turn -> works -> done -> reaped
 *	              `------------------------^             killed: client or front has gone, or the deadline has passed
 *
 * Few work at one time, and fewer for one token; the others have been forked already and wait for a message to start.
 * All die with the runner.
 *
 *   RULE S1  A request is answered exactly once: by the process, or on its behalf.
 *   RULE S2  Nothing here blocks: answers and exits are events of the loop.
 */
#ifndef SERVER_RUNNER_ANSWERERS_H
#define SERVER_RUNNER_ANSWERERS_H

#include <sys/queue.h>

#include "base/err.h"

#define ANSWERERS_MAX      32 /* processes */
#define ANSWERERS_AT_WORK  4
#define ANSWERERS_OF_TOKEN 2 /* of those at work */
#define ANSWERER_NS        (30 * NS_PER_SEC)

struct answerer;
struct request;
struct service;

TAILQ_HEAD(answerer_list, answerer);

struct answerers {
	struct answerer_list all; /* in the order of their requests */
	size_t n, n_at_work;
	int epoll; /* for answers and exits */
};

typedef void (*answer_function)(struct service *s, struct request *req);

void answerers_init(struct answerers *a);
int answerers_open(struct answerers *a, struct brig_error *err);
/* Kills all without answering. */
void answerers_release(struct answerers *a);

/* Has answer() handle the request in a child process, or answers why that is not possible. */
void answerers_take(struct service *s, struct request *req, answer_function answer);
/* To be called when a->epoll is readable or the time of answerers_patience() has passed. */
void answerers_go_on(struct service *s);
/* Poll timeout in milliseconds, at most others_ms (-1: none). */
int answerers_patience(const struct answerers *a, int others_ms);

/* The client has gone.  True: the tag belonged to an answerer, which has been ended and its request answered. */
bool answerers_gone(struct service *s, uint32_t tag);
/* The front has gone: ends all. */
void answerers_all_gone(struct service *s);
/* The service ends: answers all requests. */
void answerers_stop(struct service *s);

#endif
