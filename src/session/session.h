/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's side of a session: requests to the steward in its cell (backend/guest/steward.h), the pipes of the
 * processes that it starts, interpreters that keep their state, and time limits.
 *
 * Theory of operation
 *
 * One object, one thread, one epoll descriptor; nothing blocks.  session_step() serves one ready descriptor and reports
 * to the owner in events (brig.h).  This folder knows nothing about cells, policy or records: api/session.c creates the
 * cell and passes its control socket to session_attach(), and records what runs (executor/piece.h).
 *
 *	queue		messages for the steward, in order; sent as far as its socket accepts them
 *	asked		requests without an answer yet; any other answer is dropped and its descriptors are closed
 *	processes	each with the pipes that the session created, queued input, and a deadline
 *	copy		a save or load of the workspace in progress
 *	contexts	each with a process, the kernel (kernels.def), and a channel to it with frames (frames.h)
 *
 * Nothing that comes from the cell is trusted (frames.h, session.c): lengths and kinds are checked, descriptors are
 * checked before they are passed on, and a malformed message ends the session.  The output of a program is bounded by
 * the output limit of its run, its queued input by INPUT_MAX, and the number of requests in progress by ASKED_MAX.
 *
 * A run in a context is interrupted (SIGINT, as ^C would) at its time limit or when it is cancelled.  An interpreter
 * that goes on for GRACE_MS is killed; the next run starts a new one and says so.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <brig/session.h>

#include "base/err.h"
#include "base/util.h"

struct session;
struct context;

struct session_config {
	brig_session_fn on_event;
	void *user;
	uint64_t most_ms, timeout_ms, idle_ms; /* since the session began; timeout_ms is at most most_ms */
	uint64_t output_bytes, run_ms, cpu_ms; /* for each process or run */
};

int session_new(const struct session_config *config, struct session **ret, struct brig_error *err);
/* Call it when the cell is gone or about to be. */
void session_free(struct session *s);
/* Ends all runs and processes; calls their hooks. */
void session_abandon(struct session *s);
int session_fd(const struct session *s);
/* Takes the steward's socket. */
int session_attach(struct session *s, int control, struct brig_error *err);
/* Serves one event.  True: there may be more. */
bool session_step(struct session *s);
/* Asks the steward to end, if it can be reached. */
void session_stop(struct session *s, const char *reason);
/* The steward does not end, or broke the protocol: the owner must end the cell. */
bool session_must_end(const struct session *s);
bool session_is_stopping(const struct session *s);
int session_set_timeout(struct session *s, uint64_t ms, struct brig_error *err);
void session_times(const struct session *s, uint64_t *ret_left_ms, uint64_t *ret_most_ms);

/* How a run in a context, or a process, ended. */
enum run_ending {
	RUN_DONE,
	RUN_ERROR,     /* the code raised an error; error_name says which */
	RUN_TIMEOUT,   /* at its time limit */
	RUN_OUTPUT,    /* at its output limit */
	RUN_CPU,       /* at its cpu limit; of a context */
	RUN_DIED,      /* the interpreter ended, by itself or killed after the grace period; its state is lost */
	RUN_ENDED,     /* the session ended */
	RUN_UNBORN,    /* the process could not be started, or the context is gone */
	RUN_CANCELLED, /* cancelled before it began */
	RUN_STUBBORN,  /* cancelled, and did not stop: its interpreter was killed */
};
struct run_outcome {
	enum run_ending ending;
	char error_name[64], error_value[256]; /* of RUN_ERROR, as reported by the program */
	uint64_t count, wall_ns, output_bytes;
	uint64_t cpu_us;       /* includes children; for a process, only children that it waited for */
	int exit_code, signal; /* of a process, or of the interpreter that ended (RUN_DIED) */
};
/* Called for the record of a run. */
struct run_hooks {
	/* For each piece of output, in addition to the event. */
	void (*on_output)(void *arg, enum brig_stream stream, const char *data, size_t len);
	/* Called once, from a step or from session_free(). */
	void (*on_end)(void *arg, const struct run_outcome *how);
	void *arg;
};

/* tag: from session_next_tag(); identifies the process from now on. */
int session_start(struct session *s, uint64_t tag, const struct brig_session_process *what,
		  const struct run_hooks *hooks, struct brig_error *err);
int session_input(struct session *s, uint64_t process, const void *data, size_t len, struct brig_error *err);
int session_close_input(struct session *s, uint64_t process, struct brig_error *err);
int session_flow(struct session *s, uint64_t process_or_context, bool reads, struct brig_error *err);
int session_signal(struct session *s, uint64_t process, int signal, uint64_t *ret_tag, struct brig_error *err);
int session_resize(struct session *s, uint64_t process, uint32_t rows, uint32_t columns, uint64_t *ret_tag,
		   struct brig_error *err);

/* A request that is only a message with numbers and paths; kind is an enum steward_kind. */
struct session_ask {
	unsigned kind;
	int64_t number[2];
	const char *path[2]; /* NULL: none */
};
/* -BRIG_E_REFUSED: the session is paused. */
int session_check_awake(const struct session *s, struct brig_error *err);
int session_ask(struct session *s, const struct session_ask *what, uint64_t *ret_tag, struct brig_error *err);

/*
 * Saves the workspace to a file, or loads it from one; at most most_bytes.  The file is duplicated: the caller may
 * close its own.
 */
int session_copy(struct session *s, int file, bool saves, uint64_t most_bytes, uint64_t *ret_tag,
		 struct brig_error *err);

int session_context(struct session *s, const char *language, const char *cwd, uint64_t *ret_tag,
		    struct brig_error *err);
int session_interrupt(struct session *s, uint64_t context, struct brig_error *err);
/* Interrupts this run only.  A run that waits for its kernel ends at once. */
void session_cancel(struct session *s, uint64_t context, uint64_t run);
int session_restart(struct session *s, uint64_t context, struct brig_error *err);
int session_close_context(struct session *s, uint64_t context, struct brig_error *err);
/* The name of its language in policy and inspection; NULL: no such context. */
const char *session_context_language(const struct session *s, uint64_t context);

struct session_run {
	uint64_t tag, context;
	const char *code;
	size_t code_len;
	const char *const *env;
	size_t n_env;
	uint64_t timeout_ms;
	struct run_hooks hooks;
};
uint64_t session_next_tag(struct session *s);
/* Copies code and env.  BRIG_E_REFUSED: the context is busy. */
int session_run(struct session *s, const struct session_run *run, struct brig_error *err);
/* Announces a run: until session_run() or session_unreserve(), the context is not idle. */
int session_reserve(struct session *s, uint64_t context, struct brig_error *err);
void session_unreserve(struct session *s, uint64_t context);
/*
 * Tells the idle kernel to prepare while the code of its next run is inspected; the kernel sees none of that code yet.
 */
void session_expect(struct session *s, uint64_t context);

#endif
