/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments.c - named package sets: creation, queries, removal
 *
 * Creating one is an execution: it is queued, stepped, cancelled and recorded like any other (accept.c), and its result
 * reports errors.  An environment has the state "creating" while such an execution exists; afterwards it exists or does
 * not.  To a token, environments outside its list do not exist.
 */
#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/answerers.h"
#include "server/runner/requests.h"

/* The unfinished execution that creates it; NULL: none. */
static const struct execution *maker_of(const struct service *s, const char *name)
{
	const struct execution *x;

	TAILQ_FOREACH(x, &s->executions.all, in_age)
	if (x->state != EXECUTION_FINISHED && str_eq(x->makes, name))
		return x;
	return NULL;
}

bool environment_is_taken(struct service *s, const struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const char *name = message_text(req->m, FIELD_environment);
	const struct execution *x;
	char *text = NULL;

	if (req->route != ROUTE_environment_make || !name || token_makes(req->token, name, &err) < 0)
		return false; /* the token's permission is checked later */
	x = maker_of(s, name);
	if (x) {
		answer_error(s, req, 409, "the environment '%.64s' is being made already, by the execution %s", name,
			     x->id);
		return true;
	}
	if (brig_environment_json(s->host->b, name, &text, &err) < 0)
		return false;
	brig_free(text);
	answer_error(s, req, 409, "there is an environment '%.64s' already: DELETE /v1/environments/%.64s first", name,
		     name);
	return true;
}

/* ---- queries ------------------------------------------------------------------------------------------------- */

static json_t *document_of_maker(const struct execution *x)
{
	return json_pack("{s:s, s:s, s:s}", "name", x->makes, "state", "creating", "execution", x->id);
}

/* Adds the member "state" to the library's object. */
static void add_state(json_t *row)
{
	const char *set = json_string_value(json_object_get(row, "set")), *state = "ready";

	if (json_object_get(row, "problem"))
		state = "unreadable";
	else if (set && str_eq(set, "missing"))
		state = "missing";
	(void)json_object_set_new(row, "state", json_string(state));
}

static void answer_environments(struct service *s, struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc, *row, *list = json_array();
	const struct execution *x;
	char *text = NULL;
	size_t i;

	if (brig_environments_json(s->host->b, &text, &err) < 0) {
		json_decref(list);
		answer_trouble(s, req, &err);
		return;
	}
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	json_array_foreach(json_object_get(doc, "environments"), i, row)
	{
		if (!token_sees_environment(req->token, json_string_value(json_object_get(row, "name"))))
			continue;
		add_state(row);
		(void)json_array_append(list, row);
	}
	TAILQ_FOREACH(x, &s->executions.all, in_age)
	if (x->makes[0] && x->state != EXECUTION_FINISHED && token_sees_environment(req->token, x->makes))
		(void)json_array_append_new(list, document_of_maker(x));
	json_decref(doc);
	answer_json(s, req, 200, json_pack("{s:o}", "environments", list));
}

void handle_environments(struct service *s, struct request *req)
{
	answerers_take(s, req, answer_environments);
}

static void answer_none(struct service *s, const struct request *req, const char *name)
{
	answer_error(s, req, 404, "there is no environment '%.64s'%s", name,
		     req->token->environments.n ? " among those of this token" : "");
}

/* The name in the path, if the token may see it; NULL: it has been answered. */
static const char *name_of(struct service *s, const struct request *req)
{
	const char *name = message_text(req->m, FIELD_id);

	if (name && token_sees_environment(req->token, name))
		return name;
	answer_none(s, req, name ? name : "");
	return NULL;
}

void handle_environment(struct service *s, struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const char *name = name_of(s, req);
	const struct execution *x;
	char *text = NULL;
	json_t *doc;

	if (!name)
		return;
	if ((x = maker_of(s, name))) {
		answer_json(s, req, 200, document_of_maker(x));
		return;
	}
	if (brig_environment_json(s->host->b, name, &text, &err) < 0) {
		if (err.code == BRIG_E_REFUSED || err.code == BRIG_E_USAGE)
			answer_none(s, req, name);
		else
			answer_trouble(s, req, &err);
		return;
	}
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	if (doc)
		add_state(doc);
	answer_json(s, req, 200, doc);
}

/* ---- removal -------------------------------------------------------------------------------------------------- */

void handle_environment_delete(struct service *s, struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const char *name = name_of(s, req);
	const struct execution *x;
	char *text = NULL;

	if (!name)
		return;
	if (token_makes(req->token, name, &err) < 0) {
		answer_trouble(s, req, &err);
	} else if ((x = maker_of(s, name))) {
		answer_error(s, req, 409, "the environment '%.64s' is being made: DELETE /v1/executions/%s first", name,
			     x->id);
	} else if (brig_environment_json(s->host->b, name, &text, &err) < 0) {
		answer_none(s, req, name);
	} else {
		brig_free(text);
		text = NULL;
		if (brig_environment_remove(s->host->b, name, &text, &err) < 0)
			answer_trouble(s, req, &err);
		else
			answer_document(s, req, text);
	}
}
