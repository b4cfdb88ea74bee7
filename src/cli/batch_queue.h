/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig batch --queue`: jobs run on workers of a queue.
 *
 * The command itself talks to no broker and holds no key: it starts its own front, `brig serve --queue` at a socket in
 * a folder that goes with it, and has the jobs run through that one as through any service (service_job.c).  So a batch
 * on a queue is a batch like any other: its memory is flat, it can be resumed, and a full queue makes it slower.  The
 * front ends with the command, whatever ends that.
 */
#ifndef CLI_BATCH_QUEUE_H
#define CLI_BATCH_QUEUE_H

#include "cli/queue.h"
#include "cli/service.h"

struct batch_queue {
	int pid;   /* 0: none was started */
	int input; /* of the front, which ends with it */
	char dir[64];
};

/* Starts it, and waits until it can be asked.  quiet: nothing is shown of what it says. */
int batch_queue_start(struct batch_queue *q, const char *url, const struct queue_values *with, const char *state,
		      struct service_place *ret, struct brig_error *err);
void batch_queue_end(struct batch_queue *q);

#endif
