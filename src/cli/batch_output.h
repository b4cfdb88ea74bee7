/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the lines of a batch, as they are made or in the order of the jobs, without blocking on the reader. */
#ifndef CLI_BATCH_OUTPUT_H
#define CLI_BATCH_OUTPUT_H

#include "base/buf.h"
#include "base/err.h"

struct batch_held; /* a line that waits for earlier ones */

struct batch_output {
	int fd;
	bool is_ordered;
	int error;        /* errno of a failed write, after which nothing is written */
	struct buf queue; /* not yet written, from queue_at on */
	size_t queue_at;
	struct batch_held *window; /* lines of n_window jobs, from the next one to be written */
	size_t n_window;
	uint64_t next; /* number of the job whose line is written next */
	size_t held;   /* bytes of lines that wait for earlier ones */
};

/* slots: number of jobs that run at once. */
int batch_output_init(struct batch_output *o, int fd, bool is_ordered, size_t slots, struct brig_error *err);
void batch_output_release(struct batch_output *o);
/* Whether there is room for the line of this job, in the window and in memory. */
bool batch_output_has_room(const struct batch_output *o, uint64_t number);
/* Takes the text of a line. */
void batch_output_put(struct batch_output *o, uint64_t number, struct buf *line);
static inline bool batch_output_is_waiting(const struct batch_output *o)
{
	return !o->error && o->queue.len > o->queue_at;
}
/* Writes as much as the reader accepts, waiting at most wait_ms: 0 does not wait, -1 waits forever. */
void batch_output_write(struct batch_output *o, int wait_ms);

#endif
