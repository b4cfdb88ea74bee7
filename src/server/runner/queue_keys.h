/* SPDX-License-Identifier: Apache-2.0 */
/* What a request with an Idempotency-Key goes through before it is done or joined; queue_keys.c says how. */
#ifndef SERVER_RUNNER_QUEUE_KEYS_H
#define SERVER_RUNNER_QUEUE_KEYS_H

#include "server/runner/service.h"

struct keyed;

struct keyed_kind {
	const char *other; /* of a 409: what comes before the id of what the key stands for */
	size_t most;       /* that wait at a time */
	/* Each of these ends with keyed_free(), or asks on with keyed_go_on(). */
	void (*enter)(struct service *s, struct keyed *k); /* the key is ours */
	void (*follow)(struct service *s, struct keyed *k,
		       const struct queue_sealed *entry); /* the same was asked before */
	struct request (*request)(const struct keyed *k); /* as it was asked, to be answered */
	void (*release)(struct keyed *k);                 /* what the kind has beside this struct */
};

/* Who waits for what becomes of the key: the first member of what each kind has. */
struct keyed {
	LIST_ENTRY(keyed) in_list;
	const struct keyed_kind *kind;
	uint64_t serial;
	uint32_t tag;
	bool has_gone;
	struct token token;
	char request_id[129];
	uint8_t body[SHA256_LEN];
	char key[2 * SHA256_LEN + 1]; /* its name, in hex */
	char id[EXECUTION_ID_LEN + 1];
};

/* Zeroed, of that size, under an id of its own, in the list; NULL: there are too many, or no memory. */
struct keyed *keyed_new(struct service *s, const struct keyed_kind *kind, size_t size, const struct request *req);
struct keyed *keyed_find(const struct service *s, uint64_t serial);
void keyed_free(struct service *s, struct keyed *k);

/* The key is put where nothing is; then enter(), follow() or a refusal. */
void keyed_put(struct service *s, struct keyed *k, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN]);
/* The next question about it; NULL: it could not be asked, and is refused. */
void keyed_go_on(struct service *s, struct keyed *k, struct queue_op *op);
void keyed_refuse(struct service *s, struct keyed *k, uint16_t status, const char *why);
/* True: who asked is not there any more, and it has been answered so; k is still there. */
bool keyed_has_gone(struct service *s, const struct keyed *k);
/* Whether what a bucket has is this token's. */
bool keyed_is_own(const struct keyed *k, const struct message *m);

#endif
