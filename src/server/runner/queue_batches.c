/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_batches.c - batches that are asked for here become known to all fronts
 *
 * What a batch is, its owner and the ids and names of its jobs, goes into the bucket of batches before anything of it begins and
 * before its client is told; with an Idempotency-Key, the key goes first (as in queue_keys.c).
 *
 *	jobs are looked at -> key put -> batch put -> begins, and its client is told
 *	                         |           `- taken: another front has just put it for the same key: that one counts
 *	                         `- taken: another request: 409;  the same: that batch, if it is in the bucket, or else this one
 *	                                   under the id of the key
 *
 * Then its jobs are published as fast as quotas let them in.  What is published goes on without this front, and any other one
 * finds it (queue_batch_ask.c); what a quota still holds back when this front is killed is lost, and told so by id.
 *
 * Its key in the bucket is "TIME.OWNER.ID": when it was accepted, in seconds since 1970, a hash of the name of its token, and its id.
 * So one is found by its id and its owner, those of one owner are found without a look at those of others, and the youngest are the
 * last (queue_batch_list.c).  Of two fronts that put a batch for one key, both have the time of the key: one of them is too late.
 *
 * When all of its jobs have ended, their verdicts go into the bucket of results: a list needs no more.
 */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

/* One that waits for the buckets. */
struct shared_batch {
	LIST_ENTRY(shared_batch) in_list;
	uint64_t serial;
	uint32_t tag;
	struct token token;
	char request_id[129];
	struct batch *b;
	char key[2 * SHA256_LEN + 1]; /* "": it has none */
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

/* Its batch, if it has one still, came to nothing. */
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
			return; /* as far as is known here */
		message_put_text(&inner, FIELD_job_end, b->job[i].verdict);
	}
	(void)queue_put(s, BUCKET_RESULTS, key, 0, &inner, QUEUE_PUBLISH_NS, NULL); /* else jobs are looked at */
}

/* ---- the batch ----------------------------------------------------------------------------------------------------- */

/* Another front has it, or this one since before. */
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
	if (a->how == QUEUE_TAKEN) { /* of the same key, so it is of the same jobs */
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

/* Whether the batch that the key stands for ever came to be. */
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
		refuse(s, w, 409, "somebody wrote over what this Idempotency-Key stands for: use a new key");
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

/* ---- who asked ------------------------------------------------------------------------------------------------------- */

/* It goes on: the buckets may know it already. */
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
	w->tag = 0; /* the next front has tags of its own */
}

void shared_batches_release(struct service *s)
{
	while (!LIST_EMPTY(&s->queue.shared)) {
		struct shared_batch *w = LIST_FIRST(&s->queue.shared);

		batch_free(MOVE_PTR(w->b)); /* its executions are gone */
		shared_free(s, w);
	}
}
