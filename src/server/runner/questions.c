/* SPDX-License-Identifier: Apache-2.0 */
/*
 * questions.c - queries answered from documents of the library, and numbers of the service
 *
 * Documents of the library are passed on verbatim.  Those available within milliseconds are read in the loop.  What is
 * recorded is read by the recorder, without waiting for it (recorded.h).  The others are answered by a child process
 * (answerers.h): inspections, whose text clients choose; queries that contact a container engine; large directories.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/exporter.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/versions.h"

#define HISTORY_USUAL 100
#define HISTORY_MAX   1000
#define INSPECT_MAX   MiB /* this takes seconds already */

/* Answers with a document, or with the error. */
static void answer_either(struct service *s, const struct request *req, int rc, char *text,
			  const struct brig_error *err)
{
	if (rc < 0)
		answer_trouble(s, req, err);
	else
		answer_document(s, req, text);
}

/* Queries that need only the handle. */
#define QUESTION(name, function)                                          \
	static void answer_##name(struct service *s, struct request *req) \
	{                                                                 \
		struct brig_error err = BRIG_ERROR_INIT;                  \
		char *text = NULL;                                        \
		int rc = function(s->host->b, &text, &err);               \
                                                                          \
		answer_either(s, req, rc, text, &err);                    \
	}
QUESTION(rules, brig_rules_json)
QUESTION(cells, brig_ps_json)
QUESTION(capabilities, brig_doctor_json)
#undef QUESTION

void handle_languages(struct service *s, struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc = brig_languages_json(s->host->b, &text, &err);

	if (rc == 0 && s->versions) {
		char *with = versions_add(text, s->versions);

		brig_free(text);
		text = with;
		if (!text)
			rc = err_nomem(&err);
	}
	answer_either(s, req, rc, text, &err);
}

void handle_rules(struct service *s, struct request *req)
{
	answer_rules(s, req);
}

void handle_cells(struct service *s, struct request *req)
{
	answerers_take(s, req, answer_cells);
}

void handle_policy(struct service *s, struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc = brig_policy_json(s->host->b, message_text(req->m, FIELD_trust), &text, &err);

	answer_either(s, req, rc, text, &err);
}

/* Cached, since the host's capabilities change rarely and take long to determine. */
void handle_capabilities(struct service *s, struct request *req)
{
	if (!s->capabilities || clock_now_ns() - s->capabilities_ns > CAPABILITIES_NS) {
		answerers_take(s, req, answer_capabilities);
		return;
	}
	answer_send(s, req->tag,
		    &(struct answer){ .status = 200,
				      .who = req->token->name,
				      .body = s->capabilities,
				      .len = strlen(s->capabilities) });
}

void questions_keep_capabilities(struct service *s, const struct record *r, uint64_t asked_ns)
{
	struct message m;
	const char *why, *body;
	size_t len;

	if (asked_ns < s->reloaded_ns || !message_read(r->data, r->len, &m, &why) ||
	    !(body = message_bytes(&m, FIELD_body, &len)))
		return;
	free(s->capabilities);
	s->capabilities = strndup(body, len);
	s->capabilities_ns = asked_ns;
}

static void answer_inspect(struct service *s, struct request *req)
{
	struct brig_check what = BRIG_CHECK_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc;

	what.kind = message_text(req->m, FIELD_check_kind);
	if (what.kind && str_eq(what.kind, "code"))
		what.kind = NULL;
	what.language = message_text(req->m, FIELD_language);
	what.file_name = message_text(req->m, FIELD_file_name);
	what.text = message_bytes(req->m, FIELD_text, &what.len);
	what.trust = message_text(req->m, FIELD_trust);
	what.inspect = message_text(req->m, FIELD_level);
	what.rules = message_text(req->m, FIELD_rules);
	what.strict = message_number(req->m, FIELD_strict, 0) != 0;
	rc = brig_check(s->host->b, &what, &text, &err);
	answer_either(s, req, rc, text, &err);
}

