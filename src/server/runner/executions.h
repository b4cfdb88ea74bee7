/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions, from acceptance until they are forgotten.
 *
 *	accepted -> queued -> running -> finished -> forgotten
 *	               |         ^          ^
 *	               |         +- immediately, if a slot is free
 *	               +- its client has disconnected: dropped without a trace
 *
 * A listener is the tag of a request that is answered by the execution.  A synchronous or streamed execution runs for
 * its starter: if that client disconnects, the execution is cancelled.  Other clients that wait for the same result or
 * watch it may come and go.
 *
 * A finished execution is kept with its result and events until the limits below are exceeded; then the oldest is
 * dropped, and only the history has it.
 */
#ifndef SERVER_RUNNER_EXECUTIONS_H
#define SERVER_RUNNER_EXECUTIONS_H

#include <sys/queue.h>

#include "base/id.h"
#include "server/admission.h"
#include "server/channel.h"
#include "server/runner/host.h"
#include "server/runner/job.h"
#include "sys/crypto.h"

#define EXECUTION_ID_LEN     16
#define FINISHED_MAX         1024 /* executions */
#define FINISHED_BYTES_MAX   (64 * MiB)
#define LISTENERS_OF_ONE_MAX 16
#define LOG_BYTES_MAX        (4 * MiB) /* of one execution's events */
#define LOG_SAMPLES_MAX      256
#define EXECUTION_BUCKETS    1024

enum execution_state { EXECUTION_QUEUED, EXECUTION_RUNNING, EXECUTION_FINISHED };

/* How a listener is answered. */
enum listener_kind {
	WAITS_FOR_RESULT, /* with the result, at the end */
	WATCHES,          /* with events as they occur */
};

struct waiting_ask {
	uint32_t tag;
	enum listener_kind kind;
	bool is_starter;
};

struct logged {
	enum event_kind kind;
	char *text;
	size_t len;
};

/* The incomplete UTF-8 character at the end of an output stream so far. */
struct cut_character {
	char bytes[4];
	size_t len;
};

struct service;
struct batch;
struct delivery;
struct remote;
struct watchers;

struct execution {
	TAILQ_ENTRY(execution) in_age; /* all executions, youngest first */
	LIST_ENTRY(execution) in_bucket;
	TAILQ_ENTRY(execution) in_promised; /* waiting for the ledger before 202 is answered */
	TAILQ_ENTRY(execution) in_finished; /* finished ones, first to finish first */
	struct service *service;
	char id[EXECUTION_ID_LEN + 1];
	char owner[TOKEN_NAME_MAX + 1];
	enum execution_state state;
	bool is_async, is_promised /* on the list of promises */, is_watched /* the run is in the epoll set */,
		is_cancelled;
	bool has_key;              /* a request with an Idempotency-Key may refer to it */
	uint8_t asked[SHA256_LEN]; /* hash of that request (idempotency.h) */
	uint32_t promise_tag;
	struct batch *batch; /* NULL: none, or the execution has ended */
	size_t batch_job;
	char workspace[EXECUTION_ID_LEN + 1]; /* the workspace it runs on; "": none */
	uint64_t workspace_version;
	bool keeps;
	int kept; /* archive of the changed files, while it runs; FD_NONE: they are not kept */
	uint64_t created_ns, started_ns, ended_ns; /* wall clock; 0: not yet */
	struct ticket ticket;
	struct host *host;         /* NULL when finished */
	struct job *job;           /* NULL when finished */
	struct brig_run *run;      /* NULL: not running here */
	struct delivery *delivery; /* the queue's job that this node runs (queue_worker.c); NULL: none */
	struct remote *remote;     /* it runs on another node (queue_front.c); NULL: here */
	struct watchers *watchers; /* fronts that receive its events (queue_watch.c); NULL: none */
	bool is_lost;              /* its outcome is unknown */
	/* for documents */
	const char *kind;
	char makes[TOKEN_WORD_MAX + 1]; /* the environment that it creates; "": none */
	uint32_t priority;
	enum door door;
	char language[TOKEN_WORD_MAX + 1], trust[TOKEN_WORD_MAX + 1], verdict[TOKEN_WORD_MAX + 1];
	struct waiting_ask *listener;
	size_t n_listeners, room_listeners;
	struct logged *log;
	size_t n_logged, room_logged, n_samples, log_bytes;
	bool log_is_cut; /* events were left out */
	struct cut_character cut[2];
	struct trace_steps *trace; /* NULL: traces are not exported */
	char *result;              /* JSON, when finished; NULL: out of memory */
	size_t result_len;
	char *unlisted; /* members that the result's document lacks, for the command line; NULL: none */
};

