/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_batch_ask.c - batches of other fronts
 *
 * Queries about a batch that another front accepted, or an earlier process of this one, are answered from the buckets.
 * The bucket of batches has its jobs; for each job not known to be over:
 *
 *	result?  --none-->  claim?  --none-->  in the stream?  --none-->  result again  --none-->  lost
 *	   |                  |                   |
 *	finished            running             queued
 *
 * The exception: while the front that accepted the batch is still the same process, it may hold jobs back for a quota,
 * so they are queued, not lost.  Nothing is kept between requests, except for a stream of results, for which unfinished
 * jobs are looked up repeatedly.
 *
 * A list (queue_batch_list.c) has many batches and needs only states: if the verdicts of a batch are in the bucket, its
 * jobs are not looked up; a batch that turns out to be over gets its verdicts stored there.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

#define ASKS_MAX    64
#define AGAIN_NS    NS_PER_SEC
#define RESULTS_MAX (48 * MiB) /* of one request; results beyond it are reported without output */
#define NUMBERS     1024       /* factor between request number and job number in an operation's number */
#define HEARD_S     10         /* within this time the entry of a live front has been received */

_Static_assert(BATCH_JOBS_MAX <= NUMBERS, "each job of a batch has a number");

struct batch_ask {
	LIST_ENTRY(batch_ask) in_list;
	uint64_t serial;
	uint32_t tag;
	enum route route;
	bool is_stream, is_troubled /* some broker query failed */, is_looking;
	uint64_t listing; /* the listing that it is for; 0: a client's request */
	struct token token;
	char request_id[129], id[EXECUTION_ID_LEN + 1], key[BATCH_KEY_LEN + 1];
	char front[EXECUTION_ID_LEN + 1], front_key[SEAL_KEY_HEX + 1]; /* the process that accepted the batch */
	struct batch *b;                                               /* NULL: not known yet */
	size_t n_open;                                                 /* pending queries */
	uint64_t again_ns, result_bytes;
};

static struct batch_ask *find(const struct service *s, uint64_t serial)
{
	struct batch_ask *w;

	LIST_FOREACH(w, &s->queue.batch_asks, in_list)
	if (w->serial == serial)
		return w;
	return NULL;
}

static void ask_free(struct service *s, struct batch_ask *w)
{
	LIST_REMOVE(w, in_list);
	--*(w->listing ? &s->queue.n_listed_asks : &s->queue.n_batch_asks);
	batch_free(w->b);
	free(w);
}

static struct request ask_of(const struct batch_ask *w)
{
	return (struct request){ .tag = w->tag, .route = w->route, .request_id = w->request_id, .token = &w->token };
}

/* Reports the outcome to the listing, which continues. */
static void end_listed(struct service *s, struct batch_ask *w, bool is_whole)
{
	struct batch *b = MOVE_PTR(w->b);
	uint64_t listing = w->listing;

	ask_free(s, w);
	batch_listing_told(s, listing, is_whole ? b : NULL, is_whole);
	batch_free(b);
}

static void refuse(struct service *s, struct batch_ask *w, uint16_t status, const char *what)
{
	const struct request req = ask_of(w);

	if (w->listing) {
		end_listed(s, w, false);
		return;
	}
	answer_retry(s, &req, status, status == 503 ? 1 : 0, "%s '%.20s'", what, w->id);
	ask_free(s, w);
}

/* ---- the answer ------------------------------------------------------------------------------------------------------ */

static bool is_over(const struct batch_job *j)
{
	return j->state == JOB_ENDED || j->state == JOB_LOST;
}

static void cancel(struct service *s, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!is_over(&b->job[i]))
			(void)remote_put_cancel(s, b->job[i].id, QUEUE_CLAIM_NS, remote_on_cancel_put);
}

