/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between the keeper and its caller: records on SOCK_SEQPACKET sockets, each with a head.  Numbers have
 * host byte order and structs the layout of this build: both ends come from the same file, and the first record
 * verifies that.
 *
 *	caller, on the keeper's own socket
 *	  KEEP_HELLO	struct keep_hello: the ceilings.  Once, as the first record; not if the keeper was started with
 *			ceilings at KEEPER_CEILINGS_FD (program.h)
 *	  KEEP_RUN	a job (model/job.h), with the keeper's end of a channel for this run, and the job's descriptors
 *	  KEEP_POOLS	empty, with the keeper's end of a channel, on which it replies with one struct keep_pool for
 *			each kind of waiting cells, and which it then closes
 *	keeper, on the channel of a run
 *	  KEEP_PACK	empty: the project cannot be mounted in the cell; the caller must send it as a stream
 *	  KEEP_CREATED	the cell is built and has the program.  With its streams and workspace; with an egress proxy,
 *			also the sockets for it; if the workspace is examined afterwards, also KEEP_FD_UPPER and
 *			KEEP_FD_USER_NS
 *	  KEEP_FAILED	struct keep_failed: the cell could not be made, or is lost
 *	  KEEP_FINAL	struct keep_final and its rows, once every process is dead
 *	  KEEP_COUNTS	struct keep_counts, in reply to KEEP_ASK
 *	  KEEP_LEFT	struct keep_left, after KEEP_FINAL: what could not be removed.  Not sent if nothing is left
 *	  end of file	nothing of the cell is left, or everything left was named
 *	caller, on that channel
 *	  KEEP_GO	start the program; permitted before KEEP_CREATED if the plan has start_at_once and no waits_at
 *	  KEEP_STREAM	struct keep_stream, with a socket for the project's stream (backend/native/project_stream.h),
 *			which the keeper passes on unread; may be sent before KEEP_PACK arrives
 *	  KEEP_STOP	kill the cell
 *	  KEEP_ASK	send KEEP_COUNTS
 *	  KEEP_SIGNAL	struct keep_signal: send this signal to the program, which may catch it
 *	  end of file	the request is abandoned: kill the cell
 *
 * When a caller exits, its channels close, so its cells die with it.  The keeper trusts nothing that it receives.  The
 * caller trusts the keeper, which has more rights than itself, to tell the truth, but not to send well-formed records.
 */
#ifndef KEEPER_PROTOCOL_H
#define KEEPER_PROTOCOL_H

#include <assert.h>

#include "backend/backend.h"
#include "model/job.h"

#define KEEP_MAGIC   0x4b454550u /* "KEEP" */
#define KEEP_VERSION 4u

enum keep_kind {
	KEEP_HELLO = 1,
	KEEP_RUN,
	KEEP_CREATED,
	KEEP_FAILED,
	KEEP_FINAL,
	KEEP_COUNTS,
	KEEP_GO,
	KEEP_STOP,
	KEEP_ASK,
	KEEP_LEFT,
	KEEP_POOLS,
	KEEP_SIGNAL,
	KEEP_PACK,
	KEEP_STREAM,
	KEEP_KIND_END
};

struct keep_head {
	uint32_t magic, kind;
	uint64_t size; /* of the body */
};

#define KEEP_SHOWN_MAX 4
#define KEEP_PATH_MAX  512
#define KEEP_ROOTS_MAX TRUST_COUNT

struct keep_hello {
	uint32_t version;
	uint32_t build;       /* sum of the sizes of the structs below */
	struct limits most;   /* for any cell */
	uint64_t disk_io_bps; /* 0: the keeper has not looked up the disks */
	protection_set may_degrade;
	uint32_t cells;   /* that may exist at a time */
	uint32_t waiting; /* of these, built ahead of requests */
	uint32_t waiting_of_kind;
	uint64_t waiting_bytes;   /* maximum for these cells and zygotes together */
	uint32_t forks;           /* maximum number of children of one zygote; 0: no zygotes */
	uint32_t waiting_seconds; /* a kind without a request for so long is emptied */
	uint32_t maps_projects; /* 1: a directory that the caller has open may be id-mapped and mounted as a project */
	uint32_t n_roots;
	char root[KEEP_ROOTS_MAX][KEEP_PATH_MAX];  /* root directories that jobs may name */
	char shown[KEEP_SHOWN_MAX][KEEP_PATH_MAX]; /* host directories below which binds may be; "": none */
};

