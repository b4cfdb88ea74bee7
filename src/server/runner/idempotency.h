/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys by which clients say that a request is the same as before (Idempotency-Key): of each token its own.
 *
 * A key stands for an execution and for the hash of what was asked, for a day.  There is room for a number of them, and the
 * oldest goes: a client that repeats itself does so within seconds.
 *
 * STATE/serve/keys (journal.h) has those that a later process has to know of: of asynchronous executions and batches before
 * the client is told, of others when they have finished.  One that had not come to nothing, and who asks again is to have
 * another.
 *
 *	a NAME BODY ID SECONDS   promised (name and body as hex)
 *	s NAME BODY ID SECONDS   finished
 *	f ID                     forgotten
 */
#ifndef SERVER_RUNNER_IDEMPOTENCY_H
#define SERVER_RUNNER_IDEMPOTENCY_H

#include "server/runner/executions.h"
#include "server/runner/journal.h"
#include "sys/crypto.h"

#define IDEMPOTENCY_MAX       (16 * 1024)
#define IDEMPOTENCY_FILES_MAX (128 * MiB) /* that are read at one time, while everybody waits */
#define IDEMPOTENCY_S         (24 * 3600)
#define IDEMPOTENCY_NAME      "keys"

struct idempotency_entry {
	uint8_t name[SHA256_LEN];      /* of token and key */
	uint8_t body[SHA256_LEN];      /* of what was asked */
	char id[EXECUTION_ID_LEN + 1]; /* "": forgotten */
	bool is_promised;              /* of an asynchronous execution, or of a batch */
	bool is_kept;                  /* in the file */
	bool is_past;                  /* of an earlier process */
	uint64_t at_s;                 /* time of day */
};

/* A ring, the oldest first. */
struct idempotency {
	struct idempotency_entry *entry; /* room for IDEMPOTENCY_MAX; NULL: none was needed yet */
	size_t first, n;
	struct journal journal;
};
#define IDEMPOTENCY_INIT                \
	{                               \
		.journal = JOURNAL_INIT \
	}

/* What was asked, by its fields and files: not who asked, nor when, nor in which order members stood.  0 or -errno; -EFBIG: its files
 * are too large to be compared. */
int idempotency_hash(const struct message *m, enum route route, int files, uint8_t ret[SHA256_LEN]);
void idempotency_name(const char *token, const char *key, uint8_t ret[SHA256_LEN]);

/* Reads what an earlier process left. */
int idempotency_open(struct idempotency *t, const struct statedir *dir, struct brig_error *err);

/* NULL: the key is new. */
const struct idempotency_entry *idempotency_find(const struct idempotency *t, const uint8_t name[SHA256_LEN],
						 uint64_t now_s);
/* False: no memory. */
bool idempotency_add(struct idempotency *t, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN],
		     const char *id, uint64_t now_s);
/* Its execution is promised or has finished: it goes into the file with the next commit. */
void idempotency_keep(struct idempotency *t, const char *id, bool is_promised);
/* The execution came to nothing: who asks again is to have another. */
void idempotency_forget(struct idempotency *t, const char *id);
/* Writes what is new; with to_disk it is on disk when this returns. */
int idempotency_commit(struct idempotency *t, bool to_disk, struct brig_error *err);
void idempotency_release(struct idempotency *t);

#endif
