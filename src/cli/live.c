/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - output while the program runs
 *
 * On a file or a pipe the program's bytes are written unchanged.  On a terminal they go through the sanitizer, unless
 * --raw.  If the reader closes standard output (EPIPE) the run is cancelled, since the rest would not be seen.  If
 * standard error is closed the run continues: the result is still wanted.
 *
 * A slow reader, or one that does not read at all, must not keep the run from being monitored: its limits apply
 * regardless.  So callbacks wait for it only briefly; what it does not accept is queued, retried at the next output or
 * sample, and waited for when the run is over and its verdict is fixed.
 *
 * --watch writes one line per sample to standard error; on a terminal it is one updating line, which is cleared before
 * program output is shown there.
 */
#include "cli/live.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cancel.h"
#include "cli/ui.h"
#include "cli/write.h"

#define SLICE       8192 /* of program output made safe at a time */
#define QUEUE_MAX   (64 * MiB)
#define PATIENCE_MS 20 /* for a reader that is only slightly slower than the program */
#define ERASE_LINE  "\r\033[K"

static void stream_init(struct live_stream *s, int fd, bool raw)
{
	*s = (struct live_stream){ .fd = fd, .is_terminal = isatty(fd), .queue = BUF_INIT(QUEUE_MAX) };
	s->escape = s->is_terminal && !raw;
}

void live_init(struct live *live, int cancel_fd, bool raw, bool watch)
{
	*live = (struct live){ .cancel_fd = cancel_fd, .watch = watch };
	stream_init(&live->out, STDOUT_FILENO, raw);
	stream_init(&live->err, STDERR_FILENO, raw);
}

static void give_up(struct live *live, struct live_stream *s, int error)
{
	s->error = error;
	buf_release(&s->queue);
	s->queue_at = 0;
	if (s == &live->out)
		cancel_now();
}

/* Writes from the queue as much as possible; true if it is empty. */
static bool drain(struct live *live, struct live_stream *s, int wait_ms)
{
	size_t len = s->queue.len - s->queue_at;
	ssize_t n;

	if (len == 0 || s->error)
		return true;
	n = write_part(s->fd, s->queue.data + s->queue_at, len, live->cancel_fd, wait_ms);
	if (n < 0) {
		give_up(live, s, (int)-n);
		return true;
	}
	s->queue_at += (size_t)n;
	if ((size_t)n < len)
		return false;
	buf_release(&s->queue);
	s->queue_at = 0;
	return true;
}

/* Queues the rest; waits for the reader if the queue is full. */
static void enqueue(struct live *live, struct live_stream *s, const char *data, size_t len)
{
	size_t kept = buf_add(&s->queue, data, len);

	if (kept == len || s->error)
		return;
	if (s->queue.no_memory) {
		give_up(live, s, ENOMEM);
		return;
	}
	(void)drain(live, s, -1);
	if (!s->error)
		(void)buf_add(&s->queue, data + kept, len - kept);
}

static void put(struct live *live, struct live_stream *s, const char *data, size_t len)
{
	ssize_t n = 0;

	if (s->error || len == 0)
		return;
	s->mid_line = data[len - 1] != '\n';
	if (drain(live, s, PATIENCE_MS))
		n = write_part(s->fd, data, len, live->cancel_fd, PATIENCE_MS);
	if (n < 0)
		give_up(live, s, (int)-n);
	else
		enqueue(live, s, data + n, len - (size_t)n);
}

void live_put(struct live *live, const char *data, size_t len)
{
	put(live, &live->out, data, len);
}

static void put_escaped(struct live *live, struct live_stream *s, const char *data, size_t len)
{
	AUTO_BUF safe = BUF_INIT(SANITIZE_GROWTH * (SLICE + sizeof(s->sanitizer.held)));

	for (size_t at = 0; at < len; at += SLICE) {
		safe.len = 0;
		sanitize(&s->sanitizer, data + at, len - at < SLICE ? len - at : SLICE, &safe);
		put(live, s, buf_str(&safe), safe.len);
	}
}

