/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cells that are containers have in common, whoever makes the container (an engine, Kubernetes): our own PID 1
 * inside (init/), what brig and it say to each other (wire.h), and everything that flows between the two.
 *
 *	pump.c       output, input and init's words over one stream
 *	tree.c       a project on its way in, and what became of it on its way out
 *	lifecycle.c  a run as init reports it: ready, go, the end, usage, facts
 *	owner.c      labels that say whose container it is
 *
 * A backend makes a container with init as PID 1, opens a stream to its standard input, output and error, says by a
 * struct pump_carrier how bytes travel over that stream, and asks here what comes of it.
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
		   2 * WIRE_KEY]; /* what the pipe had no room for: one read at most, and what was held back before */
	size_t at, len;
	struct buf rest; /* of a stopped cell: everything that still came */
};

/* The plan's project as a stream in memory, on its way to init. */
struct project_out {
	const char *data; /* mapped; NULL: there is none, or it is sent */
	size_t len, mapped;
	uint64_t entries, bytes; /* in it */
	uint64_t room;           /* that it takes of the workspace, in bytes */
	bool sent;
};

/* The workspace as a stream, on its way back. */
struct tree_in {
	int fd; /* memory file; FD_NONE: nothing has come */
	uint64_t len;
	bool cut;     /* more came than is kept */
	bool ended;   /* init has said so */
	uint64_t sys; /* and why it was early; 0: it was not */
};

struct pump;

/* How bytes travel over a stream that carries three of them. */
struct pump_carrier {
	/* Takes bytes for the container's stdin: how many, -EAGAIN, or another -errno. */
	ssize_t (*write)(struct pump *p, const char *data, size_t len);
	/* Takes apart what came, not more than a piece of the pump, and calls pump_stdout and pump_stderr. */
	int (*take)(struct pump *p, const char *data, size_t len, struct brig_error *err);
	/* Writes what was taken before; true: some is left.  NULL: write keeps nothing back. */
	bool (*holds)(struct pump *p);
};

struct pump {
	const struct plan *plan;
	const struct pump_carrier *carrier;
	void *carried; /* the carrier's own */
	struct http_stream *stream;
	struct wire_reader reader;
	struct wire_mark out_end; /* of stdout, once init was asked for it */
	bool out_marked;
	struct pipe_out out, err;
	int in_read, in_write; /* the program's stdin on its way to init */
	int poll;              /* epoll of all of the above */

	/* on their way to init */
	bool in_pod; /* WIRE_IN_POD */
	char *head;  /* the job without its files */
	size_t head_len;
	size_t file; /* which file is under way; behind the last one, messages */
	size_t sent; /* bytes of the part that is under way */
	char message[WIRE_PREFIX + WIRE_BODY_MAX];
	size_t message_len;

	struct project_out project;
	struct project_out shown;                /* the tree of one of the plan's binds */
	const struct plan_bind *folder, *linked; /* that bind, and one with same_as in it; NULL: none */

	/* what came back */
	bool ready, go_sent, final, stream_over, draining;
	bool failed_step;
	struct wire_failure failure;
	struct wire_spaces spaces;
	bool has_spaces;
	struct wire_exit exit;
	bool has_exit, told;
	uint64_t output_size, output_got;
	int output; /* memory file with the output; FD_NONE */
	struct tree_in tree;
	struct buf left; /* the list of WIRE_LEFT */
	struct facts early, late;
	char piece[32 * KiB];  /* of the stream, as it is read */
	char first_words[200]; /* on stderr of a container whose init did not speak */
	size_t first_len;
	uint64_t started_ns;
};

/* ---- pump.c --------------------------------------------------------------------------------------- */