/* Sends new results to a stream; true: that was the last. */
static bool tell_watcher(struct service *s, struct batch_ask *w)
{
	for (size_t i = 0; i < w->b->n; i++) {
		struct batch_job *j = &w->b->job[i];

		if (!is_over(j) || j->is_told)
			continue;
		batch_send_result(s, w->tag, j);
		j->is_told = true;
		w->result_bytes -= j->result_len; /* not needed any more */
		free(MOVE_PTR(j->result));
		j->result_len = 0;
	}
	if (!batch_is_over(w->b))
		return false;
	batch_send_done(s, w->tag, w->b);
	return true;
}

/* All queries of a round are answered. */
static void end_round(struct service *s, struct batch_ask *w)
{
	const struct request req = ask_of(w);

	w->is_looking = false;
	if (w->is_stream) {
		w->is_troubled = false;
		w->again_ns = clock_now_ns() + AGAIN_NS;
		if (tell_watcher(s, w))
			ask_free(s, w);
		return;
	}
	if (w->is_troubled) {
		refuse(s, w, 503, "no broker says what became of all jobs of batch");
		return;
	}
	if (w->listing) {
		if (batch_is_over(w->b))
			batch_share_end(s, w->b);
		end_listed(s, w, true);
		return;
	}
	if (w->route == ROUTE_batch_results) {
		batch_answer_results(s, &req, w->b);
	} else {
		bool ends = w->route == ROUTE_batch_cancel && !batch_is_over(w->b);

		if (ends)
			cancel(s, w->b);
		batch_answer_state(s, &req, ends ? 202 : 200, w->b);
	}
	ask_free(s, w);
}

/* ---- one job --------------------------------------------------------------------------------------------------------- */

static void close_one(struct service *s, struct batch_ask *w)
{
	if (--w->n_open == 0)
		end_round(s, w);
}

static void end_job(struct batch_ask *w, struct batch_job *j, enum batch_job_state state)
{
	j->state = state;
	w->b->n_entered--;
}

static void take_result(struct batch_ask *w, struct batch_job *j, const struct message *m)
{
	const char *verdict = message_text(m, FIELD_verdict);
	size_t len;
	const char *body = message_bytes(m, FIELD_body, &len);

	w->b->ended_ns = max_u64(w->b->ended_ns, message_number(m, FIELD_issued, 0) * NS_PER_SEC);
	if (!verdict || str_eq(verdict, QUEUE_LOST)) {
		end_job(w, j, JOB_LOST);
		return;
	}
	end_job(w, j, JOB_ENDED);
	(void)str_copy(j->verdict, sizeof(j->verdict), verdict);
	if (w->route != ROUTE_batch_results || !body || w->result_bytes + len > RESULTS_MAX)
		return;
	j->result = strndup(body, len);
	j->result_len = j->result ? strlen(j->result) : 0;
	w->result_bytes += j->result_len;
}

/* It may hold back jobs that no other node has seen. */
static bool front_is_there(const struct service *s, const struct batch_ask *w)
{
	const struct queue *q = &s->queue;

	for (size_t i = 0; i < q->n_nodes; i++)
		if (q->node[i].is_front && str_eq(q->node[i].key, w->front_key))
			return node_is_live(&q->node[i]) && str_eq(q->node[i].ask_at, w->front);
	return !q->since_ns || clock_now_ns() - q->since_ns < HEARD_S * NS_PER_SEC; /* not known yet */
}

static void on_result(struct service *s, const struct queue_op *op, const struct queue_answer *a);
static void on_result_again(struct service *s, const struct queue_op *op, const struct queue_answer *a);

static void ask_next(struct service *s, struct batch_ask *w, const struct queue_op *op, enum link_bucket bucket,
		     queue_fn fn)
{
	struct queue_op *next = queue_get(s, bucket, op->id, fn);

	if (next) {
		next->number = op->number;
		return;
	}
	w->is_troubled = true;
	close_one(s, w);
}

