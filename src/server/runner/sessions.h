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
 *	session_files   files, by descriptors that were opened in the cell; session_transfers: their bytes
 *	session_metadata  what was said of files when they were written
 *	session_watches what changes below a folder, as it happens
 *	session_copies  sessions that begin with the files of another, or of a snapshot
 *	session_ports   connections to servers in it, and links
 *	session_keys    asks with the key of a session instead of a token
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
#include "server/doors.h"
#include "server/quota.h"
#include "server/runner/executions.h"
#include "server/runner/snapshots.h"
#include "sys/crypto.h"

#define SESSIONS_MAX          256
#define SESSIONS_OF_TOKEN     64
#define SESSIONS_ENDED_MAX    256 /* that are still told of */
#define SESSION_WAITS_MAX     512 /* asks that an event is to answer, of each */
#define SESSION_PIECES_MAX    256 /* runs and processes at one time, and processes that have ended */
#define SESSION_ENDED_PIECES  16  /* of these the latter */
#define SESSION_CONTEXTS_MAX  32
#define SESSION_WATCHES_MAX   16
#define SESSION_RESULTS_MAX   256 /* of one run */
#define SESSION_RESULTS_BYTES (16 * MiB)
#define SESSION_OUTPUT_MAX    (8 * MiB) /* of each stream of a run, in its result */
#define SESSION_FILE_MAX      (64 * MiB)
#define SESSION_LIST_MAX      10000
#define SESSION_METADATA_MAX  1024 /* files that have some */
#define SESSION_LIST_BYTES    (4 * MiB)
#define SESSIONS_HELD_MAX \
	(256 * MiB) /* output, results and events of all that runs in sessions: what is over it is left out */
#define SESSION_REASON_MAX 200
#define SESSION_KEY_LEN    32 /* characters of base32 */

struct service;
struct request;
struct server_session;
struct session_transfer;

/* An ask that the library answers later. */
struct session_wait {
	TAILQ_ENTRY(session_wait) in_session;
	uint64_t event; /* the library's tag of what answers it; 0: BRIG_SESSION_READY */
	uint32_t tag;   /* the front's */
	enum route route;
	enum door door;
	char request_id[129], who[TOKEN_NAME_MAX + 1];
	int body;                          /* of a file that is to be written */
	struct session_transfer *transfer; /* the bytes of a file; NULL: none are on their way */
	json_t *files;                     /* of a list */
	size_t bytes;                      /* of their names */
	char *path, *to;                   /* of what is written, moved or removed, for metadata */
	json_t *metadata;                  /* of a file that is to be written; NULL: none */
	char snapshot[EXECUTION_ID_LEN + 1], name[SNAPSHOT_NAME_MAX + 1]; /* that is being made; "": none */
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
	bool results_are_late; /* the result has those that follow, and events have none of them */
	char *input;           /* of a process, until it has been started */
	size_t input_len;
	bool stays_open;
	bool is_pty, has_no_capture;
	int64_t pid;          /* in the cell; 0: not yet */
	char *label;          /* as its starter calls it; NULL: not at all */
	json_t *config;       /* of a process: args, env, cwd, for lists */
	int start_error;      /* errno; 0: it began, or has not yet */
	bool is_bad_cwd;      /* then: because of its folder */
	uint32_t promise_tag; /* of an asynchronous one that has not been answered; 0: none */
	char *command;        /* for lists */
	/* Its Idempotency-Key and what was asked with it: who asks again has this one, and it goes on without who asked first. */
	bool has_key;
	uint8_t key[SHA256_LEN], asked[SHA256_LEN];
};

/* A change whose file is looked at before it is told. */
struct session_change {
	TAILQ_ENTRY(session_change) in_watch;
	uint64_t event; /* the library's tag of the look */
	json_t *told;
};

/* Who is told what changes below a folder. */
struct session_watch {
	TAILQ_ENTRY(session_watch) in_session;
	uint64_t event; /* the library's tag of it */
	uint32_t tag;   /* the front's; 0: nobody waits, and changes are kept */
	char request_id[129];
	bool is_begun, has_lost;
	uint32_t n_behind; /* changes told since the front is behind */
	char *path;        /* of the folder, if changes are told with their files; NULL: they are not */
	json_t *kept;      /* changes that nobody has asked for yet; NULL: they are told as they come */
	TAILQ_HEAD(session_changes, session_change) looks; /* in their order */
	size_t n_looks;
};

struct session_context {
	uint64_t tag;
	char language[TOKEN_WORD_MAX + 1];
	char *cwd; /* heap; NULL: the workspace */
	bool is_default;
};

