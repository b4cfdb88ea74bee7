/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper and its caller say to each other.  Records of SOCK_SEQPACKET sockets, each with a head; numbers are in the
 * order of this machine and the structs are those of this build: both ends come out of one file, and the first record says so.
 *
 *	caller, on the keeper's own socket
 *	  KEEP_HELLO	struct keep_hello: what no job may exceed.  Once, first; not if whoever started the keeper has given it that
 *			at KEEPER_CEILINGS_FD (program.h)
 *	  KEEP_RUN	a job (model/job.h); beside it the keeper's end of a channel about this run, and the job's descriptors
 *	  KEEP_POOLS	nothing; beside it the keeper's end of a channel, in which it answers with as many struct keep_pool as it
 *			has kinds of waiting cells, and which it then leaves
 *	keeper, in the channel about a run
 *	  KEEP_PACK	nothing: the project cannot be mounted in the cell, and is wanted as a stream
 *	  KEEP_CREATED	the cell is built and has the program; beside it its streams, its workspace; if it has a way out, the
 *			sockets of that; if its workspace is to be looked at in the end, KEEP_FD_UPPER and KEEP_FD_USER_NS
 *	  KEEP_FAILED	struct keep_failed: there is no cell, or it is lost
 *	  KEEP_FINAL	struct keep_final and its rows: every process is dead, this is what there is to know
 *	  KEEP_COUNTS	struct keep_counts, when asked
 *	  KEEP_LEFT	struct keep_left, after FINAL: what could not be removed.  Without it there is nothing
 *	  end of file	nothing of the cell is left, or all that is was named
 *	caller, in that channel
 *	  KEEP_GO	the program may begin; before KEEP_CREATED if the plan says start_at_once and the program is not waited for
 *	  KEEP_STREAM	struct keep_stream, and beside it the project's stream (backend/native/project_stream.h), which the keeper
 *			hands on unread; for KEEP_PACK, which need not have been heard
 *	  KEEP_STOP	kill it
 *	  KEEP_ASK	for KEEP_COUNTS
 *	  KEEP_SIGNAL	struct keep_signal: for the program, which may catch it
 *	  end of file	nobody wants to know any more: kill it
 *
 * A caller that goes away takes its channels with it, and so its cells.  The keeper believes nothing that it is sent, and the
 * caller believes of the keeper, which has more rights than itself, that what it says is true, but not that it is well formed.
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
	uint64_t size; /* of what follows */
};

#define KEEP_SHOWN_MAX 4
#define KEEP_PATH_MAX  512
#define KEEP_ROOTS_MAX TRUST_COUNT

struct keep_hello {
	uint32_t version;
	uint32_t build;       /* sizes of the structs below, summed up */
	struct limits most;   /* of any cell */
	uint64_t disk_io_bps; /* not looked for if 0 */
	protection_set may_degrade;
	uint32_t cells;   /* that exist at one time */
	uint32_t waiting; /* of these, made ahead of requests */
	uint32_t waiting_of_kind;
	uint64_t waiting_bytes;   /* that they and zygotes may have together */
	uint32_t forks;           /* children of one zygote, at most; 0: there are none */
	uint32_t waiting_seconds; /* after which a kind that nobody asks for has none */
	uint32_t maps_projects; /* 1: a folder that the caller has open may be mounted as a project, its owner mapped */
	uint32_t n_roots;
	char root[KEEP_ROOTS_MAX][KEEP_PATH_MAX];  /* what jobs may name */
	char shown[KEEP_SHOWN_MAX][KEEP_PATH_MAX]; /* host folders below which binds may lie; "": none */
};

/* Descriptors beside KEEP_RUN; those of the job's binds follow, then the project's folder. */
enum { KEEP_FD_CHANNEL, KEEP_FD_CONTENTS, KEEP_RUN_FDS };
/* ... and beside KEEP_CREATED, in this order; of those that follow the first four, only the ones that the plan makes wanted. */
enum {
	KEEP_FD_IN,
	KEEP_FD_OUT,
	KEEP_FD_ERR,
	KEEP_FD_WORKSPACE,
	KEEP_CREATED_FDS,
	KEEP_FD_WAY_OUT = KEEP_CREATED_FDS,
	KEEP_FD_UPPER, /* of a project's overlay, or the workspace again */
	KEEP_FD_USER_NS,
	KEEP_CREATED_FDS_MAX
};

struct keep_created {
	uint32_t was_waiting; /* 1: it was there before the request */
	uint32_t was_forked;  /* 1: its interpreter is a fork of one that others are forked from too */
	uint64_t started_ns;  /* CLOCK_MONOTONIC: when the program was let go; 0: not yet */
};

struct keep_failed {
	int32_t code, sys; /* of struct brig_error */
	char text[512];
};

struct keep_left {
	char text[256];
};

#define KEEP_POOLS_MAX 32

/* Cells of one kind: what requests of the same policy, language and packages share. */
struct keep_pool {
	char language[32], environment[72]; /* "": none */
	char step[16];                      /* "run" or "compile" */
	uint32_t trust;                     /* enum trust */
	uint32_t ready, building;           /* that are nobody's */
	uint32_t in_use;
	uint32_t wanted; /* how many should be ready */
	uint32_t forks;  /* 1: they are forks of an interpreter that is kept, which is: */
	uint32_t fork_ready;
	uint32_t is_given_up; /* 1: cells of it cannot wait */
	uint64_t asked, hits, made;
	uint64_t bytes;        /* of memory, of those that are ready and of the interpreter */
	uint64_t memory_limit; /* of each cell */
};

struct keep_signal {
	int32_t number;
};

/* What the copy takes at most. */
struct keep_stream {
	uint64_t bytes, inodes;
};

struct keep_counts {
	uint64_t cpu_ns, memory_bytes, pids, oom_kills, disk_bytes;
};

/* What could not be seen of what the program was refused. */
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

/* Whether the workspace is looked at when the cell is dead. */
static inline bool keep_shows_rest(const struct plan *plan)
{
	return plan->workspace || plan->wants_view;
}

struct keep_message {
	struct keep_head head;
	int fds[KEEP_FDS_MAX]; /* FD_NONE where none came; the receiver's */
	size_t n_fds;
	char *body; /* in the receiver's buffer */
};

/* One record in pieces; 0 or -errno (-EAGAIN: the other does not read).  Never waits. */
int keep_send(int sock, enum keep_kind kind, const void *body, size_t len, const void *rest, size_t rest_len,
	      const int *fds, size_t n_fds);
/*
 * One record into buffer, of KEEP_BODY_MAX bytes.  1, 0 at end of file, -EAGAIN, -EPROTO for an unsound one, -EMFILE for one whose
 * descriptors found no room; they are closed.  Never waits.
 */
int keep_receive(int sock, char *buffer, struct keep_message *ret);
void keep_message_release(struct keep_message *m);

#endif
