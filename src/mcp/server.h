/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client being served, and the calls that it has made.  Transports feed messages in, let it work when descriptors are
 * ready, and take messages out through a callback; stdio.c is one.
 */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include <jansson.h>
#include <limits.h>

#include "mcp/child.h"
#include "mcp/mcp.h"
#include "mcp_shared/era.h"
#include "mcp_shared/progress.h"
#include "mcp_shared/rpc.h"
#include "mcp_shared/show.h"
#include "mcp_shared/tool_list.h"

#define CALLS_RUNNING_MAX 8  /* at once; more wait */
#define CALLS_MAX         64 /* more are refused */
#define EXECUTION_ID_MAX  65
#define OWN_MAX           1024 /* executions that are remembered as this server's */

struct server;
struct call;

/* about: the id of the request that a message belongs to; NULL: none.  Both are borrowed. */
typedef void (*server_send_fn)(void *user, const json_t *message, const json_t *about);
/* How children are started: child_start(), or what stands in its place where there must be none. */
typedef int (*server_start_fn)(struct child *c, const struct invocation *p, struct brig_error *err);

/* What became of a child. */
struct outcome {
	json_t *doc;      /* its document, or the result of its run; NULL: it printed none */
	const char *text; /* what it printed instead */
	size_t len;
	const char *complaint; /* of its standard error, without "brig: "; "" if none */
	int status;
};

enum job_next { JOB_DONE, JOB_AGAIN };

/* What a call does: a command line, and what to make of its outcome. */
struct job {
	const char *name; /* of a tool, address of a resource */
	bool needs_root;
	/* The command line of call->step.  Negative: the call is answered with the reason. */
	int (*prepare)(struct call *call, struct invocation *p, struct brig_error *err);
	/* JOB_AGAIN: prepare() has another step to do. */
	enum job_next (*finish)(struct call *call, const struct outcome *outcome, struct answer *a);
};

enum call_state { CALL_WAITING, CALL_RUNNING, CALL_CANCELLED };

struct call {
	struct call *next;
	struct server *server;
	const struct job *job;
	enum call_state state;
	json_t *id, *token; /* token NULL: no progress wanted */
	json_t *args;       /* as the schema of the tool wants them */
	bool modern, is_resource;
	unsigned step;
	json_t *kept;   /* of an earlier step */
	json_t *result; /* of the run, when it has come */
	struct child child;
	uint64_t kill_ns;         /* when patience with a cancelled one ends */
	struct progress progress; /* begun when it runs */
};

struct server {
	const struct mcp_options *options;
	server_send_fn send;
	void *user;
	server_start_fn start;
	json_t *tools;      /* as clients are shown them */
	bool failed;        /* no memory for a message: better no server than one that keeps answers to itself */
	bool crowded;       /* the client does not read: no more output is taken from children */
	struct call *calls; /* oldest first */
	size_t n_calls;
	/* the project */
	char root[PATH_MAX]; /* "": none */
	bool client_has_roots, roots_asked;
	uint64_t roots_until_ns; /* how long calls wait for the answer; 0: they do not */
	unsigned n_roots_asked;
	/* executions of this server: a ring */
	char (*own)[EXECUTION_ID_MAX];
	size_t n_own;
};

int server_init(struct server *s, const struct mcp_options *options, server_send_fn send, void *user,
		struct brig_error *err);
void server_release(struct server *s);
/* One line of input; NULL: one that was too long. */
void server_receive(struct server *s, const char *line, size_t len);
/* Does what there is to do now. */
void server_work(struct server *s);
/* Descriptors to wait for, at most CALLS_RUNNING_MAX * CHILD_FDS; how many.  *ret_ms: at most so long; -1: for ever. */
size_t server_poll(const struct server *s, struct pollfd *fds, int *ret_ms);
/* Ends every call, with SIGKILL if now is given. */
void server_stop(struct server *s, bool now);

/* ---- between the files of this folder -------------------------------------------------------------- */

/* Takes the message. */
void server_put(struct server *s, json_t *message, const json_t *about);
/* Makes a call of a request; args and token are borrowed. */
void call_begin(struct server *s, const struct rpc_message *m, const struct job *job, json_t *args, bool modern,
		bool is_resource);
void call_cancel(struct server *s, const json_t *id);
/* Whether an execution is one of this server's, or may be asked for anyway. */
bool server_owns(const struct server *s, const char *id);
void server_own(struct server *s, const char *id);

const struct job *tool_find(const char *name);
/* The job of an address, or NULL; *ret_args: what it needs, new. */
const struct job *resource_find(const char *uri, json_t **ret_args);

#endif
