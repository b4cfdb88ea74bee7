/* SPDX-License-Identifier: Apache-2.0 */
/* The program's output and the monitor's samples, shown while it runs. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include "base/err.h"
#include "cli/sanitize.h"

struct live_stream {
	int fd;
	bool is_terminal;
	bool escape;      /* terminal, and not --raw: control characters are made visible */
	int error;        /* errno of the write that failed; nothing is written afterwards */
	bool mid_line;    /* the last byte shown was no newline */
	struct buf queue; /* what the reader has not taken yet, from queue_at on */
	size_t queue_at;
	struct sanitizer sanitizer;
};

struct live {
	struct live_stream out, err;
	int cancel_fd;
	bool watch;       /* --watch */
	bool watch_shown; /* the updating line is on the terminal now */
	bool told;        /* that packages are being installed */
};

void live_init(struct live *live, int cancel_fd, bool raw, bool watch);
/* Callbacks of brig_request; user is the struct live. */
void live_on_output(void *user, enum brig_stream stream, const void *data, size_t len);
void live_on_sample(void *user, const struct brig_sample *sample);
void live_on_install(void *user, const struct brig_install *now);
/* Takes an updating line away, for a line of text that is to stay. */
void live_clear_line(struct live *live);
/* Lines of our own on standard output, as they are; the queue is the program's. */
void live_put(struct live *live, const char *data, size_t len);
/* Shows what is still held and leaves the terminal at the start of a line. */
void live_finish(struct live *live);

#endif
