/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
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
#define CONTEXTS_MAX        32
#define CONTEXT_QUEUE_MAX   128     /* runs that wait in one */
#define SESSION_ENTRIES_MAX 1000000 /* of a workspace that is copied */

/* Something in the session's epoll. */
struct source {
	int fd; /* FD_NONE: it is not there */
	uint32_t events;
	void (*serve)(struct session *s, void *owner, uint32_t events);
	void *owner;
};
int source_watch(struct session *s, struct source *src, int fd, uint32_t events,
		 void (*serve)(struct session *s, void *owner, uint32_t events), void *owner);
void source_change(struct session *s, struct source *src, uint32_t events);
/* Not looked at for a while, not even for its end. */
void source_hold(struct session *s, struct source *src, bool held);
void source_close(struct session *s, struct source *src);

/* Bytes that wait to be written to a source. */
struct outgoing {
	struct source to;
	struct buf bytes;
	size_t at;
	bool closing; /* after them */
	bool socket;  /* written without waiting, whoever else has it */
};
void outgoing_flush(struct session *s, struct outgoing *o);

/* While something is written to a pipe whose reader may be gone: the caller's SIGPIPE is not ours. */
struct quiet {
	sigset_t was;
	bool was_pending;
};
void quiet_begin(struct quiet *q);
void quiet_end(struct quiet *q, bool broke); /* broke: with EPIPE; errno stays */

struct process {
	struct process *next;
	uint64_t tag, begun_ns, deadline_ns; /* 0: none */
	int64_t pid;                         /* 0: not started yet */
	bool pty;
	uint32_t flags; /* of its EXITED event */
	struct outgoing in;
	struct source out, err;
	uint64_t output_bytes, output_limit;
	struct context *context; /* whose kernel it is; NULL: nobody's */
	struct run_hooks hooks;  /* of one that is nobody's */
	bool told_end, held;
	uint64_t linger_ns; /* it has exited, and its children may write until then; 0: it has not */
	int exit_code, exit_signal;
	uint64_t cpu_us; /* all three from its exit on */
};

/* The workspace on its way to or from a file, or to a pipe; one at a time. */
struct copy {
	uint64_t tag; /* 0: there is none */
	bool saves, is_over, is_answered;
	bool is_pipe; /* the file is one */
	bool by_hand; /* it cannot be spliced with */
	bool is_held; /* end, until there is room in next */
	int file, error;
	char *piece;        /* heap: COPY_PIECE bytes on their way by hand; NULL: none yet */
	struct source end;  /* ours; the steward has the other */
	struct source next; /* the pipe that it is saved to */
	uint64_t at, most, deadline_ns;
	struct brig_session_event done;
};

struct message {
	struct message *next;
	struct steward_head head;
	size_t n_words;
	char **words; /* heap, and each of them */
	int fds[STEWARD_FDS_MAX];
	size_t n_fds;
};

struct asked {
	uint64_t tag;
	unsigned kind; /* 0: a free row */
	bool quiet;    /* nobody is told of the answer */
};

struct session {
	struct session_config config;
	int epoll;
	struct source control, timer;
	bool ready, stopping, lost, must_end;
	uint64_t next_tag, begun_ns, end_ns, active_ns;
	uint64_t timer_ns;  /* when it is due; UINT64_MAX: it is not set */
	uint64_t paused_ns; /* since when; 0: it is not paused */
	struct message *queue, **queue_end;
	struct asked asked[ASKED_MAX];
	uint64_t watches[STEWARD_WATCHES_MAX]; /* tags; 0: a free row */
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
/* words and fds are copied; fds are taken, whatever is returned.  quiet: no DONE event. */
int session_send(struct session *s, const struct steward_head *head, const char *const *words, size_t n_words, int *fds,
		 size_t n_fds, bool quiet, struct brig_error *err);

/* process.c */
struct process *process_find(const struct session *s, uint64_t tag);
/* channel: FD_NONE, or what the process has as descriptor 3; taken. */
int process_begin(struct session *s, uint64_t tag, const struct brig_session_process *what, struct context *context,
		  int channel, struct process **ret, struct brig_error *err);
void process_started(struct session *s, struct process *p, int error, int64_t pid);
void process_listen(struct session *s, struct process *p); /* nobody is told of output before it has begun */
void process_exited(struct session *s, struct process *p, const struct steward_head *head);
uint64_t process_kill(struct session *s, struct process *p, int signal); /* its tag; 0: it was not sent */
uint64_t process_ask_cpu(struct session *s, const struct process *p);    /* likewise */
void process_read(struct session *s, struct process *p);                 /* what is there of its output */
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
void copy_abandon(struct session *s); /* nobody is told */

/* context.c */
void context_output(struct session *s, struct context *c, enum brig_stream stream, const char *data, size_t len);
void context_kernel_started(struct session *s, struct context *c, int error);
void context_kernel_gone(struct session *s, struct context *c, int signal);
struct process *context_kernel(const struct session *s, uint64_t tag); /* NULL: there is none */
void context_signal_sent(struct session *s, uint64_t tag);
void context_cpu_told(struct session *s, uint64_t tag, uint64_t ms);
uint64_t context_next_deadline(const struct session *s);
void context_check_deadlines(struct session *s, uint64_t now);
void context_put_off(struct session *s, uint64_t ns); /* deadlines, by so much */
bool context_any_runs(const struct session *s);
void context_free_all(struct session *s);

#endif