TAILQ_HEAD(session_waits, session_wait);
TAILQ_HEAD(session_pieces, session_piece);
TAILQ_HEAD(session_watches, session_watch);

enum session_end {
#define SESSION_END(name) SESSION_END_##name,
#include "server/runner/metrics.def"
	SESSION_END_COUNT,
};

enum session_state { SESSION_STARTING, SESSION_READY, SESSION_ENDED };

struct server_session {
	TAILQ_ENTRY(server_session) in_all; /* the oldest first */
	struct service *service;
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1], trust[TOKEN_WORD_MAX + 1];
	char key[SESSION_KEY_LEN + 1];        /* that lets in whoever shows it */
	char shared_id[EXECUTION_ID_LEN + 1]; /* by which it is found when it is to be made; "": none */
	uint64_t cpu_percent, disk;           /* as the policy has it */
	char network[TOKEN_WORD_MAX + 1];     /* network_mode */
	struct brig_sample sample, before;    /* the latest one, and one of about a second earlier */
	char *note;                           /* of whoever made it; NULL: none */
	enum session_state state;
	bool is_paused, is_stopping;
	/* of a queue (session_addresses.c): its address is being put; it is ready, and nobody was told before that */
	bool is_addressing, is_ready_untold;
	uint64_t addressed_ns; /* 0: its address is not in the bucket */
	enum session_end end;  /* what is to be counted if nothing worse ends it */
	bool pauses;    /* at its timeout, which is pause_at_ns then: for the library it lasts as long as it may */
	bool needs_key; /* to connect to its ports, also where nobody needs one */
	bool resumes;   /* when a client connects to one of its ports while it is paused */
	uint64_t pause_at_ns; /* of the clock that stands for moments; 0: never */
	uint64_t timeout_ms;  /* that it begins with */
	int pause_timer;
	bool is_unfilled;                /* what is to be in its workspace is not there yet */
	uint64_t filling;                /* the library's tag of that; 0: it has not begun, or is over */
	uint64_t left_out;               /* files of it */
	uint16_t failed_status;          /* of the answer if it does not begin; 0: the usual one */
	char from[EXECUTION_ID_LEN + 1]; /* the session or snapshot that its files are of; "": none */
	bool has_source;                 /* it is a session, which says itself what became of the copy */
	struct {
		bool is_saved, is_filled;
		int save_error, fill_error;
	} copied; /* what both have said */
	struct {
		bool is_on;   /* somebody waits for its files, */
		uint64_t tag; /* and gets them under this tag of the library; 0: that one is not ready for them yet */
		char to[EXECUTION_ID_LEN + 1];
	} fork;
	uint64_t created_ns, ended_ns; /* time of day */
	struct quota quota;
	uint64_t memory, charged_ns;
	struct job *job;             /* what the library's options point to */
	struct host *host;           /* likewise its handle */
	struct brig_session *inside; /* NULL: it has ended */
	struct session_waits waits;
	struct session_pieces pieces;
	struct session_watches watches;
	size_t n_waits, n_pieces, n_watches;
	struct session_context context[SESSION_CONTEXTS_MAX];
	size_t n_contexts;
	json_t *metadata; /* of files, by path; NULL: of none */
	char reason[SESSION_REASON_MAX], verdict[TOKEN_WORD_MAX + 1];
};

TAILQ_HEAD(session_list, server_session);

TAILQ_HEAD(session_transfers, session_transfer);

