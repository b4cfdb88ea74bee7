/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_batches.c - publication of batches accepted here
 *
 * The description of a batch (owner, ids and names of its jobs) is put into the bucket of batches before any job starts
 * and before the client is answered; with an Idempotency-Key, the key is put first (as in queue_keys.c).
 *
 *	jobs checked -> key put -> batch put -> started, client answered
 *	                   |          `- taken: another front has just put it for the same key: that one counts
 *	                   `- taken: different request: 409; same request: that batch, if it is in the bucket; otherwise
 *	                             this one, under the id of the key
 *
 * Jobs are then published as fast as quotas admit them.  Published jobs run without this front, and any front can find
 * them (queue_batch_ask.c); jobs still held back when this front dies are lost, and reported so.
 *
 * The key of a batch in the bucket is "TIME.OWNER.ID": when it was accepted, in seconds since 1970, a hash of the
 * token's name, and its id.  So one batch can be found by id and owner, the batches of an owner without reading those
 * of others, and the youngest keys sort last (queue_batch_list.c).  If two fronts put a batch for the same
 * Idempotency-Key, both use the time of that key, so the second put fails.
 *
 * When all jobs have ended, their verdicts are put into the bucket of results: lists need no more.
 */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

/* A batch being published. */
struct shared_batch {
	LIST_ENTRY(shared_batch) in_list;
	uint64_t serial;
	uint32_t tag;
	struct token token;
	char request_id[129];
	struct batch *b;
	char key[2 * SHA256_LEN + 1]; /* "": none */
	uint8_t body[SHA256_LEN];
};

static struct shared_batch *find(const struct service *s, uint64_t serial)
{
	struct shared_batch *w;

	LIST_FOREACH(w, &s->queue.shared, in_list)
	if (w->serial == serial)
		return w;
	return NULL;
}

/* Drops its batch, too, if it still has one. */
static void shared_free(struct service *s, struct shared_batch *w)
{
	LIST_REMOVE(w, in_list);
	if (w->b)
		batch_drop_all(s, w->b);
	free(w);
}

static void refuse(struct service *s, struct shared_batch *w, uint16_t status, const char *why)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id, .token = &w->token };

	answer_retry(s, &req, status, status == 503 ? 1 : 0, "%s", why);
	shared_free(s, w);
}

static void go_on(struct service *s, struct shared_batch *w, struct queue_op *op)
{
	if (op)
		op->number = w->serial;
	else
		refuse(s, w, 503, "the service has too much to do: try again in a moment");
}

static uint64_t patience(const struct service *s)
{
	return s->queue.is_up ? QUEUE_PUBLISH_NS : QUEUE_ABSENT_NS;
}

/* ---- the bucket ---------------------------------------------------------------------------------------------------- */

static void owner_word(const char *owner, char dst[BATCH_OWNER_HEX + 1])
{
	uint8_t hash[SHA256_LEN];

	sha256(owner, strlen(owner), hash);
	(void)hex_put(dst, hash, BATCH_OWNER_HEX / 2);
}

void batch_key(const char *owner, uint64_t created_s, const char *id, char dst[BATCH_KEY_LEN + 1])
{
	char word[BATCH_OWNER_HEX + 1];

	owner_word(owner, word);
	(void)snprintf(dst, BATCH_KEY_LEN + 1, "%010llu.%s.%s", (unsigned long long)created_s % 10000000000, word, id);
}

void batch_keys_of(const char *owner, const char *id, char dst[BATCH_KEY_LEN + 1])
{
	char word[BATCH_OWNER_HEX + 1] = "*";

	if (owner)
		owner_word(owner, word);
	(void)snprintf(dst, BATCH_KEY_LEN + 1, "*.%s.%s", word, id ? id : "*");
}

const char *batch_key_id(const char *key)
{
	static const struct {
		const char *of;
		size_t len;
		char end;
	} words[] = { { "0123456789", BATCH_TIME_DIGITS, '.' },
		      { "0123456789abcdef", BATCH_OWNER_HEX, '.' },
		      { ID_ALPHABET, EXECUTION_ID_LEN, '\0' } };

	for (size_t i = 0;; key += words[i++].len + 1) {
		if (strspn(key, words[i].of) != words[i].len || key[words[i].len] != words[i].end)
			return NULL;
		if (!words[i].end)
			return key;
	}
}

