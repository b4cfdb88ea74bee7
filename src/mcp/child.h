/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command of this program, running.  It is executed afresh (/proc/self/exe), not just forked: what it parses, and
 * how it ends, affects nothing else.  Reading never waits.  A child whose reader is gone cancels its run by itself, so
 * a server that is killed leaves no cell.
 */
#ifndef MCP_CHILD_H
#define MCP_CHILD_H

#include <poll.h>
#include <sys/types.h>

#include "base/buf.h"
#include "mcp/invocation.h"

#define CHILD_TEXT_MAX      (64 * MiB) /* one document, or one event */
#define CHILD_COMPLAINT_MAX (4 * KiB)
#define CHILD_FDS           3

struct child {
	int process; /* pidfd */
	int out, err;
	struct buf text;      /* its output: all of it, or of events what has not become a line yet */
	struct buf complaint; /* on its standard error */
	bool events;
};
#define CHILD_INIT                                                                                    \
	{                                                                                             \
		.process = FD_NONE, .out = FD_NONE, .err = FD_NONE, .text = BUF_INIT(CHILD_TEXT_MAX), \
		.complaint = BUF_INIT(CHILD_COMPLAINT_MAX)                                            \
	}

typedef void (*child_line_fn)(void *user, const char *line, size_t len);

/* The invocation's descriptors stay the caller's. */
int child_start(struct child *c, const struct invocation *p, struct brig_error *err);
/* Reads what there is; events go to fn, line by line. */
void child_read(struct child *c, child_line_fn fn, void *user);
/* Whether it has ended: then *ret_status is its exit status, 128 + signal if one ended it. */
bool child_ended(const struct child *c, int *ret_status);
void child_signal(const struct child *c, int sig);
/* What to poll for. */
void child_poll(const struct child *c, struct pollfd fds[CHILD_FDS]);
void child_release(struct child *c);

#endif
