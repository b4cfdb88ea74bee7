/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission control: which execution may run, which waits, and which is refused.
 *
 * A pure data structure: no I/O and no clock of its own.  The caller reports arrivals, ends and the current time, so
 * every rule below has unit tests.
 *
 *   - At most running_max executions run at one time, and at most as many of one token as its quota permits
 *     (server/quota.h).
 *   - Other executions wait.  Scheduling among tokens is round-robin: a token with a thousand requests delays another
 *     token's request by one turn.  Within a token, higher priority goes first, then earlier arrival.  The head of a
 *     token's line is never overtaken by a smaller request, so a large one cannot starve.
 *   - A token over its runs_per_minute or cpu_seconds_per_hour is refused with a Retry-After in seconds.  Both are
 *     leaky buckets that drain at a constant rate, so there is no window edge at which the quota could be used twice.
 *     CPU time is charged when an execution ends; a token can therefore exceed its quota with the executions then
 *     running, and waits until the excess has drained.
 *   - The queue is bounded, in total and per token.
 *
 * Tickets belong to the caller and are linked into the lists, so a request needs no allocation.  A ticket must not move
 * or be freed between an admission_enter() that returned RUN or WAIT, and admission_leave().
 */
#ifndef SERVER_ADMISSION_H
#define SERVER_ADMISSION_H

#include <sys/queue.h>

#include "server/quota.h"

#define ADMISSION_PRIORITIES       10 /* 0 to 9; 9 goes first */
#define ADMISSION_DEFAULT_PRIORITY 5
#define ADMISSION_NAME_MAX         80
#define ADMISSION_NEVER_NS         UINT64_MAX

struct admission;
struct admission_account;

struct admission_opts {
	uint32_t running_max;           /* at least 1 */
	uint32_t waiting_max;           /* in total; 0: nothing may wait */
	uint32_t waiting_per_token_max; /* 0: as waiting_max */
	uint32_t accounts_max;          /* tokens that have an account at one time; at least 1 */
};

enum ticket_state { TICKET_IDLE, TICKET_WAITING, TICKET_RUNNING };

/* Initialise with { 0 }. */
struct ticket {
	enum ticket_state state; /* the caller may read it; the other fields are private to admission.c */
	uint32_t priority;
	TAILQ_ENTRY(ticket) in_line;
	struct admission_account *account;
	uint64_t memory, started_ns;
};

enum admission_answer {
	ADMISSION_RUN,       /* the ticket is running */
	ADMISSION_WAIT,      /* the ticket is queued; admission_next() will return it */
	ADMISSION_RATE,      /* 429: runs_per_minute */
	ADMISSION_CPU,       /* 429: cpu_seconds_per_hour */
	ADMISSION_CROWDED,   /* 429: too many requests of this token wait already */
	ADMISSION_FULL,      /* 503: too many requests wait already */
	ADMISSION_TOO_LARGE, /* 403: its memory limit alone exceeds the token's quota; waiting does not help */
};

struct admission_ask {
	const char *token; /* name of the token; only the first ADMISSION_NAME_MAX bytes count */
	/* the token's current quota; copied, and applied to all executions of the token from now on */
	const struct quota *quota;
	uint32_t priority; /* values above 9 count as 9 */
	uint64_t memory;   /* its memory limit in bytes */
};

/* NULL: out of memory. */
struct admission *admission_new(const struct admission_opts *opts);
/* Does not touch tickets that are still queued or running. */
void admission_free(struct admission *a);

/*
 * now_ns is of a monotonic clock.  *ret_retry_after_s, at least 1, is set for the answers of 429 and 503.  The ticket
 * must be idle; RUN and WAIT take it, other answers leave it idle.
 */
enum admission_answer admission_enter(struct admission *a, const struct admission_ask *ask, uint64_t now_ns,
				      struct ticket *t, uint32_t *ret_retry_after_s);
/*
 * Starts and returns the next ticket that may run; NULL: none.  Call it until it returns NULL, whenever an execution
 * has left, and at *ret_again_ns.  *ret_again_ns (may be NULL) is set together with NULL: the time at which a ticket
 * may run although no other has left; ADMISSION_NEVER_NS: there is no such time.
 */
struct ticket *admission_next(struct admission *a, uint64_t now_ns, uint64_t *ret_again_ns);
/*
 * The execution ended after cpu_ns of CPU time, or no longer waits; the ticket becomes idle.  No effect on an idle
 * ticket.
 */
void admission_leave(struct admission *a, struct ticket *t, uint64_t cpu_ns, uint64_t now_ns);

/*
 * For runs that occupy no slot of their own, such as runs in a session, which was admitted itself.  Charges one run
 * (RUN), or returns why it is refused (RATE, CPU, FULL); the second function charges the CPU time it used.
 */
enum admission_answer admission_charge_run(struct admission *a, const struct admission_ask *ask, uint64_t now_ns,
					   uint32_t *ret_retry_after_s);
void admission_charge_cpu(struct admission *a, const struct admission_ask *ask, uint64_t cpu_ns, uint64_t now_ns);

/* Position in the queue, 1 for the next one, assuming that no token is held up by its quota; 0: it does not wait. */
size_t admission_position(const struct admission *a, const struct ticket *t);
size_t admission_running(const struct admission *a);
size_t admission_waiting(const struct admission *a);

/* Usage of one token, for /v1/queue. */
struct admission_count {
	const char *token;
	size_t running, waiting;
	uint64_t memory; /* sum of the memory limits of running executions */
};
/* Calls fn for every token that has an execution running or waiting, in no particular order. */
void admission_each(const struct admission *a, void (*fn)(const struct admission_count *count, void *arg), void *arg);

/*
 * The state of a token's leaky buckets: the time until each is empty if nothing is added.  With these the caller can
 * save usage in a file and restore it in a later process.
 */
struct admission_meters {
	const char *token;
	uint64_t runs_ns, cpu_ns;
};
/* Calls fn for every token charged since the last call. */
void admission_each_metered(struct admission *a, uint64_t now_ns,
			    void (*fn)(const struct admission_meters *m, void *arg), void *arg);
bool admission_is_metered(const struct admission *a); /* whether there is such a token */
/* Calls fn for every token with a bucket that is not empty. */
void admission_each_meter(const struct admission *a, uint64_t now_ns,
			  void (*fn)(const struct admission_meters *m, void *arg), void *arg);
/* Restores saved values, clamped to the maximum of a bucket.  False: too many tokens, or out of memory. */
bool admission_restore(struct admission *a, const struct admission_meters *m, uint64_t now_ns);

/* Reason of a refusal, with advice, as the end of a message that begins "the token ci ".  NULL for RUN and WAIT. */
const char *admission_why(enum admission_answer answer);

#endif