struct queue_op *batch_get(struct service *s, const char *owner, const char *id, queue_fn fn)
{
	AUTO_BUF m = BUF_INIT(KiB);
	char key[BATCH_KEY_LEN + 1];

	batch_keys_of(owner, id, key);
	message_put_number(&m, FIELD_bucket, BUCKET_BATCHES);
	message_put_text(&m, FIELD_key, key);
	return queue_ask(s, LINK_GET, &m, QUEUE_ASK_NS, fn, id);
}

void batch_end_key(const char *id, char dst[BATCH_KEY_LEN + 1])
{
	(void)snprintf(dst, BATCH_KEY_LEN + 1, "batch.%s", id);
}

void batch_share_end(struct service *s, const struct batch *b)
{
	AUTO_BUF inner = BUF_INIT(MiB);
	char key[BATCH_KEY_LEN + 1];

	if (!b->is_shared)
		return;
	batch_end_key(b->id, key);
	queue_begin(s, &inner, "batch_end");
	message_put_text(&inner, FIELD_id, b->id);
	message_put_number(&inner, FIELD_issued, b->ended_ns / NS_PER_SEC);
	for (size_t i = 0; i < b->n; i++) {
		if (b->job[i].state != JOB_ENDED)
			return; /* not all outcomes are known */
		message_put_text(&inner, FIELD_job_end, b->job[i].verdict);
	}
	/* if it fails, lists look at the jobs */
	(void)queue_put(s, BUCKET_RESULTS, key, 0, &inner, QUEUE_PUBLISH_NS, NULL);
}

/* ---- the batch ----------------------------------------------------------------------------------------------------- */

/* The batch exists already: answers 202 with it. */
static void answer_other(struct service *s, struct shared_batch *w, const char *id, size_t n)
{
	const struct batch *here = batches_find(&s->batches, id);

	batch_answer_accepted(s, w->tag, id, n, here && batch_is_over(here) ? "finished" : "running", w->token.name);
	shared_free(s, w);
}

static void on_batch_put(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct shared_batch *w = find(s, op->number);
	struct batch *b;

	if (!w)
		return;
	if (a->how == QUEUE_TAKEN) { /* same key, hence the same jobs */
		answer_other(s, w, w->b->id, w->b->n);
		return;
	}
	if (a->how != QUEUE_OK) {
		refuse(s, w, 503, "the batch could not be given to the queue: no broker takes it now");
		return;
	}
	b = MOVE_PTR(w->b);
	b->is_shared = true;
	batch_begin(s, &w->token, b);
	batch_answer_accepted(s, w->tag, b->id, b->n, "running", b->owner);
	shared_free(s, w);
}

static void put_batch(struct service *s, struct shared_batch *w)
{
	AUTO_BUF inner = BUF_INIT(MiB);
	char ref[EXECUTION_ID_LEN + 1 + BATCH_NAME_MAX + 1], key[BATCH_KEY_LEN + 1];
	const struct batch *b = w->b;

	queue_begin(s, &inner, "batch");
	message_put_text(&inner, FIELD_id, b->id);
	message_put_text(&inner, FIELD_who, b->owner);
	message_put_text(&inner, FIELD_reply_to, s->queue.front_id);
	message_put_number(&inner, FIELD_issued, b->created_ns / NS_PER_SEC);
	for (size_t i = 0; i < b->n; i++) {
		(void)snprintf(ref, sizeof(ref), "%s %s", b->job[i].id, b->job[i].name);
		message_put_text(&inner, FIELD_job_ref, ref);
	}
	batch_key(b->owner, b->created_ns / NS_PER_SEC, b->id, key);
	go_on(s, w, queue_put(s, BUCKET_BATCHES, key, 0, &inner, patience(s), on_batch_put));
}

/* ---- the key ------------------------------------------------------------------------------------------------------- */

/* Whether the batch for this key was ever published. */
static void on_other(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct shared_batch *w = find(s, op->number);
	struct queue_sealed there;

	if (!w)
		return;
	if (a->how == QUEUE_NONE) {
		(void)str_copy(w->b->id, sizeof(w->b->id), op->id);
		put_batch(s, w);
	} else if (a->how == QUEUE_OK && queue_unseal(s, a->m, "batch", PEER_FRONT, &there)) {
		answer_other(s, w, op->id, message_count(&there.m, FIELD_job_ref));
	} else {
		refuse(s, w, 503, "no broker says what became of the batch of this Idempotency-Key");
	}
}

