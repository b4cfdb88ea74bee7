/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: many jobs submitted in one request.
 *
 * Each job is an asynchronous execution with its own id, ledger line and record; the batch knows their ids and
 * outcomes.  Jobs are held outside the queue and admitted a few at a time, oldest batch first, so that a thousand of
 * them neither fill the queue nor fail at a quota: a job that the quota refuses is retried when admission says.
 *
 *	held -> entered (in the queue, or running) -> ended
 *	  `------------------- cancelled ----------------^        lost: the service stopped before the job ended
 *
 * With a broker queue all fronts must know the batch; it is then stored in a bucket instead (queue_batches.c).
 *
 * STATE/serve/batches/ID has the owner, the time and the ids, written before the client is answered; the outcomes are
 * in the ledger.  So a batch and its outcomes survive a restart.  Results are kept as long as executions are.
 *
 *   RULE B1  A batch exists as long as one of its executions is held or entered; a finished one may be dropped when
 *   there are BATCHES_MAX.
 *   RULE B2  An execution points to its batch until it has ended or was dropped; the batch refers to it by id only.
 */
#ifndef SERVER_RUNNER_BATCHES_H
#define SERVER_RUNNER_BATCHES_H

#include <sys/queue.h>

#include "server/batch.h"
#include "server/quota.h"
#include "server/runner/executions.h"
#include "sys/statedir.h"

#define BATCHES_MAX         256
#define BATCH_HELD_MAX      20000 /* held jobs of all batches */
#define BATCH_HELD_OF_TOKEN 5000
#define BATCH_RETRY_S       10
#define BATCH_WATCHES_MAX   16
/* entered jobs of one batch: at most this or twice the number of slots, whichever is more */
#define BATCH_AHEAD_MIN 8
/* held jobs cancelled per turn of the loop: each is started in order to be recorded */
#define BATCH_CANCELS 32

enum batch_job_state { JOB_HELD, JOB_ENTERED, JOB_ENDED, JOB_LOST };

struct batch_job {
	enum batch_job_state state;
	char id[EXECUTION_ID_LEN + 1];
	char verdict[TOKEN_WORD_MAX + 1]; /* if it has ended */
	char *name;                       /* given by the client */
	uint64_t memory;
	/* of a batch that another front accepted (queue_batch_ask.c) */
	bool is_begun, is_told;
	char *result; /* NULL: there is none, or no room for it */
	size_t result_len;
};

struct batch {
	TAILQ_ENTRY(batch) in_age; /* oldest first */
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	struct quota quota;
	uint64_t created_ns, ended_ns; /* wall clock */
	uint64_t again_ns;             /* monotonic: nothing is admitted before */
	bool is_cancelled;
	bool is_shared; /* stored in the bucket */
	struct batch_job *job;
	size_t n, next /* index: no job before it is held */, n_held, n_entered;
	uint32_t watch[BATCH_WATCHES_MAX]; /* tags of requests that stream results */
	size_t n_watches;
};

TAILQ_HEAD(batch_list, batch);

struct batches {
	struct batch_list all;
	size_t n, n_held; /* n_held: jobs of all batches */
	struct statedir dir;
};

struct service;

void batches_init(struct batches *b);
/* Reads the batches of an earlier process; the ledger must be open. */
int batches_open(struct service *s, struct brig_error *err);
/* To be called after the executions are released. */
void batches_close(struct service *s);

struct batch *batches_find(const struct batches *b, const char *id);
/* A batch with room for n jobs, not in the list; NULL: out of memory. */
struct batch *batch_new(size_t n, const char *owner);
void batch_free(struct batch *b);
bool batch_is_over(const struct batch *b);
/* Makes room by dropping the oldest finished batch; false: there is none. */
bool batches_make_room(struct service *s);
void batches_add(struct service *s, struct batch *b);

/* Admits held jobs; to be called when a slot may be free, and when the time of batches_patience() has passed. */
void batches_feed(struct service *s);
/* Poll timeout in milliseconds, at most others_ms (-1: none). */
int batches_patience(const struct service *s, int others_ms);
void batch_cancel(struct service *s, struct batch *b);

/* Called by executions.c: the execution has ended with a result, or was dropped without one. */
void batch_on_end(struct service *s, struct execution *x);
void batch_on_drop(struct service *s, struct execution *x);

/* The client has gone.  True: the tag belonged to a stream of results, which has been answered. */
bool batches_gone(struct service *s, uint32_t tag);
/* The front has gone: ends all streams. */
void batches_all_gone(struct service *s);
/* batch_look.c: sends a job's result to the streams, and the summary if it was the last job. */
void batch_tell(struct service *s, struct batch *b, size_t job);

/* batch_look.c, also for batches of other fronts: answers, and events of streams */
struct request;
void batch_answer_state(struct service *s, const struct request *req, uint16_t status, const struct batch *b);
void batch_answer_results(struct service *s, const struct request *req, const struct batch *b);
void batch_send_result(struct service *s, uint32_t tag, const struct batch_job *j);
void batch_send_done(struct service *s, uint32_t tag, const struct batch *b);

/* batch_accept.c: starts a batch whose promise the queue keeps; discards one; answers 202 */
void batch_begin(struct service *s, const struct token *token, struct batch *b);
void batch_drop_all(struct service *s, struct batch *b);
void batch_answer_accepted(struct service *s, uint32_t tag, const char *id, size_t n, const char *state,
			   const char *owner);

/* batch_files.c */
int batch_write(const struct batches *all, const struct batch *b, struct brig_error *err);
void batch_unlink(const struct batches *all, const struct batch *b);
int batches_read(struct service *s, struct brig_error *err);

#endif
