/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_batch_list.c - batches in the list of all that no live front has in memory
 *
 * The bucket keeps each batch for a day, whatever happens to the front that accepted it; a front knows only the latest
 * ones accepted by its own process.  When all live fronts have answered (gathering.c), the rest comes from the bucket:
 *
 *	number of keys of this token -> the youngest keys -> those no front returned -> state of each (queue_batch_ask.c)
 *
 * For an administrator these are the keys of all tokens.  All listings together have few queries pending, and take
 * turns.  If something cannot be read in time, the list names the bucket among the nodes that did not answer.
 *
 *   RULE BL1  Each listing ends its part of the list once, LISTING_NS after its start at the latest, and drops its
 *   queries.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/forward.h"
#include "server/runner/requests.h"

#define LISTINGS_MAX 64
#define ASKS_MAX     8 /* each may have as many queries as a batch has jobs */
#define LISTING_NS   (5 * NS_PER_SEC)
#define ROUNDS_MAX   3 /* of queries for keys, in case old ones expire meanwhile */
#define MISSING      "brig-batches"

struct batch_listing {
	LIST_ENTRY(batch_listing) in_list;
	uint64_t serial, deadline_ns;
	struct gathering *of;
	struct token token;
	size_t limit;
	uint64_t offset;
	unsigned rounds;
	bool is_short /* the list is incomplete */, has_keys;
	char (*key)[BATCH_KEY_LEN + 1]; /* oldest first */
	size_t n_keys /* not queried yet, from the end of the array */, n_open;
};

static struct batch_listing *find(const struct service *s, uint64_t serial)
{
	struct batch_listing *w;

	LIST_FOREACH(w, &s->queue.batch_listings, in_list)
	if (w->serial == serial)
		return w;
	return NULL;
}

static void end(struct service *s, struct batch_listing *w)
{
	struct gathering *g = w->of;

	if (w->n_open > 0)
		batch_asks_drop(s, w->serial);
	if (w->is_short)
		gathering_miss(g, MISSING);
	LIST_REMOVE(w, in_list);
	s->queue.n_batch_listings--;
	free(w->key);
	free(w);
	gathering_end_one(s, g);
}

/* Ends it without what is still unknown. */
static void cut(struct service *s, struct batch_listing *w)
{
	w->is_short = true;
	end(s, w);
}

/* ---- the batches ----------------------------------------------------------------------------------------------------- */

/* Queries the next key that no front returned; false: there are no more. */
static bool ask_next(struct service *s, struct batch_listing *w)
{
	while (w->n_keys > 0) {
		const char *key = w->key[--w->n_keys];

		if (gathering_has(w->of, batch_key_id(key)))
			continue;
		if (batch_ask_listed(s, &w->token, key, w->serial)) {
			w->n_open++;
			return true;
		}
		w->is_short = true;
	}
	return false;
}

static void go_on(struct service *s)
{
	struct queue *q = &s->queue;
	struct batch_listing *w, *next;
	bool is_any = true;

	while (is_any) {
		is_any = false;
		LIST_FOREACH(w, &q->batch_listings, in_list)
		if (q->n_listed_asks < ASKS_MAX && ask_next(s, w))
			is_any = true;
	}
	for (w = LIST_FIRST(&q->batch_listings); w; w = next) {
		next = LIST_NEXT(w, in_list);
		if (w->has_keys && w->n_keys == 0 && w->n_open == 0)
			end(s, w);
	}
}

void batch_listing_told(struct service *s, uint64_t listing, const struct batch *b, bool is_whole)
{
	struct batch_listing *w = find(s, listing);

	if (!w)
		return;
	w->n_open--;
	if (b)
		gathering_put(w->of, batch_summary(s, b));
	w->is_short |= !is_whole;
	go_on(s);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int by_bytes(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* False: out of memory. */
static bool take_keys(struct service *s, struct batch_listing *w, const struct message *m)
{
	size_t n = message_count(m, FIELD_listed), at = 0, len;
	const char *key;

	w->key = calloc(n + 1, sizeof(*w->key));
	while (w->key && (key = message_next(m, FIELD_listed, &at, &len)))
		if (batch_key_id(key))
			(void)str_copy(w->key[w->n_keys++], sizeof(*w->key), key);
		else
			queue_complain(s, "refused the key of a batch that is none: %.80s", key);
	if (w->key)
		qsort(w->key, w->n_keys, sizeof(*w->key), by_bytes);
	w->has_keys = w->key != NULL;
	return w->has_keys;
}

static bool ask_keys(struct service *s, struct batch_listing *w);

static void on_keys(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_listing *w = find(s, op->number);
	uint64_t total, from;
	bool is_late, is_good;

	if (!w)
		return;
	if (a->how != QUEUE_OK || !message_has(a->m, FIELD_total)) {
		cut(s, w);
		return;
	}
	total = message_number(a->m, FIELD_total, 0);
	from = total - min_u64(total, w->limit);
	is_late = total > 0 && from < w->offset; /* the answer starts after the first key that is wanted */
	if (is_late && w->rounds < ROUNDS_MAX) {
		w->offset = from;
		is_good = ask_keys(s, w);
	} else {
		w->is_short |= is_late;
		is_good = take_keys(s, w, a->m);
	}
	if (is_good)
		go_on(s);
	else
		cut(s, w);
}

static bool ask_keys(struct service *s, struct batch_listing *w)
{
	AUTO_BUF m = BUF_INIT(KiB);
	char key[BATCH_KEY_LEN + 1];
	struct queue_op *op;

	w->rounds++;
	batch_keys_of(w->token.admin ? NULL : w->token.name, NULL, key);
	message_put_number(&m, FIELD_bucket, BUCKET_BATCHES);
	message_put_text(&m, FIELD_key, key);
	message_put_number(&m, FIELD_offset, w->offset);
	op = queue_ask(s, LINK_LIST, &m, LISTING_NS, on_keys, "");
	if (op)
		op->number = w->serial;
	return op != NULL;
}

void batch_listing_begin(struct service *s, struct gathering *of, const struct token *token, size_t limit)
{
	struct queue *q = &s->queue;
	struct batch_listing *w = q->is_up && q->n_batch_listings < LISTINGS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w) {
		gathering_miss(of, MISSING);
		gathering_end_one(s, of);
		return;
	}
	w->serial = ++q->last_batch;
	w->deadline_ns = clock_now_ns() + LISTING_NS;
	w->of = of;
	w->token = *token;
	w->limit = limit;
	w->offset = LINK_BEHIND;
	LIST_INSERT_HEAD(&q->batch_listings, w, in_list);
	q->n_batch_listings++;
	if (!ask_keys(s, w))
		cut(s, w);
}

/* ---- timer, clients that disconnect ---------------------------------------------------------- */

void batch_listings_tick(struct service *s)
{
	uint64_t now = clock_now_ns();

	for (struct batch_listing *w = LIST_FIRST(&s->queue.batch_listings), *next; w; w = next) {
		next = LIST_NEXT(w, in_list);
		if (w->deadline_ns <= now)
			cut(s, w);
	}
	go_on(s); /* queries may have ended */
}

bool batch_listings_gone(struct service *s, uint32_t tag)
{
	struct batch_listing *w;

	LIST_FOREACH(w, &s->queue.batch_listings, in_list)
	if (gathering_is_of(w->of, tag)) {
		cut(s, w);
		return true;
	}
	return false;
}

void batch_listings_release(struct service *s)
{
	struct batch_listing *w;

	while ((w = LIST_FIRST(&s->queue.batch_listings))) {
		gathering_all_gone(w->of);
		end(s, w);
	}
}
