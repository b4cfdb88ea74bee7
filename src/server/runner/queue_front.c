/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_front.c - executions submitted here that run on another node
 *
 *	admitted -> sealed and published -> promised, if asynchronous -> polled -> finished
 *	                 |                                                 |
 *	                 +- no broker: 503, nothing was promised           +- neither in the stream nor among the results: lost
 *
 * The node that runs it notifies this front of events, and of the result, which it includes if it is short.  Since such
 * messages may be lost, the bucket of results is polled as well.  A front has no state that another one could not find:
 * any front answers for the id from the buckets (queue_elsewhere.c).
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

#define LOOK_NS       (3 * NS_PER_SEC)
#define LOOKS_TO_MISS 3 /* polls without a result until the stream is queried for the job */

/* ---- publication ----------------------------------------------------------------------------- */

/* Fields of the request that a node needs; options are sent as token and policy have left them. */
static const enum field travels[] = {
	FIELD_kind,     FIELD_file_name, FIELD_environment, FIELD_test_path,  FIELD_inline_artifacts,
	FIELD_code,     FIELD_input,     FIELD_arg,         FIELD_variable,   FIELD_package,
	FIELD_artifact, FIELD_receipt,   FIELD_diff,        FIELD_no_capture, FIELD_request_id,
};

bool remote_is_possible(const struct service *s, const struct job *job)
{
	return s->queue.is_on && !s->queue.is_worker && !job->env.name && job->input < 0 && job->out < 0 &&
	       job->project < 0 && job->left < 0 && !message_number(&job->m, FIELD_keep, 0);
}

bool queue_put_file(int file, struct buf *inner)
{
	struct stat st;
	AUTO_FREE char *bytes = NULL;

	if (file < 0)
		return true;
	if (fstat(file, &st) < 0 || (uint64_t)st.st_size > MESSAGE_MAX)
		return false;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes || pread(file, bytes, (size_t)st.st_size, 0) != st.st_size)
		return false;
	message_put_bytes(inner, FIELD_archive, bytes, (size_t)st.st_size);
	return true;
}

bool queue_put_options(const struct job *job, struct buf *inner)
{
	for (size_t i = 0; i < job->n_options; i++) {
		AUTO_BUF text = BUF_INIT(message_max_bytes(FIELD_option));

		if (!buf_addf(&text, "%s=%s", job->options[i].key, job->options[i].value))
			return false;
		message_put_text(inner, FIELD_option, buf_str(&text));
	}
	return true;
}

static bool is_watched(const struct execution *x)
{
	for (size_t i = 0; i < x->n_listeners; i++)
		if (x->listener[i].kind == WATCHES)
			return true;
	return x->is_async;
}

static bool put_job(const struct service *s, const struct execution *x, struct buf *inner)
{
	const struct job *job = x->job;
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;

	queue_begin(s, inner, "job");
	message_put_text(inner, FIELD_id, x->id);
	message_put_number(inner, FIELD_issued, now_s);
	message_put_number(inner, FIELD_expires, now_s + QUEUE_EXPIRES_S);
	message_put_text(inner, FIELD_reply_to, s->queue.front_id);
	message_put_text(inner, FIELD_who, x->owner);
	message_put_text(inner, FIELD_trust, x->trust);
	message_put_text(inner, FIELD_language, x->language[0] ? x->language : NULL);
	if (message_number(&job->m, FIELD_retry_never, 0))
		message_put_number(inner, FIELD_retry_never, 1);
	if (x->has_key)
		message_put_bytes(inner, FIELD_asked_hash, x->asked, sizeof(x->asked));
	if (is_watched(x))
		message_put_number(inner, FIELD_stream, 1);
	for (size_t i = 0; i < ARRAY_LEN(travels); i++) {
		const char *bytes;
		size_t at = 0, len;

		while ((bytes = message_next(&job->m, travels[i], &at, &len)))
			message_put_bytes(inner, travels[i], bytes, len);
	}
	return queue_put_options(job, inner) && queue_put_file(job->files, inner) && !inner->full && !inner->no_memory;
}

/* ---- the end ---------------------------------------------------------------------------------------------------------- */

