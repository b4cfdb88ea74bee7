/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_elsewhere.c - executions of other fronts
 *
 * Requests for an id that another front accepted, or an earlier process of this one, are answered from the buckets:
 *
 *	result?  --none-->  job in the stream?  --none-->  result again, in case it ended meanwhile; otherwise 404
 *	  |                     |
 *	  |                     +- state: from the claim.  cancel: put a claim that prevents its start, or notify the node that
 *	  |                        claimed it.  events: adopt it.  artifact: not available yet
 *	  +- state, artifact: from the result.  cancel: it is over.  events: adopt it
 *
 * Result and job are sealed and name the token; an execution of another token is treated as one that does not exist.
 *
 * Adopting an execution puts it into the table as if it had been published here, as long as somebody watches it.  The
 * node that runs it, or ran it lately, is asked to send its events ("watch"), past and future ones (queue_watch.c).
 * Since it may not have been started yet, the request is repeated until events arrive.  If the node has dropped the
 * events, the result has to suffice.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

#define WATCH_NS    NS_PER_SEC /* interval of repeated watch requests */
#define ADOPTED_MAX 1024

/* A client's request, until the buckets have answered. */
struct asker {
	size_t size;
	uint32_t tag;
	enum route route;
	bool admin, has_gone, is_second; /* is_second: neither result nor job was found before */
	char name[TOKEN_NAME_MAX + 1], request_id[129];
	char path[]; /* path of an artifact */
};

static void answer_asker(struct service *s, const struct asker *who, uint16_t status, json_t *doc)
{
	struct token token = { .admin = who->admin };
	const struct request req = { .tag = who->tag, .request_id = who->request_id, .token = &token };

	(void)str_copy(token.name, sizeof(token.name), who->name);
	answer_json(s, &req, status, doc);
}

static void answer_asker_error(struct service *s, const struct asker *who, uint16_t status, const char *id,
			       const char *what)
{
	const struct request req = { .tag = who->tag, .request_id = who->request_id };

	answer_retry(s, &req, status, status == 503 ? 1 : 0, "%s '%.20s'", what, id);
}

static void answer_none(struct service *s, const struct asker *who, const char *id)
{
	answer_asker_error(s, who, 404, id, "there is no execution");
}

/* Attaches the request to the next operation; answers it if there is none. */
static void pass_asker(struct service *s, struct queue_op *next, const struct queue_op *op, bool is_second)
{
	const struct asker *who = op->arg;
	struct asker *copy = next ? malloc(who->size) : NULL;

	if (!copy) {
		if (next)
			next->fn = NULL;
		answer_asker_error(s, who, 503, op->id, "the service has too much to do to look for execution");
		return;
	}
	memcpy(copy, who, who->size);
	copy->is_second = is_second;
	next->arg = copy;
}

static bool may_see(const struct asker *who, const struct message *m)
{
	const char *owner = message_text(m, FIELD_who);

	return who->admin || (owner && str_eq(owner, who->name));
}

/* ---- watching ------------------------------------------------------------------------------------------------------- */

static void tell_watch(struct service *s, struct execution *x)
{
	AUTO_BUF inner = BUF_INIT(KiB);
	AUTO_BUF m = BUF_INIT(4 * KiB);
	char subject[64];

	x->remote->watch_ns = clock_now_ns() + WATCH_NS;
	queue_begin(s, &inner, "watch");
	message_put_text(&inner, FIELD_id, x->id);
	message_put_text(&inner, FIELD_reply_to, s->queue.front_id);
	message_put_number(&inner, FIELD_sequence, x->remote->nonce);
	message_put_number(&inner, FIELD_issued, clock_wall_ns() / NS_PER_SEC);
	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_WATCH, x->id);
	message_put_text(&m, FIELD_subject, subject);
	if (queue_seal(s, &inner, &m))
		queue_tell(s, LINK_TELL, &m);
}

