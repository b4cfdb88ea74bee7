/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys by which clients say that a request is the same as before (Idempotency-Key): of each token its own.
 *
 * A key stands for an execution and for the hash of what was asked, for a day, while this process lives.  There is room for a
 * number of them, and the oldest goes: a client that repeats itself does so within seconds.
 */
#ifndef SERVER_RUNNER_IDEMPOTENCY_H
#define SERVER_RUNNER_IDEMPOTENCY_H

#include "server/runner/executions.h"
#include "sys/crypto.h"

#define IDEMPOTENCY_MAX (16 * 1024)
#define IDEMPOTENCY_NS  (24 * 3600 * NS_PER_SEC)

struct idempotency_entry {
	uint8_t name[SHA256_LEN]; /* of token and key */
	uint8_t body[SHA256_LEN]; /* of what was asked */
	char id[EXECUTION_ID_LEN + 1];
	uint64_t at_ns;
};

/* A ring, the oldest first. */
struct idempotency {
	struct idempotency_entry *entry; /* room for IDEMPOTENCY_MAX; NULL: none was needed yet */
	size_t first, n;
};

/* What was asked, by its fields and files: not who asked, nor when, nor in which order members stood. */
int idempotency_hash(const struct message *m, enum route route, int files, uint8_t ret[SHA256_LEN]);
void idempotency_name(const char *token, const char *key, uint8_t ret[SHA256_LEN]);

/* NULL: the key is new. */
const struct idempotency_entry *idempotency_find(const struct idempotency *t, const uint8_t name[SHA256_LEN],
						 uint64_t now_ns);
/* False: no memory. */
bool idempotency_add(struct idempotency *t, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN],
		     const char *id, uint64_t now_ns);
/* The execution came to nothing: who asks again is to have another. */
void idempotency_forget(struct idempotency *t, const char *id);
void idempotency_release(struct idempotency *t);

#endif