void handle_inspect(struct service *s, struct request *req)
{
	size_t len = 0;

	(void)message_bytes(req->m, FIELD_text, &len);
	if (len > INSPECT_MAX)
		answer_error(s, req, 422, "there are %zu bytes to inspect; at most %llu are read at one time", len,
			     (unsigned long long)INSPECT_MAX);
	else
		answerers_take(s, req, answer_inspect);
}

/* ---- history ------------------------------------------------------------------------------------------------ */

/* Passes on the recorder's document. */
static void answer_recorded(struct service *s, const struct request *req, const char *id UNUSED, int rc, char *text,
			    const struct brig_error *err)
{
	if (req->gathering)
		gathering_recorded(s, req, rc, text, err);
	else if (rc < 0)
		recorded_trouble(s, req, err);
	else
		answer_document(s, req, text);
}

size_t history_limit(const struct request *req)
{
	return max_u64(1, min_u64(message_number(req->m, FIELD_limit, HISTORY_USUAL), HISTORY_MAX));
}

void handle_history(struct service *s, struct request *req)
{
	struct brig_question q = BRIG_QUESTION_INIT;
	struct brig_history what = BRIG_HISTORY_INIT;

	what.verdict = message_text(req->m, FIELD_verdict);
	what.language = message_text(req->m, FIELD_language);
	what.trust = message_text(req->m, FIELD_trust);
	what.since = message_text(req->m, FIELD_since);
	what.until = message_text(req->m, FIELD_until);
	what.door = message_text(req->m, FIELD_through);
	what.limit = (uint32_t)history_limit(req);
	what.who = req->token->admin ? NULL : req->token->name;
	q.history = &what;
	recorded_ask(s, req, &q, NULL, answer_recorded);
}

void history_answer_none(struct service *s, const struct request *req, const char *id)
{
	answer_error(s, req, 404, "there is no execution '%.20s' in the history%s", id ? id : "",
		     req->token->admin ? "" : " of this token");
}

static void answer_entry(struct service *s, const struct request *req, const char *id, int rc, char *text,
			 const struct brig_error *err)
{
	rc = look_through_history(req, rc, &text, err);
	if (rc < 0)
		recorded_trouble(s, req, err);
	else if (rc > 0)
		answer_document(s, req, text);
	else if (!gathering_looks(s, req, id))
		history_answer_none(s, req, id);
}

void handle_history_entry(struct service *s, struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);

	if (!look_up_history(s, req, id, answer_entry))
		history_answer_none(s, req, id);
}

void handle_verify_receipt(struct service *s, struct request *req)
{
	struct brig_question q = BRIG_QUESTION_INIT;

	q.kind = BRIG_ASK_RECEIPT;
	q.text = message_bytes(req->m, FIELD_text, &q.len);
	q.public_key = message_text(req->m, FIELD_public_key);
	recorded_ask(s, req, &q, NULL, answer_recorded);
}

/* ---- the service's own numbers --------------------------------------------------------------- */

void handle_statistics(struct service *s, struct request *req)
{
	struct brig_question q = BRIG_QUESTION_INIT;

	q.kind = BRIG_ASK_METRICS;
	q.format = BRIG_METRICS_JSON;
	recorded_ask(s, req, &q, NULL, answer_recorded);
}

void handle_readyz(struct service *s, struct request *req)
{
	if (s->draining)
		answer_retry(s, req, 503, 1, "the service is about to end: ask its successor");
	else
		answer_json(s, req, 200, json_pack("{s:s}", "status", "ready"));
}

void handle_whoami(struct service *s, struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc = token_json(req->token, (int64_t)(clock_wall_ns() / NS_PER_SEC), &text, &err);
	json_t *doc;

	if (rc < 0) {
		answer_trouble(s, req, &err);
		return;
	}
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	(void)json_object_set_new(doc, "nodes", json_boolean(s->queue.is_on && req->token->admin));
	answer_json(s, req, 200, doc);
}

struct count_list {
	const struct token *token;
	json_t *list;
	struct buf *text; /* for metrics */
	const char *name; /* of the metric */
};

