/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig batch --queue`: jobs run on workers of a queue.
 *
 * The command itself talks to no broker and holds no key: it starts its own front, `brig serve --queue` at a socket in
 * a temporary directory, and runs the jobs through that as through any service (service_job.c).  So a batch on a queue
 * is like any other: its memory use is bounded, it can be resumed, and a full queue slows it down.  The front ends with
 * the command, however that ends.
 */
#ifndef CLI_BATCH_QUEUE_H
#define CLI_BATCH_QUEUE_H

#include "cli/queue.h"
#include "cli/service.h"

struct batch_queue {
	int pid;   /* 0: not started */
	int input; /* the front's standard input; the front exits when it closes */
	char dir[64];
};

/* Starts the front, and waits until it accepts requests.  quiet: discards its messages. */
int batch_queue_start(struct batch_queue *q, const char *url, const struct queue_values *with, const char *state,
		      struct service_place *ret, struct brig_error *err);
void batch_queue_end(struct batch_queue *q);

#endif
