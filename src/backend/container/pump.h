/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common code for cells that are containers, whichever backend creates them (an engine, Kubernetes): our own PID 1
 * inside (init/), the protocol between brig and it (wire.h), and the data that flows between the two.
 *
 *	pump.c       output, input and init's frames over one stream
 *	tree.c       a project on its way in, and the workspace on its way out
 *	lifecycle.c  a run as init reports it: ready, go, end, usage, facts
 *	owner.c      labels with the owner of a container
 *
 * A backend creates a container with init as PID 1, opens a stream to its standard input, output and error, describes
 * in a struct pump_carrier how bytes are transported over that stream, and calls the functions here for the rest.
 */
#ifndef CONTAINER_PUMP_H
#define CONTAINER_PUMP_H

#include "backend/backend.h"
#include "backend/container/wire.h"
#include "base/buf.h"
#include "files/pack.h"
#include "net/http.h"

#define CERTIFICATES_NAME ".ca-certificates.crt"
#define CERTIFICATES_PATH "/tmp/" CERTIFICATES_NAME

/* One direction of the program's output: from the stream into a pipe that the watcher reads. */
struct pipe_out {
	int read, write;
	char piece[WIRE_BODY_MAX +
		   2 * WIRE_KEY]; /* what did not fit into the pipe: at most one read, plus bytes held back earlier */
	size_t at, len;
	struct buf rest; /* everything received after the cell was stopped */
};

/* The plan's project as a stream in memory, on its way to init. */
struct project_out {
	const char *data; /* mapped; NULL: none, or it is sent */
	size_t len, mapped;
	uint64_t entries, bytes; /* in it */
	uint64_t room;           /* bytes that it takes in the workspace */
	bool sent;
};

/* The workspace as a stream from init. */
struct tree_in {
	int fd; /* memfd; FD_NONE: nothing received */
	uint64_t len;
	bool cut;     /* more was received than is kept */
	bool ended;   /* init has sent WIRE_TREE_END */
	uint64_t sys; /* why it ended early; 0: complete */
};

struct pump;

/* How bytes are transported over a stream that carries three of them. */
struct pump_carrier {
	/* Takes bytes for the container's stdin: how many, -EAGAIN, or another -errno. */
	ssize_t (*write)(struct pump *p, const char *data, size_t len);
	/* Parses received data, at most a piece of the pump, and calls pump_stdout() and pump_stderr(). */
	int (*take)(struct pump *p, const char *data, size_t len, struct brig_error *err);
	/* Writes data that was taken before; true: some is left.  NULL: write buffers nothing. */
	bool (*holds)(struct pump *p);
};

struct pump {
	const struct plan *plan;
	const struct pump_carrier *carrier;
	void *carried; /* the carrier's own state */
	struct http_stream *stream;
	struct wire_reader reader;
	struct wire_mark out_end; /* for stdout, once init was asked for the mark */
	bool out_marked;
	struct pipe_out out, err;
	int in_read, in_write; /* the program's stdin, on its way to init */
	int poll;              /* epoll set of all of the above */

	/* To init: */
	bool in_pod; /* WIRE_IN_POD */
	char *head;  /* the job without its files */
	size_t head_len;
	size_t file; /* index of the file being sent; after the last one, messages */
	size_t sent; /* bytes sent of the current part */
	char message[WIRE_PREFIX + WIRE_BODY_MAX];
	size_t message_len;

	struct project_out project;
	struct project_out shown;                /* the tree of one of the plan's binds */
	const struct plan_bind *folder, *linked; /* that bind, and one with same_as inside it; NULL: none */

	/* From init: */
	bool ready, go_sent, final, stream_over, draining;
	bool failed_step;
	struct wire_failure failure;
	struct wire_spaces spaces;
	bool has_spaces;
	struct wire_exit exit;
	bool has_exit, told;
	uint64_t output_size, output_got;
	int output; /* memfd with the output file; FD_NONE */
	struct tree_in tree;
	struct buf left; /* received list of WIRE_LEFT */
	struct facts early, late;
	char piece[32 * KiB];  /* a read from the stream */
	char first_words[200]; /* on stderr of a container whose first bytes were not init's */
	size_t first_len;
	uint64_t started_ns;
};

/* ---- pump.c --------------------------------------------------------------------------------------- */