static void on_stream(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_ask *w = find(s, op->number / NUMBERS);

	if (w && a->how == QUEUE_NONE) {
		ask_next(s, w, op, BUCKET_RESULTS, on_result_again); /* it may have ended between the queries */
	} else if (w) {
		w->is_troubled |= a->how != QUEUE_OK;
		close_one(s, w);
	}
}

static void on_claim(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_ask *w = find(s, op->number / NUMBERS);
	struct queue_sealed claim;

	if (!w)
		return;
	if (a->how == QUEUE_OK && queue_unseal(s, a->m, "claim", PEER_WORKER | PEER_FRONT, &claim)) {
		w->b->job[op->number % NUMBERS].is_begun = message_number(&claim.m, FIELD_attempt, 0) > 0;
		close_one(s, w);
	} else {
		ask_next(s, w, op, BUCKET_JOBS, on_stream);
	}
}

/* True: this is the job's result, and was stored. */
static bool has_result(struct service *s, struct batch_ask *w, const struct queue_op *op, const struct queue_answer *a)
{
	struct queue_sealed r;
	const char *id, *who;

	if (a->how != QUEUE_OK || !queue_unseal(s, a->m, "result", PEER_WORKER, &r))
		return false;
	id = message_text(&r.m, FIELD_id);
	who = message_text(&r.m, FIELD_who);
	if (!id || !str_eq(id, op->id) || !who || !str_eq(who, w->b->owner))
		return false;
	take_result(w, &w->b->job[op->number % NUMBERS], &r.m);
	return true;
}

static void on_result_again(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_ask *w = find(s, op->number / NUMBERS);

	if (!w)
		return;
	w->is_troubled |= a->how == QUEUE_FAILED;
	if (!has_result(s, w, op, a) && a->how == QUEUE_NONE && !front_is_there(s, w))
		end_job(w, &w->b->job[op->number % NUMBERS], JOB_LOST);
	close_one(s, w);
}

static void on_result(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_ask *w = find(s, op->number / NUMBERS);

	if (!w)
		return;
	if (!has_result(s, w, op, a) && a->how != QUEUE_FAILED) {
		ask_next(s, w, op, BUCKET_CLAIMS, on_claim);
		return;
	}
	w->is_troubled |= a->how == QUEUE_FAILED;
	close_one(s, w);
}

static void begin_round(struct service *s, struct batch_ask *w)
{
	w->is_looking = true;
	w->n_open = 1; /* until all queries are sent */
	for (size_t i = 0; i < w->b->n; i++) {
		struct queue_op *op;

		if (is_over(&w->b->job[i]))
			continue;
		op = queue_get(s, BUCKET_RESULTS, w->b->job[i].id, on_result);
		if (op)
			op->number = w->serial * NUMBERS + i;
		w->n_open += op != NULL;
		w->is_troubled |= op == NULL;
	}
	close_one(s, w);
}

/* ---- the batch --------------------------------------------------------------------------------------------------------- */

/* NULL: out of memory, or invalid. */
static struct batch *read_batch(const struct message *m, const char *id, const char *owner)
{
	size_t n = message_count(m, FIELD_job_ref), at = 0, len;
	struct batch *b = n > 0 ? batch_new(n, owner) : NULL;
	const char *ref;

	while (b && (ref = message_next(m, FIELD_job_ref, &at, &len))) {
		struct batch_job *j = &b->job[b->n];

		if (strspn(ref, ID_ALPHABET) != EXECUTION_ID_LEN || ref[EXECUTION_ID_LEN] != ' ' ||
		    !(j->name = strdup(ref + EXECUTION_ID_LEN + 1))) {
			batch_free(b);
			return NULL;
		}
		(void)snprintf(j->id, sizeof(j->id), "%.*s", EXECUTION_ID_LEN, ref);
		j->state = JOB_ENTERED;
		b->n++;
		b->n_entered++;
	}
	if (b) {
		(void)str_copy(b->id, sizeof(b->id), id);
		b->created_ns = message_number(m, FIELD_issued, 0) * NS_PER_SEC;
		b->is_shared = true;
	}
	return b;
}

