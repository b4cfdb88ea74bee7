/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks that the recorder answers: they are sent there, and the runner goes on; when the answer has come, or the recorder has
 * died, a function makes of it what the client gets.
 */
#ifndef SERVER_RUNNER_RECORDED_H
#define SERVER_RUNNER_RECORDED_H

#include <brig/recorder.h>

#include "base/util.h"

#define RECORDED_MAX 256 /* asks that wait for the recorder at one time */

struct service;
struct request;
struct recorded_ask;

/*
 * rc and text as of brig_answer(): 1, and text is the function's to free; or negative, and err.  ask has tag, request_id, and of
 * the token its name and whether it is an administrator's; its message is gone.  id: as it was given.
 */
typedef void (*recorded_fn)(struct service *s, const struct request *req, const char *id, int rc, char *text,
			    const struct brig_error *err);

struct recorded {
	int epoll; /* of all that wait; readable when there is something for recorded_step() */
	size_t n;
	struct recorded_ask *first;
};
#define RECORDED_INIT             \
	{                         \
		.epoll = FD_NONE, \
	}

int recorded_open(struct recorded *r);
void recorded_close(struct recorded *r);
/* What cannot be asked the function is told at once. */
void recorded_ask(struct service *s, const struct request *req, const struct brig_question *q, const char *id,
		  recorded_fn then);
void recorded_all_gone(struct service *s);
void recorded_step(struct service *s);

/* Answers with why there is no document: 503 if it is to be asked again. */
void recorded_trouble(struct service *s, const struct request *req, const struct brig_error *err);

#endif
