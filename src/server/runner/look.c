/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.c - queries about executions
 *
 * Executions in memory are answered from there, promises of earlier processes from the ledger, older ones from the
 * history.  In all three, an execution of another token is treated as one that does not exist.
 */
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define LIST_USUAL 100
#define LIST_MAX   1000

/* ---- lookup ----------------------------------------------------------------------------------------------- */

static void answer_none(struct service *s, const struct request *req, const char *id)
{
	answer_error(s, req, 404, "there is no execution '%.20s'%s", id ? id : "",
		     req->token->admin ? "" : " of this token");
}

/* Only complete ids: prefixes are not accepted. */
static bool is_id(const char *id)
{
	return id && strlen(id) == EXECUTION_ID_LEN && strspn(id, ID_ALPHABET) == EXECUTION_ID_LEN;
}

struct execution *look_up(struct service *s, const struct request *req, bool *ret_is_past)
{
	const char *id = message_text(req->m, FIELD_id);
	struct execution *x = id ? executions_find(&s->executions, id) : NULL;

	*ret_is_past = !x && is_id(id);
	if (x && access_owns(req->token, x->owner))
		return x;
	if (!*ret_is_past)
		answer_error(s, req, 404, "there is no execution '%.20s'", id ? id : "");
	return NULL;
}

bool look_up_history(struct service *s, const struct request *req, const char *id, recorded_fn then)
{
	struct brig_question q = BRIG_QUESTION_INIT;

	if (!is_id(id))
		return false;
	q.kind = BRIG_ASK_SHOW;
	q.id = id;
	recorded_ask(s, req, &q, id, then);
	return true;
}

int look_through_history(const struct request *req, int rc, char **text, const struct brig_error *err)
{
	const char *who;
	json_t *doc;
	bool is_own;

	if (rc < 0)
		return err->code == BRIG_E_USAGE || err->sys == ENOENT ? 0 : rc; /* ENOENT: the history is empty */
	doc = req->token->admin ? NULL : json_loads(*text, JSON_ALLOW_NUL, NULL);
	who = json_string_value(json_object_get(doc, "who"));
	is_own = req->token->admin || (who && access_owns(req->token, who));
	json_decref(doc);
	if (is_own)
		return 1;
	brig_free(*text);
	*text = NULL;
	return 0;
}

/* ---- documents ------------------------------------------------------------------------------------------------ */

static json_t *moment(uint64_t ns)
{
	char text[WHEN_TEXT_MAX];

	return ns ? json_string(when_utc(text, sizeof(text), ns)) : json_null();
}

static json_t *word(const char *text)
{
	return *text ? json_stringn(text, str_utf8_prefix(text, strlen(text))) : json_null();
}

/* Name of the queue's node where it runs or ran; "": unknown, or here. */
static const char *node_of(const struct execution *x)
{
	return x->remote ? x->remote->node : "";
}

static json_t *execution_document(const struct service *s, const struct execution *x)
{
	size_t position = admission_position(s->admission, &x->ticket);

	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "id", x->id, "state",
			 x->is_lost ? LEDGER_LOST : execution_state_name[x->state], "kind", x->kind, "language",
			 word(x->language), "trust", word(x->trust), "token", x->owner, "door",
			 word(x->door == DOOR_api ? "" : door_rows[x->door].name), "priority", (json_int_t)x->priority,
			 "created", moment(x->created_ns), "started", moment(x->started_ns), "ended",
			 moment(x->ended_ns), "verdict", word(x->verdict), "node", word(node_of(x)), "position",
			 position ? json_integer((json_int_t)position) : json_null());
}

/* Sends the document with one more member, given as JSON.  Takes ownership of the document. */
static void answer_with(struct service *s, const struct request *req, json_t *doc, const char *member, const char *json)
{
	AUTO_FREE char *head = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);

	json_decref(doc);
	if (head)
		buf_add(&text, head, strlen(head) - 1);
	buf_addf(&text, ",\"%s\":", member);
	buf_adds(&text, json);
	buf_adds(&text, "}");
	if (!head || text.full || text.no_memory) {
		answer_error(s, req, 500, "the answer has more bytes than can be sent, or than there is memory for");
		return;
	}
	answer_send(s, req->tag,
		    &(struct answer){ .status = 200, .who = req->token->name, .body = text.data, .len = text.len });
}

static bool is_state(const char *name)
{
	for (size_t i = 0; i <= EXECUTION_FINISHED; i++)
		if (str_eq(name, execution_state_name[i]))
			return true;
	return str_eq(name, LEDGER_LOST);
}

size_t executions_list_limit(const struct request *req)
{
	return min_u64(message_number(req->m, FIELD_limit, LIST_USUAL), LIST_MAX);
}

