/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner: the process of the service that holds the library's handle and makes the decisions.
 *
 *	loop          polls the channel, the master, the runs and the clock; starts executions
 *	host          the library's handle, and the parts of its policy that are needed before a run
 *	access        authentication and authorisation of requests
 *	requests      dispatches messages to handlers, one per route; answer: the responses
 *	job           a copy of a message, as a request for the library
 *	executions    from acceptance until they are forgotten; events: what happens meanwhile
 *	accept        submission of executions: checks, queue, ledger, idempotency
 *	look          queries about executions: list, state, events, artifacts, cancellation
 *	batches       many jobs in one request, admitted gradually
 *	environments  named package sets
 *	workspaces    files that clients store for later executions
 *	sessions      long-lived cells
 *	snapshots     copies of the workspaces of sessions
 *	traces        executions as spans, for the exporter
 *	ledger        a file: promised asynchronous executions
 *	idempotency   a file: keys of tokens and their executions
 *	meters        a file: usage of quotas
 *	forward       sessions on other nodes of the queue; tunnel: connections to servers in them
 *	queue         jobs for or from other machines (docs/QUEUE.md)
 *	journal       append-only files of lines
 *	questions     documents of the library, numbers of the service
 *	answerers     child processes for slow requests
 *	recorded      queries that the recorder answers
 *
 *   RULE R1  The runner reads flat fields (server/message.h) and documents made by the library, no text formats from
 *   clients.
 *   RULE R2  Each request is answered exactly once.  The client is identified by the token in the message or, for a
 *   socket that is sent along, by the kernel; never by a claim of the front.  Nothing that the front sends or does ends
 *   this process.
 *   RULE R3  Everything that can grow has a limit, below; beyond it new items are refused, or the oldest dropped.
 *   RULE R4  A promised execution (202) is in the ledger before the client is answered, and ends there: finished or
 *   lost.
 *
 * One thread, one loop: callbacks of the library only record events and send them.
 */
#ifndef SERVER_RUNNER_SERVICE_H
#define SERVER_RUNNER_SERVICE_H

#include "server/admission.h"
#include "server/channel.h"
#include "server/message.h"
#include "server/routes.h"
#include "server/runner/answerers.h"
#include "server/runner/batches.h"
#include "server/runner/executions.h"
#include "server/runner/forward.h"
#include "server/runner/host.h"
#include "server/runner/idempotency.h"
#include "server/runner/ledger.h"
#include "server/runner/meters.h"
#include "server/runner/queue.h"
#include "server/runner/recorded.h"
#include "server/runner/sessions.h"
#include "server/runner/snapshots.h"
#include "server/runner/tunnel.h"
#include "server/runner/workspaces.h"
#include "server/serve.h"
#include "server/tokens.h"

#define HELD_BYTES_MAX  (512 * MiB) /* of waiting and running requests, with their files */
#define CAPABILITIES_NS (60 * NS_PER_SEC)

/* Counters since the process started. */
struct service_counts {
	uint64_t accepted, finished, cancelled, refused;
	uint64_t sessions, session_runs, session_ends[SESSION_END_COUNT];
};

struct service {
	const struct serve_options *options;
	const struct listener *listener; /* only their addresses */
	size_t n_listeners;
	struct channel *channel; /* to the front; NULL: none at present */
	uint32_t channel_number; /* as numbered by the master */
	bool channel_is_bad;     /* neither read nor written any more; dropped at the end of the turn */
	int master, epoll;
	int recorder;          /* socket to it */
	short channel_events;  /* events currently polled for */
	struct host *host;     /* for new requests */
	struct tokens *tokens; /* NULL: --no-auth */
	struct admission *admission;
	struct executions executions;
	struct ledger ledger;
	struct idempotency idempotency;
	struct meters meters;
	struct batches batches;
	struct workspaces workspaces;
	struct sessions sessions;
	struct snapshots snapshots;
	struct queue queue;
	struct tunnels tunnels;
	struct forwards forwards; /* requests to and from other nodes */
	struct answerers answerers;
	struct exporter *exporter; /* NULL: traces are not exported */
	struct recorded recorded;
	struct service_counts counts;
	uint32_t jobs;
	uint64_t held_bytes;
	/* descriptors of waiting jobs must be below this number, to leave room for cells and incoming requests */
	uint64_t fds_max;
	json_t *versions;   /* versions of runtimes; NULL: not needed by any open door */
	char *capabilities; /* cached answer, made at capabilities_ns; NULL: none */
	uint64_t capabilities_ns, reloaded_ns;
	bool draining; /* accept nothing new */
	bool stopping; /* and cancel what exists */
	bool is_over;  /* nothing is left to do, or the master has gone */
	bool rests;    /* free memory has been returned to the kernel, and nothing has happened since */
	int status;    /* exit status */
};

/* A request from the front. */
struct request {
	uint32_t tag;
	enum route route;
	const struct message *m;
	const char *request_id;         /* "": none */
	const struct token *token;      /* the client; NULL: the route is open */
	struct server_session *session; /* identified by its key; NULL: by a token */
	/*
	 * It has a link, or the key, of a session that is not on this node: that session's node checks it, and `token`
	 * is a placeholder without rights
	 */
	bool by_link;
	struct job_descriptors beside; /* descriptors of a job; the user takes them */
	uint64_t gathering;            /* number of the list that the answer becomes part of (forward.h); 0: none */
};

/* loop.c: starts executions that may run; to be called after anything that frees a slot. */
void service_start_next(struct service *s);
/* Adds the run to the epoll set, so that it is stepped when ready: 0 or -errno. */
int service_watch(struct service *s, struct execution *x);
void service_unwatch(struct service *s, const struct execution *x);

/* Polls the channel to the link for its current events, or no longer.  False: epoll failed. */
bool service_watch_link(struct service *s, bool is_on);

/* Stops using the front's channel; reports a protocol violation to the master, but not a front that has exited. */
void service_cut_front(struct service *s, const struct brig_error *why);

/* accept.c: whether there is memory and descriptors for one more job: 0 or -BRIG_E_NOMEM. */
int service_has_room(const struct service *s, const struct job *job, struct brig_error *err);

#endif
