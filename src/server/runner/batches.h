/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: many jobs that were asked for at once.
 *
 * Each job is an asynchronous execution with an id, a line in the ledger and a record of its own; a batch knows which they are
 * and how they ended.  They wait beside the queue and are let in a few at a time, oldest batch first, so that a thousand jobs
 * neither fill the queue for others nor fail at a quota: what the quota refuses now is tried again when it says.
 *
 *	held -> entered (waits in the queue, or runs) -> ended
 *	  `------------------- cancelled ----------------^        lost: the service ended before it did
 *
 * With a queue, others than the front that accepted it have to know of it: then it is in a bucket instead (queue_batches.c).
 *
 * STATE/serve/batches/ID has the owner, the time and the ids, written before the client is told; how each of them ended is in
 * the ledger.  So a batch is there after a restart, with what became of it.  Results stay as long as executions do.
 *
 *   RULE B1  A batch lives as long as one of its executions is held or entered; then until there are BATCHES_MAX younger.
 *   RULE B2  An execution points to its batch until it has ended or was dropped; the batch knows it by its id only.
 */
#ifndef SERVER_RUNNER_BATCHES_H
#define SERVER_RUNNER_BATCHES_H

#include <sys/queue.h>

#include "server/batch.h"
#include "server/quota.h"
#include "server/runner/executions.h"
#include "sys/statedir.h"

#define BATCHES_MAX         256
#define BATCH_HELD_MAX      20000 /* jobs that wait beside the queue, of all */
#define BATCH_HELD_OF_TOKEN 5000
#define BATCH_RETRY_S       10
#define BATCH_WATCHES_MAX   16
#define BATCH_AHEAD_MIN     8  /* of one batch, in the queue or running: or twice as many as run at once */
#define BATCH_CANCELS       32 /* of one turn: each is begun, to be on record */

enum batch_job_state { JOB_HELD, JOB_ENTERED, JOB_ENDED, JOB_LOST };

struct batch_job {
	enum batch_job_state state;
	char id[EXECUTION_ID_LEN + 1];
	char verdict[TOKEN_WORD_MAX + 1]; /* of one that has ended */
	char *name;                       /* the client's own */
	uint64_t memory;
	/* of one that another front has promised (queue_batch_ask.c) */
	bool is_begun, is_told;
	char *result; /* heap; NULL: there is none, or no room for it */
	size_t result_len;
};

struct batch {
	TAILQ_ENTRY(batch) in_age; /* the oldest first */
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	struct quota quota;
	uint64_t created_ns, ended_ns; /* time of day */
	uint64_t again_ns;             /* nobody is let in before; of a clock that never goes back */
	bool is_cancelled;
	bool is_shared; /* all fronts know it: it is in the bucket */
	struct batch_job *job;
	size_t n, next /* no job before it is held */, n_held, n_entered;
	uint32_t watch[BATCH_WATCHES_MAX]; /* tags of those who get results as they come */
	size_t n_watches;
};

TAILQ_HEAD(batch_list, batch);

struct batches {
	struct batch_list all;
	size_t n, n_held; /* n_held: jobs, of all */
	struct statedir dir;
};

struct service;

void batches_init(struct batches *b);
/* Reads what an earlier process left; the ledger must be open. */
int batches_open(struct service *s, struct brig_error *err);
/* After the executions. */
void batches_close(struct service *s);

struct batch *batches_find(const struct batches *b, const char *id);
/* One with room for n jobs, of which none is there yet; NULL: no memory.  It is in no list. */
struct batch *batch_new(size_t n, const char *owner);
void batch_free(struct batch *b);
bool batch_is_over(const struct batch *b);
/* Makes room by forgetting the oldest that is over; false: there is none. */
bool batches_make_room(struct service *s);
void batches_add(struct service *s, struct batch *b);

/* Lets in who may be let in; call it when a place may be free, and at the time that batches_patience() says. */
void batches_feed(struct service *s);
/* The milliseconds that may be waited, given what others wait for (-1: for ever). */
int batches_patience(const struct service *s, int others_ms);
void batch_cancel(struct service *s, struct batch *b);

/* executions.c tells: it has ended, and its result is there; it is gone without an end. */
void batch_on_end(struct service *s, struct execution *x);
void batch_on_drop(struct service *s, struct execution *x);

/* True: the tag was of one who watched a batch, and has been answered. */
bool batches_gone(struct service *s, uint32_t tag);
/* Nobody is there any more to be answered. */
void batches_all_gone(struct service *s);
/* batch_look.c: somebody's result, and the end if that was the last one, to those who watch. */
void batch_tell(struct service *s, struct batch *b, size_t job);

/* batch_look.c, of batches here and of other fronts: what is answered, and events to one who watches. */
struct request;
void batch_answer_state(struct service *s, const struct request *req, uint16_t status, const struct batch *b);
void batch_answer_results(struct service *s, const struct request *req, const struct batch *b);
void batch_send_result(struct service *s, uint32_t tag, const struct batch_job *j);
void batch_send_done(struct service *s, uint32_t tag, const struct batch *b);

/* batch_accept.c: one whose promise is kept by the queue begins; or comes to nothing; and what its client is told. */
void batch_begin(struct service *s, const struct token *token, struct batch *b);
void batch_drop_all(struct service *s, struct batch *b);
void batch_answer_accepted(struct service *s, uint32_t tag, const char *id, size_t n, const char *state,
			   const char *owner);

/* batch_files.c */
int batch_write(const struct batches *all, const struct batch *b, struct brig_error *err);
void batch_unlink(const struct batches *all, const struct batch *b);
int batches_read(struct service *s, struct brig_error *err);

#endif
