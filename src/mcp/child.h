/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running brig command. It is executed anew (/proc/self/exe), not just forked, so its parsing and its exit affect
 * nothing else. Reads never block. A child whose reader has gone cancels its run, so killing the server leaves no cell
 * behind.
 */
#ifndef MCP_CHILD_H
#define MCP_CHILD_H

#include <poll.h>
#include <sys/types.h>

#include "base/buf.h"
#include "mcp/invocation.h"

#define CHILD_TEXT_MAX      (64 * MiB) /* bytes of one document or one event */
#define CHILD_COMPLAINT_MAX (4 * KiB)
#define CHILD_FDS           3

struct child {
	int process; /* pidfd */
	int out, err;
	struct buf text;      /* its output: all of it, or, with events, the incomplete last line */
	struct buf complaint; /* its standard error */
	bool events;
};
#define CHILD_INIT                                                                                    \
	{                                                                                             \
		.process = FD_NONE, .out = FD_NONE, .err = FD_NONE, .text = BUF_INIT(CHILD_TEXT_MAX), \
		.complaint = BUF_INIT(CHILD_COMPLAINT_MAX)                                            \
	}

typedef void (*child_line_fn)(void *user, const char *line, size_t len);

/* The caller keeps the invocation's descriptors. */
int child_start(struct child *c, const struct invocation *p, struct brig_error *err);
/* Reads what is available; with events, passes each line to fn. */
void child_read(struct child *c, child_line_fn fn, void *user);
/* True if the child has ended; *ret_status: its exit status, or 128 + the signal that killed it. */
bool child_ended(const struct child *c, int *ret_status);
void child_signal(const struct child *c, int sig);
/* Fills in the descriptors to poll. */
void child_poll(const struct child *c, struct pollfd fds[CHILD_FDS]);
void child_release(struct child *c);

#endif