void adopted_tick(struct service *s, struct execution *x, uint64_t now)
{
	if (x->n_listeners == 0)
		execution_drop(s, x); /* a later request finds it in the buckets again */
	else if (!x->remote->is_heard && x->remote->watch_ns <= now)
		tell_watch(s, x);
}

bool adopted_waits_for_log(struct service *s, struct execution *x)
{
	struct remote *r = x->remote;

	if (!r->is_adopted || r->is_heard)
		return false;
	if (!r->is_over) { /* ask the node once more for its events, and wait a moment */
		r->is_over = true;
		r->look_ns = clock_now_ns() + WATCH_NS;
		tell_watch(s, x);
		return true;
	}
	events_put(x, EVENT_notice,
		   json_pack("{s:s, s:s}", "event", "notice", "text",
			     "its events are not at hand any more: the result has the whole output"));
	return false;
}

static size_t count_adopted(const struct service *s)
{
	const struct execution *x;
	size_t n = 0;

	TAILQ_FOREACH(x, &s->executions.all, in_age)
	n += x->remote && x->remote->is_adopted && x->state != EXECUTION_FINISHED;
	return n;
}

/* from: the sealed job, or the result if it is over.  NULL: too many, or out of memory. */
static struct execution *adopt(struct service *s, const char *id, const struct queue_sealed *from, bool is_over)
{
	const char *owner = message_text(&from->m, FIELD_who), *hash;
	const char *language = message_text(&from->m, FIELD_language), *trust = message_text(&from->m, FIELD_trust);
	struct execution *x = executions_find(&s->executions, id);
	uint64_t issued_s = message_number(&from->m, FIELD_issued, 0);
	size_t len;

	if (x)
		return x;
	if (!owner || count_adopted(s) >= ADOPTED_MAX || !(x = execution_new_elsewhere(s, id, owner)))
		return NULL;
	hash = message_bytes(&from->m, FIELD_job_hash, &len);
	if (crypto_random(&x->remote->nonce, sizeof(x->remote->nonce)) < 0) {
		execution_drop(s, x);
		return NULL;
	}
	if (is_over && hash && len == SHA256_LEN) {
		memcpy(x->remote->hash, hash, SHA256_LEN);
	} else if (is_over || !seal_hash(&from->m, x->remote->hash)) {
		execution_drop(s, x);
		return NULL;
	}
	x->kind = execution_kind_name(message_number(&from->m, FIELD_kind, 0));
	x->created_ns = issued_s * NS_PER_SEC;
	(void)str_copy(x->language, sizeof(x->language), language ? language : "");
	(void)str_copy(x->trust, sizeof(x->trust), trust ? trust : "");
	x->remote->expires_s = issued_s + QUEUE_EXPIRES_S;
	x->remote->is_adopted = x->remote->is_published = true;
	x->remote->is_over = is_over;
	x->remote->look_ns = clock_now_ns() + WATCH_NS;
	tell_watch(s, x);
	return x;
}

static void watch(struct service *s, const struct asker *who, const char *id, const struct queue_sealed *from,
		  bool is_over)
{
	struct execution *x = who->has_gone ? NULL : adopt(s, id, from, is_over);

	if (!x || (x->state != EXECUTION_FINISHED && !execution_listen(x, who->tag, WATCHES, false)))
		answer_asker_error(s, who, 503, id, "too many watch already, among them execution");
	else
		events_replay(x, who->tag);
}

