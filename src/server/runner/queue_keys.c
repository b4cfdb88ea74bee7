/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_keys.c - Idempotency-Keys shared by all fronts
 *
 * Without a queue, keys are in a table of the service (idempotency.h).  With a queue, a client may repeat a request at
 * any front.  So before the request is executed, an entry is put into the bucket of keys, where there must be none:
 * under a hash of token and key, the id of the object to create, the front, and the hash of the request.
 *
 *	put  -> stored: execute the request under that id
 *	     -> exists: read it.  Different request: 409
 *	                          same request: follow the earlier one
 *
 * What executing and following mean depends on the kind: executions (queue_execution_keys.c) or sessions
 * (queue_session_keys.c).
 *
 * An entry that is not sealed by a front is not overwritten: otherwise anybody who can write to the bucket could cause
 * requests to be executed twice.
 */
#include "server/runner/queue_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "server/runner/answer.h"

struct keyed *keyed_find(const struct service *s, uint64_t serial)
{
	struct keyed *k;

	LIST_FOREACH(k, &s->queue.keyed, in_list)
	if (k->serial == serial)
		return k;
	return NULL;
}

void keyed_free(struct service *s UNUSED, struct keyed *k)
{
	LIST_REMOVE(k, in_list);
	k->kind->release(k);
	free(k);
}

void keyed_refuse(struct service *s, struct keyed *k, uint16_t status, const char *why)
{
	const struct request req = k->kind->request(k);

	answer_retry(s, &req, status, status == 503 ? 1 : 0, "%s", why);
	keyed_free(s, k);
}

void keyed_go_on(struct service *s, struct keyed *k, struct queue_op *op)
{
	if (op)
		op->number = k->serial;
	else
		keyed_refuse(s, k, 503, "the service has too much to do: try again in a moment");
}

bool keyed_has_gone(struct service *s, const struct keyed *k)
{
	const struct request req = k->kind->request(k);

	if (k->has_gone) /* nothing is promised; a repetition finds the key */
		answer_retry(s, &req, 503, 1, "who asked has gone");
	return k->has_gone;
}

bool keyed_is_own(const struct keyed *k, const struct message *m)
{
	const char *owner = message_text(m, FIELD_who);

	return owner && str_eq(owner, k->token.name);
}

static bool is_entry_of(const struct keyed *k, const struct message *m)
{
	const char *key = message_text(m, FIELD_key), *id = message_text(m, FIELD_id);

	return key && str_eq(key, k->key) && keyed_is_own(k, m) && id && strlen(id) == EXECUTION_ID_LEN &&
	       strspn(id, ID_ALPHABET) == EXECUTION_ID_LEN;
}

static bool is_same_request(const struct keyed *k, const struct message *m)
{
	size_t len;
	const char *body = message_bytes(m, FIELD_asked_hash, &len);

	return body && len == SHA256_LEN && crypto_same(body, k->body, SHA256_LEN);
}

static void refuse_other(struct service *s, struct keyed *k)
{
	char why[160];

	(void)snprintf(why, sizeof(why), "this Idempotency-Key stands for another request, %s %s: use a new key",
		       k->kind->other, k->id);
	keyed_refuse(s, k, 409, why);
}

static void on_there(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct keyed *k = keyed_find(s, op->number);
	struct queue_sealed there;

	if (!k)
		return;
	if (a->how != QUEUE_OK) { /* NONE: it expired just now */
		keyed_refuse(s, k, 503, "no broker says what this Idempotency-Key stands for");
		return;
	}
	if (!queue_unseal(s, a->m, "key", PEER_FRONT, &there) || !is_entry_of(k, &there.m)) {
		keyed_refuse(s, k, 409, "the record of this Idempotency-Key was overwritten by another: use a new key");
		return;
	}
	(void)str_copy(k->id, sizeof(k->id), message_text(&there.m, FIELD_id));
	if (is_same_request(k, &there.m))
		k->kind->follow(s, k, &there);
	else
		refuse_other(s, k);
}

static void on_put(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct keyed *k = keyed_find(s, op->number);

	if (!k)
		return;
	if (a->how == QUEUE_OK)
		k->kind->enter(s, k);
	else if (a->how == QUEUE_TAKEN) /* perhaps our own, if the acknowledgement was lost */
		keyed_go_on(s, k, queue_get(s, BUCKET_KEYS, k->key, on_there));
	else
		keyed_refuse(s, k, 503, "no broker takes the Idempotency-Key: try again in a moment");
}

static size_t count(const struct service *s, const struct keyed_kind *kind)
{
	const struct keyed *k;
	size_t n = 0;

	LIST_FOREACH(k, &s->queue.keyed, in_list)
	n += k->kind == kind;
	return n;
}

struct keyed *keyed_new(struct service *s, const struct keyed_kind *kind, size_t size, const struct request *req)
{
	struct keyed *k = count(s, kind) < kind->most ? calloc(1, size) : NULL;

	if (!k || id_random(k->id, EXECUTION_ID_LEN) < 0) {
		free(k);
		return NULL;
	}
	k->kind = kind;
	k->serial = ++s->queue.last_keyed;
	k->tag = req->tag;
	k->token = *req->token;
	(void)str_copy(k->request_id, sizeof(k->request_id), req->request_id);
	LIST_INSERT_HEAD(&s->queue.keyed, k, in_list);
	return k;
}

void keyed_put(struct service *s, struct keyed *k, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN])
{
	AUTO_BUF inner = BUF_INIT(4 * KiB);

	memcpy(k->body, body, SHA256_LEN);
	(void)hex_put(k->key, name, SHA256_LEN);
	queue_begin(s, &inner, "key");
	message_put_text(&inner, FIELD_key, k->key);
	message_put_text(&inner, FIELD_id, k->id);
	message_put_text(&inner, FIELD_who, k->token.name);
	message_put_text(&inner, FIELD_reply_to, s->queue.front_id);
	message_put_bytes(&inner, FIELD_asked_hash, body, SHA256_LEN);
	message_put_number(&inner, FIELD_issued, clock_wall_ns() / NS_PER_SEC);
	keyed_go_on(s, k,
		    queue_put(s, BUCKET_KEYS, k->key, 0, &inner, s->queue.is_up ? QUEUE_PUBLISH_NS : QUEUE_ABSENT_NS,
			      on_put));
}

/* ---- clients --------------------------------------------------------------------------------- */

bool keys_gone(struct service *s, uint32_t tag)
{
	struct keyed *k;

	LIST_FOREACH(k, &s->queue.keyed, in_list)
	if (k->tag == tag) {
		k->has_gone = true; /* the answer is discarded */
		return true;
	}
	return false;
}

void keys_all_gone(struct service *s)
{
	struct keyed *k;

	LIST_FOREACH(k, &s->queue.keyed, in_list)
	{
		k->has_gone = true;
		k->tag = 0; /* the next front starts with new tags */
	}
}

void keys_release(struct service *s)
{
	while (!LIST_EMPTY(&s->queue.keyed))
		keyed_free(s, LIST_FIRST(&s->queue.keyed));
}
