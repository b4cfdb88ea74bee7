/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a started cell until it ends or exceeds a limit: output, input, clocks, samples. */
#ifndef EXECUTOR_WATCH_H
#define EXECUTOR_WATCH_H

#include "backend/backend.h"
#include "base/buf.h"
#include "model/record.h"
#include "model/sample.h"

/* Why the run ended. */
enum ending { END_EXIT, END_WALL, END_CPU, END_MEMORY, END_OUTPUT, END_CANCELLED, END_FAILED };

struct stream_sink {
	enum brig_stream stream;
	struct buf *keep;             /* NULL: not kept */
	struct record_stream *record; /* NULL: not recorded */
	bool truncated;
};

#define WATCH_PIECE 65536

/* The client of a session's steward (backend/guest/steward.h). */
struct session_link {
	/* Called once, when the cell is complete: control belongs to the cell and ends with it. Must not wait. */
	void (*on_control)(void *arg, int control);
	void *arg;
};

/*
 * The running program, for code outside the watching task that sends it something, such as a signal; such code must not
 * wait.
 */
struct live {
	const struct backend_ops *backend;
	struct cell *cell; /* NULL: none is running */
};

struct watch {
	/* filled by the caller */
	const struct backend_ops *backend;
	struct cell *cell;
	const struct plan *plan;
	const struct brig_request *req; /* callbacks, stdin, cancel */
	bool with_stdin;                /* feed the request's input; else the program's stdin is empty */
	bool with_output;               /* hand pieces to on_output as they arrive */
	uint64_t sample_interval_ms;    /* 0: none */
	void (*on_tick)(void *arg);     /* called in place of taking samples; NULL: they are taken */
	void *tick_arg;
	const struct session_link *session; /* whose owner has the program's input; NULL: it is no session */
	struct live *live;                  /* NULL: not wanted */
	struct sample_series *samples;
	struct stream_sink out, err;
	/* filled by watch_run */
	enum ending ending;
	struct exit_info exit;
	uint64_t wall_ns;
	uint64_t output_bytes;
	/* internal */
	struct cell_fds fds;
	uint64_t started_ns;
	char *piece; /* WATCH_PIECE bytes for output in transit; the caller's, as is input */
	char *input; /* WATCH_PIECE bytes for input that the program has not read yet */
	size_t input_at, input_len;
	bool input_done;
	bool input_full; /* stop reading input until the program reads some */
};
#define WATCH_INIT                    \
	{                             \
		.fds = CELL_FDS_NONE, \
	}

/* Starts the cell and returns when its run is over; the cell still exists.  END_FAILED fills err. */
void watch_run(struct watch *w, struct brig_error *err);
/*
 * To be called after the cell was stopped: reads what is left in its pipes. False: at the deadline a process still held
 * one open, and later output is lost.
 */
bool watch_drain(struct watch *w, uint64_t deadline_ns);

#endif