/* A client that waits only for the result needs no events, which the node may have dropped. */
void front_join(struct service *s, const struct request *req, const char *id, const struct queue_sealed *from,
		bool is_over)
{
	bool watches = message_number(req->m, FIELD_stream, 0) != 0;
	const char *verdict = message_text(&from->m, FIELD_verdict);
	struct execution *x;

	if (message_number(req->m, FIELD_async, 0) && !watches) {
		accept_answer(s, req, id,
			      !is_over                                 ? "queued"
			      : verdict && str_eq(verdict, QUEUE_LOST) ? "lost"
								       : "finished");
		return;
	}
	x = adopt(s, id, from, is_over);
	if (!x || (x->state != EXECUTION_FINISHED &&
		   !execution_listen(x, req->tag, watches ? WATCHES : WAITS_FOR_RESULT, false))) {
		answer_retry(s, req, 503, 1, "too many wait already, among them for execution %s", id);
		return;
	}
	x->remote->is_heard |= !watches;
	x->remote->look_ns = 0;
	if (watches)
		events_replay(x, req->tag);
	else if (x->state == EXECUTION_FINISHED)
		execution_answer_result(s, x, req->tag);
}

/* ---- answers ---------------------------------------------------------------------------------------------------------- */

static json_t *document(const char *id, const char *state, const struct queue_sealed *r)
{
	const struct message *m = &r->m;
	const char *verdict = message_text(m, FIELD_verdict), *owner = message_text(m, FIELD_who);
	const char *language = message_text(m, FIELD_language), *trust = message_text(m, FIELD_trust);
	const char *why = message_text(m, FIELD_reason);
	size_t len;
	const char *body = message_bytes(m, FIELD_body, &len);
	bool is_lost = verdict && str_eq(verdict, QUEUE_LOST);

	return json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:o}", "id", id, "state",
			 is_lost ? "lost" : state, "language", language, "trust", trust, "token", owner, "verdict",
			 is_lost ? NULL : verdict, "node", is_lost ? NULL : r->by->name, "reason", why, "result",
			 body ? json_loadb(body, len, JSON_ALLOW_NUL, NULL) : json_null());
}

static void answer_artifact(struct service *s, const struct asker *who, const char *id, const struct queue_sealed *r)
{
	struct token token = { .admin = who->admin };
	const struct request req = { .tag = who->tag, .request_id = who->request_id, .token = &token };
	size_t len;
	const char *body = message_bytes(&r->m, FIELD_body, &len);
	json_t *result = body ? json_loadb(body, len, JSON_ALLOW_NUL, NULL) : NULL;

	(void)str_copy(token.name, sizeof(token.name), who->name);
	artifact_answer(s, &req, id, result, who->path);
	json_decref(result);
}

static void on_claim(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	const struct asker *who = op->arg;
	struct queue_sealed claim;
	bool is_begun = a->how == QUEUE_OK && queue_unseal(s, a->m, "claim", PEER_WORKER | PEER_FRONT, &claim) &&
			message_number(&claim.m, FIELD_attempt, 0) > 0;

	answer_asker(s, who, 200,
		     json_pack("{s:s, s:s, s:s?, s:n}", "id", op->id, "state",
			       a->how == QUEUE_OK ? "running" : "queued", "node", is_begun ? claim.by->name : NULL,
			       "result"));
}

static void on_cancelled(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	const struct asker *who = op->arg;

	remote_on_cancel_put(s, op, a);
	if (a->how == QUEUE_OK || a->how == QUEUE_TAKEN)
		answer_asker(s, who, 202,
			     json_pack("{s:s, s:s}", "id", op->id, "state", a->how == QUEUE_OK ? "queued" : "running"));
	else
		answer_asker_error(s, who, 503, op->id, "no broker takes the word that ends execution");
}

static void on_job_found(struct service *s, const struct queue_op *op, const struct queue_sealed *job)
{
	const struct asker *who = op->arg;

	switch (who->route) {
	case ROUTE_execution_events:
		watch(s, who, op->id, job, false);
		break;
	case ROUTE_cancel:
		pass_asker(s, remote_put_cancel(s, op->id, QUEUE_ASK_NS, on_cancelled), op, false);
		break;
	case ROUTE_artifact:
		answer_asker_error(s, who, 404, op->id, "no file is there before the end of execution");
		break;
	default:
		pass_asker(s, queue_get(s, BUCKET_CLAIMS, op->id, on_claim), op, false);
	}
}