/* False: out of memory; the request was refused. */
static bool take_batch(struct service *s, struct batch_ask *w, const struct queue_sealed *r)
{
	const char *front = message_text(&r->m, FIELD_reply_to);

	(void)str_copy(w->front, sizeof(w->front), front ? front : "");
	(void)str_copy(w->front_key, sizeof(w->front_key), r->by->key);
	w->b = read_batch(&r->m, w->id, message_text(&r->m, FIELD_who));
	if (!w->b)
		refuse(s, w, 503, "there is no memory for batch");
	return w->b != NULL;
}

static void on_batch(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_ask *w = find(s, op->number);
	const char *owner, *id;
	struct queue_sealed r;

	if (!w)
		return;
	if (a->how == QUEUE_FAILED) {
		refuse(s, w, 503, "no broker says what became of batch");
		return;
	}
	if (a->how != QUEUE_OK || !queue_unseal(s, a->m, "batch", PEER_FRONT, &r) ||
	    !(id = message_text(&r.m, FIELD_id)) || !str_eq(id, w->id) || !(owner = message_text(&r.m, FIELD_who)) ||
	    !access_owns(&w->token, owner)) {
		refuse(s, w, 404, w->token.admin ? "there is no batch" : "this token has no batch");
		return;
	}
	if (take_batch(s, w, &r))
		begin_round(s, w);
}

/* NULL: too many, or out of memory.  Not in the list until its query is sent. */
static struct batch_ask *ask_new(struct service *s, const struct token *token, uint64_t listing)
{
	struct batch_ask *w = listing || s->queue.n_batch_asks < ASKS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (w) {
		w->serial = ++s->queue.last_batch;
		w->token = *token;
		w->listing = listing;
	}
	return w;
}

static bool ask_begin(struct service *s, struct batch_ask *w, struct queue_op *op)
{
	if (!op) {
		free(w);
		return false;
	}
	op->number = w->serial;
	LIST_INSERT_HEAD(&s->queue.batch_asks, w, in_list);
	++*(w->listing ? &s->queue.n_listed_asks : &s->queue.n_batch_asks);
	return true;
}

bool batch_ask_elsewhere(struct service *s, const struct request *req, const char *id)
{
	struct batch_ask *w;

	if (!s->queue.is_on || !id || strlen(id) != EXECUTION_ID_LEN || strspn(id, ID_ALPHABET) != EXECUTION_ID_LEN)
		return false;
	w = ask_new(s, req->token, 0);
	if (!w || !ask_begin(s, w, batch_get(s, req->token->admin ? NULL : req->token->name, id, on_batch))) {
		answer_retry(s, req, 503, 1, "the service has too much to do: try again in a moment");
		return true;
	}
	w->tag = req->tag;
	w->route = req->route;
	w->is_stream = req->route == ROUTE_batch_results && message_number(req->m, FIELD_stream, 0);
	(void)str_copy(w->request_id, sizeof(w->request_id), req->request_id);
	(void)str_copy(w->id, sizeof(w->id), id);
	return true;
}

/* ---- for listings ---------------------------------------------------------------------------- */

/* Takes the verdicts that a front has stored; false: there are none. */
static bool has_ends(struct service *s, struct batch_ask *w, const struct queue_answer *a)
{
	const char *id, *verdict;
	struct queue_sealed r;
	size_t at = 0, len;

	if (a->how != QUEUE_OK || !queue_unseal(s, a->m, "batch_end", PEER_FRONT, &r))
		return false;
	id = message_text(&r.m, FIELD_id);
	if (!id || !str_eq(id, w->id) || message_count(&r.m, FIELD_job_end) != w->b->n) {
		queue_complain(s, "refused a batch_end of %s in the place of that of %s", r.by->name, w->id);
		return false;
	}
	for (size_t i = 0; (verdict = message_next(&r.m, FIELD_job_end, &at, &len)); i++) {
		(void)str_copy(w->b->job[i].verdict, sizeof(w->b->job[i].verdict), verdict);
		end_job(w, &w->b->job[i], JOB_ENDED);
	}
	w->b->ended_ns = message_number(&r.m, FIELD_issued, 0) * NS_PER_SEC;
	return true;
}

