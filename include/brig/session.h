/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: long-lived cells.  The rules of brig.h apply to every function here. */
#ifndef BRIG_SESSION_H
#define BRIG_SESSION_H

#include <brig/brig.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A session is a cell with the protections of a single run in which several things run, one after another or in
 * parallel: processes, and contexts, which are interpreters that keep their state from one run to the next.  It is
 * stepped like a run:
 *
 *	brig_session_begin(b, &opts, &s, &err);
 *	while (brig_session_step(s, &err) > 0)
 *		poll(&(struct pollfd){ .fd = brig_session_fd(s), .events = POLLIN }, 1, -1);
 *	brig_session_end(s, &result, &err);
 *
 * Everything else is requested with a call that returns immediately with a tag, which identifies the events that answer
 * it.  Requests are possible from the beginning: those made before BRIG_SESSION_READY are sent then.  All calls for a
 * handle and its sessions come from one thread; callbacks are made from within brig_session_step() and may make further
 * requests, but not step or end their own session.
 *
 * Everything that comes out of a session, each name and number, is controlled by its programs: do not trust it.
 * Descriptors are only of the kinds that are named here.
 */
struct brig_session;

enum brig_session_event_kind {
	BRIG_SESSION_READY = 1, /* the cell is built and fully confined */
	BRIG_SESSION_DONE =
		2, /* the answer to what has this tag: error; pid of a process; fd of a file or connection */
	BRIG_SESSION_OUTPUT = 3,  /* of a process, or of a run in a context: stream, data, len */
	BRIG_SESSION_EXITED = 4,  /* a process: exit_code, signal, cpu_us.  Its output was reported before */
	BRIG_SESSION_ENTRY = 5,   /* a file, before the DONE of a stat or list: entry */
	BRIG_SESSION_CHANGED = 6, /* below a watched folder: change, name */
	BRIG_SESSION_RESULT = 7,  /* of a run in a context: fields, n_fields */
	BRIG_SESSION_RAN =
		8, /* a run in a context, or a process, has ended: result, to be freed by the caller; count */
	BRIG_SESSION_STOPPING = 9, /* it ends for the reason in name; no event but OUTPUT and EXITED follows */
};
enum brig_session_change {
	BRIG_CHANGE_CREATE = 1,
	BRIG_CHANGE_WRITE = 2,
	BRIG_CHANGE_REMOVE = 3,
	BRIG_CHANGE_RENAME = 4, /* it has another name now, or is elsewhere */
	BRIG_CHANGE_CHMOD = 5,
};

struct brig_session_entry {
	const char *path;     /* as it was asked for, or below that */
	const char *target;   /* of a link: where it leads in the end; "" if nowhere, and of what is no link */
	uint32_t mode;        /* st_mode of itself */
	uint32_t target_mode; /* st_mode of where a link leads; 0: nowhere, or it is none */
	uint64_t bytes;
	int64_t mtime, mtime_ns; /* seconds since 1970, and the rest */
	uint32_t uid, gid;
};
/* One form of a result: "text", "html", "markdown", "svg", "png" and "jpeg" and "pdf" (base64), "latex", "json" and
 * "data" and "chart" and "extra" (JSON text; the last: an object by media type), "javascript", "main" ("1": the value of the last expression), of an error "name",
 * "value", "traceback". */
struct brig_session_field {
	const char *name;
	const char *value; /* len bytes and a NUL */
	size_t len;
};

struct brig_session_event {
	uint32_t size;
	uint32_t kind; /* enum brig_session_event_kind */
	uint64_t tag;
	int error; /* errno, of the call inside; 0: it was done */
	int fd;    /* to be closed by the receiver; -1: none */
	int64_t pid;
	enum brig_stream stream;
	const char *data;
	size_t len;
	int exit_code, signal; /* -1 and the signal that ended it, or the code and 0 */
	uint64_t cpu_us;
	uint32_t flags; /* BRIG_SESSION_* */
	uint32_t change;
	const char *name;
	const struct brig_session_entry *entry;
	const struct brig_session_field *fields;
	size_t n_fields;
	uint64_t count; /* of runs in this context, this one included */
	struct brig_result *result;
	uint64_t entries, bytes,
		left_out; /* DONE of a save or load: files and folders, bytes in them, and what was left out */
};
#define BRIG_SESSION_MORE      1u /* DONE of a list: there were more files than requested */
#define BRIG_SESSION_BAD_DIR   2u /* DONE of a process: the folder does not exist */
#define BRIG_SESSION_TIMED_OUT 4u /* EXITED: it was killed at its timeout */
#define BRIG_SESSION_TOO_MUCH  8u /* EXITED: it was killed because it wrote more than the policy's output_limit */

typedef void (*brig_session_fn)(void *user, const struct brig_session_event *event);

