/* SPDX-License-Identifier: Apache-2.0 */
/*
 * questions.c - documents of the library, and what the service knows of itself
 *
 * The library's are passed on as they are.  Those that are at hand within a few milliseconds are read between two steps of the
 * runs.  What is recorded the recorder reads, and the runner does not wait for it.  The others have a process of their own
 * (answerers.h): inspections, whose texts strangers choose; whatever asks an engine for containers; folders that may be large.
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
#include "server/runner/asks.h"
#include "server/runner/versions.h"

#define HISTORY_USUAL 100
#define HISTORY_MAX   1000
#define INSPECT_MAX   MiB /* takes seconds already */

/* Answers with a document, or with why there is none. */
static void answer_either(struct service *s, const struct ask *ask, int rc, char *text, const struct brig_error *err)
{
	if (rc < 0)
		answer_trouble(s, ask, err);
	else
		answer_document(s, ask, text);
}

/* Those that need nothing but the handle. */
#define QUESTION(name, function)                                      \
	static void answer_##name(struct service *s, struct ask *ask) \
	{                                                             \
		struct brig_error err = BRIG_ERROR_INIT;              \
		char *text = NULL;                                    \
		int rc = function(s->host->b, &text, &err);           \
                                                                      \
		answer_either(s, ask, rc, text, &err);                \
	}
QUESTION(rules, brig_rules_json)
QUESTION(cells, brig_ps_json)
QUESTION(capabilities, brig_doctor_json)
#undef QUESTION

void ask_languages(struct service *s, struct ask *ask)
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
	answer_either(s, ask, rc, text, &err);
}

void ask_rules(struct service *s, struct ask *ask)
{
	answer_rules(s, ask);
}

void ask_cells(struct service *s, struct ask *ask)
{
	answerers_take(s, ask, answer_cells);
}

void ask_policy(struct service *s, struct ask *ask)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc = brig_policy_json(s->host->b, message_text(ask->m, FIELD_trust), &text, &err);

	answer_either(s, ask, rc, text, &err);
}