/* Answers all clients that nothing was promised, and drops the execution. */
static void turn_away(struct service *s, struct execution *x, const char *why)
{
	if (x->is_async && x->promise_tag) {
		const struct request req = { .tag = x->promise_tag, .request_id = execution_request_id(x) };

		answer_retry(s, &req, 503, 5, "the execution could not be given to the queue: %s", why);
	}
	for (size_t i = 0; i < x->n_listeners; i++) {
		const struct request req = { .tag = x->listener[i].tag, .request_id = execution_request_id(x) };

		answer_retry(s, &req, 503, 5, "the execution could not be given to the queue: %s", why);
	}
	x->n_listeners = 0;
	idempotency_forget(&s->idempotency, x->id);
	execution_drop(s, x);
}

static void end_as_lost(struct service *s, struct execution *x, const char *why)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	char *text = NULL;

	(void)err_set(&err, BRIG_E_SYSTEM, 0, "the execution was lost: %s", why);
	if (brig_result_from_error(&err, &r, NULL) == 0)
		(void)brig_result_json(r, &text, NULL);
	brig_result_free(r);
	s->queue.counts.lost++;
	x->is_lost = true;
	(void)str_copy(x->verdict, sizeof(x->verdict), "failed");
	execution_conclude(s, x, text, NULL, 0);
}

static bool has_hash(const struct message *m, enum field f, const uint8_t hash[SHA256_LEN])
{
	size_t len;
	const char *bytes = message_bytes(m, f, &len);

	return bytes && len == SHA256_LEN && crypto_same(bytes, hash, SHA256_LEN);
}

/* Whether a sealed result is for this job, or for another front's job with the same Idempotency-Key and request. */
static bool is_result_of(struct service *s, const struct execution *x, const struct queue_sealed *r)
{
	const char *id = message_text(&r->m, FIELD_id);

	if (id && str_eq(id, x->id) &&
	    (has_hash(&r->m, FIELD_job_hash, x->remote->hash) ||
	     (x->has_key && has_hash(&r->m, FIELD_asked_hash, x->asked))))
		return true;
	queue_complain(s, "refused a result of %s in the place of %s: it is that of another job", r->by->name, x->id);
	return false;
}

static void take_result(struct service *s, struct execution *x, const struct queue_sealed *r)
{
	const struct message *m = &r->m;
	const char *verdict = message_text(m, FIELD_verdict), *why = message_text(m, FIELD_reason);
	const char *language = message_text(m, FIELD_language), *unlisted = message_text(m, FIELD_unlisted);
	size_t len;
	const char *body = message_bytes(m, FIELD_body, &len);

	if (!verdict || str_eq(verdict, QUEUE_LOST)) {
		end_as_lost(s, x, why ? why : "no reason was given");
		return;
	}
	(void)str_copy(x->remote->node, sizeof(x->remote->node), r->by->name);
	(void)str_copy(x->verdict, sizeof(x->verdict), verdict);
	if (language)
		(void)str_copy(x->language, sizeof(x->language), language);
	execution_conclude(s, x, body ? strndup(body, len) : NULL, unlisted ? strdup(unlisted) : NULL,
			   message_number(m, FIELD_cpu_ns, 0));
}

/* ---- polling --------------------------------------------------------------------------------- */

static struct execution *find_remote(const struct service *s, const char *id)
{
	struct execution *x = executions_find(&s->executions, id);

	return x && x->remote && x->state != EXECUTION_FINISHED ? x : NULL;
}

static void look(struct service *s, struct execution *x);

/* Found in the stream; or not, in which case the result is queried once more before it counts as lost. */
static void on_stream_looked(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct execution *x = find_remote(s, op->id);

	if (!x)
		return;
	x->remote->is_looking = false;
	x->remote->is_missed = a->how == QUEUE_NONE;
	x->remote->look_ns = x->remote->is_missed ? 0 : clock_now_ns() + LOOK_NS;
}

static void on_looked(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct execution *x = find_remote(s, op->id);
	struct queue_sealed r;

	if (!x)
		return;
	x->remote->is_looking = false;
	x->remote->look_ns = clock_now_ns() + LOOK_NS;
	if (a->how == QUEUE_OK && queue_unseal(s, a->m, "result", PEER_WORKER, &r) && is_result_of(s, x, &r)) {
		if (!adopted_waits_for_log(s, x))
			take_result(s, x, &r);
		return;
	}
	if (a->how == QUEUE_NONE && x->remote->is_missed) {
		end_as_lost(s, x, "the stream no longer has it, and no result was recorded");
		return;
	}
	x->remote->is_missed = false;
	if (clock_wall_ns() / NS_PER_SEC > x->remote->expires_s + 600)
		end_as_lost(s, x, "no result that a known node has sealed came in time");
	else if (a->how == QUEUE_NONE && ++x->remote->looks % LOOKS_TO_MISS == 0)
		x->remote->is_looking = queue_get(s, BUCKET_JOBS, x->id, on_stream_looked) != NULL;
}

