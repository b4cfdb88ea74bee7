/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idempotency-Keys, by which clients mark a request as a repetition.  Keys are per token.
 *
 * For a day, a key maps to an execution or a batch and the hash of the request.  The table is bounded and drops the
 * oldest entries, since clients retry within seconds.
 *
 * STATE/serve/keys (journal.h) has the entries that must survive a restart: those of asynchronous executions and
 * batches are written before the client is answered, others when they have finished.  If the process dies before, a
 * repetition starts a new execution.
 *
 *	a NAME BODY ID SECONDS   promised (name and body in hex)
 *	s NAME BODY ID SECONDS   finished
 *	f ID                     forgotten
 */
#ifndef SERVER_RUNNER_IDEMPOTENCY_H
#define SERVER_RUNNER_IDEMPOTENCY_H

#include "server/runner/executions.h"
#include "server/runner/journal.h"
#include "sys/crypto.h"

#define IDEMPOTENCY_MAX       (16 * 1024)
#define IDEMPOTENCY_FILES_MAX (128 * MiB) /* hashed at one time; the loop blocks meanwhile */
#define IDEMPOTENCY_S         (24 * 3600)
#define IDEMPOTENCY_NAME      "keys"

struct idempotency_entry {
	uint8_t name[SHA256_LEN];      /* hash of token and key */
	uint8_t body[SHA256_LEN];      /* hash of the request */
	char id[EXECUTION_ID_LEN + 1]; /* "": forgotten */
	bool is_promised;              /* for an asynchronous execution or a batch */
	bool is_kept;                  /* in the file */
	bool is_past;                  /* written by an earlier process */
	uint64_t at_s;                 /* wall clock */
};

/* A ring buffer, oldest first. */
struct idempotency {
	struct idempotency_entry *entry; /* IDEMPOTENCY_MAX of them, allocated on first use */
	size_t first, n;
	struct journal journal;
};
#define IDEMPOTENCY_INIT                \
	{                               \
		.journal = JOURNAL_INIT \
	}

/*
 * Hashes fields and files of a request, without its sender, its time, and the order of JSON members.  0 or -errno;
 * -EFBIG: the files are too large to hash.
 */
int idempotency_hash(const struct message *m, enum route route, int files, uint8_t ret[SHA256_LEN]);
void idempotency_name(const char *token, const char *key, uint8_t ret[SHA256_LEN]);

/* Reads the file of an earlier process. */
int idempotency_open(struct idempotency *t, const struct statedir *dir, struct brig_error *err);

/* NULL: the key is new. */
const struct idempotency_entry *idempotency_find(const struct idempotency *t, const uint8_t name[SHA256_LEN],
						 uint64_t now_s);
/* False: out of memory. */
bool idempotency_add(struct idempotency *t, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN],
		     const char *id, uint64_t now_s);
/* The execution is promised or finished: the next commit writes the entry. */
void idempotency_keep(struct idempotency *t, const char *id, bool is_promised);
/* The execution was not started: a repetition starts a new one. */
void idempotency_forget(struct idempotency *t, const char *id);
/* Writes new lines; with to_disk, they are on disk on return. */
int idempotency_commit(struct idempotency *t, bool to_disk, struct brig_error *err);
void idempotency_release(struct idempotency *t);

#endif