struct sessions {
	struct session_list all;
	size_t n_live, n_ended;
	uint64_t held;
	int epoll;
	struct session_transfers transfers;
	int more;      /* readable: some of them have bytes to carry */
	bool has_lost; /* changes of a watch, and nobody was told yet */
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
/* True: the tag is of who began a run or a process; it is interrupted, or killed, and its answer is waited for. */
bool sessions_cancel(struct service *s, uint32_t tag);
/* The service takes nothing new: those in which nobody waits for anything end, the others when that is over. */
void sessions_drain(struct service *s);
/* All end now. */
void sessions_stop(struct service *s);

/* The one that a request names and its token may touch, and which has not ended; NULL: it has been answered. */
struct server_session *session_find(struct service *s, const struct request *req);
/* Whether so many are asked for in a minute, or so much time was used, that this is one too many: then it has been answered. */
bool session_is_metered(struct service *s, const struct request *req, struct server_session *x);
/* Begins one as the request's message says; NULL: it has been answered.  It is to be stepped then.  is_unfilled: it is ready when it has
 * been filled. */
struct server_session *session_make(struct service *s, struct request *req, bool is_unfilled);
/* It is to end. */
void server_session_stop(struct server_session *x, const char *reason);
/* Whether a token may have the session that the request is for: 0, and the job that says what it is to be; or -code. */
int session_check_wish(struct service *s, struct request *req, struct job **ret, uint64_t *ret_memory,
		       struct brig_error *err);
/* Those of this node that the request's token may see, the youngest first. */
json_t *sessions_list(const struct service *s, const struct request *req);
/* Goes on with it; it may have ended when this returns. */
void session_go_on(struct service *s, struct server_session *x);
void session_charge(struct server_session *x, uint64_t cpu_ns);
/* It is ready: from now on its time runs. */
void session_begin_time(struct server_session *x);
int session_wake(struct server_session *x, struct brig_error *err); /* resumes it */

/* ---- session_requests.c ---------------------------------------------------------------------------------------- */

/* Whether one more ask can wait; false: it has been answered. */
bool session_can_wait(struct service *s, const struct request *req, const struct server_session *x);
/* It waits for the event.  NULL: no memory, and it has been answered. */
struct session_wait *session_wait_for(struct service *s, const struct request *req, struct server_session *x,
				      uint64_t event);
void session_wait_free(struct server_session *x, struct session_wait *w);
/* Answers it with an error, and it is gone. */
void session_wait_refuse(struct server_session *x, struct session_wait *w, uint16_t status, const char *why);
/* What the library refused. */
void session_trouble(struct service *s, const struct request *req, const struct brig_error *err);
void session_on_event(void *user, const struct brig_session_event *event);
void session_on_sample(void *user, const struct brig_sample *sample);
/* The name by which contexts of a language are known. */
const char *session_language(const struct server_session *x, const char *name);
/* The context of a language that runs go to which name none; it is made, in this folder, if there is none. */
int session_context_default(struct server_session *x, const char *language, const char *cwd, uint64_t *ret,
			    struct brig_error *err);
void session_contexts_release(struct server_session *x);
/* What is told of a session; to a door also its key, its note and what it uses. */
json_t *session_document(const struct server_session *x);
json_t *session_document_for(const struct server_session *x, enum door door);

/* "NAME=VALUE" as an object, values cut to so many bytes (session_pieces.c). */
json_t *session_variables(const char *const *words, size_t n, size_t max);

/* To who asked for a session: it is there. */
void session_answer_made(struct server_session *x, uint32_t tag, const char *who, enum door door);
/* It can be used: whoever asked for it is told. */
void session_answer_ready(struct server_session *x);

/* ---- session_repeats.c ------------------------------------------------------------------------------------- */

/* True: the request has been answered, or will be, by what was asked before. */
bool session_is_repeated(struct service *s, const struct request *req);
/* The ask has made this one. */
void session_remember(struct service *s, const struct request *req, struct server_session *x);
/* The same of what is run in a session; the latter before anybody listens to it.  False: it has been answered. */
bool session_piece_is_repeated(struct service *s, const struct request *req, struct server_session *x);
bool session_piece_remember(struct service *s, const struct request *req, struct session_piece *p);

/* ---- session_copies.c -------------------------------------------------------------------------------------- */

/* False: it has been answered. */
bool session_copy_is_allowed(struct service *s, const struct request *req, const struct server_session *x);
/* Answers why its files could not be copied. */
void session_copy_refuse(struct server_session *x, uint32_t tag, const char *request_id, int error);
/* What it was asked to be, but for variables, into a document. */
json_t *session_settings(const struct server_session *x, json_t *doc);
/* What a session of a snapshot is asked for with: the request's own wishes, and else what those settings say. */
void session_put_restored(struct buf *fields, const struct message *req, const json_t *settings);
/* Its files have come, or will not. */
void session_filled(struct server_session *x, const struct brig_session_event *event);
/* It is to be a copy of another, and is there now: its files are asked for. */
void session_fork_begin(struct server_session *y);
/* They have been saved for another one. */
void session_saved(struct server_session *x, const struct brig_session_event *event);
/* It has ended; who was to have its files ends, too, and nobody waits for those that it was to have. */
void session_fork_lost(struct server_session *x);
/* Where its files are from, into what is told when it begins. */
void session_tell_origin(const struct server_session *x, json_t *doc);

/* ---- session_pieces.c -------------------------------------------------------------------------------------- */

/* The piece of this tag; NULL: none. */
struct session_piece *session_piece_find(const struct server_session *x, uint64_t tag);
/* The process that a request names: by its number, or the latest that has this pid or label, one that runs first; NULL: none. */
struct session_piece *session_process_find(const struct server_session *x, const struct request *req);
void session_piece_free(struct session_piece *p);
bool session_piece_hold(struct session_piece *p, size_t bytes); /* false: sessions hold too much already */
/* session_results.c */
void session_piece_show(struct session_piece *p, const struct brig_session_event *e);
void session_piece_keep_result(struct session_piece *p, const struct brig_result *r, uint64_t count);
/* That an asynchronous one runs, to who asked for it. */
void session_piece_answer_promise(struct session_piece *p, uint32_t tag);
void session_piece_event(struct session_piece *p, const struct brig_session_event *event);
/* Its session has ended without a word about it. */
void session_piece_abandon(struct session_piece *p);
/* A client has gone: true if it waited for this. */
bool session_piece_gone(struct session_piece *p, uint32_t tag);
void session_piece_all_gone(struct session_piece *p);
/* Its end is wanted by who began it and waits for it: true if that is this client. */
bool session_piece_cancel(struct session_piece *p, uint32_t tag);
/* True: somebody waits for its end. */
bool session_piece_is_wanted(const struct session_piece *p);

/* ---- session_keys.c ---------------------------------------------------------------------------------------- */

/* Whether a request has the key of a session, or a signature; and whether it is let in by it: else it has been answered. */
bool session_has_key(const struct message *m);
bool session_let_in(struct service *s, struct request *req);

/* ---- session_files.c --------------------------------------------------------------------------------------- */

/* The bytes of a file were written, so many of them, or could not be carried: 0 or -errno.  It is answered. */
void session_file_carried(struct server_session *x, const struct session_wait *w, int rc, uint64_t n);
/* An event of a file that somebody waits for. */
void session_file_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event);

