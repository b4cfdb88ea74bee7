/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Model Context Protocol over streamable HTTP, in both of its eras (mcp_shared/era.h).
 *
 *	mcp.c        what HTTP and the protocol ask of a request; methods that need no runner
 *	tools.c      calls of tools and resources: asks of the runner, progress, answers
 *	sessions.c   what the legacy era keeps between requests
 *
 * A request is read, then the runner says whose the key is, then everything else follows: nobody without a good key learns
 * anything, and sessions belong to whom the runner named.  What is run is answered with a stream, which begins with the
 * first event of the run; everything else with one document.
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

/* A message on its way to an answer: call->state. */
struct mcp_request {
	struct rpc_message m;
	bool modern;
	const struct mcp_tool *tool; /* that is called; NULL: none */
	json_t *args;                /* of the tool; its own */
	const char *uri;             /* of the resource that is read, of the message; NULL: none */
	json_t *token;               /* of the message; NULL: nobody wants to hear of progress */
	json_t *result;              /* of the run, when it has come */
	struct progress progress;
	/* among the running calls of a session */
	struct client *client; /* NULL: it is not */
	struct mcp_session *session;
	TAILQ_ENTRY(mcp_request) running;
};

static inline struct mcp_request *mcp_request_of(const struct client *c)
{
	return c->req->call->state;
}

/* mcp.c: each is the whole answer.  result and data are taken. */
void mcp_answer(struct client *c, json_t *result, int ttl_ms);
void mcp_refuse(struct client *c, unsigned status, enum rpc_code code, const char *why, json_t *data);
/* The list of tools, borrowed; NULL: no memory. */
const json_t *mcp_tool_list(void);

/* tools.c */
void mcp_call_tool(struct client *c);
void mcp_read_resource(struct client *c);

/* sessions.c: a session is of whom the runner has named (req->who) */
struct mcp_session *mcp_session_new(struct client *c); /* NULL: there are too many in use */
struct mcp_session *mcp_session_find(struct client *c,
				     const char *id); /* NULL: there is none of that id for who asks */
const char *mcp_session_id(const struct mcp_session *s);
void mcp_session_end(struct front *f, struct mcp_session *s); /* and what runs in it */
void mcp_session_add(struct mcp_session *s, struct client *c);
void mcp_session_drop(struct mcp_request *r); /* one that is not running in any is fine */
/* Ends a call without an answer; none of that id is fine. */
void mcp_session_cancel(struct mcp_session *s, const json_t *id);
void mcp_sessions_free(struct front *f);

#endif
