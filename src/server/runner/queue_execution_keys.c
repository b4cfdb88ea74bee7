/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_execution_keys.c - executions with an Idempotency-Key, submitted at any front (queue_keys.c)
 *
 *	ours    submitted under the key's id
 *	repeated  in memory here, or its result or job in the buckets? joined (queue_elsewhere.c)
 *	          nowhere: submitted here under the same id
 *
 * "Nowhere" means that the front that put the key died before it published the job, or still holds it back for a quota.
 * In the second case both publish it eventually, which is harmless: of two jobs with one id a worker starts one
 * (queue_worker.c), and both accept its result, since it has the hash of the request.
 */
#include <string.h>

#include "server/runner/answer.h"
#include "server/runner/queue_keys.h"
#include "server/runner/requests.h"

struct keyed_execution {
	struct keyed k;
	bool is_second; /* neither result nor job was found before */
	enum route route;
	struct job *job;
	uint64_t memory;
	uint8_t name[SHA256_LEN];
};

static struct keyed_execution *of(struct keyed *k)
{
	return (struct keyed_execution *)k;
}

/* The message is the job's copy. */
static struct request request(const struct keyed *k)
{
	const struct keyed_execution *x = (const struct keyed_execution *)k;

	return (struct request){ .tag = k->tag,
				 .route = x->route,
				 .m = &x->job->m,
				 .request_id = k->request_id,
				 .token = &k->token,
				 .beside = JOB_DESCRIPTORS_NONE };
}

static void release(struct keyed *k)
{
	job_free(of(k)->job);
}

static void enter(struct service *s, struct keyed *k)
{
	struct request req = request(k);

	if (keyed_has_gone(s, k)) {
		keyed_free(s, k);
	} else if (s->draining) {
		answer_retry(s, &req, 503, 5, "the service is being stopped and takes nothing new");
		keyed_free(s, k);
	} else {
		accept_enter(s, &req, MOVE_PTR(of(k)->job), k->id, of(k)->memory, of(k)->name, k->body);
		keyed_free(s, k);
	}
}

static void join_elsewhere(struct service *s, struct keyed *k, const struct queue_sealed *from, bool is_over)
{
	const struct request req = request(k);

	if (!keyed_has_gone(s, k))
		front_join(s, &req, k->id, from, is_over);
	keyed_free(s, k);
}

static void on_result(struct service *s, const struct queue_op *op, const struct queue_answer *a);

static void on_job(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct keyed *k = keyed_find(s, op->number);
	struct queue_sealed job;

	if (!k)
		return;
	if (a->how == QUEUE_OK && queue_unseal(s, a->m, "job", PEER_FRONT, &job) && keyed_is_own(k, &job.m)) {
		join_elsewhere(s, k, &job, false);
	} else if (a->how == QUEUE_NONE && !of(k)->is_second) {
		of(k)->is_second = true; /* it may have ended between the queries */
		keyed_go_on(s, k, queue_get(s, BUCKET_RESULTS, k->id, on_result));
	} else if (a->how == QUEUE_NONE) {
		enter(s, k);
	} else {
		keyed_refuse(s, k, 503, "no broker says what became of the execution of this Idempotency-Key");
	}
}

static void on_result(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct keyed *k = keyed_find(s, op->number);
	struct queue_sealed r;

	if (!k)
		return;
	if (a->how == QUEUE_OK && queue_unseal(s, a->m, "result", PEER_WORKER, &r) && keyed_is_own(k, &r.m))
		join_elsewhere(s, k, &r, true);
	else if (a->how == QUEUE_NONE)
		keyed_go_on(s, k, queue_get(s, BUCKET_JOBS, k->id, on_job));
	else
		keyed_refuse(s, k, 503, "no broker says what became of the execution of this Idempotency-Key");
}

/* Joins it in memory, or queries the buckets. */
static void follow(struct service *s, struct keyed *k, const struct queue_sealed *entry UNUSED)
{
	struct execution *x = executions_find(&s->executions, k->id);
	const struct request req = request(k);

	if (!x) {
		keyed_go_on(s, k, queue_get(s, BUCKET_RESULTS, k->id, on_result));
		return;
	}
	if (!keyed_has_gone(s, k))
		accept_join(s, &req, x);
	keyed_free(s, k);
}

static const struct keyed_kind executions_kind = { .other = "whose execution is",
						   .most = 256,
						   .enter = enter,
						   .follow = follow,
						   .request = request,
						   .release = release };

void execution_keys_take(struct service *s, const struct request *req, struct job *job, uint64_t memory,
			 const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN])
{
	struct keyed *k = keyed_new(s, &executions_kind, sizeof(struct keyed_execution), req);

	if (!k) {
		job_free(job);
		answer_retry(s, req, 503, 1, "the service has too much to do: try again in a moment");
		return;
	}
	of(k)->route = req->route;
	of(k)->job = job;
	of(k)->memory = memory;
	memcpy(of(k)->name, name, SHA256_LEN);
	keyed_put(s, k, name, body);
}