TAILQ_HEAD(execution_list, execution);
LIST_HEAD(execution_bucket, execution);

struct executions {
	struct execution_list all, promised, finished;
	struct execution_bucket bucket[EXECUTION_BUCKETS];
	size_t n_finished, n_runs;
	uint64_t finished_bytes;
};

extern const char *const execution_state_name[];

void executions_init(struct executions *e);
/* Cancels all runs and waits for them; listeners are not answered. */
void executions_release(struct service *s);

/* NULL: not found. */
struct execution *executions_find(const struct executions *e, const char *id);

/* A new one, not in the queue; takes the job.  NULL: out of memory, and the job stays the caller's. */
struct execution *execution_new(struct service *s, const struct token *owner, struct job *job);
/* The same with a given id. */
struct execution *execution_new_named(struct service *s, const struct token *owner, struct job *job, const char *id);
/* One that another front accepted and another node runs; NULL: out of memory. */
struct execution *execution_new_elsewhere(struct service *s, const char *id, const char *owner);
const char *execution_kind_name(uint64_t kind); /* of an enum brig_kind; "code" for unknown numbers */
/* Ends one that ran on another node, whose verdict is set; takes both texts, which may be NULL. */
void execution_conclude(struct service *s, struct execution *x, char *result, char *unlisted, uint64_t cpu_ns);
/* Starts the run and steps it once. */
void execution_start(struct service *s, struct execution *x);
/* Continues the run; the execution may have finished on return. */
void execution_step(struct service *s, struct execution *x);
/* Ends it with the verdict "cancelled", whether it waits or runs. */
void execution_cancel(struct service *s, struct execution *x);
/* Drops one that waits; its listeners are answered 503. */
void execution_turn_away(struct service *s, struct execution *x);
/* The id of the request that submitted it; "-": no longer known. */
const char *execution_request_id(const struct execution *x);
/* Removes it from all lists and frees it; it must not be running here. */
void execution_drop(struct service *s, struct execution *x);

/* False: too many listeners, or out of memory. */
bool execution_listen(struct execution *x, uint32_t tag, enum listener_kind kind, bool is_starter);
/*
 * The client with this tag has disconnected: its request is answered, and an execution that ran only for it is
 * cancelled.
 */
void executions_gone(struct service *s, uint32_t tag);
/* The front has gone: the same for all clients. */
void executions_all_gone(struct service *s);
/* The client with this tag, if it is the starter, cancels the execution. */
void executions_cancel(struct service *s, uint32_t tag);
/* The client with this tag, if it is the starter, sends the program a signal. */
void executions_signal(struct service *s, uint32_t tag, int signal);
/* Answers 200 with the result of a finished one. */
void execution_answer_result(struct service *s, const struct execution *x, uint32_t tag);

/* ---- events.c -------------------------------------------------------------------------------------------- */

/* Sets the callbacks of a request. */
void events_attach(struct execution *x, struct brig_request *what);
/* Records and sends output, or another event; the latter takes ownership of the object. */
void events_output(struct execution *x, enum brig_stream stream, const void *data, size_t len);
void events_put(struct execution *x, enum event_kind kind, json_t *event);
/* Whether an event would be sent or kept: otherwise the caller need not make it. */
bool events_are_heard(const struct execution *x);
/* Records and sends an event received from another node. */
void events_pass_on(struct execution *x, enum event_kind kind, const char *text, size_t len);
void events_queued(struct execution *x, size_t position);
/* Flushes output, sends the verdict, and answers all listeners. */
void events_finish(struct execution *x);
/* Sends all events so far to a new listener, and the end if it is finished. */
void events_replay(const struct execution *x, uint32_t tag);
void events_replay_end(const struct execution *x, uint32_t tag); /* of a finished one: only its end */
void events_release(struct execution *x);

#endif
