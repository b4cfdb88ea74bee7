/* SPDX-License-Identifier: Apache-2.0 */
/* batch_look.c - queries about batches: list, state, results, cancellation */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define LIST_USUAL 100

/* ---- documents ------------------------------------------------------------------------------------------- */

static const char *state_of(const struct service *s, const struct batch_job *j)
{
	const struct execution *x;

	switch (j->state) {
	case JOB_HELD:
		return "queued";
	case JOB_ENTERED:
		x = executions_find(&s->executions, j->id);
		if (j->is_begun)
			return "running";
		return x && x->state == EXECUTION_RUNNING ? "running" : "queued";
	case JOB_ENDED:
		return "finished";
	case JOB_LOST:
		break;
	}
	return "lost";
}

static void count(json_t *counts, const char *name)
{
	(void)json_object_set_new(counts, name, json_integer(json_integer_value(json_object_get(counts, name)) + 1));
}

static json_t *moment(uint64_t ns)
{
	char text[WHEN_TEXT_MAX];

	return ns ? json_string(when_utc(text, sizeof(text), ns)) : json_null();
}

static json_t *verdict_of(const struct batch_job *j)
{
	return j->verdict[0] ? json_string(j->verdict) : json_null();
}

/* Counts jobs per state and per verdict. */
json_t *batch_summary(const struct service *s, const struct batch *b)
{
	json_t *states = json_pack("{s:i, s:i, s:i, s:i}", "queued", 0, "running", 0, "finished", 0, "lost", 0);
	json_t *verdicts = json_object();

	for (size_t i = 0; i < b->n; i++) {
		count(states, state_of(s, &b->job[i]));
		if (b->job[i].verdict[0])
			count(verdicts, b->job[i].verdict);
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:o, s:o}", "id", b->id, "state",
			 batch_is_over(b) ? "finished" : "running", "token", b->owner, "created", moment(b->created_ns),
			 "ended", batch_is_over(b) ? moment(b->ended_ns) : json_null(), "total", (json_int_t)b->n,
			 "states", states, "verdicts", verdicts);
}

static json_t *document(const struct service *s, const struct batch *b)
{
	json_t *doc = batch_summary(s, b), *jobs = json_array();

	for (size_t i = 0; i < b->n; i++) {
		const struct batch_job *j = &b->job[i];

		(void)json_array_append_new(jobs, json_pack("{s:s, s:s, s:s, s:o}", "job", j->name, "id", j->id,
							    "state", state_of(s, j), "verdict", verdict_of(j)));
	}
	(void)json_object_set_new(doc, "jobs", jobs);
	return doc;
}

/* One line: the result with the job's name as first member; if the result is gone, what is known. */
static void put_result(const struct service *s, const struct batch_job *j, struct buf *out)
{
	const struct execution *x = executions_find(&s->executions, j->id);
	const char *result = j->result ? j->result : x ? x->result : NULL;
	size_t len = j->result ? j->result_len : x ? x->result_len : 0;
	json_t *name = json_string(j->name), *rest = NULL;
	AUTO_FREE char *head = name ? json_dumps(name, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	AUTO_FREE char *text = NULL;

	json_decref(name);
	if (result && len > 0 && head) {
		buf_addf(out, "{\"job\":%s,", head);
		buf_add(out, result + 1, len - 1);
		return;
	}
	rest = json_pack("{s:s, s:s, s:s, s:o}", "job", j->name, "id", j->id, "state", state_of(s, j), "verdict",
			 verdict_of(j));
	text = rest ? json_dumps(rest, JSON_COMPACT) : NULL;
	json_decref(rest);
	buf_adds(out, text ? text : "{}");
}

static bool is_over(const struct batch_job *j)
{
	return j->state == JOB_ENDED || j->state == JOB_LOST;
}

/* ---- requests ----------------------------------------------------------------------------------------------- */

/* NULL: not found or not visible to the token; it has been answered, or the queue will answer it. */
static struct batch *find(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);
	struct batch *b = id ? batches_find(&s->batches, id) : NULL;

	if (b && access_owns(req->token, b->owner))
		return b;
	if (!b && batch_ask_elsewhere(s, req, id))
		return NULL;
	answer_error(s, req, 404, "there is no batch '%.20s'%s", id ? id : "",
		     req->token->admin ? "" : " of this token");
	return NULL;
}