static bool is_entry_of(const struct shared_batch *w, const struct message *m)
{
	const char *key = message_text(m, FIELD_key), *id = message_text(m, FIELD_id),
		   *who = message_text(m, FIELD_who);

	return key && str_eq(key, w->key) && who && str_eq(who, w->token.name) && id &&
	       strlen(id) == EXECUTION_ID_LEN && strspn(id, ID_ALPHABET) == EXECUTION_ID_LEN;
}

static void on_key_there(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct shared_batch *w = find(s, op->number);
	struct queue_sealed there;
	const char *body, *id;
	char why[160];
	size_t len;

	if (!w)
		return;
	if (a->how != QUEUE_OK) {
		refuse(s, w, 503, "no broker says what this Idempotency-Key stands for");
		return;
	}
	if (!queue_unseal(s, a->m, "key", PEER_FRONT, &there) || !is_entry_of(w, &there.m)) {
		refuse(s, w, 409, "the record of this Idempotency-Key was overwritten by another: use a new key");
		return;
	}
	id = message_text(&there.m, FIELD_id);
	body = message_bytes(&there.m, FIELD_asked_hash, &len);
	if (body && len == SHA256_LEN && crypto_same(body, w->body, SHA256_LEN)) {
		w->b->created_ns = message_number(&there.m, FIELD_issued, 0) * NS_PER_SEC;
		go_on(s, w, batch_get(s, w->token.name, id, on_other));
		return;
	}
	(void)snprintf(why, sizeof(why), "this Idempotency-Key stands for another request, which is %s: use a new key",
		       id);
	refuse(s, w, 409, why);
}

static void on_key_put(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct shared_batch *w = find(s, op->number);

	if (!w)
		return;
	if (a->how == QUEUE_OK)
		put_batch(s, w);
	else if (a->how == QUEUE_TAKEN)
		go_on(s, w, queue_get(s, BUCKET_KEYS, w->key, on_key_there));
	else
		refuse(s, w, 503, "no broker takes the Idempotency-Key: try again in a moment");
}

static void put_key(struct service *s, struct shared_batch *w)
{
	AUTO_BUF inner = BUF_INIT(4 * KiB);

	queue_begin(s, &inner, "key");
	message_put_text(&inner, FIELD_key, w->key);
	message_put_text(&inner, FIELD_id, w->b->id);
	message_put_text(&inner, FIELD_who, w->token.name);
	message_put_bytes(&inner, FIELD_asked_hash, w->body, SHA256_LEN);
	message_put_number(&inner, FIELD_issued, w->b->created_ns / NS_PER_SEC);
	go_on(s, w, queue_put(s, BUCKET_KEYS, w->key, 0, &inner, patience(s), on_key_put));
}

void batch_share(struct service *s, const struct request *req, struct batch *b, const uint8_t *name,
		 const uint8_t *body)
{
	struct shared_batch *w = calloc(1, sizeof(*w));

	if (!w) {
		batch_drop_all(s, b);
		answer_retry(s, req, 503, 1, "there is no memory for the batch");
		return;
	}
	w->serial = ++s->queue.last_batch;
	w->tag = req->tag;
	w->token = *req->token;
	w->b = b;
	(void)str_copy(w->request_id, sizeof(w->request_id), req->request_id);
	LIST_INSERT_HEAD(&s->queue.shared, w, in_list);
	if (!name) {
		put_batch(s, w);
		return;
	}
	(void)hex_put(w->key, name, SHA256_LEN);
	memcpy(w->body, body, SHA256_LEN);
	put_key(s, w);
}

/* ---- clients --------------------------------------------------------------------------------- */

/* It continues, since the buckets may have the batch already. */
bool shared_batches_gone(struct service *s, uint32_t tag)
{
	const struct shared_batch *w;

	LIST_FOREACH(w, &s->queue.shared, in_list)
	if (w->tag == tag)
		return true;
	return false;
}

void shared_batches_all_gone(struct service *s)
{
	struct shared_batch *w;

	LIST_FOREACH(w, &s->queue.shared, in_list)
	w->tag = 0; /* the next front starts with new tags */
}

void shared_batches_release(struct service *s)
{
	while (!LIST_EMPTY(&s->queue.shared)) {
		struct shared_batch *w = LIST_FIRST(&s->queue.shared);

		batch_free(MOVE_PTR(w->b)); /* its executions have been freed */
		shared_free(s, w);
	}
}