void live_clear_line(struct live *live)
{
	if (!live->watch_shown)
		return;
	live->watch_shown = false;
	put(live, &live->err, ERASE_LINE, strlen(ERASE_LINE));
	live->err.mid_line = false;
}

void live_on_output(void *user, enum brig_stream stream, const void *data, size_t len)
{
	struct live *live = user;
	struct live_stream *s = stream == BRIG_STDERR ? &live->err : &live->out;

	if (s->is_terminal)
		live_clear_line(live);
	if (s->escape)
		put_escaped(live, s, data, len);
	else
		put(live, s, data, len);
}

static void show_sample(struct live *live, const struct brig_sample *sample)
{
	bool in_place = live->err.is_terminal;
	char at[32], cpu[32], memory[32], output[32];
	AUTO_BUF line = BUF_INIT(512);

	buf_addf(&line, "%sbrig: %s  cpu %s  memory %s  pids %llu  output %s%s", in_place ? ERASE_LINE : "",
		 ui_millis(at, sizeof(at), sample->at_ms), ui_millis(cpu, sizeof(cpu), sample->cpu_ms),
		 str_bytes(memory, sizeof(memory), sample->memory_bytes), (unsigned long long)sample->pids,
		 str_bytes(output, sizeof(output), sample->output_bytes), in_place ? "" : "\n");
	put(live, &live->err, buf_str(&line), line.len);
	live->err.mid_line = false; /* the line is not the program's */
	live->watch_shown = in_place;
}

void live_on_sample(void *user, const struct brig_sample *sample)
{
	struct live *live = user;
	/* An updating line would garble an incomplete line of the program. */
	bool garbles = live->err.is_terminal && (live->err.mid_line || (live->out.is_terminal && live->out.mid_line));

	(void)drain(live, &live->out, 0);
	/* No samples for a reader that is behind. */
	if (drain(live, &live->err, 0) && live->watch && !garbles)
		show_sample(live, sample);
}

/*
 * On a terminal one updating line, replaced by the result at the end; otherwise a line at the beginning and one at the
 * end.
 */
void live_on_install(void *user, const struct brig_install *now)
{
	struct live *live = user;
	bool in_place = live->err.is_terminal, first = !live->told;
	char time[32], size[32], kept[40] = "";
	AUTO_BUF line = BUF_INIT(1024);

	live->told = !now->done;
	(void)ui_millis(time, sizeof(time), now->elapsed_ms);
	(void)str_bytes(size, sizeof(size), now->bytes);
	if (now->kept_days > 0)
		(void)snprintf(kept, sizeof(kept), ", kept for %u days", now->kept_days);
	if (now->done)
		buf_addf(&line, "%sbrig: installed %s in %s (%s%s)\n", in_place ? ERASE_LINE : "", now->packages, time,
			 size, kept);
	else if (in_place)
		buf_addf(&line, ERASE_LINE "brig: installing %s with %s ... %s, %s", now->packages, now->installer,
			 time, size);
	else if (first)
		buf_addf(&line, "brig: installing %s with %s ...\n", now->packages, now->installer);
	put(live, &live->err, buf_str(&line), line.len);
	live->err.mid_line = false;
	live->watch_shown = in_place && !now->done;
}

static void stream_finish(struct live *live, struct live_stream *s)
{
	AUTO_BUF safe = BUF_INIT(64);

	sanitize_end(&s->sanitizer, &safe);
	put(live, s, buf_str(&safe), safe.len);
	(void)drain(live, s, -1);
}

void live_finish(struct live *live)
{
	live_clear_line(live);
	stream_finish(live, &live->out);
	stream_finish(live, &live->err);
	if (live->err.is_terminal && (live->err.mid_line || (live->out.is_terminal && live->out.mid_line)))
		(void)write_all(STDERR_FILENO, "\n", 1, live->cancel_fd);
}