struct brig_session_opts {
	uint32_t size;
	const char *trust; /* as of a request, and so are these: */
	const struct brig_option *options;
	size_t n_options;
	const char *const *env;
	size_t n_env;
	const char *environment;
	const char *id;
	const char *who;
	brig_session_fn on_event;
	brig_notice_fn on_notice;
	void *user;
	uint64_t timeout_ms; /* from the beginning on; 0: the policy's session_timeout_ms, which is the most */
	brig_sample_fn on_sample;
};
#define BRIG_SESSION_OPTS_INIT                                                                                        \
	{                                                                                                             \
		sizeof(struct brig_session_opts), NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL \
	}

/* What the options point to is owned by the caller, and must not change until brig_session_end(). */
BRIG_API int brig_session_begin(struct brig *b, const struct brig_session_opts *opts, struct brig_session **ret,
				struct brig_error *err);
BRIG_API int brig_session_fd(const struct brig_session *s);
/* Of the record of its cell; records of what ran in it have the file name "session-" and this. */
BRIG_API const char *brig_session_id(const struct brig_session *s);
/* As brig_run_step(): 1, or 0 when the cell is gone. */
BRIG_API int brig_session_step(struct brig_session *s, struct brig_error *err);
/* Requests its end: continue stepping.  reason is for the STOPPING event; NULL: "it was asked to". */
BRIG_API void brig_session_stop(struct brig_session *s, const char *reason);
/* The record of the cell: verdict, usage and evidence of all that was in it; "cancelled" if it had not ended.  ret may be
 * NULL. */
BRIG_API int brig_session_end(struct brig_session *s, struct brig_result **ret, struct brig_error *err);
/* Sets its remaining lifetime, at most up to the policy's session_timeout_ms after its start; UINT64_MAX: until then.
 */
BRIG_API int brig_session_set_timeout(struct brig_session *s, uint64_t timeout_ms, struct brig_error *err);
/* Its remaining lifetime, and the maximum: milliseconds. */
BRIG_API void brig_session_times(const struct brig_session *s, uint64_t *ret_left_ms, uint64_t *ret_most_ms);

struct brig_session_process {
	uint32_t size;
	const char *const *argv; /* n_argv words; the first is searched for along PATH in the cell */
	size_t n_argv;
	const char *const *env; /* "KEY=VALUE", over the session's own */
	size_t n_env;
	const char *cwd;        /* NULL: the workspace */
	uint32_t flags;         /* BRIG_PROCESS_* */
	uint32_t rows, columns; /* of a terminal; 0: 24 and 80 */
	uint64_t timeout_ms;    /* 0: until the session ends */
	uint64_t cpu_time_ms;   /* of this process, in whole seconds; 0: as the policy's cpu_time_ms */
};
#define BRIG_PROCESS_PTY   1u /* on a terminal: all it writes is stdout */
#define BRIG_PROCESS_STDIN 2u /* its standard input is open until brig_session_close_input(); else it is empty */
#define BRIG_SESSION_PROCESS_INIT                                                          \
	{                                                                                  \
		sizeof(struct brig_session_process), NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0 \
	}
/*
 * Inspected as a command is, then started: DONE, OUTPUT, EXITED, and RAN with its result, which is recorded.  *ret_tag
 * also identifies it in the calls below, from its DONE on.  One that is blocked or refused has a DONE with error EPERM,
 * and RAN with the reasons. What is pointed to may change after the call.
 */
BRIG_API int brig_session_start(struct brig_session *s, const struct brig_session_process *what, uint64_t *ret_tag,
				struct brig_error *err);
/* Accepts everything or, if more than four megabytes would be pending for the process, nothing (BRIG_E_REFUSED). */
BRIG_API int brig_session_input(struct brig_session *s, uint64_t process, const void *data, size_t len,
				struct brig_error *err);
/* After what was accepted.  On a terminal, the end-of-file character is sent. */
BRIG_API int brig_session_close_input(struct brig_session *s, uint64_t process, struct brig_error *err);
/*
 * Flow control: with reads 0 the output of the process, or of the context's kernel, stays in its pipes, and it blocks
 * when they are full; 1 continues.  What is in them when it ends, or shows a result, is delivered nevertheless.
 */
BRIG_API int brig_session_flow(struct brig_session *s, uint64_t process_or_context, int reads, struct brig_error *err);
/* To the process and what it started, unless that left its process group. */
BRIG_API int brig_session_signal(struct brig_session *s, uint64_t process, int signal, uint64_t *ret_tag,
				 struct brig_error *err);
BRIG_API int brig_session_resize(struct brig_session *s, uint64_t process, uint32_t rows, uint32_t columns,
				 uint64_t *ret_tag, struct brig_error *err);

/* Files, by paths in the cell: absolute, or below the workspace; with the rights of its programs. */
enum brig_session_open { BRIG_OPEN_READ = 0, BRIG_OPEN_WRITE = 1, BRIG_OPEN_APPEND = 2 };
/* The DONE has a descriptor of a regular file; nothing else is opened.  Writing creates the file and its parent
 * folders. */
BRIG_API int brig_session_open(struct brig_session *s, const char *path, enum brig_session_open how, uint32_t mode,
			       uint64_t *ret_tag, struct brig_error *err);
