/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interfaces of the keeper program. */
#ifndef KEEPER_INSIDE_H
#define KEEPER_INSIDE_H

#include "backend/native/made.h"
#include "backend/native/zygote.h"
#include "keeper/protocol.h"

/*
 * States of a kept cell:
 *
 *	BUILDING   being built, ahead of requests or already tied to one
 *	WAITING    unclaimed: the next request of its kind gets it
 *	CLAIMED    has the program of a request, which has not started
 *	RUNNING    until the program ends, is stopped, or the request is abandoned
 *	ANSWERED   the program's last process is dead and the request has its result; init and the cgroups are removed
 *		   once the result is on its way to the client
 *	DYING      killed; when the last process is dead the request is told, and the cell is removed
 */
enum kept_state { KEPT_BUILDING, KEPT_WAITING, KEPT_CLAIMED, KEPT_RUNNING, KEPT_ANSWERED, KEPT_DYING };

/*
 * Delay in ms before an answered cell is removed, so that the removal does not compete for CPUs with the processes that
 * pass the result on.
 */
#define ANSWER_MS 1

struct keeper;
struct kept;

/* What an epoll event refers to (data.ptr). */
struct source {
	void (*serve)(struct keeper *k, struct kept *c); /* NULL: the keeper's own socket */
	struct kept *cell;
	int fd; /* FD_NONE: not watched */
};

struct kind;

struct kept {
	struct kept *next;
	struct kind *kind;
	struct plan plan; /* the kind's plan with this cell's id */
	struct cell *cell;
	enum kept_state state;
	bool tied;                /* to a request: channel and program are set */
	bool was_waiting;         /* the cell existed before the request */
	bool went_early;          /* KEEP_GO came before the cell was built */
	bool told_final;          /* KEEP_FINAL or KEEP_FAILED was sent */
	bool gone;                /* freed by kept_sweep(), when no queued event can refer to it */
	char run[RUN_ID_LEN + 1]; /* id of the request's run; a warm cell has its own id */
	int channel, program;
	int told; /* the cell's number for the seccomp listener that is watched through a duplicate */
	uint64_t program_size;
	uint64_t bytes;       /* memory in use when it began to wait */
	uint64_t deadline_ns; /* for building, for dying, or for staying after the answer */
	bool ended;
	struct exit_info exit;
	struct facts *facts; /* read before the cell was killed; NULL: it was not killed while running */
	struct source of_cell, of_told, of_channel;
};

/* An interpreter whose forks fill the cells of a kind; zygote NULL: none. */
struct zygote_slot {
	struct zygote *zygote;
	bool ready;
	uint64_t bytes; /* memory in use when it became ready */
	struct source source;
};

/* Requests whose cells are interchangeable. */
struct kind {
	struct job *job; /* NULL: free slot */
	uint64_t asked_ns;
	unsigned waiting, building; /* unclaimed cells */
	unsigned wanted;            /* target for waiting + building */
	unsigned lost;              /* unclaimed cells that failed since one was last claimed */
	uint64_t bytes;             /* memory of one waiting cell, as last measured */
	bool never_waits;           /* its interpreter does not stop where it should: no cell of this kind is built */
	char why[256];
	struct zygote_slot zygote, next; /* next replaces zygote when it is ready */
	unsigned asked;                  /* number of requests */
	uint64_t hits, made;   /* hits: requests that found a waiting cell; made: cells whose building began */
	unsigned zygotes_lost; /* failed attempts since one was ready */
	unsigned forks_lost;   /* cells whose fork failed since a forked cell was claimed */
	/* A kind for one cell and one request (single.c), not in keeper.kinds: */
	bool single;
	void *contents; /* mapping of the contents of its files */
	uint64_t contents_size;
};

/* A request whose cell is removed except for the janitor's work.  It is told what the janitor cannot remove. */
struct leaving {
	struct leaving *next;
	int channel;
	const void *rest;         /* the backend's handle for what is left of the cell */
	struct source of_janitor; /* a duplicate, which we close */
};

#define KINDS_MAX KEEP_POOLS_MAX

