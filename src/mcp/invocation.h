/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line of brig on its way to a child.  Words are never seen by a shell; what is long or not text (code, input,
 * files) is in memory files that the child inherits.
 */
#ifndef MCP_INVOCATION_H
#define MCP_INVOCATION_H

#include "mcp/mcp.h"

#define INVOCATION_FDS_MAX  3
#define INVOCATION_FD_FIRST 3  /* number of the first inherited descriptor in the child */
#define INVOCATION_FD_OURS  20 /* ours are above, so that moving one there never closes another */

/* Which options of the server a command takes. */
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
	int fd[INVOCATION_FDS_MAX]; /* the child's 3, 4 ... */
	size_t n_fds;
	int input;   /* its standard input; FD_NONE: empty */
	bool events; /* it prints events that end with a result; else a document or text */
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
/* Its standard input. */
void invocation_input(struct invocation *p, const void *data, size_t len);
/* A descriptor that it inherits with this content; its number there. */
int invocation_inherit(struct invocation *p, const void *data, size_t len);
void invocation_release(struct invocation *p);
#define AUTO_INVOCATION             \
	CLEANUP(invocation_release) \
	struct invocation

#endif