json_t *executions_list(const struct service *s, const struct request *req)
{
	uint64_t left = executions_list_limit(req);
	const char *state = message_text(req->m, FIELD_state), *node = message_text(req->m, FIELD_node_name);
	json_t *list = json_array();
	const struct execution *x;

	TAILQ_FOREACH(x, &s->executions.all, in_age)
	{
		if (left == 0)
			break;
		if (!access_owns(req->token, x->owner) || (state && !str_eq(state, execution_state_name[x->state])) ||
		    (node && !str_eq(node, node_of(x))))
			continue;
		(void)json_array_append_new(list, execution_document(s, x));
		left--;
	}
	for (size_t i = 0; i < s->ledger.n_past && left > 0 && !node && state && str_eq(state, LEDGER_LOST); i++) {
		const struct ledger_past *p = &s->ledger.past[i];

		if (!str_eq(p->verdict, LEDGER_LOST) || !access_owns(req->token, p->owner))
			continue;
		(void)json_array_append_new(list,
					    json_pack("{s:s, s:s, s:s, s:o, s:o}", "id", p->id, "state", LEDGER_LOST,
						      "token", p->owner, "created", moment(p->accepted_s * NS_PER_SEC),
						      "ended", moment(p->ended_s * NS_PER_SEC)));
		left--;
	}
	return list;
}

bool executions_list_is_good(struct service *s, const struct request *req)
{
	const char *state = message_text(req->m, FIELD_state);

	if (!state || is_state(state))
		return true;
	answer_error(s, req, 422, "state '%.32s' is none of queued, running, finished and lost", state);
	return false;
}

void handle_executions(struct service *s, struct request *req)
{
	if (executions_list_is_good(s, req))
		answer_json(s, req, 200, json_pack("{s:o}", "executions", executions_list(s, req)));
}

static json_t *past_document(const struct ledger_past *p)
{
	bool is_lost = str_eq(p->verdict, LEDGER_LOST);

	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id", p->id, "state", is_lost ? "lost" : "finished",
			 "token", p->owner, "created", moment(p->accepted_s * NS_PER_SEC), "ended",
			 moment(p->ended_s * NS_PER_SEC), "verdict", is_lost ? json_null() : json_string(p->verdict),
			 "reason",
			 is_lost ? json_string("the service ended before it did: ask for it again") : json_null());
}

/* The history's values in the members common to all executions; the complete record is added as another member. */
static json_t *record_document(const char *id, const char *record)
{
	json_t *from = json_loads(record, JSON_ALLOW_NUL, NULL), *doc;

	doc = json_pack("{s:s, s:s, s:O?, s:O?, s:O?, s:O?, s:n}", "id", id, "state", "finished", "language",
			json_object_get(from, "language"), "trust", json_object_get(from, "trust"), "created",
			json_object_get(from, "time"), "verdict", json_object_get(from, "verdict"), "result");
	if (json_is_string(json_object_get(from, "who")))
		(void)json_object_set(doc, "token", json_object_get(from, "who"));
	json_decref(from);
	return doc;
}

/* Answers from the history, or else from the ledger. */
static void answer_from_history(struct service *s, const struct request *req, const char *id, int rc, char *text,
				const struct brig_error *err)
{
	const struct ledger_past *p = ledger_find(&s->ledger, id);

	rc = look_through_history(req, rc, &text, err);
	if (rc < 0)
		recorded_trouble(s, req, err);
	else if (rc > 0)
		answer_with(s, req, record_document(id, text), "record", text);
	else if (p && access_owns(req->token, p->owner))
		answer_json(s, req, 200, past_document(p));
	else if (s->queue.is_on)
		front_look_up(s, req, id, NULL);
	else
		answer_none(s, req, id);
	brig_free(text);
}

/* For an execution that this process does not have in memory. */
static void answer_past(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);
	const struct ledger_past *p = ledger_find(&s->ledger, id);

	if ((p && !access_owns(req->token, p->owner)) || !look_up_history(s, req, id, answer_from_history))
		answer_none(s, req, id);
}

void handle_execution(struct service *s, struct request *req)
{
	bool is_past;
	const struct execution *x = look_up(s, req, &is_past);

	if (x)
		answer_with(s, req, execution_document(s, x), "result", x->result ? x->result : "null");
	else if (is_past)
		answer_past(s, req);
}

/* The same for its events, which another node may have. */
static void answer_elsewhere(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);

	if (s->queue.is_on)
		front_look_up(s, req, id, NULL);
	else
		answer_none(s, req, id);
}

void handle_execution_events(struct service *s, struct request *req)
{
	bool is_past;
	struct execution *x = look_up(s, req, &is_past);

	if (!x) {
		if (is_past)
			answer_elsewhere(s, req);
		return;
	}
	if (x->state != EXECUTION_FINISHED && !execution_listen(x, req->tag, WATCHES, false)) {
		answer_retry(s, req, 503, 1, "too many watch the execution %s already", x->id);
		return;
	}
	events_replay(x, req->tag);
}

void handle_cancel(struct service *s, struct request *req)
{
	bool is_past, was_over;
	struct execution *x = look_up(s, req, &is_past);

	if (!x) {
		if (is_past && s->queue.is_on && !ledger_find(&s->ledger, message_text(req->m, FIELD_id)))
			answer_elsewhere(s, req);
		else if (is_past)
			answer_past(s, req);
		return;
	}
	was_over = x->state == EXECUTION_FINISHED;
	execution_cancel(s, x);
	/* the cancellation may have freed it */
	x = executions_find(&s->executions, message_text(req->m, FIELD_id));
	answer_json(s, req, was_over ? 200 : 202,
		    json_pack("{s:s, s:s}", "id", message_text(req->m, FIELD_id), "state",
			      execution_state_name[x ? x->state : EXECUTION_FINISHED]));
}