struct keeper {
	struct keep_hello ceilings;
	struct backend_host *host;
	struct kept *cells;
	size_t n_cells, n_answered;
	struct kind kinds[KINDS_MAX];
	struct leaving *leaving;
	int epoll, caller;
	pid_t owner;      /* the process that created the caller's socket; 0: unknown */
	uint64_t busy_ns; /* when a request last arrived or was last told its end */
	bool greeted;
	char buffer[KEEP_BODY_MAX];
};

/* main.c */
int keeper_watch(struct keeper *k, struct source *s, int fd, struct kept *c,
		 void (*serve)(struct keeper *, struct kept *));
void keeper_unwatch(struct keeper *k, struct source *s);

/* confine.c: drops what the keeper does not need.  Negative and err if that fails. */
int keeper_confine(bool runs_helpers, struct brig_error *err);

/* ceilings.c: negative and err if the plan exceeds the ceilings. */
int ceilings_check(const struct keep_hello *most, const struct plan *plan, struct brig_error *err);
/* Checks the descriptors that came with the job; *ret_size is the size of its contents. */
int ceilings_check_descriptors(const struct job *job, const struct keep_message *m, uint64_t *ret_size,
			       struct brig_error *err);

/* Checks the stream of the cell's project. */
int ceilings_check_stream(const struct plan *plan, const struct keep_stream *s, int source, struct brig_error *err);

/* kinds.c */
/* The kind of a job; takes the job.  NULL: no slot is free. */
struct kind *kind_of(struct keeper *k, struct job *job);
/* Whether one more waiting cell with so much memory stays within the total for waiting cells and zygotes (INV-7). */
bool kinds_have_room(const struct keeper *k, uint64_t bytes);
/* A request needs a cell: returns a waiting one, or NULL, and adjusts the target. */
struct kept *kind_take(struct keeper *k, struct kind *kind);
/* Builds at most one missing cell; removes kinds that have not been requested for a long time. */
void kinds_refill(struct keeper *k);
/* Milliseconds until kinds_refill() is due; -1: nothing is planned. */
int kinds_pause_ms(const struct keeper *k);
/* Its interpreter does not wait: builds no more cells of this kind. */
void kind_never_waits(struct kind *kind, const struct brig_error *why);
/* An unclaimed cell of this kind has failed. */
void kind_lost(struct kind *kind);

/* Sends the number of cells of each kind over a channel. */
void kinds_tell(const struct keeper *k, int channel);

/* zygotes.c */
/* The zygote that a new cell of the kind is filled from; NULL: start an interpreter in the cell. */
struct zygote *zygotes_of(const struct keeper *k, const struct kind *kind);
/* Starts missing zygotes, and successors for those that are nearly used up. */
void zygotes_tend(struct keeper *k);
void zygotes_end(struct keeper *k, struct kind *kind);
#ifdef BRIG_FAULTS
void zygotes_await(struct keeper *k, struct kind *kind);
#else
static inline void zygotes_await(struct keeper *k, struct kind *kind)
{
	(void)k;
	(void)kind;
}
#endif
/* single.c */
/*
 * Begins a cell for this request only.  Takes the job, and the descriptors of its binds and its project.  NULL and err
 * on failure.
 */
struct kept *single_begin(struct keeper *k, struct job *job, struct keep_message *m, uint64_t size,
			  struct brig_error *err);
void single_free(struct kind *kind); /* no effect on a kind that is not single */

/* cells.c */
struct kept *kept_begin(struct keeper *k, struct kind *kind, struct brig_error *err);
/* Assigns the cell to a request; takes both descriptors. */
void kept_tie(struct keeper *k, struct kept *c, const char *run, int channel, int program, uint64_t size);
void kept_kill(struct kept *c); /* asynchronous: the cell ends when all its processes are dead */
/* Handles cells whose deadline for being built, for dying, or for staying after the answer has passed. */
void kept_check_deadlines(struct keeper *k);
/* Frees cells that are gone; call it only between batches of events. */
void kept_sweep(struct keeper *k);
/* A janitor gave up on part of a cell: tells the request, if it still listens. */
void kept_settled(void *arg, const void *rest, const char *leftovers);
/* Closes the channels of requests of whose cells nothing is left. */
void kept_close_channels(struct keeper *k);
/* The caller is gone: kills every cell and waits for it. */
void kept_end_all(struct keeper *k);
/* Sends KEEP_FAILED over a channel. */
void kept_refuse(int channel, const struct brig_error *why);

#endif