void pump_clear(struct pump *p, const struct plan *plan, const struct pump_carrier *carrier, void *carried);
int pump_open(struct pump *p, struct brig_error *err);
/* Queues head and files of the job. */
int pump_load(struct pump *p, struct brig_error *err);
/* Queues a message without a body, and sends it if the queue is empty.  false: another one is queued. */
bool pump_message(struct pump *p, enum wire_message type);
/* Asks init to mark the end of stdout, once it has sent section 2; call again if another message is in the way. */
void pump_request_mark(struct pump *p);
/* Moves whatever can be moved without blocking.  Negative: the stream is malformed. */
int pump_turn(struct pump *p, struct brig_error *err);
/* Waits for something to move, at most until the deadline. */
void pump_wait(struct pump *p, uint64_t deadline_ns);
/* Marks the stream as ended: nothing more of it is used. */
void pump_end_stream(struct pump *p);
/* No more output will come: hands the watcher what is left, followed by end of file. */
void pump_hand_over(struct pump *p);
void pump_close(struct pump *p);

/* For a carrier: bytes of the container's stdout and stderr.  Negative: the rest of the stream cannot be trusted. */
int pump_stdout(struct pump *p, const char *data, size_t len, struct brig_error *err);
int pump_stderr(struct pump *p, const char *data, size_t len, struct brig_error *err);

/* ---- tree.c --------------------------------------------------------------------------------------- */

int project_pack(struct pump *p, struct brig_error *err);
int shown_pack(struct pump *p, struct brig_error *err);
void project_release(struct pump *p);
/* Upper bounds for a workspace on its way back. */
struct pack_caps tree_caps(const struct pump *p);
bool tree_take(struct pump *p, const char *body, size_t len);
bool tree_take_end(struct pump *p, const char *body, size_t len);
/* Names of files that a program leaves in a workspace that was not requested. */
bool left_wanted(const struct pump *p);
bool left_take(struct pump *p, const char *body, size_t len);

/* ---- lifecycle.c ------------------------------------------------------------------------------------- */

/* Sizes of the writable places; their sum is the plan's limit. */
struct place_sizes {
	uint64_t bytes[3], inodes[3];
};
struct place_sizes lifecycle_places(const struct limits *l);

int lifecycle_make_keys(struct pump *p, struct brig_error *err);
/*
 * 1: set-up is complete and init waits; 0: end of stream, timeout or a malformed stream; negative: init reported a
 * failure.
 */
int lifecycle_await_ready(struct pump *p, uint64_t deadline_ns, struct brig_error *err);
/* Fails if init reads that an available protection is not in force.  who: "the engine". */
int lifecycle_check_limits(const struct pump *p, const char *who, struct brig_error *err);
/* Starts the program that init has prepared. */
int lifecycle_start_program(struct pump *p, struct brig_error *err);
/* For a backend's start, once the program was started. */
struct cell_fds lifecycle_fds(const struct pump *p);
/* Waits until init has reported the end, or the stream is over. */
void lifecycle_await_final(struct pump *p, uint64_t deadline_ns);
void lifecycle_await_stream_end(struct pump *p, uint64_t deadline_ns);
/*
 * Waits until all output of the program has arrived, according to init's mark; the engine reports the end of the stream
 * late.
 */
bool lifecycle_await_mark(struct pump *p, uint64_t deadline_ns);
/*
 * For a backend's on_event.  CELL_NOTHING with *ret_lost: init died without reporting the end; the backend has to find
 * out why.
 */
enum cell_event lifecycle_event(struct pump *p, struct exit_info *info, bool *ret_lost, struct brig_error *err);
void lifecycle_usage(const struct pump *p, uint64_t cpu_seen_ns, uint64_t oom_seen, struct cell_usage *ret);
/* Facts reported by init, at the end or otherwise at the start. */
void lifecycle_facts(const struct pump *p, struct facts *ret);
/* Whether the program had the plan's ids; if not, difference says which. */
bool lifecycle_ids(const struct pump *p, const struct facts *f, char *difference, size_t size);

/* ---- struct backend_ops --------------------------------------------------------------------------- */

/*
 * Members of struct backend_ops for all container backends.  Their struct cell must have the pump as its first member,
 * so that a pointer to one is a pointer to the other.
 */
static inline struct pump *pump_of(struct cell *c)
{
	return (struct pump *)(void *)c;
}

void container_cell_close_stdin(struct cell *c);
int container_cell_open_output(struct cell *c, const char *name);
int container_cell_open_folder(struct cell *c, const char *name);
int container_cell_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err);
void container_cell_left(struct cell *c, backend_left_fn each, void *arg);

#endif
