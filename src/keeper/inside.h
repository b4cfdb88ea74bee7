/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's own parts; shared by the files that make up its program. */
#ifndef KEEPER_INSIDE_H
#define KEEPER_INSIDE_H

#include "backend/native/made.h"
#include "backend/native/zygote.h"
#include "keeper/protocol.h"

/*
 * The life of a kept cell:
 *
 *	BUILDING   ahead of requests, or for one that is tied to it already
 *	WAITING    nobody's: the next request of its kind gets it
 *	CLAIMED    has the program of a request, which has not begun
 *	RUNNING    until it ends, is stopped, or nobody wants to know any more
 *	ANSWERED   the program's last process is dead and the request knows all; init and the rest go when that answer is on its way
 *	DYING      killed; when the last process is dead the request is told, and the rest is removed
 */
enum kept_state { KEPT_BUILDING, KEPT_WAITING, KEPT_CLAIMED, KEPT_RUNNING, KEPT_ANSWERED, KEPT_DYING };

/* In which who was told of an end tells others, with the cpus that removing the cell would take. */
#define ANSWER_MS 1

struct keeper;
struct kept;

/* What an event of the epoll is about. */
struct source {
	void (*serve)(struct keeper *k, struct kept *c); /* NULL: the keeper's own socket */
	struct kept *cell;
	int fd; /* FD_NONE: not watched */
};

struct kind;

struct kept {
	struct kept *next;
	struct kind *kind;
	struct plan plan; /* the kind's, under an id of its own */
	struct cell *cell;
	enum kept_state state;
	bool tied;                /* to a request, by channel and program */
	bool was_waiting;         /* when the request came */
	bool went_early;          /* was let go, or is to be, before it is built */
	bool told_final;          /* or the reason why there is none */
	bool gone;                /* to be freed when no event can name it any more */
	char run[RUN_ID_LEN + 1]; /* of the request; its cell has another id */
	int channel, program;
	int told; /* the cell's listener that is watched, as the cell calls it */
	uint64_t program_size;
	uint64_t bytes;       /* of memory, when it began to wait */
	uint64_t deadline_ns; /* of building, of dying, or of staying when all is said */
	bool ended;
	struct exit_info exit;
	struct facts *facts; /* read while there were processes; NULL: it was not killed */
	struct source of_cell, of_told, of_channel;
};

/* An interpreter that cells of a kind are filled from; zygote NULL: there is none. */
struct zygote_slot {
	struct zygote *zygote;
	bool ready;
	uint64_t bytes; /* of memory, when it was ready */
	struct source source;
};

/* Requests that can have each other's cells. */
struct kind {
	struct job *job; /* NULL: free */
	uint64_t asked_ns;
	unsigned waiting, building; /* cells that are nobody's */
	unsigned wanted;            /* how many there should be of both together */
	unsigned lost;              /* since one was claimed */
	uint64_t bytes;             /* of memory that one of them takes, as far as is known */
	bool never_waits;           /* its interpreter does not stop: such cells are not made */
	char why[256];
	struct zygote_slot zygote, next; /* next takes over when it is ready */
	unsigned asked;                  /* for a cell, so often */
	uint64_t hits, made;             /* that found one waiting; cells that were begun */
	unsigned zygotes_lost;           /* since one was ready */
	unsigned forks_lost;             /* cells that a zygote did not fill, since one was claimed */
	/* A kind of one cell and one request (single.c), which is in no list: */
	bool single;
	void *contents; /* of its files, mapped */
	uint64_t contents_size;
};

/* A request whose cell is removed but for what janitors still do; it is told what they cannot. */
struct leaving {
	struct leaving *next;
	int channel;
	const void *rest;         /* of the cell, as the backend calls it */
	struct source of_janitor; /* a copy, which is ours to close */
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
	pid_t owner;      /* who has made the caller's socket; 0: nobody knows */
	uint64_t busy_ns; /* when a request last came or was told its end */
	bool greeted;
	char buffer[KEEP_BODY_MAX];
};

/* main.c */
int keeper_watch(struct keeper *k, struct source *s, int fd, struct kept *c,
		 void (*serve)(struct keeper *, struct kept *));
void keeper_unwatch(struct keeper *k, struct source *s);

/* confine.c: negative, and why, if the keeper cannot give up what it does not need. */
int keeper_confine(bool runs_helpers, struct brig_error *err);

/* ceilings.c: negative, and why, if the job asks for more than this keeper was started for. */
int ceilings_check(const struct keep_hello *most, const struct plan *plan, struct brig_error *err);
/* The same for the descriptors that came with it; *ret_size is that of its contents. */
int ceilings_check_descriptors(const struct job *job, const struct keep_message *m, uint64_t *ret_size,
			       struct brig_error *err);

/* The same for a stream of the cell's project. */
int ceilings_check_stream(const struct plan *plan, const struct keep_stream *s, int source, struct brig_error *err);

/* kinds.c */
/* The kind of a job, which it takes; NULL: there are too many. */
struct kind *kind_of(struct keeper *k, struct job *job);
/* Whether one more cell that waits, with so much memory, is within what all of them may have (INV-7). */
bool kinds_have_room(const struct keeper *k, uint64_t bytes);
/* Somebody wants one: a waiting cell, or NULL. */
struct kept *kind_take(struct keeper *k, struct kind *kind);
/* Makes what is wanted and not there; removes what nobody has asked for in a long time. */
void kinds_refill(struct keeper *k);
/* When that is to be done again, in ms; -1: nothing is planned. */
int kinds_pause_ms(const struct keeper *k);
/* Its interpreter does not wait: no more such cells are made. */
void kind_never_waits(struct kind *kind, const struct brig_error *why);
/* A cell of it that was nobody's has failed. */
void kind_lost(struct kind *kind);

/* Tells a channel how many cells of which kind there are. */
void kinds_tell(const struct keeper *k, int channel);

/* zygotes.c */
/* The one to fill a new cell of the kind from; NULL: its interpreter is started in it. */
struct zygote *zygotes_of(const struct keeper *k, const struct kind *kind);
/* Begins those that are missing, and replaces those that have served long enough. */
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
/* A cell for this request alone; takes the job, and the descriptors of its binds and its project.  NULL, and why. */
struct kept *single_begin(struct keeper *k, struct job *job, struct keep_message *m, uint64_t size,
			  struct brig_error *err);
void single_free(struct kind *kind); /* of other kinds nothing */

/* cells.c */
struct kept *kept_begin(struct keeper *k, struct kind *kind, struct brig_error *err);
/* From now on the cell is this request's; takes both descriptors. */
void kept_tie(struct keeper *k, struct kept *c, const char *run, int channel, int program, uint64_t size);
void kept_kill(struct kept *c); /* it ends when all is dead */
/* Those whose time to be built, to die, or to stay when all is said, is over. */
void kept_check_deadlines(struct keeper *k);
/* Frees what is gone; no event may name it any more. */
void kept_sweep(struct keeper *k);
/* What a janitor could not remove of a cell: its request is told, if it still listens. */
void kept_settled(void *arg, const void *rest, const char *leftovers);
/* Of requests of whose cells nothing is left. */
void kept_close_channels(struct keeper *k);
/* The caller is gone: every cell dies, and is waited for. */
void kept_end_all(struct keeper *k);
/* Tells a channel that there will be no cell. */
void kept_refuse(int channel, const struct brig_error *why);

#endif
