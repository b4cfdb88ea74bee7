/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are queued until the reader takes them.  While the queue is long no new job is started, so a slow reader slows
 * the batch down and costs no memory.  In ordered mode a line waits in a window for earlier ones; a job whose line
 * would not fit into the window is not started either.  The job that the others wait for has been started, so nothing
 * waits forever.
 */
#include "cli/batch_output.h"

#include <string.h>

#include "cli/write.h"

#define BYTES_MAX     (32 * MiB) /* queued lines; one more is accepted while there are fewer */
#define WINDOW_FACTOR 8          /* for each slot, how many jobs may be ahead of the slowest one */
#define WINDOW_MIN    64

struct batch_held {
	struct buf line;
	bool is_made;
};

int batch_output_init(struct batch_output *o, int fd, bool is_ordered, size_t slots, struct brig_error *err)
{
	*o = (struct batch_output){ .fd = fd, .is_ordered = is_ordered, .queue = BUF_INIT(SIZE_MAX / 2) };
	if (!is_ordered)
		return 0;
	o->n_window = WINDOW_MIN + WINDOW_FACTOR * slots;
	o->window = calloc(o->n_window, sizeof(*o->window));
	return o->window ? 0 : err_nomem(err);
}

void batch_output_release(struct batch_output *o)
{
	for (size_t i = 0; i < o->n_window; i++)
		buf_release(&o->window[i].line);
	free(o->window);
	buf_release(&o->queue);
	*o = (struct batch_output){ .fd = FD_NONE };
}

bool batch_output_has_room(const struct batch_output *o, uint64_t number)
{
	if (o->is_ordered && number - o->next >= o->n_window)
		return false;
	return o->queue.len - o->queue_at + o->held < BYTES_MAX;
}

static void enqueue(struct batch_output *o, const struct buf *line)
{
	if (!o->error && buf_add(&o->queue, buf_str(line), line->len) < line->len)
		o->error = ENOMEM; /* a missing line must not look like a job without output */
}

/* Moves the lines whose turn has come to the queue. */
static void move_ready(struct batch_output *o)
{
	for (;;) {
		struct batch_held *h = &o->window[o->next % o->n_window];

		if (!h->is_made)
			return;
		enqueue(o, &h->line);
		o->held -= h->line.len;
		buf_release(&h->line);
		h->is_made = false;
		o->next++;
	}
}

void batch_output_put(struct batch_output *o, uint64_t number, struct buf *line)
{
	if (o->is_ordered) {
		struct batch_held *h = &o->window[number % o->n_window];

		h->line = *line;
		h->is_made = true;
		o->held += line->len;
		*line = (struct buf)BUF_INIT(0);
		move_ready(o);
	} else {
		enqueue(o, line);
	}
	batch_output_write(o, 0);
}

void batch_output_write(struct batch_output *o, int wait_ms)
{
	size_t len = o->queue.len - o->queue_at;
	ssize_t n;

	if (len == 0 || o->error)
		return;
	n = write_part(o->fd, o->queue.data + o->queue_at, len, -1, wait_ms);
	if (n < 0) {
		o->error = (int)-n;
		return;
	}
	o->queue_at += (size_t)n;
	if (o->queue_at == o->queue.len) {
		buf_release(&o->queue);
		o->queue.max = SIZE_MAX / 2;
		o->queue_at = 0;
	} else if (o->queue_at > o->queue.len / 2) {
		o->queue.len -= o->queue_at;
		memmove(o->queue.data, o->queue.data + o->queue_at, o->queue.len);
		o->queue_at = 0;
	}
}