BRIG_API int brig_session_stat(struct brig_session *s, const char *path, uint64_t *ret_tag, struct brig_error *err);
/* Links are not followed.  limit: the maximum number; 0: 10000, which is the upper bound. */
BRIG_API int brig_session_list(struct brig_session *s, const char *path, uint32_t depth, uint32_t limit,
			       uint64_t *ret_tag, struct brig_error *err);
BRIG_API int brig_session_mkdir(struct brig_session *s, const char *path, uint64_t *ret_tag, struct brig_error *err);
BRIG_API int brig_session_move(struct brig_session *s, const char *from, const char *to, uint64_t *ret_tag,
			       struct brig_error *err);
/* Recursively. */
BRIG_API int brig_session_remove(struct brig_session *s, const char *path, uint64_t *ret_tag, struct brig_error *err);
/* CHANGED events have the tag of the watch, until brig_session_unwatch(). */
BRIG_API int brig_session_watch(struct brig_session *s, const char *path, int recursive, uint64_t *ret_tag,
				struct brig_error *err);
BRIG_API int brig_session_unwatch(struct brig_session *s, uint64_t watch, uint64_t *ret_tag, struct brig_error *err);
/* A server on the cell's loopback: the DONE has a TCP socket that is connected to it, or about to be. */
BRIG_API int brig_session_connect(struct brig_session *s, uint16_t port, uint64_t *ret_tag, struct brig_error *err);
/*
 * Saves the workspace to a file of the caller, and loads it into the workspace of another session: links of both kinds,
 * modes, times, holes, empty folders and FIFOs.  Sockets, devices and extended attributes are left out.  Processes are
 * not copied; those of the first are stopped meanwhile, so that the copy is consistent.  The file's contents are
 * controlled by the programs: use it only with brig_session_load().  Written are at most so many bytes (EFBIG in the
 * DONE; E2BIG: more than a million entries); files may be at most 128 folders deep (ENAMETOOLONG).  It is read or
 * written from its beginning on.  One of these at a time in a session (BRIG_E_REFUSED).
 *
 * Instead of a file, both may have the ends of one pipe: then the second session loads while the first saves.  Its
 * reading end must block.  The first has EPIPE in its DONE if the second stops reading before the end, and the second
 * EPROTO if it does not get all.
 */
BRIG_API int brig_session_save(struct brig_session *s, int file, uint64_t most_bytes, uint64_t *ret_tag,
			       struct brig_error *err);
BRIG_API int brig_session_load(struct brig_session *s, int file, uint64_t *ret_tag, struct brig_error *err);
/*
 * Stops every process in it, and resumes them.  Its own time continues to run; limits of what runs in it, and the idle
 * time, are suspended.  Files can be used, saved and loaded; what needs a process to respond is refused
 * (BRIG_E_REFUSED): processes and runs, contexts, connections, and signals but SIGKILL.
 */
BRIG_API int brig_session_pause(struct brig_session *s, uint64_t *ret_tag, struct brig_error *err);
BRIG_API int brig_session_resume(struct brig_session *s, uint64_t *ret_tag, struct brig_error *err);

/* An interpreter that keeps its state: "python", "javascript", "typescript", "bash", "r", as far as they are installed.
 * *ret_context identifies it below; a DONE with this tag reports that it is ready.  One that dies is restarted with the
 * next run, without its state. */
BRIG_API int brig_session_context(struct brig_session *s, const char *language, const char *cwd, uint64_t *ret_context,
				  struct brig_error *err);
struct brig_session_code {
	uint32_t size;
	uint64_t context;
	const char *code;
	size_t code_len;
	const char *const *env; /* "KEY=VALUE", for this run only */
	size_t n_env;
	uint64_t timeout_ms; /* at most the policy's execution_timeout_ms; 0: that */
};
#define BRIG_SESSION_CODE_INIT                                           \
	{                                                                \
		sizeof(struct brig_session_code), 0, NULL, 0, NULL, 0, 0 \
	}
/*
 * Runs a piece of code: inspected first, then OUTPUT and RESULT events, then RAN, whose result has verdict, findings
 * and usage, and is recorded.  One at a time in a context: further ones are queued in order, and refused
 * (BRIG_E_REFUSED) when 128 are waiting.  Contexts run in parallel.  What is pointed to may change after the call.
 */
BRIG_API int brig_session_run(struct brig_session *s, const struct brig_session_code *what, uint64_t *ret_tag,
			      struct brig_error *err);
/* Interrupts what runs in it, as the terminal's ^C would: the run ends with an error, and the state stays. */
BRIG_API int brig_session_interrupt(struct brig_session *s, uint64_t context, struct brig_error *err);
/* Cancels this run: it is interrupted, or does not start; its RAN follows.  Others in its context are not affected. */
BRIG_API int brig_session_cancel(struct brig_session *s, uint64_t run, struct brig_error *err);
/* Restarts it: a DONE with its tag reports that it is ready. */
BRIG_API int brig_session_restart(struct brig_session *s, uint64_t context, struct brig_error *err);
BRIG_API int brig_session_close_context(struct brig_session *s, uint64_t context, struct brig_error *err);

#ifdef __cplusplus
}
#endif
#endif
