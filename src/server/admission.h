/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may run next, and who may at all.
 *
 * A value without input, output or clock: the caller says what came, what ended and what time it is.  So every rule here is
 * tested by itself.
 *
 *   - At most running_max executions run at one time, and of each token not more than its quota says (server/quota.h).
 *   - Whoever cannot run yet waits.  Tokens with waiting requests take turns: each gets one, then the next token.  So a token
 *     with a thousand requests delays another's by one turn.  Within a token the higher priority goes first, then the
 *     earlier; the first one in line is waited for, so that a large one is not passed for ever by small ones.
 *   - A token that sent more requests in a minute, or used more processor time in an hour, than it may, is refused with the
 *     seconds after which it may ask again.  Both are meters that run empty at a steady pace: no window whose edge could be
 *     used twice.  Processor time is charged when an execution ends, so the last ones may go over; what is over is waited
 *     for.
 *   - What waits has a ceiling, in all and for each token.
 *
 * Tickets belong to the caller and are linked into the lists: no allocation for a request.  A ticket must not move or be
 * freed between admission_enter(), if that gave RUN or WAIT, and admission_leave().
 */
#ifndef SERVER_ADMISSION_H
#define SERVER_ADMISSION_H

#include <sys/queue.h>

#include "server/quota.h"

#define ADMISSION_PRIORITIES       10 /* 0..9; 9 goes first */
#define ADMISSION_DEFAULT_PRIORITY 5
#define ADMISSION_NAME_MAX         80
#define ADMISSION_NEVER_NS         UINT64_MAX

struct admission;
struct admission_account;

struct admission_opts {
	uint32_t running_max;           /* at least 1 */
	uint32_t waiting_max;           /* in all; 0: nobody waits */
	uint32_t waiting_per_token_max; /* 0: as waiting_max */
	uint32_t accounts_max;          /* tokens that are remembered at one time; at least 1 */
};

enum ticket_state { TICKET_IDLE, TICKET_WAITING, TICKET_RUNNING };

/* Begins as { 0 }. */
struct ticket {
	enum ticket_state state; /* to be read by anybody; what follows is admission.c's */
	uint32_t priority;
	TAILQ_ENTRY(ticket) in_line;
	struct admission_account *account;
	uint64_t memory, started_ns;
};

enum admission_answer {
	ADMISSION_RUN,       /* it runs from now on */
	ADMISSION_WAIT,      /* admission_next() will give it */
	ADMISSION_RATE,      /* 429: runs_per_minute */
	ADMISSION_CPU,       /* 429: cpu_seconds_per_hour */
	ADMISSION_CROWDED,   /* 429: too many of this token wait already */
	ADMISSION_FULL,      /* 503: too many wait already */
	ADMISSION_TOO_LARGE, /* 403: its memory alone is more than the token's; waiting does not help */
};

struct admission_ask {
	const char *token; /* name of whoever asks, at most ADMISSION_NAME_MAX bytes; what is behind is not looked at */
	const struct quota
		*quota;    /* the token's, as it is now; copied, and from now on in force for all of that token */
	uint32_t priority; /* above 9 counts as 9 */
	uint64_t memory;   /* bytes of its memory limit */
};

/* NULL: no memory. */
struct admission *admission_new(const struct admission_opts *opts);
/* Tickets that are still in it are forgotten, not touched. */
void admission_free(struct admission *a);

/*
 * now_ns is of a clock that never goes back.  *ret_retry_after_s is set with the answers of 429 and 503, at least 1.  With RUN
 * and WAIT the ticket, which must be idle, is taken; with the others it stays idle.
 */
enum admission_answer admission_enter(struct admission *a, const struct admission_ask *ask, uint64_t now_ns,
				      struct ticket *t, uint32_t *ret_retry_after_s);
/*
 * The next one that may run, which now does; call it again until it gives NULL: whenever somebody left, and at the moment
 * that *ret_again_ns (may be NULL) says with a NULL, at which time alone lets somebody run; ADMISSION_NEVER_NS: none.
 */
struct ticket *admission_next(struct admission *a, uint64_t now_ns, uint64_t *ret_again_ns);
/* It ended, having used cpu_ns, or waits no more; the ticket is idle then.  Idle ones are fine. */
void admission_leave(struct admission *a, struct ticket *t, uint64_t cpu_ns, uint64_t now_ns);

/*
 * Of what runs without a place of its own, as in a session that has been let in before: counts it (RUN), or says why it may not be
 * (RATE, CPU, FULL); and the processor time that it used.
 */
enum admission_answer admission_charge_run(struct admission *a, const struct admission_ask *ask, uint64_t now_ns,
					   uint32_t *ret_retry_after_s);
void admission_charge_cpu(struct admission *a, const struct admission_ask *ask, uint64_t cpu_ns, uint64_t now_ns);

/* How many start before this one and itself, if none is held up by its quota: 1 is next; 0: it does not wait. */
size_t admission_position(const struct admission *a, const struct ticket *t);
size_t admission_running(const struct admission *a);
size_t admission_waiting(const struct admission *a);

/* What one token has; for /v1/queue. */
struct admission_count {
	const char *token;
	size_t running, waiting;
	uint64_t memory; /* of those that run */
};
/* Every token that has something running or waiting, in no order. */
void admission_each(const struct admission *a, void (*fn)(const struct admission_count *count, void *arg), void *arg);

/*
 * Meters of a token that are not empty: after how much time each will be, if nothing is added.  So what tokens used up can be
 * written down by whoever has files, and a later process told of it.
 */
struct admission_meters {
	const char *token;
	uint64_t runs_ns, cpu_ns;
};
/* Every token whose meters were added to since this was called last. */
void admission_each_metered(struct admission *a, uint64_t now_ns,
			    void (*fn)(const struct admission_meters *m, void *arg), void *arg);
bool admission_is_metered(const struct admission *a); /* there is one */
/* All that are not empty. */
void admission_each_meter(const struct admission *a, uint64_t now_ns,
			  void (*fn)(const struct admission_meters *m, void *arg), void *arg);
/* As they were; what is more than a meter may have counts as that.  False: too many tokens, or no memory. */
bool admission_restore(struct admission *a, const struct admission_meters *m, uint64_t now_ns);

/* Why somebody was refused, and what to do, for a message: "the token ci " and this.  NULL: RUN and WAIT. */
const char *admission_why(enum admission_answer answer);

#endif