json_t *batches_list(const struct service *s, const struct request *req)
{
	uint64_t left = min_u64(message_number(req->m, FIELD_limit, LIST_USUAL), BATCHES_MAX);
	json_t *list = json_array();
	const struct batch *b;

	TAILQ_FOREACH_REVERSE(b, &s->batches.all, batch_list, in_age)
	if (left > 0 && access_owns(req->token, b->owner)) {
		(void)json_array_append_new(list, batch_summary(s, b));
		left--;
	}
	return list;
}

void handle_batches(struct service *s, struct request *req)
{
	answer_json(s, req, 200, json_pack("{s:o}", "batches", batches_list(s, req)));
}

void batch_answer_state(struct service *s, const struct request *req, uint16_t status, const struct batch *b)
{
	answer_json(s, req, status, document(s, b));
}

void handle_batch_state(struct service *s, struct request *req)
{
	const struct batch *b = find(s, req);

	if (b)
		batch_answer_state(s, req, 200, b);
}

void handle_batch_cancel(struct service *s, struct request *req)
{
	struct batch *b = find(s, req);
	uint16_t status;

	if (!b)
		return;
	status = batch_is_over(b) ? 200 : 202;
	batch_cancel(s, b);
	batch_answer_state(s, req, status, b);
}

void batch_answer_results(struct service *s, const struct request *req, const struct batch *b)
{
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);

	for (size_t i = 0; i < b->n; i++)
		if (is_over(&b->job[i])) {
			put_result(s, &b->job[i], &text);
			buf_adds(&text, "\n");
		}
	if (text.full || text.no_memory) {
		answer_error(s, req, 500,
			     "the results have more bytes than can be sent, or than there is memory for: ask for "
			     "each execution by its id");
		return;
	}
	answer_send(s, req->tag,
		    &(struct answer){ .status = 200,
				      .content_type = "application/x-ndjson",
				      .who = req->token->name,
				      .body = buf_str(&text),
				      .len = text.len });
}

/* ---- streams -------------------------------------------------------------------------------------------------- */

void batch_send_result(struct service *s, uint32_t tag, const struct batch_job *j)
{
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);

	put_result(s, j, &text);
	if (!text.full && !text.no_memory)
		event_send(s, tag, EVENT_result, text.data, text.len);
}

void batch_send_done(struct service *s, uint32_t tag, const struct batch *b)
{
	json_t *doc = batch_summary(s, b);
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (text)
		event_send(s, tag, EVENT_done, text, strlen(text));
	answer_send(s, tag, &(struct answer){ .status = 200, .who = b->owner });
}

void batch_tell(struct service *s, struct batch *b, size_t job)
{
	for (size_t i = 0; i < b->n_watches; i++) {
		batch_send_result(s, b->watch[i], &b->job[job]);
		if (batch_is_over(b))
			batch_send_done(s, b->watch[i], b);
	}
	if (batch_is_over(b))
		b->n_watches = 0;
}

void handle_batch_results(struct service *s, struct request *req)
{
	struct batch *b = find(s, req);

	if (!b)
		return;
	if (!message_number(req->m, FIELD_stream, 0)) {
		batch_answer_results(s, req, b);
		return;
	}
	if (b->n_watches == BATCH_WATCHES_MAX) {
		answer_retry(s, req, 503, 5, "too many watch the batch %s already", b->id);
		return;
	}
	for (size_t i = 0; i < b->n; i++)
		if (is_over(&b->job[i]))
			batch_send_result(s, req->tag, &b->job[i]);
	if (batch_is_over(b))
		batch_send_done(s, req->tag, b);
	else
		b->watch[b->n_watches++] = req->tag;
}
