/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries that the recorder answers: the runner sends them and goes on.  When the answer arrives, or the recorder dies,
 * a callback answers the client.
 */
#ifndef SERVER_RUNNER_RECORDED_H
#define SERVER_RUNNER_RECORDED_H

#include <brig/recorder.h>

#include "base/util.h"

#define RECORDED_MAX 256 /* queries pending at one time */

struct service;
struct request;
struct recorded_ask;

/*
 * rc and text as of brig_answer(): 1, and the callback frees text; or negative, and err is set.  req has the tag,
 * request_id, and the token's name and administrator flag; its message is gone.  id: as passed to recorded_ask().
 */
typedef void (*recorded_fn)(struct service *s, const struct request *req, const char *id, int rc, char *text,
			    const struct brig_error *err);

struct recorded {
	int epoll; /* of all pending queries; readable when recorded_step() has work */
	size_t n;
	struct recorded_ask *first;
};
#define RECORDED_INIT             \
	{                         \
		.epoll = FD_NONE, \
	}

int recorded_open(struct recorded *r);
void recorded_close(struct recorded *r);
/* If the query cannot be sent, the callback is called at once. */
void recorded_ask(struct service *s, const struct request *req, const struct brig_question *q, const char *id,
		  recorded_fn then);
void recorded_all_gone(struct service *s);
void recorded_step(struct service *s);

/* Answers with the reason why there is no document: 503 if the client should retry. */
void recorded_trouble(struct service *s, const struct request *req, const struct brig_error *err);

#endif
