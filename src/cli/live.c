/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - what is seen while the program runs
 *
 * To a file or a pipe the program's bytes go as they are.  To a terminal they go through the sanitizer,
 * unless --raw.  A reader that goes away (EPIPE on standard output) ends the run: nobody would see the
 * rest.  Standard error going away does not: the result is still wanted.
 *
 * --watch writes one line per sample to standard error; on a terminal it is one line that updates, taken
 * away before program output is shown there.
 */
#include "cli/live.h"

#include <string.h>

#include "base/str.h"
#include "cli/cancel.h"
#include "cli/ui.h"

#define SLICE      8192 /* of program output made safe at a time */
#define ERASE_LINE "\r\033[K"

static void stream_init(struct live_stream *s, int fd, bool raw)
{
	*s = (struct live_stream){ .fd = fd, .is_terminal = isatty(fd) };
	s->escape = s->is_terminal && !raw;
}

void live_init(struct live *live, int cancel_fd, bool raw, bool watch)
{
	*live = (struct live){ .cancel_fd = cancel_fd, .watch = watch };
	stream_init(&live->out, STDOUT_FILENO, raw);
	stream_init(&live->err, STDERR_FILENO, raw);
}

static void put(struct live *live, struct live_stream *s, const char *data, size_t len)
{
	int rc;

	if (s->error || len == 0)
		return;
	rc = ui_write(s->fd, data, len, live->cancel_fd);
	s->mid_line = data[len - 1] != '\n';
	if (rc == 0)
		return;
	s->error = -rc;
	if (s == &live->out)
		cancel_now();
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

static void take_watch_line_away(struct live *live)
{
	if (!live->watch_shown)
		return;
	live->watch_shown = false;
	(void)ui_write(STDERR_FILENO, ERASE_LINE, strlen(ERASE_LINE), live->cancel_fd);
}

void live_on_output(void *user, enum brig_stream stream, const void *data, size_t len)
{
	struct live *live = user;
	struct live_stream *s = stream == BRIG_STDERR ? &live->err : &live->out;

	if (s->is_terminal)
		take_watch_line_away(live);
	if (s->escape)
		put_escaped(live, s, data, len);
	else
		put(live, s, data, len);
}

void live_on_sample(void *user, const struct brig_sample *sample)
{
	struct live *live = user;
	bool in_place = live->err.is_terminal;
	char at[32], cpu[32], memory[32], output[32];
	AUTO_BUF line = BUF_INIT(512);

	/* An updating line would garble a line that the program has not finished yet. */
	if (!live->watch || (in_place && ((live->out.is_terminal && live->out.mid_line) || live->err.mid_line)))
		return;
	buf_addf(&line, "%sbrig: %s  cpu %s  memory %s  pids %llu  output %s%s", in_place ? ERASE_LINE : "",
		 ui_millis(at, sizeof(at), sample->at_ms), ui_millis(cpu, sizeof(cpu), sample->cpu_ms),
		 str_bytes(memory, sizeof(memory), sample->memory_bytes), (unsigned long long)sample->pids,
		 str_bytes(output, sizeof(output), sample->output_bytes), in_place ? "" : "\n");
	(void)ui_write(STDERR_FILENO, buf_str(&line), line.len, live->cancel_fd);
	live->watch_shown = in_place;
}

static void stream_finish(struct live *live, struct live_stream *s)
{
	AUTO_BUF safe = BUF_INIT(64);

	sanitize_end(&s->sanitizer, &safe);
	put(live, s, buf_str(&safe), safe.len);
}

void live_finish(struct live *live)
{
	take_watch_line_away(live);
	stream_finish(live, &live->out);
	stream_finish(live, &live->err);
	if (live->err.is_terminal && (live->err.mid_line || (live->out.is_terminal && live->out.mid_line)))
		(void)ui_write(STDERR_FILENO, "\n", 1, live->cancel_fd);
}
