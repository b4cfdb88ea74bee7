/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Model Context Protocol over streamable HTTP, in both of its eras (mcp_shared/era.h).
 *
 *	mcp.c        what HTTP and the protocol require of a request; methods that need no runner
 *	tools.c      calls of tools and resources: requests to the runner, progress, answers
 *	sessions.c   state of the legacy era between requests
 *
 * A request is parsed first; then the runner authenticates the key, and only then is the request validated and handled:
 * without a good key a client learns nothing, and sessions belong to the token owner that the runner named. Runs are
 * answered with an event stream that starts at the first event of the run, everything else with one JSON document.
 */
#ifndef SERVER_DOORS_MCP_MCP_H
#define SERVER_DOORS_MCP_MCP_H

#include <sys/queue.h>

#include "mcp_shared/era.h"
#include "mcp_shared/progress.h"
#include "mcp_shared/rpc.h"
#include "server/doors/door.h"

#define MCP_SESSION_ID_LEN 32

struct mcp_tool;
struct mcp_session;

/* A message being answered; it is call->state. */
struct mcp_request {
	struct rpc_message m;
	bool modern;
	const struct mcp_tool *tool; /* the tool to call; NULL: none */
	json_t *args;                /* of the tool; an own reference */
	const char *uri;             /* of the resource to read, points into m; NULL: none */
	json_t *token;               /* progress token, points into m; NULL: no progress is wanted */
	json_t *result;              /* of the run; NULL: not yet received */
	struct progress progress;
	/* membership in the running calls of a session */
	struct client *client; /* NULL: not in the list */
	struct mcp_session *session;
	TAILQ_ENTRY(mcp_request) running;
};

static inline struct mcp_request *mcp_request_of(const struct client *c)
{
	return c->req->call->state;
}

/* mcp.c: each sends the complete answer. result and data are taken. */
void mcp_answer(struct client *c, json_t *result, int ttl_ms);
void mcp_refuse(struct client *c, unsigned status, enum rpc_code code, const char *why, json_t *data);
/* The list of tools, borrowed; NULL: no memory. */
const json_t *mcp_tool_list(void);

/* tools.c */
void mcp_call_tool(struct client *c);
void mcp_read_resource(struct client *c);

/* sessions.c: a session belongs to the owner that the runner named (req->who) */
struct mcp_session *mcp_session_new(struct client *c);                  /* NULL: too many are in use */
struct mcp_session *mcp_session_find(struct client *c, const char *id); /* NULL: this owner has no session of that id */
const char *mcp_session_id(const struct mcp_session *s);
void mcp_session_end(struct front *f, struct mcp_session *s); /* also cancels its running calls */
void mcp_session_add(struct mcp_session *s, struct client *c);
void mcp_session_drop(struct mcp_request *r); /* no-op if the request is in no list */
/* Ends a call without an answer; no-op if no call has that id. */
void mcp_session_cancel(struct mcp_session *s, const json_t *id);
void mcp_sessions_free(struct front *f);

#endif
