/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: long-lived cells (brig/session.h), each owned by a token.
 *
 *	requested -> starting -> ready -> ended -> forgotten
 *	                 `---------^ the request is answered here, or with the reason why the session did not start
 *
 *	sessions          the table; start, steps, end
 *	session_requests  requests that are answered by an event of the library: waits
 *	session_pieces    runs in contexts, and processes: output, listeners; session_results: their results
 *	session_files     files, through descriptors opened in the cell; session_transfers: copying their bytes
 *	session_metadata  metadata of files, given when they were written
 *	session_watches   changes below a directory, as they happen
 *	session_copies    sessions created with the files of another one, or of a snapshot
 *	session_ports     connections to servers in the session, and links
 *	session_timeouts  sessions that are paused at their timeout, and resumed
 *	session_keys      requests with a session's key instead of a token
 *	session_repeats   requests with an Idempotency-Key
 *
 * All sessions are stepped in the runner's loop, through one epoll descriptor.  A session ends with the service, at its
 * timeout, when it has been idle for too long, or on request; its description remains available for a while.
 *
 *   RULE N1  Each request is answered once: by its event, by the end of its session, or because its client has
 *   disconnected.
 *   RULE N2  A token has access to its own sessions only; an administrator to all.
 *   RULE N3  What comes out of a cell is bounded: output by the library, results and listings here.
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
#define SESSIONS_ENDED_MAX    256 /* ended ones that are still listed */
#define SESSION_WAITS_MAX     512 /* pending requests of each session */
#define SESSION_PIECES_MAX    256 /* runs and processes, including ended processes */
#define SESSION_ENDED_PIECES  16  /* ended processes among these */
#define SESSION_CONTEXTS_MAX  48
#define SESSION_WATCHES_MAX   16
#define SESSION_RESULTS_MAX   256 /* of one run */
#define SESSION_RESULTS_BYTES (16 * MiB)
#define SESSION_OUTPUT_MAX    (8 * MiB) /* of each output stream of a run, in its result */
#define SESSION_FILE_MAX      (64 * MiB)
#define SESSION_LIST_MAX      10000
#define SESSION_METADATA_MAX  1024 /* files with metadata */
#define SESSION_LIST_BYTES    (4 * MiB)
#define SESSIONS_HELD_MAX \
	(256 * MiB) /* output, results and events of everything that runs in sessions; what exceeds it is omitted */
#define SESSION_REASON_MAX 200
#define SESSION_KEY_LEN    32 /* base32 characters */

struct service;
struct request;
struct server_session;
struct session_transfer;

/* A request that an event of the library will answer. */
struct session_wait {
	TAILQ_ENTRY(session_wait) in_session;
	uint64_t event; /* the library's tag of that event; 0: BRIG_SESSION_READY */
	uint32_t tag;   /* of the front's request */
	enum route route;
	enum door door;
	char request_id[129], who[TOKEN_NAME_MAX + 1];
	int body;                          /* contents of a file to be written */
	struct session_transfer *transfer; /* the copying of a file's bytes; NULL: not started */
	json_t *files;                     /* entries of a listing */
	size_t bytes;                      /* size of their names */
	char *path, *to;                   /* of a file written, moved or removed, for its metadata */
	json_t *metadata;                  /* of a file to be written; NULL: none */
	/* of a snapshot being created; "": none */
	char snapshot[EXECUTION_ID_LEN + 1], name[SNAPSHOT_NAME_MAX + 1];
};

/* A run in a context, or a process. */
struct session_piece {
	TAILQ_ENTRY(session_piece) in_session;
	struct server_session *session;
	uint64_t tag, context; /* context 0: it is a process */
	struct execution x;    /* for its events and listeners; in no table */
	struct buf output[2];  /* stdout and stderr */
	json_t *results, *error;
	size_t results_bytes;
	size_t held; /* bytes counted against SESSIONS_HELD_MAX */
	bool results_are_cut, is_started, is_unwanted;
	bool results_are_late; /* further results appear only in the final result, not as events */
	char *input;           /* of a process, until it has started */
	size_t input_len;
	bool stays_open;
	bool is_pty, has_no_capture;
	int64_t pid;          /* in the cell; 0: not started */
	char *label;          /* given by the client; NULL: none */
	json_t *config;       /* of a process: args, env, cwd, for listings */
	int start_error;      /* errno; 0: it started, or has not yet */
	bool is_bad_cwd;      /* start_error was caused by its working directory */
	uint32_t promise_tag; /* of an asynchronous start that has not been answered; 0: none */
	char *command;        /* for listings */
	/*
	 * Its Idempotency-Key and the hash of the request: a repetition joins it, and it continues without the first
	 * client.
	 */
	bool has_key;
	uint8_t key[SHA256_LEN], asked[SHA256_LEN];
};

/* A change that is reported once the file's state is known. */
struct session_change {
	TAILQ_ENTRY(session_change) in_watch;
	uint64_t event; /* the library's tag of the stat request */
	json_t *told;
};

/* A watch of a directory. */
struct session_watch {
	TAILQ_ENTRY(session_watch) in_session;
	uint64_t event; /* the library's tag */
	uint32_t tag;   /* of the front's request; 0: changes are kept to be polled */
	char request_id[129];
	bool is_begun, has_lost;
	uint32_t n_behind; /* changes reported since the front's channel became congested */
	char *path;        /* of the directory, if changes include the file's state; NULL: they do not */
	json_t *kept;      /* changes not polled yet; NULL: they are sent as events */
	TAILQ_HEAD(session_changes, session_change) looks; /* in order of the changes */
	size_t n_looks;
};

struct session_context {
	uint64_t tag;
	char language[TOKEN_WORD_MAX + 1];
	char *cwd; /* NULL: the workspace */
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
	TAILQ_ENTRY(server_session) in_all; /* oldest first */
	struct service *service;
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1], trust[TOKEN_WORD_MAX + 1];
	char key[SESSION_KEY_LEN + 1];        /* gives access to this session */
	char shared_id[EXECUTION_ID_LEN + 1]; /* name under which clients share it; "": none */
	uint64_t cpu_percent, disk;           /* limits of the policy */
	char network[TOKEN_WORD_MAX + 1];     /* network_mode */
	struct brig_sample sample, before;    /* the latest sample, and one about a second older */
	char *note;                           /* of its creator; NULL: none */
	enum session_state state;
	bool is_paused, is_stopping;
	/*
	 * with a queue (session_addresses.c): its address is being put; it is ready, but the client has not been told
	 * yet
	 */
	bool is_addressing, is_ready_untold;
	uint64_t addressed_ns; /* 0: its address is not in the bucket */
	enum session_end end;  /* reason to count, unless it ends because of an error */
	bool pauses;           /* it is paused at its timeout, pause_at_ns; its timeout in the library is the maximum */
	bool needs_key;        /* connecting to its ports requires its key, even where no token is required */
	bool resumes;          /* a connection to one of its ports resumes it */
	uint64_t pause_at_ns;  /* monotonic; 0: never */
	uint64_t timeout_ms;   /* initial timeout */
	int pause_timer;
	bool is_unfilled;                /* its workspace is still to be filled */
	uint64_t filling;                /* the library's tag of the filling; 0: not started, or done */
	uint64_t left_out;               /* files that could not be copied */
	uint16_t failed_status;          /* HTTP status if it does not start; 0: the default */
	char from[EXECUTION_ID_LEN + 1]; /* session or snapshot that its files come from; "": none */
	bool has_source;                 /* `from` is a session, which reports the outcome of the copy, too */
	struct {
		bool is_saved, is_filled;
		int save_error, fill_error;
	} copied; /* reports of source and destination */
	struct {
		bool is_on;   /* a fork is to get its files, */
		uint64_t tag; /* under this tag of the library; 0: the fork is not ready for them yet */
		char to[EXECUTION_ID_LEN + 1];
	} fork;
	uint64_t created_ns, ended_ns; /* wall clock */
	struct quota quota;
	uint64_t memory, charged_ns;
	struct job *job;             /* its strings are used by the library's options */
	struct host *host;           /* likewise its handle */
	struct brig_session *inside; /* NULL: it has ended */
	struct session_waits waits;
	struct session_pieces pieces;
	struct session_watches watches;
	size_t n_waits, n_pieces, n_watches;
	struct session_context context[SESSION_CONTEXTS_MAX];
	size_t n_contexts;
	json_t *metadata; /* metadata of files, by path; NULL: none */
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
	int more;      /* eventfd, readable while there are transfers */
	bool has_lost; /* some watch has omitted changes and not reported that yet */
};

void sessions_init(struct sessions *t);
int sessions_open(struct sessions *t, struct brig_error *err);
/* Ends all and waits for them; requests are not answered. */
void sessions_release(struct service *s);
/* To be called when the epoll descriptor is readable. */
void sessions_go_on(struct service *s);
/* A client has disconnected; true: it waited for a session. */
bool sessions_gone(struct service *s, uint32_t tag);
void sessions_all_gone(struct service *s);
/*
 * True: the tag belongs to a run or process, which is interrupted or killed if the client started it; its answer
 * follows.
 */
bool sessions_cancel(struct service *s, uint32_t tag);
/* No new sessions: those with no pending request end now, the others when there is none. */
void sessions_drain(struct service *s);
/* Ends all now. */
void sessions_stop(struct service *s);

/* The live session named in the request, if the token may access it; NULL: it has been answered. */
struct server_session *session_find(struct service *s, const struct request *req);
/* Charges a run to the token; true: its rate or CPU quota is exceeded, which has been answered. */
bool session_is_metered(struct service *s, const struct request *req, struct server_session *x);
/*
 * Creates a session as the message says; NULL: it has been answered.  The caller must step it.  is_unfilled: it becomes
 * ready only when its workspace has been filled.
 */
struct server_session *session_make(struct service *s, struct request *req, bool is_unfilled);
/* Ends the session. */
void server_session_stop(struct server_session *x, const char *reason);
/* Checks the request for a session against the token: 0 and the job with its settings, or -code. */
int session_check_wish(struct service *s, struct request *req, struct job **ret, uint64_t *ret_memory,
		       struct brig_error *err);
/* Sessions of this node that the token may see, youngest first. */
json_t *sessions_list(const struct service *s, const struct request *req);
/* Steps it; it may have ended on return. */
void session_go_on(struct service *s, struct server_session *x);
void session_charge(struct server_session *x, uint64_t cpu_ns);
/* It is ready: its timeout starts. */
void session_begin_time(struct server_session *x);
int session_wake(struct server_session *x, struct brig_error *err); /* resumes it */
/* session_timeouts.c: the timer of one that pauses at its timeout.  It must be made before the session begins. */
int session_make_timer(struct service *s, struct server_session *x, struct brig_error *err);
void session_pause_if_due(struct server_session *x);

/* ---- session_requests.c ---------------------------------------------------------------------------------------- */

/* Whether one more request can wait; false: it has been answered. */
bool session_can_wait(struct service *s, const struct request *req, const struct server_session *x);
/* Makes a request wait for an event.  NULL: out of memory, which has been answered. */
struct session_wait *session_wait_for(struct service *s, const struct request *req, struct server_session *x,
				      uint64_t event);
void session_wait_free(struct server_session *x, struct session_wait *w);
/* Answers with an error and frees the wait. */
void session_wait_refuse(struct server_session *x, struct session_wait *w, uint16_t status, const char *why);
/* Answers an error of the library. */
void session_trouble(struct service *s, const struct request *req, const struct brig_error *err);
void session_on_event(void *user, const struct brig_session_event *event);
void session_on_sample(void *user, const struct brig_sample *sample);
/* The name for contexts of a language. */
const char *session_language(const struct server_session *x, const char *name);
/* The default context of a language, created with this working directory if there is none. */
int session_context_default(struct server_session *x, const char *language, const char *cwd, uint64_t *ret,
			    struct brig_error *err);
void session_contexts_release(struct server_session *x);
/* The description of a session; for a door with its key, note and resource usage. */
json_t *session_document(const struct server_session *x);
json_t *session_document_for(const struct server_session *x, enum door door);

/* "NAME=VALUE" strings as an object; values are truncated to max bytes (session_pieces.c). */
json_t *session_variables(const char *const *words, size_t n, size_t max);

/* Answers a request for a session: 201. */
void session_answer_made(struct server_session *x, uint32_t tag, const char *who, enum door door);
/* The session can be used: answers all requests that wait for it. */
void session_answer_ready(struct server_session *x);

/* ---- session_repeats.c ------------------------------------------------------------------------------------- */

/* True: the Idempotency-Key is known, and the request has been answered or will be. */
bool session_is_repeated(struct service *s, const struct request *req);
/* Records that the request created this session. */
void session_remember(struct service *s, const struct request *req, struct server_session *x);
/* The same for runs and processes; the second before anything listens to it.  False: it has been answered. */
bool session_piece_is_repeated(struct service *s, const struct request *req, struct server_session *x);
bool session_piece_remember(struct service *s, const struct request *req, struct session_piece *p);

/* ---- session_copies.c -------------------------------------------------------------------------------------- */

/* False: it has been answered. */
bool session_copy_is_allowed(struct service *s, const struct request *req, const struct server_session *x);
/* Answers why the session's files could not be copied. */
void session_copy_refuse(struct server_session *x, uint32_t tag, const char *request_id, int error);
/* Adds the session's settings, without variables, to a document. */
json_t *session_settings(const struct server_session *x, json_t *doc);
/* Fields of a request for a session from a snapshot: the request's own settings, with these as defaults. */
void session_put_restored(struct buf *fields, const struct message *req, const json_t *settings);
/* The filling of the workspace is done or has failed. */
void session_filled(struct server_session *x, const struct brig_session_event *event);
/* A fork has started: requests the files of its source. */
void session_fork_begin(struct server_session *y);
/* The files for a fork are saved, or could not be. */
void session_saved(struct server_session *x, const struct brig_session_event *event);
/* The session has ended: its fork ends too, and a source stops waiting for it. */
void session_fork_lost(struct server_session *x);
/* Adds the origin of its files to the description. */
void session_tell_origin(const struct server_session *x, json_t *doc);

/* ---- session_pieces.c -------------------------------------------------------------------------------------- */

/* By the library's tag; NULL: none. */
struct session_piece *session_piece_find(const struct server_session *x, uint64_t tag);
/*
 * The process named in a request: by number, or the latest one with this pid or label, preferring one that runs; NULL:
 * none.
 */
struct session_piece *session_process_find(const struct server_session *x, const struct request *req);
void session_piece_free(struct session_piece *p);
bool session_piece_hold(struct session_piece *p, size_t bytes); /* false: sessions hold too much already */
/* session_results.c */
void session_piece_show(struct session_piece *p, const struct brig_session_event *e);
void session_piece_keep_result(struct session_piece *p, const struct brig_result *r, uint64_t count);
/* Answers that an asynchronous process was started. */
void session_piece_answer_promise(struct session_piece *p, uint32_t tag);
void session_piece_event(struct session_piece *p, const struct brig_session_event *event);
/* The session has ended without an event for it. */
void session_piece_abandon(struct session_piece *p);
/* A client has disconnected; true: it was a listener. */
bool session_piece_gone(struct session_piece *p, uint32_t tag);
void session_piece_all_gone(struct session_piece *p);
/* A client cancels; true: it was a listener.  Ends the run or process if the client started it. */
bool session_piece_cancel(struct session_piece *p, uint32_t tag);
/* Whether a client waits for its end. */
bool session_piece_is_wanted(const struct session_piece *p);

/* ---- session_keys.c ---------------------------------------------------------------------------------------- */

/* Whether a request has a session's key, signature or link; and its verification: false: it has been answered. */
bool session_has_key(const struct message *m);
bool session_let_in(struct service *s, struct request *req);

/* ---- session_files.c --------------------------------------------------------------------------------------- */

/* The transfer of a file is done, with n bytes, or failed: 0 or -errno.  Answers. */
void session_file_carried(struct server_session *x, const struct session_wait *w, int rc, uint64_t n);
/* An event for a pending file request. */
void session_file_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event);

/* ---- session_ports.c --------------------------------------------------------------------------------------- */

void session_port_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event);
/* Whether the link in the message is valid for this session and route. */
bool session_link_holds(const struct server_session *x, enum route route, const struct message *m);

/* A directory entry as an object; a new reference. */
json_t *session_entry_row(const struct server_session *x, const struct brig_session_entry *e);

/* ---- session_metadata.c ------------------------------------------------------------------------------------ */

/*
 * Metadata in the request for the file it writes; *ret NULL: none.  -BRIG_E_REFUSED: the session has too much already.
 */
int session_metadata_read(const struct server_session *x, const struct request *req, json_t **ret,
			  struct brig_error *err);
/* Sets the metadata of a written file; values stay the caller's, NULL: none. */
void session_metadata_set(struct server_session *x, const char *path, json_t *values);
/* NULL: none. */
json_t *session_metadata_get(const struct server_session *x, const char *path);
/* The file or directory was renamed; to NULL: removed. */
void session_metadata_move(struct server_session *x, const char *path, const char *to);

/* ---- session_watches.c ------------------------------------------------------------------------------------- */

/* By the library's tag; NULL: none. */
struct session_watch *session_watch_find(const struct server_session *x, uint64_t event);
void session_watch_event(struct server_session *x, struct session_watch *w, const struct brig_session_event *event);
void session_watch_free(struct server_session *x, struct session_watch *w);
/* The watch whose next stat request has this tag; NULL: none.  And the event for it. */
struct session_watch *session_watch_of_entry(const struct server_session *x, uint64_t event);
void session_watch_entry(struct server_session *x, struct session_watch *w, const struct brig_session_event *event);
/* A client has disconnected; true: it watched. */
bool session_watch_gone(struct server_session *x, uint32_t tag);
void session_watches_all_gone(struct server_session *x);
/* Called once per turn: reports omitted changes as soon as there is room. */
void session_watches_catch_up(struct service *s);
/* The session has ended: answers all watches. */
void session_watches_end(struct server_session *x);
/* ---- session_transfers.c ----------------------------------------------------------------------------------- */

int session_transfers_open(struct sessions *t, struct brig_error *err);
/*
 * Starts copying between a file opened by the cell and the answer, or the contents in the request.  When done, possibly
 * at once, answers and frees the wait.
 */
void session_transfer_begin(struct server_session *x, struct session_wait *w, int fd, bool reads);
void session_transfer_free(struct sessions *t, struct session_transfer *f); /* NULL is allowed */
/* Copies a part of each. */
void session_transfers_go_on(struct service *s);

#endif