static void add_count(const struct admission_count *c, void *arg)
{
	struct count_list *into = arg;

	if (access_owns(into->token, c->token))
		(void)json_array_append_new(into->list,
					    json_pack("{s:s, s:I, s:I, s:I}", "name", c->token, "running",
						      (json_int_t)c->running, "waiting", (json_int_t)c->waiting,
						      "memory_bytes", (json_int_t)c->memory));
}

/* The library's rows without environments that the token may not see. */
static json_t *pool_list(const struct service *s, const struct token *token)
{
	json_t *doc, *row, *list = json_array();
	const char *environment;
	char *text = NULL;
	size_t i;

	if (brig_pools_json(s->host->b, &text, NULL) < 0)
		return list;
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	json_array_foreach(json_object_get(doc, "pools"), i, row)
	{
		environment = json_string_value(json_object_get(row, "environment"));
		if (!environment || token_sees_environment(token, environment))
			(void)json_array_append(list, row);
	}
	json_decref(doc);
	return list;
}

void handle_queue(struct service *s, struct request *req)
{
	struct count_list counts = { .token = req->token, .list = json_array() };

	admission_each(s->admission, add_count, &counts);
	answer_json(s, req, 200,
		    json_pack("{s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "running",
			      (json_int_t)admission_running(s->admission), "waiting",
			      (json_int_t)admission_waiting(s->admission), "jobs", (json_int_t)s->jobs, "finished",
			      (json_int_t)s->executions.n_finished, "draining", s->draining, "tokens", counts.list,
			      "pools", pool_list(s, req->token)));
}

static void add_number(struct buf *out, const char *name, uint64_t value)
{
	buf_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void add_session_ends(const struct service *s, const char *name, struct buf *out)
{
	static const char *const reasons[] = {
#define SESSION_END(word) #word,
#include "server/runner/metrics.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		buf_addf(out, "%s{reason=\"%s\"} %llu\n", name, reasons[i],
			 (unsigned long long)s->counts.session_ends[i]);
}

/* Token names need no escaping in labels. */
static void add_token(const struct admission_count *c, void *arg)
{
	struct count_list *into = arg;

	buf_addf(into->text, "%s{token=\"%s\",state=\"running\"} %zu\n%s{token=\"%s\",state=\"queued\"} %zu\n",
		 into->name, c->token, c->running, into->name, c->token, c->waiting);
}

static void add_tokens(const struct service *s, const char *name, struct buf *out)
{
	struct count_list into = { .text = out, .name = name };

	admission_each(s->admission, add_token, &into);
}

static void add_service(const struct service *s, bool of_all, struct buf *out)
{
	struct exporter_counts spans = { 0 };

	if (s->exporter)
		exporter_counts(s->exporter, &spans);
#define ONE(number)    add_number(out, name, number)
#define EACH(function) function(s, name, out)
#define SERVICE_METRIC(id, type, labels, condition, lines, help)                        \
	if (condition) {                                                                \
		const char *name = #id;                                                 \
		buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, #type); \
		lines;                                                                  \
	}
#include "server/runner/metrics.def"
#undef ONE
#undef EACH
}

static void answer_metrics(struct service *s, const struct request *req, const char *id UNUSED, int rc, char *text,
			   const struct brig_error *err)
{
	AUTO_BUF out = BUF_INIT(16 * MiB);

	if (rc < 0) {
		recorded_trouble(s, req, err);
		return;
	}
	buf_adds(&out, text);
	brig_free(text);
	add_service(s, req->token->admin, &out);
	answer_send(s, req->tag,
		    &(struct answer){ .status = out.no_memory ? 503 : 200,
				      .content_type = "text/plain; version=0.0.4; charset=utf-8",
				      .who = req->token->name,
				      .body = buf_str(&out),
				      .len = out.len });
}

void handle_metrics(struct service *s, struct request *req)
{
	struct brig_question q = BRIG_QUESTION_INIT;

	q.kind = BRIG_ASK_METRICS;
	q.format = BRIG_METRICS_PROMETHEUS;
	recorded_ask(s, req, &q, NULL, answer_metrics);
}