static void look(struct service *s, struct execution *x)
{
	if (!x->remote->is_looking && x->remote->is_published)
		x->remote->is_looking = queue_get(s, BUCKET_RESULTS, x->id, on_looked) != NULL;
}

/* Whether this front may forget the execution, because any other can answer for it. */
static bool remote_may_leave(const struct execution *x)
{
	return x->remote && x->remote->is_published && x->state == EXECUTION_RUNNING && x->is_async &&
	       !x->is_promised && x->n_listeners == 0 && !x->batch;
}

void remote_leave(struct service *s, struct execution *x)
{
	if (!x->is_async && !x->is_cancelled) {
		x->is_cancelled = true;
		remote_cancel(s, x);
	}
	execution_turn_away(s, x);
}

void front_tick(struct service *s)
{
	uint64_t now = clock_now_ns();

	front_beat(s);
	if (!s->queue.is_up && !s->draining)
		return;
	for (struct execution *x = TAILQ_FIRST(&s->executions.all), *next; x; x = next) {
		next = TAILQ_NEXT(x, in_age);
		if (s->draining && remote_may_leave(x)) {
			execution_drop(s, x);
			continue;
		}
		if (!x->remote || x->state == EXECUTION_FINISHED)
			continue;
		if (x->remote->look_ns <= now)
			look(s, x);
		if (x->remote->is_adopted)
			adopted_tick(s, x, now);
	}
}

/* ---- submission ------------------------------------------------------------------------------ */

static void on_published(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct execution *x = find_remote(s, op->id);

	if (!x)
		return;
	if (a->how != QUEUE_OK) {
		turn_away(s, x, a->trouble ? a->trouble : "its place is taken");
		return;
	}
	s->queue.counts.published++;
	x->remote->is_published = true;
	x->remote->look_ns = clock_now_ns() + LOOK_NS;
	if (x->remote->is_told)
		look(s, x);
	if (x->is_async)
		accept_promise(s, x);
	if (x->is_cancelled)
		remote_cancel(s, x);
}

void remote_start(struct service *s, struct execution *x)
{
	AUTO_BUF inner = BUF_INIT(MESSAGE_MAX);
	AUTO_BUF m = BUF_INIT(MESSAGE_MAX);
	char class[160];
	struct message read;
	const char *why;

	x->remote = calloc(1, sizeof(*x->remote));
	if (!x->remote || !put_job(s, x, &inner) || !message_read(inner.data, inner.len, &read, &why) ||
	    !seal_hash(&read, x->remote->hash)) {
		turn_away(s, x, "it has more bytes than can be sent");
		return;
	}
	x->remote->expires_s = message_number(&read, FIELD_expires, 0);
	x->remote->look_ns = UINT64_MAX;
	queue_class_of(s, x, class, sizeof(class));
	message_put_text(&m, FIELD_key, x->id);
	message_put_text(&m, FIELD_class, class);
	if (!queue_seal(s, &inner, &m) ||
	    !queue_ask(s, LINK_PUBLISH, &m, s->queue.is_up ? QUEUE_PUBLISH_NS : QUEUE_ABSENT_NS, on_published, x->id))
		turn_away(s, x, "too much is on its way already");
}

/* ---- cancelling ------------------------------------------------------------------------------------------------------------ */

static void put_cancel(const struct service *s, const char *id, struct buf *inner, const char *as)
{
	queue_begin(s, inner, as);
	message_put_text(inner, FIELD_id, id);
	message_put_number(inner, FIELD_attempt, 0);
	message_put_number(inner, FIELD_issued, clock_wall_ns() / NS_PER_SEC);
}

/* There is a claim already: notifies the node that made it. */
void remote_on_cancel_put(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	AUTO_BUF inner = BUF_INIT(KiB);
	AUTO_BUF m = BUF_INIT(4 * KiB);
	char subject[64];

	if (a->how != QUEUE_TAKEN)
		return;
	put_cancel(s, op->id, &inner, "cancel");
	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_STOP, op->id);
	message_put_text(&m, FIELD_subject, subject);
	if (queue_seal(s, &inner, &m))
		queue_tell(s, LINK_TELL, &m);
}