static void on_ends(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_ask *w = find(s, op->number);

	if (!w)
		return;
	if (has_ends(s, w, a))
		end_listed(s, w, true);
	else if (a->how == QUEUE_FAILED)
		end_listed(s, w, false);
	else
		begin_round(s, w);
}

/* Whether the message is the batch with this key, and its owner's batches may be shown. */
static bool is_listed(struct service *s, const struct batch_ask *w, const struct queue_sealed *r)
{
	const char *id = message_text(&r->m, FIELD_id), *owner = message_text(&r->m, FIELD_who);
	char key[BATCH_KEY_LEN + 1] = "";

	if (id && owner && str_eq(id, w->id))
		batch_key(owner, message_number(&r->m, FIELD_issued, 0), id, key);
	if (str_eq(key, w->key))
		return access_owns(&w->token, owner);
	queue_complain(s, "refused a batch of %s in the place of %s", r->by->name, w->key);
	return false;
}

static void on_listed(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct batch_ask *w = find(s, op->number);
	char key[BATCH_KEY_LEN + 1];
	struct queue_op *next;
	struct queue_sealed r;

	if (!w)
		return;
	if (a->how != QUEUE_OK || !queue_unseal(s, a->m, "batch", PEER_FRONT, &r) || !is_listed(s, w, &r)) {
		end_listed(s, w, a->how == QUEUE_NONE); /* it has just expired */
		return;
	}
	if (!take_batch(s, w, &r))
		return;
	batch_end_key(w->id, key);
	next = queue_get(s, BUCKET_RESULTS, key, on_ends);
	if (next)
		next->number = w->serial;
	else
		end_listed(s, w, false);
}

bool batch_ask_listed(struct service *s, const struct token *token, const char *key, uint64_t listing)
{
	const char *id = batch_key_id(key);
	struct batch_ask *w = id ? ask_new(s, token, listing) : NULL;

	if (!w)
		return false;
	w->route = ROUTE_batches;
	(void)str_copy(w->id, sizeof(w->id), id);
	(void)str_copy(w->key, sizeof(w->key), key);
	return ask_begin(s, w, queue_get(s, BUCKET_BATCHES, key, on_listed));
}

void batch_asks_drop(struct service *s, uint64_t listing)
{
	for (struct batch_ask *w = LIST_FIRST(&s->queue.batch_asks), *next; w; w = next) {
		next = LIST_NEXT(w, in_list);
		if (w->listing == listing)
			ask_free(s, w);
	}
}

/* ---- timer, clients that disconnect ---------------------------------------------------------- */

void batch_asks_tick(struct service *s)
{
	uint64_t now = clock_now_ns();

	for (struct batch_ask *w = LIST_FIRST(&s->queue.batch_asks), *next; w; w = next) {
		next = LIST_NEXT(w, in_list);
		if (w->is_stream && w->b && !w->is_looking && w->again_ns <= now)
			begin_round(s, w);
	}
	batch_listings_tick(s);
}

bool batch_asks_gone(struct service *s, uint32_t tag)
{
	struct batch_ask *w;

	LIST_FOREACH(w, &s->queue.batch_asks, in_list)
	if (!w->listing && w->tag == tag) {
		refuse(s, w, 503, "who asked has gone, for batch");
		return true;
	}
	return batch_listings_gone(s, tag);
}

void batch_asks_all_gone(struct service *s)
{
	batch_asks_release(s);
}

void batch_asks_release(struct service *s)
{
	batch_listings_release(s); /* this drops the queries for listings */
	while (!LIST_EMPTY(&s->queue.batch_asks))
		ask_free(s, LIST_FIRST(&s->queue.batch_asks));
}
