/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's side of a session: what is asked of the steward in its cell (backend/guest/steward.h), the pipes of the processes
 * that it starts, the interpreters that keep their state, and the clocks.
 *
 * Theory of operation
 *
 * One object, one thread, one epoll descriptor; nothing waits.  session_step() serves what is ready, one descriptor after the
 * other, and tells the owner in events (brig.h).  It knows nothing of cells, policy or records: api/session.c has a cell made whose
 * control socket it hands over, and records what runs (executor/piece.h).
 *
 *	queue		messages that wait for the steward, in their order; sent as far as its socket takes them
 *	asked		what was sent and is not answered: an answer to anything else is dropped, and its descriptors are closed
 *	processes	each with the pipes that its session made, the input that waits for it, and a deadline
 *	copy		the workspace on its way to or from a file of the owner's
 *	contexts	a process each, the kernel (kernel.def), and a channel to it with frames (frames.h)
 *
 * All that comes from the cell is somebody else's word (frames.h, session.c): lengths and kinds are checked, descriptors are
 * looked at before they are handed on, and a message that is unsound ends the session.  What a program can write is bounded by the
 * output limit of its run, what waits for it by INPUT_MAX, what is asked at one time by ASKED_MAX.
 *
 * A run in a context is interrupted at its time limit, and when nobody wants it any more (SIGINT, as ^C would); an interpreter that
 * goes on for GRACE_MS is killed, and begins anew with the next run, which says so.
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
	uint64_t most_ms, timeout_ms, idle_ms; /* from its beginning on; the second is at most the first */
	uint64_t output_bytes, run_ms, cpu_ms; /* of each process or run */
};

int session_new(const struct session_config *config, struct session **ret, struct brig_error *err);
/* The cell must be gone, or about to be. */
void session_free(struct session *s);
/* Whatever is under way ends here, and who has hooks in it is told. */
void session_abandon(struct session *s);
int session_fd(const struct session *s);
/* The steward's socket, which is the session's from here on. */
int session_attach(struct session *s, int control, struct brig_error *err);
/* True: there was something to do, and there may be more. */
bool session_step(struct session *s);
/* Asks the steward to end, if it can be asked. */
void session_stop(struct session *s, const char *reason);
/* The steward does not end, or has said what it should not: the cell is to be ended by who made it. */
bool session_must_end(const struct session *s);
bool session_is_stopping(const struct session *s);
int session_set_timeout(struct session *s, uint64_t ms, struct brig_error *err);
void session_times(const struct session *s, uint64_t *ret_left_ms, uint64_t *ret_most_ms);

/* How a run in a context, or a process, went. */
enum run_ending {
	RUN_DONE,
	RUN_ERROR,     /* the code's own, and error_name says which */
	RUN_TIMEOUT,   /* at its time limit */
	RUN_OUTPUT,    /* at its output limit */
	RUN_CPU,       /* at its cpu limit; of a context */
	RUN_DIED,      /* the interpreter ended, by itself or because it did not stop; its state is gone */
	RUN_ENDED,     /* the session did */
	RUN_UNBORN,    /* the process could not be started, or the context is gone */
	RUN_CANCELLED, /* nobody wanted it any more before it began */
	RUN_STUBBORN,  /* nobody wanted it any more, and it did not stop: its interpreter was killed */
};
struct run_outcome {
	enum run_ending ending;
	char error_name[64], error_value[256]; /* of RUN_ERROR, as the program says */
	uint64_t count, wall_ns, output_bytes;
	uint64_t cpu_us;       /* with children; of a process those that it waited for */
	int exit_code, signal; /* of a process; of RUN_DIED the latter */
};
/* Who records it. */
struct run_hooks {
	/* Of each piece of output, besides the event. */
	void (*on_output)(void *arg, enum brig_stream stream, const char *data, size_t len);
	/* Called once, from a step or from session_free(). */
	void (*on_end)(void *arg, const struct run_outcome *how);
	void *arg;
};

/* tag: of session_next_tag(), and the name of the process from now on. */
int session_start(struct session *s, uint64_t tag, const struct brig_session_process *what,
		  const struct run_hooks *hooks, struct brig_error *err);
int session_input(struct session *s, uint64_t process, const void *data, size_t len, struct brig_error *err);
int session_close_input(struct session *s, uint64_t process, struct brig_error *err);
int session_flow(struct session *s, uint64_t process_or_context, bool reads, struct brig_error *err);
int session_signal(struct session *s, uint64_t process, int signal, uint64_t *ret_tag, struct brig_error *err);
int session_resize(struct session *s, uint64_t process, uint32_t rows, uint32_t columns, uint64_t *ret_tag,
		   struct brig_error *err);

/* Everything that is a message, numbers and paths: kind is one of enum steward_kind. */
struct session_ask {
	unsigned kind;
	int64_t number[2];
	const char *path[2]; /* NULL: none */
};
/* -BRIG_E_REFUSED: it is paused. */
int session_check_awake(const struct session *s, struct brig_error *err);
int session_ask(struct session *s, const struct session_ask *what, uint64_t *ret_tag, struct brig_error *err);

/* The workspace, into a file or out of it; at most so many bytes.  The file is the caller's, and may be closed. */
int session_copy(struct session *s, int file, bool saves, uint64_t most_bytes, uint64_t *ret_tag,
		 struct brig_error *err);

int session_context(struct session *s, const char *language, const char *cwd, uint64_t *ret_tag,
		    struct brig_error *err);
int session_interrupt(struct session *s, uint64_t context, struct brig_error *err);
/* Interrupts this run, and no other; one that waits for the kernel to be ready ends at once. */
void session_cancel(struct session *s, uint64_t context, uint64_t run);
int session_restart(struct session *s, uint64_t context, struct brig_error *err);
int session_close_context(struct session *s, uint64_t context, struct brig_error *err);
/* The name of its language, as the policy and the inspection have it; NULL: there is no such context. */
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
/* What it points to is not kept.  BRIG_E_REFUSED: something runs there already. */
int session_run(struct session *s, const struct session_run *run, struct brig_error *err);
/* A run is about to come, and the context is not idle until then; session_run() or session_unreserve() follows. */
int session_reserve(struct session *s, uint64_t context, struct brig_error *err);
void session_unreserve(struct session *s, uint64_t context);
/* The code of a run is being inspected: its kernel, which has nothing of it yet, gets ready for it. */
void session_expect(struct session *s, uint64_t context);

#endif