/* What the host can do changes rarely, and takes long to find out. */
void ask_capabilities(struct service *s, struct ask *ask)
{
	if (!s->capabilities || clock_now_ns() - s->capabilities_ns > CAPABILITIES_NS) {
		answerers_take(s, ask, answer_capabilities);
		return;
	}
	answer_send(s, ask->tag,
		    &(struct answer){ .status = 200,
				      .who = ask->token->name,
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

static void answer_inspect(struct service *s, struct ask *ask)
{
	struct brig_check req = BRIG_CHECK_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc;

	req.kind = message_text(ask->m, FIELD_check_kind);
	if (req.kind && str_eq(req.kind, "code"))
		req.kind = NULL;
	req.language = message_text(ask->m, FIELD_language);
	req.file_name = message_text(ask->m, FIELD_file_name);
	req.text = message_bytes(ask->m, FIELD_text, &req.len);
	req.trust = message_text(ask->m, FIELD_trust);
	req.inspect = message_text(ask->m, FIELD_level);
	req.rules = message_text(ask->m, FIELD_rules);
	req.strict = message_number(ask->m, FIELD_strict, 0) != 0;
	rc = brig_check(s->host->b, &req, &text, &err);
	answer_either(s, ask, rc, text, &err);
}

void ask_inspect(struct service *s, struct ask *ask)
{
	size_t len = 0;

	(void)message_bytes(ask->m, FIELD_text, &len);
	if (len > INSPECT_MAX)
		answer_error(s, ask, 422, "there are %zu bytes to inspect; at most %llu are read at one time", len,
			     (unsigned long long)INSPECT_MAX);
	else
		answerers_take(s, ask, answer_inspect);
}

/* ---- history ------------------------------------------------------------------------------------------------ */

/* The recorder's document as it is. */
static void answer_recorded(struct service *s, const struct ask *ask, const char *id UNUSED, int rc, char *text,
			    const struct brig_error *err)
{
	if (rc < 0)
		recorded_trouble(s, ask, err);
	else
		answer_document(s, ask, text);
}

void ask_history(struct service *s, struct ask *ask)
{
	struct brig_question q = BRIG_QUESTION_INIT;
	struct brig_history req = BRIG_HISTORY_INIT;
	uint64_t limit = message_number(ask->m, FIELD_limit, HISTORY_USUAL);

	req.verdict = message_text(ask->m, FIELD_verdict);
	req.language = message_text(ask->m, FIELD_language);
	req.trust = message_text(ask->m, FIELD_trust);
	req.since = message_text(ask->m, FIELD_since);
	req.until = message_text(ask->m, FIELD_until);
	req.door = message_text(ask->m, FIELD_through);
	req.limit = (uint32_t)max_u64(1, min_u64(limit, HISTORY_MAX));
	req.who = ask->token->admin ? NULL : ask->token->name;
	q.history = &req;
	recorded_ask(s, ask, &q, NULL, answer_recorded);
}

static void answer_entry(struct service *s, const struct ask *ask, const char *id, int rc, char *text,
			 const struct brig_error *err)
{
	rc = look_through_history(ask, rc, &text, err);
	if (rc < 0)
		recorded_trouble(s, ask, err);
	else if (rc == 0)
		answer_error(s, ask, 404, "there is no execution '%.20s' in the history%s", id,
			     ask->token->admin ? "" : " of this token");
	else
		answer_document(s, ask, text);
}

void ask_history_entry(struct service *s, struct ask *ask)
{
	const char *id = message_text(ask->m, FIELD_id);

	if (!look_up_history(s, ask, id, answer_entry))
		answer_error(s, ask, 404, "there is no execution '%.20s' in the history%s", id ? id : "",
			     ask->token->admin ? "" : " of this token");
}

void ask_verify_receipt(struct service *s, struct ask *ask)
{
	struct brig_question q = BRIG_QUESTION_INIT;

	q.kind = BRIG_ASK_RECEIPT;
	q.text = message_bytes(ask->m, FIELD_text, &q.len);
	q.public_key = message_text(ask->m, FIELD_public_key);
	recorded_ask(s, ask, &q, NULL, answer_recorded);
}

/* ---- the service itself ------------------------------------------------------------------------------------------ */

void ask_statistics(struct service *s, struct ask *ask)
{
	struct brig_question q = BRIG_QUESTION_INIT;

	q.kind = BRIG_ASK_METRICS;
	q.format = BRIG_METRICS_JSON;
	recorded_ask(s, ask, &q, NULL, answer_recorded);
}

void ask_readyz(struct service *s, struct ask *ask)
{
	if (s->draining)
		answer_retry(s, ask, 503, 1, "the service is about to end: ask its successor");
	else
		answer_json(s, ask, 200, json_pack("{s:s}", "status", "ready"));
}

void ask_whoami(struct service *s, struct ask *ask)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc = token_json(ask->token, (int64_t)(clock_wall_ns() / NS_PER_SEC), &text, &err);
	json_t *doc;

	if (rc < 0) {
		answer_trouble(s, ask, &err);
		return;
	}
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	(void)json_object_set_new(doc, "nodes", json_boolean(s->queue.is_on && ask->token->admin));
	answer_json(s, ask, 200, doc);
}

struct count_list {
	const struct token *token;
	json_t *list;
	struct buf *text; /* of the metrics */
	const char *name; /* of one of them */
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

/* The library's rows, but for environments that the token does not know. */
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

void ask_queue(struct service *s, struct ask *ask)
{
	struct count_list counts = { .token = ask->token, .list = json_array() };

	admission_each(s->admission, add_count, &counts);
	answer_json(s, ask, 200,
		    json_pack("{s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "running",
			      (json_int_t)admission_running(s->admission), "waiting",
			      (json_int_t)admission_waiting(s->admission), "jobs", (json_int_t)s->jobs, "finished",
			      (json_int_t)s->executions.n_finished, "draining", s->draining, "tokens", counts.list,
			      "pools", pool_list(s, ask->token)));
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

/* Names have no character that a label could not. */
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

static void answer_metrics(struct service *s, const struct ask *ask, const char *id UNUSED, int rc, char *text,
			   const struct brig_error *err)
{
	AUTO_BUF out = BUF_INIT(16 * MiB);

	if (rc < 0) {
		recorded_trouble(s, ask, err);
		return;
	}
	buf_adds(&out, text);
	brig_free(text);
	add_service(s, ask->token->admin, &out);
	answer_send(s, ask->tag,
		    &(struct answer){ .status = out.no_memory ? 503 : 200,
				      .content_type = "text/plain; version=0.0.4; charset=utf-8",
				      .who = ask->token->name,
				      .body = buf_str(&out),
				      .len = out.len });
}

void ask_metrics(struct service *s, struct ask *ask)
{
	struct brig_question q = BRIG_QUESTION_INIT;

	q.kind = BRIG_ASK_METRICS;
	q.format = BRIG_METRICS_PROMETHEUS;
	recorded_ask(s, ask, &q, NULL, answer_metrics);
}