/* ---- session_ports.c --------------------------------------------------------------------------------------- */

void session_port_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event);
/* Whether the link of a message is one of this session, for this route, and its time is not over. */
bool session_link_holds(const struct server_session *x, enum route route, const struct message *m);

/* What is told of one; a new reference. */
json_t *session_entry_row(const struct server_session *x, const struct brig_session_entry *e);

/* ---- session_metadata.c ------------------------------------------------------------------------------------ */

/* What a request says of the file that it writes; *ret NULL: nothing.  -BRIG_E_REFUSED: the session has too much of it already. */
int session_metadata_read(const struct server_session *x, const struct request *req, json_t **ret,
			  struct brig_error *err);
/* Of a file that was written; values stay the caller's, NULL: it has none any more. */
void session_metadata_set(struct server_session *x, const char *path, json_t *values);
/* NULL: none. */
json_t *session_metadata_get(const struct server_session *x, const char *path);
/* It, and what is below it, has another name; to is NULL: it is gone. */
void session_metadata_move(struct server_session *x, const char *path, const char *to);

/* ---- session_watches.c ------------------------------------------------------------------------------------- */

/* The watch of this tag of the library's; NULL: none. */
struct session_watch *session_watch_find(const struct server_session *x, uint64_t event);
void session_watch_event(struct server_session *x, struct session_watch *w, const struct brig_session_event *event);
void session_watch_free(struct server_session *x, struct session_watch *w);
/* The watch that looks at a file with this tag of the library's; NULL: none.  And what it was told. */
struct session_watch *session_watch_of_entry(const struct server_session *x, uint64_t event);
void session_watch_entry(struct server_session *x, struct session_watch *w, const struct brig_session_event *event);
/* A client has gone: true if it watched. */
bool session_watch_gone(struct server_session *x, uint32_t tag);
void session_watches_all_gone(struct server_session *x);
/* Once in a turn: who was not told of changes hears that, as soon as there is room. */
void session_watches_catch_up(struct service *s);
/* The session has ended: who watches is told. */
void session_watches_end(struct server_session *x);
/* ---- session_transfers.c ----------------------------------------------------------------------------------- */

int session_transfers_open(struct sessions *t, struct brig_error *err);
/* Bytes of a file that the cell has opened, to who waits or from what came with the request: the wait is answered and gone when that is
 * over, which it may be at once. */
void session_transfer_begin(struct server_session *x, struct session_wait *w, int fd, bool reads);
void session_transfer_free(struct sessions *t, struct session_transfer *f); /* NULL is fine */
/* Carries some bytes of each. */
void session_transfers_go_on(struct service *s);

#endif