static void on_result(struct service *s, const struct queue_op *op, const struct queue_answer *a);

static void on_job(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	const struct asker *who = op->arg;
	struct queue_sealed job;

	if (a->how == QUEUE_FAILED)
		answer_asker_error(s, who, 503, op->id, "no broker says what became of execution");
	else if (a->how == QUEUE_NONE && !who->is_second) /* it may have ended between the queries */
		pass_asker(s, queue_get(s, BUCKET_RESULTS, op->id, on_result), op, true);
	else if (a->how == QUEUE_NONE || !queue_unseal(s, a->m, "job", PEER_FRONT, &job) || !may_see(who, &job.m))
		answer_none(s, who, op->id);
	else
		on_job_found(s, op, &job);
}

static void on_result_found(struct service *s, const struct queue_op *op, const struct queue_sealed *r)
{
	const struct asker *who = op->arg;
	const char *verdict = message_text(&r->m, FIELD_verdict);

	switch (who->route) {
	case ROUTE_execution_events:
		watch(s, who, op->id, r, true);
		break;
	case ROUTE_cancel:
		answer_asker(s, who, 200,
			     json_pack("{s:s, s:s}", "id", op->id, "state",
				       verdict && str_eq(verdict, QUEUE_LOST) ? "lost" : "finished"));
		break;
	case ROUTE_artifact:
		answer_artifact(s, who, op->id, r);
		break;
	default:
		answer_asker(s, who, 200, document(op->id, "finished", r));
	}
}

static void on_result(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	const struct asker *who = op->arg;
	struct queue_sealed r;

	if (a->how == QUEUE_NONE && !who->is_second)
		pass_asker(s, queue_get(s, BUCKET_JOBS, op->id, on_job), op, false);
	else if (a->how == QUEUE_FAILED)
		answer_asker_error(s, who, 503, op->id, "no broker says what became of execution");
	else if (a->how == QUEUE_NONE || !queue_unseal(s, a->m, "result", PEER_WORKER, &r) ||
		 !message_text(&r.m, FIELD_id) || !str_eq(message_text(&r.m, FIELD_id), op->id) || !may_see(who, &r.m))
		answer_none(s, who, op->id);
	else
		on_result_found(s, op, &r);
}

void front_look_up(struct service *s, const struct request *req, const char *id, const char *path)
{
	size_t size = sizeof(struct asker) + (path ? strlen(path) : 0) + 1;
	struct asker *who = calloc(1, size);
	struct queue_op *op = who ? queue_get(s, BUCKET_RESULTS, id, on_result) : NULL;

	if (!op) {
		free(who);
		answer_retry(s, req, 503, 1, "the service has too much to do: try again in a moment");
		return;
	}
	who->size = size;
	who->tag = req->tag;
	who->route = req->route;
	who->admin = req->token->admin;
	(void)str_copy(who->name, sizeof(who->name), req->token->name);
	(void)str_copy(who->request_id, sizeof(who->request_id), req->request_id);
	if (path)
		memcpy(who->path, path, strlen(path));
	op->arg = who;
}

static struct asker *asker_of(const struct queue_op *op)
{
	return op->fn == on_result || op->fn == on_job || op->fn == on_claim || op->fn == on_cancelled ? op->arg : NULL;
}

bool front_gone(struct service *s, uint32_t tag)
{
	const struct queue_op *op;

	TAILQ_FOREACH(op, &s->queue.ops, in_list)
	{
		struct asker *who = asker_of(op);

		if (who && who->tag == tag) {
			who->has_gone = true; /* the answer is discarded, and no watch is started */
			return true;
		}
	}
	return false;
}

void front_all_gone(struct service *s)
{
	const struct queue_op *op;

	TAILQ_FOREACH(op, &s->queue.ops, in_list)
	{
		struct asker *who = asker_of(op);

		if (who) {
			who->has_gone = true;
			who->tag = 0; /* the next front starts with new tags */
		}
	}
}