/* Descriptors sent with KEEP_RUN; those of the job's checked binds follow, then the project's directory. */
enum { KEEP_FD_CHANNEL, KEEP_FD_CONTENTS, KEEP_RUN_FDS };
/* Descriptors sent with KEEP_CREATED, in this order; after the first four, only those that the plan requires. */
enum {
	KEEP_FD_IN,
	KEEP_FD_OUT,
	KEEP_FD_ERR,
	KEEP_FD_WORKSPACE,
	KEEP_CREATED_FDS,
	KEEP_FD_WAY_OUT = KEEP_CREATED_FDS,
	KEEP_FD_UPPER, /* the upper layer of a project's overlay; otherwise the workspace again */
	KEEP_FD_USER_NS,
	KEEP_CREATED_FDS_MAX
};

struct keep_created {
	uint32_t was_waiting; /* 1: the cell existed before the request */
	uint32_t was_forked;  /* 1: its interpreter is a fork of a zygote */
	uint64_t started_ns;  /* CLOCK_MONOTONIC, when the program was started; 0: not yet */
};

struct keep_failed {
	int32_t code, sys; /* of struct brig_error */
	char text[512];
};

struct keep_left {
	char text[256];
};

#define KEEP_POOLS_MAX 32

/* Statistics about cells of one kind: requests with the same policy, language and packages. */
struct keep_pool {
	char language[32], environment[72]; /* "": none */
	char step[16];                      /* "run" or "compile" */
	uint32_t trust;                     /* enum trust */
	uint32_t ready, building;           /* unclaimed */
	uint32_t in_use;
	uint32_t wanted; /* target for unclaimed cells */
	uint32_t forks;  /* 1: cells are filled from a zygote; fork_ready: that is ready */
	uint32_t fork_ready;
	uint32_t is_given_up; /* 1: the interpreter cannot wait; no cells are built */
	uint64_t asked, hits, made;
	uint64_t bytes;        /* memory of waiting cells and zygotes */
	uint64_t memory_limit; /* of each cell */
};

struct keep_signal {
	int32_t number;
};

/* Upper bounds for the unpacked copy. */
struct keep_stream {
	uint64_t bytes, inodes;
};

struct keep_counts {
	uint64_t cpu_ns, memory_bytes, pids, oom_kills, disk_bytes;
};

/* Why the list of refused calls may be incomplete. */
enum keep_unseen { KEEP_SEEN, KEEP_WITHOUT_LISTENER, KEEP_WITHOUT_WATCHES };

struct keep_final {
	uint32_t ended; /* 1: the program ended by itself, see exit; 0: it was stopped */
	uint32_t n_denied;
	struct exit_info exit;
	struct cell_usage usage;
	uint64_t dropped;
	uint32_t unseen; /* enum keep_unseen */
	struct facts facts;
	/* struct denied_row[n_denied] */
};

#define KEEP_BUILD                                                                                         \
	((uint32_t)(sizeof(struct keep_hello) + sizeof(struct keep_created) + sizeof(struct keep_failed) + \
		    sizeof(struct keep_counts) + sizeof(struct keep_pool) + sizeof(struct keep_left) +     \
		    sizeof(struct keep_final) + sizeof(struct denied_row) + sizeof(struct plan)))
#define KEEP_BODY_MAX (sizeof(struct keep_final) + DENIED_MAX * sizeof(struct denied_row) + JOB_MAX)
#define KEEP_FDS_MAX  (KEEP_RUN_FDS + JOB_BINDS_MAX + 1)
static_assert((int)KEEP_CREATED_FDS_MAX <= (int)KEEP_FDS_MAX, "what is received has room for both");

/* Whether the workspace is examined once the cell is dead. */
static inline bool keep_shows_rest(const struct plan *plan)
{
	return plan->workspace || plan->wants_view;
}

struct keep_message {
	struct keep_head head;
	int fds[KEEP_FDS_MAX]; /* FD_NONE: not sent; the receiver owns them */
	size_t n_fds;
	char *body; /* points into the receiver's buffer */
};

/* Sends body and rest as one record; 0 or -errno (-EAGAIN: the peer does not read).  Does not block. */
int keep_send(int sock, enum keep_kind kind, const void *body, size_t len, const void *rest, size_t rest_len,
	      const int *fds, size_t n_fds);
/*
 * Receives one record into buffer, of KEEP_BODY_MAX bytes.  Returns 1, 0 at end of file, -EAGAIN, -EPROTO for a
 * malformed record, or -EMFILE if its descriptors exceeded our limit and were closed.  Does not block.
 */
int keep_receive(int sock, char *buffer, struct keep_message *ret);
void keep_message_release(struct keep_message *m);

#endif
