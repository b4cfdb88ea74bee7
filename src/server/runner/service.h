/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner: the process of the service that holds the library's handle and decides.
 *
 *	loop          waits for the channel, the master, the runs and the clock; starts who may start
 *	host          the library's handle, and what of its policy decides before a run does
 *	access        who asks, and whether that one may have what is asked for
 *	asks          messages to handlers, a row for each route; answer: what goes back
 *	job           a message kept, as a request of the library
 *	executions    what was accepted, from then on until it is forgotten; events: what happened meanwhile
 *	accept        an execution is asked for: checks, queue, ledger, idempotency
 *	look          an execution is asked about: list, one, events, artifacts, cancel
 *	batches       many that were asked for at once, and are let into the queue little by little
 *	environments  package sets that have a name
 *	workspaces    files that clients leave for executions to come
 *	sessions      cells that stay
 *	snapshots     what was in the workspaces of sessions
 *	traces        executions as spans, for the exporter
 *	ledger        which asynchronous executions were promised: a file
 *	idempotency   which key of which token stands for which execution: a file, too
 *	meters        what tokens have used of their quotas: a file
 *	forward       sessions of other nodes of the queue; tunnel: connections to servers in them
 *	queue         jobs of other machines, or for them (docs/QUEUE.md)
 *	journal       files of lines that outlive this process
 *	questions     documents of the library, numbers of the service
 *	answerers     processes that each answer one request which may take long
 *	recorded      asks that the recorder answers, while the runner goes on
 *
 *   RULE R1  It reads rows of fields (server/message.h) and documents that the library made, no text of strangers.
 *   RULE R2  Each ask is answered once.  Who asks is told by the token beside it, or by the kernel of a socket that is sent
 *          along: never by what the front says of somebody.  Nothing that the front says or does ends this process.
 *   RULE R3  Everything that grows has a ceiling below; what is over it is refused, or the oldest goes.
 *   RULE R4  An execution that was promised (202) is in the ledger before, and ends there: finished, or lost.
 *
 * One thread, one loop: callbacks of the library only write events down and send them.
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

#define HELD_BYTES_MAX  (512 * MiB) /* of requests that wait or run, with their files */
#define CAPABILITIES_NS (60 * NS_PER_SEC)

/* What the service counts of itself since it began. */
struct service_counts {
	uint64_t accepted, finished, cancelled, refused;
	uint64_t sessions, session_runs, session_ends[SESSION_END_COUNT];
};

struct service {
	const struct serve_options *options;
	const struct listener *listener; /* where clients come from: their addresses only */
	size_t n_listeners;
	struct channel *channel; /* to the front; NULL: there is none now, and nobody to answer */
	uint32_t channel_number; /* the master's */
	bool channel_is_bad;     /* nothing more is sent or read: it is left at the end of the turn */
	int master, epoll;
	int recorder;          /* socket to it */
	short channel_events;  /* that the epoll waits for now */
	struct host *host;     /* for what is accepted from now on */
	struct tokens *tokens; /* NULL: nobody needs one */
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
	struct forwards forwards; /* asks that other nodes answer, and those of other fronts */
	struct answerers answerers;
	struct exporter *exporter; /* of traces; NULL: none is wanted */
	struct recorded recorded;
	struct service_counts counts;
	uint32_t jobs;
	uint64_t held_bytes;
	uint64_t fds_max;   /* descriptors of what waits are below it, so that cells can be made and asks received */
	json_t *versions;   /* of runtimes; NULL: no door asks for them */
	char *capabilities; /* as of capabilities_ns; NULL: none yet */
	uint64_t capabilities_ns, reloaded_ns;
	bool draining; /* nothing new */
	bool stopping; /* and what there is, is cancelled */
	bool is_over;  /* there is nothing left to do, or the master has gone */
	bool rests;    /* nothing has happened since memory was given back */
	int status;    /* that the process ends with */
};

/* A request, as the front has sent it. */
struct request {
	uint32_t tag;
	enum route route;
	const struct message *m;
	const char *request_id;         /* "": none */
	const struct token *token;      /* who asks; NULL: nobody needs to know */
	struct server_session *session; /* whose key was shown; NULL: a token was */
	bool by_link; /* a link to a session that is not here, or its key: whether it holds its node decides, and the token is nobody's */
	struct job_descriptors beside; /* of what is to be run; whoever uses one takes it */
	uint64_t gathering;            /* number of that which the answer is a part of (forward.h); 0: none */
};

/* loop.c: runs that may start do; call it after anything that frees a place. */
void service_start_next(struct service *s);
/* The run of this execution is stepped when there is something to do, until it is unwatched: 0 or -errno. */
int service_watch(struct service *s, struct execution *x);
void service_unwatch(struct service *s, const struct execution *x);

/* The channel to the link is waited for, as it is now, or no longer: false: it cannot be. */
bool service_watch_link(struct service *s, bool is_on);

/* The front has gone, or is not to be listened to any more: the master is told, unless the front's end tells him. */
void service_cut_front(struct service *s, const struct brig_error *why);

/* accept.c: whether one more can wait or run: 0 or -BRIG_E_NOMEM. */
int service_has_room(const struct service *s, const struct job *job, struct brig_error *err);

#endif
