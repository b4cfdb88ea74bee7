/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line of brig on its way to a child.  Words are never seen by a shell; what is long or not text (code, input,
 * files) is in memory files that the child inherits.
 */
#ifndef MCP_PLAN_H
#define MCP_PLAN_H

#include "mcp/mcp.h"

#define PLAN_FDS_MAX  3
#define PLAN_FD_FIRST 3  /* number of the first inherited descriptor in the child */
#define PLAN_FD_OURS  20 /* ours are above, so that moving one there never closes another */

/* Which options of the server a command takes. */
enum plan_takes {
	PLAN_POLICY = 1,
	PLAN_TRUST = 2,
	PLAN_PRESET = 4,
	PLAN_STATE = 8,
	PLAN_SETTINGS = 16,
	PLAN_RECORD = PLAN_POLICY | PLAN_STATE,
	PLAN_RUN = PLAN_RECORD | PLAN_TRUST | PLAN_PRESET | PLAN_SETTINGS,
};

struct plan {
	char **word;
	size_t n, cap;
	int fd[PLAN_FDS_MAX]; /* the child's 3, 4 ... */
	size_t n_fds;
	int input;   /* its standard input; FD_NONE: empty */
	bool events; /* it prints events that end with a result; else a document or text */
	bool failed; /* no memory, or no descriptor */
};
#define PLAN_INIT                \
	{                        \
		.input = FD_NONE \
	}

/* command: one or two words, such as "workspace show"; takes: enum plan_takes. */
void plan_begin(struct plan *p, const struct mcp_options *options, const char *command, unsigned takes);
void plan_add(struct plan *p, const char *word);
void plan_addf(struct plan *p, const char *fmt, ...) PRINTF(2, 3);
/* Its standard input. */
void plan_input(struct plan *p, const void *data, size_t len);
/* A descriptor that it inherits with this content; its number there. */
int plan_inherit(struct plan *p, const void *data, size_t len);
void plan_release(struct plan *p);
#define AUTO_PLAN             \
	CLEANUP(plan_release) \
	struct plan

#endif
