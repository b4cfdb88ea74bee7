/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm containers: started, their init waiting for its job, the stream to it already open.  pool.c keeps them and hands
 * each out once; pool_claim.c is how a run gets one; pool_wire.c is what the two say to each other; pool_place.c is where
 * they meet and where it is written down who has claimed what.
 */
#ifndef DOCKER_POOL_H
#define DOCKER_POOL_H

#include "backend/docker/cell.h"
#include "sys/crypto.h"

#define LABEL_POOL    "brig.pool" /* the folder of the records: of containers that a pool has made */
#define POOL_PATH_MAX 96          /* of the folder; a socket's address has 108 */

/* ---- pool_wire.c: one message each way, fixed in size -------------------------------------------- */

struct pool_claim {
	uint8_t key[SHA256_LEN];
	char run[RUN_ID_LEN + 1];
};

enum pool_answer {
	POOL_HERE = 1, /* a container, and its stream as a descriptor */
	POOL_EMPTY,    /* none is ready just now */
	POOL_UNKNOWN,  /* this pool keeps no such ones */
	POOL_ANSWER_END
};

struct pool_reply {
	enum pool_answer answer;
	char container[ENGINE_ID_LEN + 1]; /* "" unless POOL_HERE */
};

#define POOL_CLAIM_BYTES 64
#define POOL_REPLY_BYTES 80
void pool_claim_encode(const struct pool_claim *c, char dst[POOL_CLAIM_BYTES]);
bool pool_claim_decode(const char *src, size_t len, struct pool_claim *ret);
void pool_reply_encode(const struct pool_reply *r, char dst[POOL_REPLY_BYTES]);
bool pool_reply_decode(const char *src, size_t len, struct pool_reply *ret);
/* What makes containers alike: everything in the body but the labels, and the engine that made them. */
bool pool_key(const struct cell *c, uint8_t ret[SHA256_LEN]);

/* ---- pool_place.c ---------------------------------------------------------------------------------- */

/* $XDG_RUNTIME_DIR/brig, or /run/brig for root; 0, or -errno if there is no such place.  Neither made nor looked at. */
int pool_place(char dst[POOL_PATH_MAX]);
/* Opens the folder if it is ours alone; with make, it is made if need be.  The descriptor or -errno. */
int pool_place_open(const char *path, bool make);
/* Who has claimed a container: written before it is handed out. */
int pool_record_write(int place, const char *container, pid_t pid);
void pool_record_remove(int place, const char *container);
/* The process that has claimed it, by a folder that a label names and that must belong to uid; false: nobody. */
bool pool_record_read(const char *place, uint64_t uid, const char *container, uint64_t *ret_pid, uint64_t *ret_start);

/* After the removal of a container that reap found. */
void pool_record_forget(const json_t *row, const char *container);
/* Removes the records of this user whose container is not in the engine's list any more and whose claimer is gone. */
void pool_records_sweep(const json_t *list);

/* ---- pool_claim.c ---------------------------------------------------------------------------------- */

/* A container for this cell, which has its image and its body; false: there is none, make one. */
bool pool_take(struct cell *c);
/* Whether the pool that it came from is still alive. */
bool pool_is_there(const struct cell *c);
/* The container is removed: the pool need not look after it any more. */
void pool_give_up(struct cell *c);

/* ---- pool.c ------------------------------------------------------------------------------------------ */

int pool_serve(struct backend_host *h, const struct backend_pool *want, struct brig_error *err);

#endif
