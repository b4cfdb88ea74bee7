/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm containers: started, with their init waiting for its job, and the stream to it open.  pool.c keeps them and
 * gives each to one run; pool_claim.c is how a run gets one; pool_wire.c has their messages; pool_place.c has the
 * directory with the socket and the records of claims.
 */
#ifndef DOCKER_POOL_H
#define DOCKER_POOL_H

#include "backend/docker/cell.h"
#include "sys/crypto.h"

#define LABEL_POOL    "brig.pool" /* directory of the records; on containers created by a pool */
#define POOL_PATH_MAX 96          /* of the directory; a socket address has 108 bytes */

/* ---- pool_wire.c: one message each way, fixed in size -------------------------------------------- */

struct pool_claim {
	uint8_t key[SHA256_LEN];
	char run[RUN_ID_LEN + 1];
};

enum pool_answer {
	POOL_HERE = 1, /* a container, with its stream as a descriptor */
	POOL_EMPTY,    /* none is ready at the moment */
	POOL_UNKNOWN,  /* this pool has no containers of that kind */
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
/* Hash of what containers of a kind have in common: the body without labels, and the engine that created them. */
bool pool_key(const struct cell *c, uint8_t ret[SHA256_LEN]);

/* ---- pool_place.c ---------------------------------------------------------------------------------- */

/* $XDG_RUNTIME_DIR/brig, or /run/brig for root; 0, or -errno if there is none.  Only builds the path. */
int pool_place(char dst[POOL_PATH_MAX]);
/* Opens the directory if only we can access it; make: creates it if necessary.  A descriptor or -errno. */
int pool_place_open(const char *path, bool make);
/* Records who has claimed a container: written before it is handed out. */
int pool_record_write(int place, const char *container, pid_t pid);
void pool_record_remove(int place, const char *container);
/*
 * The process that has claimed the container, from the directory named by a label, which must belong to uid; false:
 * none.
 */
bool pool_record_read(const char *place, uint64_t uid, const char *container, uint64_t *ret_pid, uint64_t *ret_start);

/* Call after the removal of a container that reap found. */
void pool_record_forget(const json_t *row, const char *container);
/* Removes this user's records whose container is no longer in the engine's list and whose claimer is gone. */
void pool_records_sweep(const json_t *list);

/* ---- pool_claim.c ---------------------------------------------------------------------------------- */

/* A container for this cell, which has its image and body; false: none, create one. */
bool pool_take(struct cell *c);
/* Whether the pool that it came from is still alive. */
bool pool_is_there(const struct cell *c);
/* Tells the pool that the container is removed. */
void pool_give_up(struct cell *c);

/* ---- pool.c ------------------------------------------------------------------------------------------ */

int pool_serve(struct backend_host *h, const struct backend_pool *want, struct brig_error *err);

#endif
