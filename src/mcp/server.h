/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client and its calls. A transport (such as stdio.c) passes messages in, calls server_work() when descriptors are
 * ready, and gets messages out through a callback.
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

#define CALLS_RUNNING_MAX 8  /* at once; further calls wait */
#define CALLS_MAX         64 /* further calls are refused */
#define EXECUTION_ID_MAX  65
#define OWN_MAX           1024 /* executions remembered as this server's */

struct server;
struct call;

/* about: the id of the request that the message belongs to; NULL: none. Both are borrowed. */
typedef void (*server_send_fn)(void *user, const json_t *message, const json_t *about);
/* Starts a child: child_start(), or a replacement where no process may be started. */
typedef int (*server_start_fn)(struct child *c, const struct invocation *p, struct brig_error *err);

/* The outcome of a child. */
struct outcome {
	json_t *doc;      /* its document, or the result of its run; NULL: it printed neither */
	const char *text; /* its output, if that is neither */
	size_t len;
	const char *complaint; /* from its standard error, without "brig: "; "": none */
	int status;
};

enum job_next { JOB_DONE, JOB_AGAIN };

/* The implementation of a call: builds a command line and evaluates the outcome. */
struct job {
	const char *name; /* name of the tool, or URI of the resource */
	bool needs_root;
	/* Builds the command line of call->step. Negative: the call is answered with the error. */
	int (*prepare)(struct call *call, struct invocation *p, struct brig_error *err);
	/* JOB_AGAIN: another step follows, starting with prepare(). */
	enum job_next (*finish)(struct call *call, const struct outcome *outcome, struct answer *a);
};

enum call_state { CALL_WAITING, CALL_RUNNING, CALL_CANCELLED };

struct call {
	struct call *next;
	struct server *server;
	const struct job *job;
	enum call_state state;
	json_t *id, *token; /* token NULL: no progress wanted */
	json_t *args;       /* checked against the tool's schema */
	bool modern, is_resource;
	unsigned step;
	json_t *kept;   /* document kept from an earlier step */
	json_t *result; /* of the run; NULL: not yet received */
	struct child child;
	uint64_t kill_ns;         /* when a cancelled child is killed */
	struct progress progress; /* starts when the call runs */
};

struct server {
	const struct mcp_options *options;
	server_send_fn send;
	void *user;
	server_start_fn start;
	json_t *tools;      /* as shown to clients */
	bool failed;        /* no memory for a message: the server ends rather than withhold an answer */
	bool crowded;       /* the client does not read: stop reading from children */
	struct call *calls; /* oldest first */
	size_t n_calls;
	/* The project. */
	char root[PATH_MAX]; /* "": none */
	bool client_has_roots, roots_asked;
	uint64_t roots_until_ns; /* until when calls wait for the client's answer; 0: not waiting */
	unsigned n_roots_asked;
	/* Executions of this server: a ring. */
	char (*own)[EXECUTION_ID_MAX];
	size_t n_own;
};

int server_init(struct server *s, const struct mcp_options *options, server_send_fn send, void *user,
		struct brig_error *err);
void server_release(struct server *s);
/* Handles one line of input; NULL: the line was too long. */
void server_receive(struct server *s, const char *line, size_t len);
/* Does all pending work. */
void server_work(struct server *s);
/*
 * Fills in the descriptors to wait for, at most CALLS_RUNNING_MAX * CHILD_FDS, and returns their number. *ret_ms: the
 * longest wait; -1: no limit.
 */
size_t server_poll(const struct server *s, struct pollfd *fds, int *ret_ms);
/* Ends all calls; with SIGKILL if now. */
void server_stop(struct server *s, bool now);

/* ---- internal -------------------------------------------------------------------------------------- */

/* Sends and takes the message. */
void server_put(struct server *s, json_t *message, const json_t *about);
/* Starts a call for a request; args and token are borrowed. */
void call_begin(struct server *s, const struct rpc_message *m, const struct job *job, json_t *args, bool modern,
		bool is_resource);
void call_cancel(struct server *s, const json_t *id);
/* True if the execution is this server's, or if the client may ask for others. */
bool server_owns(const struct server *s, const char *id);
void server_own(struct server *s, const char *id);

const struct job *tool_find(const char *name);
/* The job for a resource URI, or NULL; *ret_args: its arguments, a new reference. */
const struct job *resource_find(const char *uri, json_t **ret_args);

#endif
