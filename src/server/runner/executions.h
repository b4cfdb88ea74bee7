/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions: what was accepted, from then on until it is forgotten.
 *
 *	accepted -> queued -> running -> finished -> forgotten
 *	               |         ^          ^
 *	               |         +- at once, if there is room
 *	               +- its client has gone: dropped, as if it had never been
 *
 * Who waits for one is a listener: the tag of a request that is still to be answered.  The starter of a synchronous or streamed
 * execution is the only one for whom it runs: if he goes, it is cancelled.  Others who wait for the same result, or watch,
 * come and go.
 *
 * What is finished stays, with its result and its events, until there is too much of it; then the oldest goes, and the
 * history answers for it.
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
	WAITS_FOR_RESULT, /* with the result */
	WATCHES,          /* event by event */
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

/* Of one stream of the program: the beginning of a character whose rest has not come yet. */
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
	TAILQ_ENTRY(execution) in_age; /* of all, the youngest first */
	LIST_ENTRY(execution) in_bucket;
	TAILQ_ENTRY(execution) in_promised; /* answers of 202 that wait for the ledger */
	TAILQ_ENTRY(execution) in_finished; /* those that have, the first one first */
	struct service *service;
	char id[EXECUTION_ID_LEN + 1];
	char owner[TOKEN_NAME_MAX + 1];
	enum execution_state state;
	bool is_async, is_promised /* on that list */, is_watched /* its run is in the epoll */, is_cancelled;
	bool has_key;              /* somebody may ask for it again by an idempotency key */
	uint8_t asked[SHA256_LEN]; /* what was asked then (idempotency.h) */
	uint32_t promise_tag;
	struct batch *batch; /* that it is of, until it has ended; NULL: none */
	size_t batch_job;
	char workspace[EXECUTION_ID_LEN + 1]; /* that it runs on; "": none */
	uint64_t workspace_version;
	bool keeps;
	int kept; /* what it changed, as an archive, while it runs; FD_NONE: nothing is to be kept */
	uint64_t created_ns, started_ns, ended_ns; /* time of day; 0: not yet */
	struct ticket ticket;
	struct host *host;         /* NULL when it has finished */
	struct job *job;           /* likewise */
	struct brig_run *run;      /* NULL: none is under way */
	struct delivery *delivery; /* of the queue, that it is run for here; NULL: of none (queue_worker.c) */
	struct remote *remote;     /* it runs elsewhere (queue_front.c); NULL: here */
	struct watchers *watchers; /* fronts that are told what happens to it (queue_watch.c); NULL: none */
	bool is_lost;              /* nobody knows how it would have ended */
	/* what is told of it */
	const char *kind;
	char makes[TOKEN_WORD_MAX + 1]; /* the environment that it makes; "": none */
	uint32_t priority;
	enum door door;
	char language[TOKEN_WORD_MAX + 1], trust[TOKEN_WORD_MAX + 1], verdict[TOKEN_WORD_MAX + 1];
	struct waiting_ask *listener;
	size_t n_listeners, room_listeners;
	struct logged *log;
	size_t n_logged, room_logged, n_samples, log_bytes;
	bool log_is_cut; /* there was more */
	struct cut_character cut[2];
	struct trace_steps *trace; /* while it runs, if traces are exported; NULL: none */
	char *result;              /* JSON, when it has finished; NULL: there was no memory for it */
	size_t result_len;
	char *unlisted; /* what the result's document has not, for who shows it as its own; NULL: nothing */
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
/* Ends all: runs are cancelled and waited for; nobody is told. */
void executions_release(struct service *s);

/* NULL: there is none of that id. */
struct execution *executions_find(const struct executions *e, const char *id);

/* One that is in no queue yet; takes the job.  NULL: no memory, and the job is still the caller's. */
struct execution *execution_new(struct service *s, const struct token *owner, struct job *job);
/* Likewise with an id that it has already. */
struct execution *execution_new_named(struct service *s, const struct token *owner, struct job *job, const char *id);
/* One that another front has promised and that runs elsewhere; NULL: no memory. */
struct execution *execution_new_elsewhere(struct service *s, const char *id, const char *owner);
const char *execution_kind_name(uint64_t kind); /* of an enum brig_kind, or what was said to be one */
/* Ends one that ran elsewhere and whose verdict is set; takes both texts, which may be NULL. */
void execution_conclude(struct service *s, struct execution *x, char *result, char *unlisted, uint64_t cpu_ns);
/* Begins its run, and goes on with it as far as that is possible now. */
void execution_start(struct service *s, struct execution *x);
/* Goes on with it; it may have finished when this returns. */
void execution_step(struct service *s, struct execution *x);
/* It is to end with the verdict "cancelled", whether it waits or runs. */
void execution_cancel(struct service *s, struct execution *x);
/* One that waits will not run: who waits for it is told, and it is gone. */
void execution_turn_away(struct service *s, struct execution *x);
/* Of the request that asked for it; "-": that is not known any more. */
const char *execution_request_id(const struct execution *x);
/* Forgets it, wherever it is: nothing of it may be under way. */
void execution_drop(struct service *s, struct execution *x);

/* False: too many, or no memory. */
bool execution_listen(struct execution *x, uint32_t tag, enum listener_kind kind, bool is_starter);
/* Who asked with this tag has gone: what is open is answered, and what ran for nobody else is cancelled. */
void executions_gone(struct service *s, uint32_t tag);
/* The same of everybody who waits for anything. */
void executions_all_gone(struct service *s);
/* Who asked with this tag, and for whom it runs, wants it to end. */
void executions_cancel(struct service *s, uint32_t tag);
/* Likewise wants its program to have a signal. */
void executions_signal(struct service *s, uint32_t tag, int signal);
/* The present answer of one that has finished: 200 and the result. */
void execution_answer_result(struct service *s, const struct execution *x, uint32_t tag);

/* ---- events.c -------------------------------------------------------------------------------------------- */

/* Sets the callbacks of the request. */
void events_attach(struct execution *x, struct brig_request *what);
/* One piece of output, and any other event, which is taken. */
void events_output(struct execution *x, enum brig_stream stream, const void *data, size_t len);
void events_put(struct execution *x, enum event_kind kind, json_t *event);
/* Whether an event would be sent or kept: where it would not, making it is work for nothing. */
bool events_are_heard(const struct execution *x);
/* An event of an execution that runs elsewhere, as it came. */
void events_pass_on(struct execution *x, enum event_kind kind, const char *text, size_t len);
void events_queued(struct execution *x, size_t position);
/* The last pieces of output, and the verdict; each listener that watches is answered and gone. */
void events_finish(struct execution *x);
/* What has happened so far, and the end if it has come, to one who watches from now on. */
void events_replay(const struct execution *x, uint32_t tag);
void events_replay_end(const struct execution *x, uint32_t tag); /* of one that has finished: nothing else of it */
void events_release(struct execution *x);

#endif
