/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answerers: processes that each answer one request which may take long, while the runner's loop goes on.
 *
 * One is a fork of the runner at the moment of the request, so that it has the request, the token and the library's handle as they
 * are, and nothing has to be passed or kept.  It has no descriptor of the runner's but its own end of a channel: what it needs
 * it opens, and it must not touch what the handle has open (runs, the keeper).  So whatever a handler of such a request uses must
 * find its files by their paths.  Its answer is that of the handler, unchanged, over the channel instead of the front's.
 *
 *	asked -> waits for its turn -> works -> done -> reaped
 *	              `------------------------^             its client has gone, the front has, the deadline is over: killed
 *
 * Few work at one time, and of one token fewer; the others are there already and wait for a word.  They die with the runner.
 *
 *   RULE S1  An ask that was taken is answered once: by the process, or for it.
 *   RULE S2  Nothing here waits: ends and answers are events of the loop.
 */
#ifndef SERVER_RUNNER_ANSWERERS_H
#define SERVER_RUNNER_ANSWERERS_H

#include <sys/queue.h>

#include "base/err.h"

#define ANSWERERS_MAX      32 /* processes */
#define ANSWERERS_AT_WORK  4
#define ANSWERERS_OF_TOKEN 2 /* of those */
#define ANSWERER_NS        (30 * NS_PER_SEC)

struct answerer;
struct request;
struct service;

TAILQ_HEAD(answerer_list, answerer);

struct answerers {
	struct answerer_list all; /* in the order in which they were asked */
	size_t n, n_at_work;
	int epoll; /* ends and answers */
};

typedef void (*answer_function)(struct service *s, struct request *req);

void answerers_init(struct answerers *a);
int answerers_open(struct answerers *a, struct brig_error *err);
/* Kills all; nobody is told. */
void answerers_release(struct answerers *a);

/* Has the request answered by answer() in a process of its own, or answers why not. */
void answerers_take(struct service *s, struct request *req, answer_function answer);
/* Something has happened: a->epoll is readable, or the time that answerers_patience() said has come. */
void answerers_go_on(struct service *s);
/* The milliseconds that may be waited, given what others wait for (-1: for ever). */
int answerers_patience(const struct answerers *a, int others_ms);

/* True: the tag was of one who waited for an answer, and has been answered. */
bool answerers_gone(struct service *s, uint32_t tag);
/* Nobody is there any more to be answered. */
void answerers_all_gone(struct service *s);
/* The service ends: who waits is told. */
void answerers_stop(struct service *s);

#endif