struct queue_op *remote_put_cancel(struct service *s, const char *id, uint64_t patience_ns, queue_fn fn)
{
	AUTO_BUF inner = BUF_INIT(KiB);

	put_cancel(s, id, &inner, "claim");
	return queue_put(s, BUCKET_CLAIMS, id, 0, &inner, patience_ns, fn);
}

void remote_cancel(struct service *s, struct execution *x)
{
	if (x->remote->is_published) /* otherwise it is cancelled once it has been published */
		(void)remote_put_cancel(s, x->id, QUEUE_CLAIM_NS, remote_on_cancel_put);
}

/* ---- messages -------------------------------------------------------------------------------- */

void front_begin(struct service *s)
{
	AUTO_BUF own = BUF_INIT(KiB);
	AUTO_BUF nodes = BUF_INIT(KiB);
	char subject[64];

	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_FRONT, s->queue.front_id);
	message_put_text(&own, FIELD_subject, subject);
	queue_tell(s, LINK_LISTEN, &own);
	message_put_text(&nodes, FIELD_subject, QUEUE_SUBJECT_NODES "*");
	queue_tell(s, LINK_LISTEN, &nodes);
	exchange_begin(s);
}

/* A worker sends its result along with putting it into the bucket, which saves a query. */
static void on_result_told(struct service *s, const struct message *m)
{
	struct queue_sealed r;
	struct execution *x;

	if (!queue_unseal(s, m, "result", PEER_WORKER, &r) || !message_text(&r.m, FIELD_id))
		return;
	x = find_remote(s, message_text(&r.m, FIELD_id));
	if (x)
		x->remote->is_told = true; /* perhaps before the publication was acknowledged */
	if (x && x->remote->is_published && is_result_of(s, x, &r))
		take_result(s, x, &r);
}

/* False: the event is of an attempt that another node has superseded. */
static bool follow_attempt(struct execution *x, uint64_t attempt)
{
	struct remote *r = x->remote;

	if (attempt > r->attempt) {
		if (r->attempt > 0)
			events_put(x, EVENT_notice,
				   json_pack("{s:s, s:s}", "event", "notice", "text",
					     "the node that ran it has gone: it is begun again elsewhere"));
		r->attempt = attempt;
		r->serial = 0;
	}
	return attempt == r->attempt;
}

static void on_event(struct service *s, struct execution *x, const struct queue_sealed *said)
{
	struct remote *r = x->remote;
	uint64_t kind = message_number(&said->m, FIELD_event, EVENT_KINDS);
	uint64_t serial = message_number(&said->m, FIELD_serial, 0);
	size_t len;
	const char *text = message_bytes(&said->m, FIELD_text, &len);

	if (kind >= EVENT_KINDS || message_number(&said->m, FIELD_sequence, 0) != r->nonce ||
	    !follow_attempt(x, message_number(&said->m, FIELD_attempt, r->attempt)))
		return;
	(void)str_copy(r->node, sizeof(r->node), said->by->name);
	r->is_heard = true;
	if (kind == EVENT_done) {
		r->is_told = true;
		look(s, x);
	} else if (text && serial > r->serial && kind != EVENT_verdict && kind != EVENT_result) {
		r->serial = serial; /* duplicates are ignored */
		events_pass_on(x, (enum event_kind)kind, text, len);
	}
}

void front_on_told(struct service *s, const struct message *m)
{
	struct queue_sealed said;
	struct execution *x;
	const char *subject = message_text(m, FIELD_subject);

	if (subject && strncmp(subject, QUEUE_SUBJECT_NODES, strlen(QUEUE_SUBJECT_NODES)) == 0) {
		nodes_on_told(s, m);
		return;
	}
	if (subject && exchange_on_told(s, subject, m))
		return;
	if (queue_is_sealed_as(m, "result")) {
		on_result_told(s, m);
		return;
	}
	if (queue_is_sealed_as(m, "answer")) {
		forward_on_told(s, m);
		return;
	}
	if (!queue_unseal(s, m, "event", PEER_WORKER, &said) || !message_text(&said.m, FIELD_id))
		return;
	x = find_remote(s, message_text(&said.m, FIELD_id));
	if (x)
		on_event(s, x, &said);
}