void pump_clear(struct pump *p, const struct plan *plan, const struct pump_carrier *carrier, void *carried);
int pump_open(struct pump *p, struct brig_error *err);
/* Queues head and files of the job. */
int pump_load(struct pump *p, struct brig_error *err);
/* Queues a message without a body, at once if the queue is empty.  false: something is in its way. */
bool pump_message(struct pump *p, enum wire_message type);
/* Has init mark the end of stdout, once it has said everything; again, if something is still in the way. */
void pump_request_mark(struct pump *p);
/* Moves what can be moved without waiting.  Negative: the stream makes no sense. */
int pump_turn(struct pump *p, struct brig_error *err);
/* Waits for something to move, at most until then. */
void pump_wait(struct pump *p, uint64_t deadline_ns);
/* The stream brings nothing more, whatever it says. */
void pump_end_stream(struct pump *p);
/* No more will come: the watcher finds what is left and then the end of file. */
void pump_hand_over(struct pump *p);
void pump_close(struct pump *p);

/* For a carrier: bytes of the container's stdout and stderr.  Negative: nothing that follows could be believed. */
int pump_stdout(struct pump *p, const char *data, size_t len, struct brig_error *err);
int pump_stderr(struct pump *p, const char *data, size_t len, struct brig_error *err);

/* ---- tree.c --------------------------------------------------------------------------------------- */

int project_pack(struct pump *p, struct brig_error *err);
int shown_pack(struct pump *p, struct brig_error *err);
void project_release(struct pump *p);
/* Ceilings of a workspace on its way back. */
struct pack_caps tree_caps(const struct pump *p);
bool tree_take(struct pump *p, const char *body, size_t len);
bool tree_take_end(struct pump *p, const char *body, size_t len);
/* Names of files that a program leaves in a workspace that nobody asked back. */
bool left_wanted(const struct pump *p);
bool left_take(struct pump *p, const char *body, size_t len);

/* ---- lifecycle.c ------------------------------------------------------------------------------------- */

/* Sizes of the writable places: their sum is the plan's limit. */
struct place_sizes {
	uint64_t bytes[3], inodes[3];
};
struct place_sizes lifecycle_places(const struct limits *l);

int lifecycle_make_keys(struct pump *p, struct brig_error *err);
/* 1: every wall is up and init waits; 0: the stream or the time is over, or it talks nonsense; negative: init has failed. */
int lifecycle_await_ready(struct pump *p, uint64_t deadline_ns, struct brig_error *err);
/* A protection that could be had and is not in force, by init's own reading.  who: "the engine". */
int lifecycle_check_limits(const struct pump *p, const char *who, struct brig_error *err);
/* Lets the program go that init has ready. */
int lifecycle_start_program(struct pump *p, struct brig_error *err);
/* For `start` of a backend, once the program was started. */
struct cell_fds lifecycle_fds(const struct pump *p);
/* Until init has said how it ended, or there is nothing more to hear. */
void lifecycle_await_final(struct pump *p, uint64_t deadline_ns);
void lifecycle_await_stream_end(struct pump *p, uint64_t deadline_ns);
/* Until all that the program wrote is here, by init's mark, not by the word of whoever carries it, which comes late. */
bool lifecycle_await_mark(struct pump *p, uint64_t deadline_ns);
/* on_event of a backend.  CELL_NOTHING and *ret_lost: init is dead without a last word, and why is the backend's to find. */
enum cell_event lifecycle_event(struct pump *p, struct exit_info *info, bool *ret_lost, struct brig_error *err);
void lifecycle_usage(const struct pump *p, uint64_t cpu_seen_ns, uint64_t oom_seen, struct cell_usage *ret);
/* Facts that init has said, at the end or else at the start. */
void lifecycle_facts(const struct pump *p, struct facts *ret);
/* Whether the program had the ids that the plan gives it; false: difference says so. */
bool lifecycle_ids(const struct pump *p, const struct facts *f, char *difference, size_t size);

/* ---- struct backend_ops --------------------------------------------------------------------------- */

/*
 * The members of these names, for every backend of containers: its struct cell has the pump as its first member, so that a
 * pointer to one is a pointer to the other.
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
