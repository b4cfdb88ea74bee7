/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: cells that stay (brig/session.h), each its token's.
 *
 *	asked for -> starting -> ready -> ended -> forgotten
 *	                 `---------^ the ask for it is answered here, or with why there is none
 *
 *	sessions        the table; begin, steps, end
 *	session_asks    what is asked of one and answered by an event of the library: waits
 *	session_pieces  runs in contexts, and processes: their output, results and who waits for them
 *	session_files   files, by descriptors that were opened in the cell
 *
 * All are stepped in the runner's loop, by a descriptor for all of them together.  They end with the service, at their timeout,
 * when nobody asks anything of them, or when they are told to; then only what is told of them stays, for a while.
 *
 *   RULE N1  Each ask is answered once: by its event, by the end of its session, or because its client has gone.
 *   RULE N2  A token has, and knows of, its own sessions only; an administrator of all.
 *   RULE N3  What comes out of a cell is bounded: output by the library, results and lists of files here.
 */
#ifndef SERVER_RUNNER_SESSIONS_H
#define SERVER_RUNNER_SESSIONS_H

#include <brig/session.h>
#include <jansson.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "server/quota.h"
#include "server/runner/executions.h"

#define SESSIONS_MAX          256
#define SESSIONS_OF_TOKEN     64
#define SESSIONS_ENDED_MAX    256 /* that are still told of */
#define SESSION_WAITS_MAX     32  /* asks that an event is to answer, of each */
#define SESSION_PIECES_MAX    32  /* runs and processes at one time, and processes that have ended */
#define SESSION_ENDED_PIECES  16  /* of these the latter */
#define SESSION_CONTEXTS_MAX  32
#define SESSION_RESULTS_MAX   256 /* of one run */
#define SESSION_RESULTS_BYTES (16 * MiB)
#define SESSION_OUTPUT_MAX    (8 * MiB) /* of each stream of a run, in its result */
#define SESSION_FILE_MAX      (64 * MiB)
#define SESSION_LIST_MAX      10000
#define SESSION_LIST_BYTES    (4 * MiB)
#define SESSIONS_HELD_MAX \
	(256 * MiB) /* output, results and events of all that runs in sessions: what is over it is left out */
#define SESSION_REASON_MAX 200

struct service;
struct ask;
struct server_session;

/* An ask that the library answers later. */
struct session_wait {
	TAILQ_ENTRY(session_wait) in_session;
	uint64_t event; /* the library's tag of what answers it; 0: BRIG_SESSION_READY */
	uint32_t tag;   /* the front's */
	enum route route;
	char request_id[129], who[TOKEN_NAME_MAX + 1];
	int body;      /* of a file that is to be written */
	json_t *files; /* of a list */
	size_t bytes;  /* of their names */
};

/* A run in a context, or a process. */
struct session_piece {
	TAILQ_ENTRY(session_piece) in_session;
	struct server_session *session;
	uint64_t tag, context; /* context 0: it is a process */
	struct execution x;    /* in no table: its events and who waits for them */
	struct buf output[2];  /* stdout and stderr */
	json_t *results, *error;
	size_t results_bytes;
	size_t held; /* of what sessions may hold together */
	bool results_are_cut, is_started, is_unwanted;
	char *input; /* of a process, until it has been started */
	size_t input_len;
	bool stays_open;
	uint32_t promise_tag; /* of an asynchronous one that has not been answered; 0: none */
	char *command;        /* for lists */
};

struct session_context {
	uint64_t tag;
	char language[TOKEN_WORD_MAX + 1];
};

TAILQ_HEAD(session_waits, session_wait);
TAILQ_HEAD(session_pieces, session_piece);

enum session_state { SESSION_STARTING, SESSION_READY, SESSION_ENDED };

struct server_session {
	TAILQ_ENTRY(server_session) in_all; /* the oldest first */
	struct service *service;
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1], trust[TOKEN_WORD_MAX + 1];
	enum session_state state;
	bool is_paused, is_stopping;
	uint64_t created_ns, ended_ns; /* time of day */
	struct quota quota;
	uint64_t memory, charged_ns;
	struct job *job;             /* what the library's options point to */
	struct host *host;           /* likewise its handle */
	struct brig_session *inside; /* NULL: it has ended */
	struct session_waits waits;
	struct session_pieces pieces;
	size_t n_waits, n_pieces;
	struct session_context context[SESSION_CONTEXTS_MAX];
	size_t n_contexts;
	char reason[SESSION_REASON_MAX], verdict[TOKEN_WORD_MAX + 1];
};

TAILQ_HEAD(session_list, server_session);

struct sessions {
	struct session_list all;
	size_t n_live, n_ended;
	uint64_t held;
	int epoll;
};

void sessions_init(struct sessions *t);
int sessions_open(struct sessions *t, struct brig_error *err);
/* Ends all, and waits for that; nobody is told. */
void sessions_release(struct service *s);
/* The epoll is readable. */
void sessions_go_on(struct service *s);
/* True: the tag was of somebody who waits for a session. */
bool sessions_gone(struct service *s, uint32_t tag);
void sessions_all_gone(struct service *s);
/* The service takes nothing new: those in which nobody waits for anything end, the others when that is over. */
void sessions_drain(struct service *s);
/* All end now. */
void sessions_stop(struct service *s);

/* The one that an ask names and its token may touch, and which has not ended; NULL: it has been answered. */
struct server_session *session_find(struct service *s, const struct ask *ask);
/* Whether so many are asked for in a minute, or so much time was used, that this is one too many: then it has been answered. */
bool session_is_metered(struct service *s, const struct ask *ask, struct server_session *x);
/* Goes on with it; it may have ended when this returns. */
void session_go_on(struct service *s, struct server_session *x);
void session_charge(struct server_session *x, uint64_t cpu_ns);

/* ---- session_asks.c ---------------------------------------------------------------------------------------- */

/* Whether one more ask can wait; false: it has been answered. */
bool session_can_wait(struct service *s, const struct ask *ask, const struct server_session *x);
/* It waits for the event.  NULL: no memory, and it has been answered. */
struct session_wait *session_wait_for(struct service *s, const struct ask *ask, struct server_session *x,
				      uint64_t event);
void session_wait_free(struct server_session *x, struct session_wait *w);
/* Answers it with an error, and it is gone. */
void session_wait_refuse(struct server_session *x, struct session_wait *w, uint16_t status, const char *why);
/* What the library refused. */
void session_trouble(struct service *s, const struct ask *ask, const struct brig_error *err);
void session_on_event(void *user, const struct brig_session_event *event);
/* The name by which contexts of a language are known. */
const char *session_language(const struct server_session *x, const char *name);
/* A context, and its place in the table. */
int session_context_make(struct server_session *x, const char *language, const char *cwd, uint64_t *ret,
			 struct brig_error *err);
/* What is told of a session. */
json_t *session_document(const struct server_session *x);

/* ---- session_pieces.c -------------------------------------------------------------------------------------- */

/* The piece of this tag; NULL: none. */
struct session_piece *session_piece_find(const struct server_session *x, uint64_t tag);
void session_piece_free(struct session_piece *p);
void session_piece_event(struct session_piece *p, const struct brig_session_event *event);
/* Its session has ended without a word about it. */
void session_piece_abandon(struct session_piece *p);
/* A client has gone: true if it waited for this. */
bool session_piece_gone(struct session_piece *p, uint32_t tag);
void session_piece_all_gone(struct session_piece *p);
/* True: somebody waits for its end. */
bool session_piece_is_wanted(const struct session_piece *p);

/* ---- session_files.c --------------------------------------------------------------------------------------- */

/* An event of a file that somebody waits for. */
void session_file_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event);

#endif
