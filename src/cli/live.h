/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the program's output and samples while it runs. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include "base/err.h"
#include "cli/sanitize.h"

struct live_stream {
	int fd;
	bool is_terminal;
	bool escape;      /* terminal without --raw: make control characters visible */
	int error;        /* errno of a failed write, after which nothing is written */
	bool mid_line;    /* the last byte shown was not a newline */
	struct buf queue; /* not yet written, from queue_at on */
	size_t queue_at;
	struct sanitizer sanitizer;
};

struct live {
	struct live_stream out, err;
	int cancel_fd;
	bool watch;       /* --watch */
	bool watch_shown; /* the updating line is currently on the terminal */
	bool told;        /* the installation of packages was announced */
};

void live_init(struct live *live, int cancel_fd, bool raw, bool watch);
/* Callbacks of brig_request; user is the struct live. */
void live_on_output(void *user, enum brig_stream stream, const void *data, size_t len);
void live_on_sample(void *user, const struct brig_sample *sample);
void live_on_install(void *user, const struct brig_install *now);
/* Clears the updating line before a permanent line is printed. */
void live_clear_line(struct live *live);
/* Writes our own lines to standard output, unchanged; the queue is for the program's output. */
void live_put(struct live *live, const char *data, size_t len);
/* Shows what is still held back, and leaves the cursor at the start of a line. */
void live_finish(struct live *live);

#endif
