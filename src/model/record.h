/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One finished request, as input for audit, history and metrics.  Plain data: the executor fills it once, on every
 * path, and passes it to each of them in turn.  Borrowed data belongs to the executor and lives until they return.
 */
#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include "model/result.h"
#include "sys/crypto.h"

#define RECORD_TAIL_MAX 4096
#define RECORD_HEAD_MAX 4096 /* of code and output, unless policy keeps all */

/* One output stream as it passed: counted, hashed, and its beginning kept. */
struct record_stream {
	uint64_t len;               /* bytes that were let through */
	uint8_t sha256[SHA256_LEN]; /* of these; valid if hashed and ended */
	bool hashed;
	bool ended;
	struct buf head;            /* the first head.max bytes */
	char tail[RECORD_TAIL_MAX]; /* and the last ones */
	size_t tail_len;
	struct sha256 hash;
};

void record_stream_begin(struct record_stream *s, bool hashed, size_t head_max);
void record_stream_add(struct record_stream *s, const void *data, size_t len);
void record_stream_end(struct record_stream *s);
void record_stream_release(struct record_stream *s);

enum record_cache { CACHE_NONE, CACHE_MISS, CACHE_HIT, CACHE_COUNT }; /* NONE: nothing was looked for */
extern const char *const record_cache_name[CACHE_COUNT];

struct record {
	uint64_t wall_ns; /* CLOCK_REALTIME when the request came in, since 1970 */
	uint32_t uid;     /* who asked */
	const char *who;  /* a token's name; "" on the command line */
	const char *door; /* the protocol it was asked in; "": brig's own */
	const struct result
		*res; /* id, trust, language, backend, verdict, step, reason, exit, findings, limits, degraded,
				   * evidence, usage, phase times, samples: borrowed */
	const struct settings *set; /* what policy says of recording, and everything else: borrowed */
	const char *code;           /* borrowed, code_len bytes; not NUL-terminated */
	size_t code_len;
	const char *file_name; /* as the caller named it; may be NULL */
	uint8_t code_sha256[SHA256_LEN];
	const char *const *args; /* as the request gave them: borrowed */
	size_t n_args;
	const char *const *env;
	size_t n_env;
	uint8_t args_sha256[SHA256_LEN]; /* of "LENGTH:BYTES," for each, in their order */
	uint8_t env_sha256[SHA256_LEN];
	uint8_t policy_sha256[SHA256_LEN];   /* of every effective setting */
	const char *policy_origin;           /* the policy file; "" if there was none */
	uint8_t evidence_sha256[SHA256_LEN]; /* of every row; of nothing if there are none */
	struct record_stream out, err;
	enum record_cache cache; /* of the compiled program */
	/* Filled by audit_append(), for history and metrics; seq 0: not in the log */
	uint64_t audit_seq;
	uint8_t audit_hash[SHA256_LEN];
};

/* The digests that are made of other members: code, arguments and environment; evidence. */
void record_hash_request(struct record *r);
void record_hash_evidence(struct record *r);

#endif
