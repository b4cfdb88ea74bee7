/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processing of a request with an Idempotency-Key until it is executed or joined to an earlier one; see queue_keys.c.
 */
#ifndef SERVER_RUNNER_QUEUE_KEYS_H
#define SERVER_RUNNER_QUEUE_KEYS_H

#include "server/runner/service.h"

struct keyed;

struct keyed_kind {
	const char *other; /* words before the id in the 409 message */
	size_t most;       /* limit of pending requests */
	/* Each of these must end with keyed_free(), or send another query with keyed_go_on(). */
	void (*enter)(struct service *s, struct keyed *k); /* the key is ours: execute the request */
	void (*follow)(struct service *s, struct keyed *k,
		       const struct queue_sealed *entry); /* the same request was made before */
	struct request (*request)(const struct keyed *k); /* the original request, for the answer */
	void (*release)(struct keyed *k);                 /* frees the kind's own members */
};

/* A pending request: the first member of each kind's struct. */
struct keyed {
	LIST_ENTRY(keyed) in_list;
	const struct keyed_kind *kind;
	uint64_t serial;
	uint32_t tag;
	bool has_gone;
	struct token token;
	char request_id[129];
	uint8_t body[SHA256_LEN];
	char key[2 * SHA256_LEN + 1]; /* the key's hash, in hex */
	char id[EXECUTION_ID_LEN + 1];
};

/* A zeroed struct of this size with a new id, in the list; NULL: too many, or out of memory. */
struct keyed *keyed_new(struct service *s, const struct keyed_kind *kind, size_t size, const struct request *req);
struct keyed *keyed_find(const struct service *s, uint64_t serial);
void keyed_free(struct service *s, struct keyed *k);

/* Puts the key into the bucket if it is not there; then calls enter() or follow(), or refuses. */
void keyed_put(struct service *s, struct keyed *k, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN]);
/* Continues with this operation; NULL: it could not be sent, and the request is refused. */
void keyed_go_on(struct service *s, struct keyed *k, struct queue_op *op);
void keyed_refuse(struct service *s, struct keyed *k, uint16_t status, const char *why);
/* True: the client has gone and its request was answered; k still exists. */
bool keyed_has_gone(struct service *s, const struct keyed *k);
/* Whether a bucket's message belongs to the same token. */
bool keyed_is_own(const struct keyed *k, const struct message *m);

#endif
