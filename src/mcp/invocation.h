/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A brig command line for a child. No shell sees the words; long or binary data (code, input, files) goes into memory
 * files that the child inherits.
 */
#ifndef MCP_INVOCATION_H
#define MCP_INVOCATION_H

#include "mcp/mcp.h"

#define INVOCATION_FDS_MAX  3
#define INVOCATION_FD_FIRST 3 /* number of the first inherited descriptor in the child */
/* the server's own descriptors are at or above this, so moving one to its number in the child never closes another */
#define INVOCATION_FD_OURS 20

/* The server options that a command accepts. */
enum invocation_takes {
	INVOCATION_POLICY = 1,
	INVOCATION_TRUST = 2,
	INVOCATION_PRESET = 4,
	INVOCATION_STATE = 8,
	INVOCATION_SETTINGS = 16,
	INVOCATION_RECORD = INVOCATION_POLICY | INVOCATION_STATE,
	INVOCATION_RUN = INVOCATION_RECORD | INVOCATION_TRUST | INVOCATION_PRESET | INVOCATION_SETTINGS,
};

struct invocation {
	char **word;
	size_t n, cap;
	int fd[INVOCATION_FDS_MAX]; /* become the child's 3, 4 ... */
	size_t n_fds;
	int input;   /* the child's standard input; FD_NONE: empty */
	bool events; /* the command prints events, the last with a result; else a document or text */
	bool failed; /* no memory, or no descriptor */
};
#define INVOCATION_INIT          \
	{                        \
		.input = FD_NONE \
	}

/* command: one or two words, such as "workspace show"; takes: enum invocation_takes. */
void invocation_begin(struct invocation *p, const struct mcp_options *options, const char *command, unsigned takes);
void invocation_add(struct invocation *p, const char *word);
void invocation_addf(struct invocation *p, const char *fmt, ...) PRINTF(2, 3);
/* Sets its standard input. */
void invocation_input(struct invocation *p, const void *data, size_t len);
/* Adds an inherited descriptor with this content; returns its number in the child. */
int invocation_inherit(struct invocation *p, const void *data, size_t len);
void invocation_release(struct invocation *p);
#define AUTO_INVOCATION             \
	CLEANUP(invocation_release) \
	struct invocation

#endif
