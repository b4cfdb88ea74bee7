/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interfaces of src/session. */
#ifndef SESSION_INSIDE_H
#define SESSION_INSIDE_H

#include <signal.h>

#include "backend/guest/steward.h"
#include "base/buf.h"
#include "base/clock.h"
#include "session/frames.h"
#include "session/session.h"

#define ASKED_MAX           1024
#define INPUT_MAX           (4 * MiB)
#define PIECE               32768
#define GRACE_MS            2000
#define CONTEXTS_MAX        48      /* commands need some of pids_limit, too */
#define CONTEXT_QUEUE_MAX   128     /* runs that wait in one context */
#define SESSION_ENTRIES_MAX 1000000 /* entries of a workspace that is copied */

/* A descriptor in the session's epoll set. */
struct source {
	int fd; /* FD_NONE: closed */
	uint32_t events;
	void (*serve)(struct session *s, void *owner, uint32_t events);
	void *owner;
};
int source_watch(struct session *s, struct source *src, int fd, uint32_t events,
		 void (*serve)(struct session *s, void *owner, uint32_t events), void *owner);
void source_change(struct session *s, struct source *src, uint32_t events);
/* Stops or resumes polling it, even for EPOLLHUP. */
void source_hold(struct session *s, struct source *src, bool held);
void source_close(struct session *s, struct source *src);

/* Bytes queued for a descriptor. */
struct outgoing {
	struct source to;
	struct buf bytes;
	size_t at;
	bool closing; /* close it after them */
	bool socket;  /* sent with MSG_DONTWAIT, since other processes share the open file */
};
void outgoing_flush(struct session *s, struct outgoing *o);

/* Suppresses the SIGPIPE of a write to a pipe without a reader, for the calling thread. */
struct quiet {
	sigset_t was;
	bool was_pending;
};
void quiet_begin(struct quiet *q);
void quiet_end(struct quiet *q, bool broke); /* broke: the write failed with EPIPE; preserves errno */

struct process {
	struct process *next;
	uint64_t tag, begun_ns, deadline_ns; /* deadline_ns 0: none */
	int64_t pid;                         /* 0: not started yet */
	bool pty;
	uint32_t flags; /* for its EXITED event */
	struct outgoing in;
	struct source out, err;
	uint64_t output_bytes, output_limit;
	struct context *context; /* whose kernel it is; NULL: not a kernel */
	struct run_hooks hooks;  /* if it is not a kernel */
	bool told_end, held;
	uint64_t linger_ns; /* it has exited, and its children may write until then; 0: it has not */
	int exit_code, exit_signal;
	uint64_t cpu_us; /* all three from its exit on */
};

/* A save or load in progress; one at a time. */
struct copy {
	uint64_t tag; /* 0: none */
	bool saves, is_over, is_answered;
	bool is_pipe; /* the file is a pipe */
	bool by_hand; /* the file does not support splice(2) */
	bool is_held; /* end is not polled until next has room */
	int file, error;
	char *piece;        /* allocated buffer of COPY_PIECE bytes for files without splice(2); NULL: none yet */
	struct source end;  /* our end of the pipe; the steward has the other */
	struct source next; /* the destination pipe of a save */
	uint64_t at, most, deadline_ns;
	struct brig_session_event done;
};

struct message {
	struct message *next;
	struct steward_head head;
	size_t n_words;
	char **words; /* array and strings are allocated */
	int fds[STEWARD_FDS_MAX];
	size_t n_fds;
};

struct asked {
	uint64_t tag;
	unsigned kind; /* 0: free row */
	bool quiet;    /* no DONE event */
};

struct session {
	struct session_config config;
	int epoll;
	struct source control, timer;
	bool ready, stopping, lost, must_end;
	uint64_t next_tag, begun_ns, end_ns, active_ns;
	uint64_t timer_ns;  /* when it expires; UINT64_MAX: not set */
	uint64_t paused_ns; /* start of the pause; 0: not paused */
	struct message *queue, **queue_end;
	struct asked asked[ASKED_MAX];
	uint64_t watches[STEWARD_WATCHES_MAX]; /* tags; 0: free row */
	struct process *processes;
	struct context *contexts;
	struct copy copy;
	struct steward_message *received;
	char piece[PIECE];
};

/* session.c */
void session_tell(struct session *s, struct brig_session_event *event);
void session_is_active(struct session *s);
void session_set_timer(struct session *s);
/* Copies head, words and fds; takes the descriptors, also on failure.  quiet: no DONE event. */
int session_send(struct session *s, const struct steward_head *head, const char *const *words, size_t n_words, int *fds,
		 size_t n_fds, bool quiet, struct brig_error *err);

/* process.c */
struct process *process_find(const struct session *s, uint64_t tag);
/* channel: descriptor 3 of the process, or FD_NONE; taken. */
int process_begin(struct session *s, uint64_t tag, const struct brig_session_process *what, struct context *context,
		  int channel, struct process **ret, struct brig_error *err);
void process_started(struct session *s, struct process *p, int error, int64_t pid);
void process_listen(struct session *s, struct process *p); /* polls its output, after its STARTED event */
void process_exited(struct session *s, struct process *p, const struct steward_head *head);
uint64_t process_kill(struct session *s, struct process *p, int signal); /* returns its tag; 0: not sent */
uint64_t process_ask_cpu(struct session *s, const struct process *p);    /* likewise */
void process_read(struct session *s, struct process *p);                 /* reads the output that is available */
uint64_t process_next_deadline(const struct session *s);
void process_check_deadlines(struct session *s, uint64_t now);
void process_free(struct session *s, struct process *p);

/* pause.c */
void pause_begin(struct session *s);
void pause_end(struct session *s);

/* copies.c */
void copy_answered(struct session *s, uint64_t tag, const int64_t *number, int error);
uint64_t copy_deadline(const struct session *s);
void copy_check_deadline(struct session *s, uint64_t now);
void copy_abandon(struct session *s); /* without a DONE event */

/* context.c */
void context_output(struct session *s, struct context *c, enum brig_stream stream, const char *data, size_t len);
void context_kernel_started(struct session *s, struct context *c, int error);
/* end: of its process, with exit code and signal. */
void context_kernel_gone(struct session *s, struct context *c, const struct brig_session_event *end);
struct process *context_kernel(const struct session *s, uint64_t tag); /* NULL: none */
void context_signal_sent(struct session *s, uint64_t tag);
void context_cpu_told(struct session *s, uint64_t tag, uint64_t ms);
uint64_t context_next_deadline(const struct session *s);
void context_check_deadlines(struct session *s, uint64_t now);
void context_put_off(struct session *s, uint64_t ns); /* postpones deadlines */
bool context_any_runs(const struct session *s);
void context_free_all(struct session *s);

#endif
