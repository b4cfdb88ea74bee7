/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - the control plane: creates, resumes, pauses and ends sandboxes
 *
 * What E2B keeps about a sandbox and a session does not (template, metadata, the requested network) goes into the
 * session's note, a document that this file writes and look.c reads; the runner stores it verbatim. A template is an
 * environment of the policy.
 *
 * The network of a cell is the policy's. If the policy allows none, every restriction holds already, and what a client
 * asks to allow is not granted; its program finds out when it connects. If the policy allows one, a sandbox can be
 * created without it, but no other network request can be honored.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/e2b/control.h"

#define TIMEOUT_OLD   15 /* the default of version 1 of create */
#define TIMEOUT_MAX   (30 * 86400)
#define NO_COLD_PAUSE "a paused sandbox keeps its processes, and cannot boot anew: leave keepMemory out"

/* ---- shared ---------------------------------------------------------------------------------------------------- */

static void release_doc(void *doc)
{
	json_decref(doc);
}

json_t *e2b_take_body(struct client *c)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = c->req->body.len > 0 ? door_json(c, &err) : json_object();

	if (!json_is_object(doc)) {
		json_decref(doc);
		e2b_reply_error(c, 400, doc ? "the body is no object" : err.msg);
		return NULL;
	}
	c->req->call->state = doc;
	c->req->call->release = release_doc;
	return doc;
}

bool e2b_take_seconds(struct client *c, const json_t *doc, const char *name, uint64_t usual, uint64_t *ret)
{
	const json_t *value = json_object_get(doc, name);

	*ret = usual;
	if (!value || json_is_null(value))
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > TIMEOUT_MAX) {
		e2b_reply_error(c, 400, "a timeout is a number of seconds, and at most 30 days");
		return false;
	}
	*ret = (uint64_t)json_integer_value(value);
	return true;
}

void e2b_fail(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = door_answer_json(m), *words;
	AUTO_FREE char *text = NULL;
	char none[120];

	if (e2b_is_gone(status, m)) {
		(void)snprintf(none, sizeof(none), "Sandbox \"%s\" not found", c->req->call->id);
		e2b_reply_error(c, 404, none);
	} else {
		words = json_pack("{s:i, s:s}", "code", (int)status, "message", door_answer_message(doc));
		text = words ? json_dumps(words, JSON_COMPACT) : NULL;
		json_decref(words);
		reply_send(c, &(struct reply){ .status = status,
					       .body = text ? text : "",
					       .len = text ? strlen(text) : 0,
					       .retry_after = message_number(m, FIELD_retry_after, 0) });
	}
	json_decref(doc);
}

static struct buf *fields_of(struct client *c)
{
	struct buf *fields = door_fields(c);

	message_put_text(fields, FIELD_id, c->req->call->id);
	return fields;
}

static void reply_nothing(struct client *c)
{
	door_reply_bytes(c, 204, NULL, "", 0);
}

static void on_done(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200 || status == 202)
		reply_nothing(c);
	else
		e2b_fail(c, status, m);
}

static const char *state_of(const json_t *session)
{
	const char *state = json_string_value(json_object_get(session, "state"));

	return state ? state : "";
}

/* ---- create ---------------------------------------------------------------------------------------------------- */

static bool are_strings(const json_t *object)
{
	const char *name;
	json_t *value;

	if (object && !json_is_null(object) && !json_is_object(object))
		return false;
	json_object_foreach((json_t *)(uintptr_t)object, name,
			    value) if (!json_is_string(value) ||
				       strlen(json_string_value(value)) != json_string_length(value)) return false;
	return true;
}

static bool is_given(const json_t *value)
{
	return value && !json_is_null(value) && json_object_size(value) + json_array_size(value) > 0;
}

#define TEMPLATE_MAX 128

/* The name of a template without what names nothing else here: the owner "e2b/", and the tags of a current version. */
static bool plain_template(const char *name, char dst[TEMPLATE_MAX + 1])
{
	static const char owner[] = "e2b/";
	static const char *const tags[] = { ":latest", ":default" };
	size_t len;

	if (strncmp(name, owner, strlen(owner)) == 0)
		name += strlen(owner);
	len = strlen(name);
	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		if (len > strlen(tags[i]) && str_eq(name + len - strlen(tags[i]), tags[i])) {
			len -= strlen(tags[i]);
			break;
		}
	return snprintf(dst, TEMPLATE_MAX + 1, "%.*s", (int)min_u64(len, TEMPLATE_MAX + 1), name) <= TEMPLATE_MAX;
}

/* A gateway for MCP servers is a template of its own, which the client names if its user gives mcp. */
static bool wants_gateway(const json_t *doc)
{
	char name[TEMPLATE_MAX + 1];

	return is_given(json_object_get(doc, "mcp")) ||
	       (plain_template(json_string_value(json_object_get(doc, "templateID")), name) &&
		str_eq(name, "mcp-gateway"));
}

struct wrong {
	unsigned status;
	const char *why; /* NULL: nothing is wrong */
};

/* Network requests that cannot be honored whatever the policy says. */
static struct wrong wrong_with_network(const json_t *network)
{
	const json_t *lists[] = { json_object_get(network, "allowOut"), json_object_get(network, "denyOut") };

	if (network && !json_is_null(network) && !json_is_object(network))
		return (struct wrong){ 400, "network must be an object" };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (lists[i] && !json_is_null(lists[i]) && !json_is_array(lists[i]))
			return (struct wrong){ 400, "allowOut and denyOut must be lists" };
	if (is_given(json_object_get(network, "rules")) || is_given(json_object_get(network, "egressProxy")))
		return (struct wrong){ 501,
				       "requests of a sandbox are neither rewritten nor sent through a proxy of the "
				       "client's: leave rules and egressProxy out" };
	return (struct wrong){ 0, NULL };
}

static struct wrong wrong_with(const json_t *doc)
{
	const json_t *template = json_object_get(doc, "templateID");

	if (!json_is_string(template) || json_string_length(template) == 0 ||
	    json_string_length(template) > message_max_bytes(FIELD_environment) ||
	    strlen(json_string_value(template)) != json_string_length(template))
		return (struct wrong){ 400, "templateID is missing, or no name" };
	if (!are_strings(json_object_get(doc, "metadata")))
		return (struct wrong){ 400, "metadata must be an object of strings" };
	if (!are_strings(json_object_get(doc, "envVars")))
		return (struct wrong){ 400, "envVars must be an object of strings" };
	if (wants_gateway(doc))
		return (struct wrong){ 501, "there is no gateway for MCP servers here: leave mcp out, and start the "
					    "servers as commands of the sandbox" };
	if (is_given(json_object_get(doc, "volumeMounts")))
		return (struct wrong){ 501, "there are no volumes here: write files into the sandbox" };
	if (is_given(json_object_get(json_object_get(doc, "iam"), "tokens")))
		return (struct wrong){ 501, "there are no identities of sandboxes here: leave iam out" };
	if (json_is_true(json_object_get(doc, "autoPause")) && json_is_false(json_object_get(doc, "autoPauseMemory")))
		return (struct wrong){ 501, NO_COLD_PAUSE };
	return wrong_with_network(json_object_get(doc, "network"));
}

/* True if nothing may go out: the request says so, or denies everything and allows nothing. */
static bool wants_no_network(const json_t *doc, const json_t *network)
{
	const json_t *denied = json_object_get(network, "denyOut"), *one;
	size_t i;

	if (json_is_false(json_object_get(doc, "allow_internet_access")))
		return !is_given(json_object_get(network, "allowOut"));
	if (is_given(json_object_get(network, "allowOut")))
		return false;
	json_array_foreach(denied, i,
			   one) if (json_is_string(one) && str_eq(json_string_value(one), "0.0.0.0/0")) return true;
	return false;
}

static json_t *note_of(const json_t *doc)
{
	static const char *const kept[] = { "templateID", "metadata",  "allow_internet_access",
					    "network",    "autoPause", "autoResume" };
	json_t *note = json_object();

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		json_t *value = json_object_get(doc, kept[i]);

		if (value && !json_is_null(value))
			(void)json_object_set(note, kept[i], value);
	}
	e2b_note_variables(note, json_object_get(doc, "envVars"));
	return note;
}

/* False: it is too long. */
static bool put_note(struct buf *fields, json_t *note)
{
	AUTO_FREE char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
	bool fits = text && strlen(text) <= message_max_bytes(FIELD_note);

	json_decref(note);
	if (fits)
		message_put_text(fields, FIELD_note, text);
	return fits;
}

static bool put_variables(struct buf *fields, json_t *variables)
{
	const char *name;
	json_t *value;

	if (json_object_size(variables) > message_max_count(FIELD_variable))
		return false;
	json_object_foreach(variables, name, value)
	{
		AUTO_BUF text = BUF_INIT(BRIG_STRING_MAX + 1);

		(void)buf_addf(&text, "%s=%s", name, json_string_value(value));
		if (!*name || strchr(name, '=') || text.full || text.len > message_max_bytes(FIELD_variable))
			return false;
		message_put_text(fields, FIELD_variable, buf_str(&text));
	}
	return true;
}

/* Answers with the sandbox if the runner's status is good, sending status replied. */
static void reply_sandbox(struct client *c, unsigned status, const struct message *m, unsigned good, unsigned replied)
{
	json_t *doc = status == good ? door_answer_json(m) : NULL;

	if (doc)
		door_reply(c, replied, e2b_sandbox(c, doc));
	else
		e2b_fail(c, status, m);
	json_decref(doc);
}

static void on_created(struct client *c, unsigned status, const struct message *m)
{
	reply_sandbox(c, status, m, 201, 201);
}

/* Template names that E2B's own clients send if their user names none. */
static bool is_usual(const char *template)
{
	static const char *const names[] = { "base", "code-interpreter-v1" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(names[i], template))
			return true;
	return false;
}

static void create(struct client *c)
{
	const json_t *doc = c->req->call->state;
	const char *template = json_string_value(json_object_get(doc, "templateID"));
	struct buf *fields = door_fields(c);
	uint64_t seconds = 0;

	if (!e2b_take_seconds(c, doc, "timeout",
			      str_eq(c->req->call->route->path, "/sandboxes") ? TIMEOUT_OLD : E2B_TIMEOUT, &seconds))
		return;
	message_put_number(fields, FIELD_timeout_ms, (seconds ? seconds : 1) * 1000);
	e2b_put_options(fields);
	if (json_is_true(json_object_get(doc, "autoPause")))
		message_put_number(fields, FIELD_pauses, 1);
	if (e2b_goes_on(doc))
		message_put_number(fields, FIELD_resumes, 1);
	if (json_is_false(json_object_get(json_object_get(doc, "network"), "allowPublicTraffic")))
		message_put_number(fields, FIELD_needs_key, 1);
	if (c->req->call->path[0])
		message_put_text(fields, FIELD_snapshot, c->req->call->path);
	else if (!is_usual(template))
		message_put_text(fields, FIELD_environment, template);
	if (wants_no_network(doc, json_object_get(doc, "network")))
		message_put_text(fields, FIELD_option, "network_mode=none");
	if (!put_note(fields, note_of(doc)))
		e2b_reply_error(c, 400, "metadata and network are too long: they may have 16 KiB");
	else if (!put_variables(fields, json_object_get(doc, "envVars")))
		e2b_reply_error(c, 400, "a name of envVars is none, or they are too long or too many");
	else
		door_ask(c, ROUTE_session_make, FD_NONE, FD_NONE, on_created);
}

static void on_template(struct client *c, unsigned status, const struct message *m)
{
	const json_t *doc = c->req->call->state;
	char none[200];

	if (status == 200) {
		create(c);
	} else if (status == 404) {
		(void)snprintf(none, sizeof(none),
			       "template '%.128s' not found: 'brig env create' makes an environment",
			       json_string_value(json_object_get(doc, "templateID")));
		e2b_reply_error(c, 404, none);
	} else {
		e2b_fail(c, status, m);
	}
}

/* The snapshot that the request names, as written or plain; else the plain name is that of an environment. */
static const json_t *choose_template(struct client *c, const json_t *snapshots)
{
	json_t *doc = c->req->call->state;
	const char *name = json_string_value(json_object_get(doc, "templateID"));
	const json_t *one = e2b_find_snapshot(snapshots, name, c->req->who);
	char plain[TEMPLATE_MAX + 1];

	if (one || !plain_template(name, plain))
		return one;
	(void)json_object_set_new(doc, "templateID", json_string(plain));
	return e2b_find_snapshot(snapshots, plain, c->req->who);
}

/* A snapshot serves as a template, too; its id is kept in call->path, which is free since the row has no path. */
static void on_snapshots(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;
	const char *id = json_string_value(json_object_get(choose_template(c, doc), "id"));
	const char *name = json_string_value(json_object_get(c->req->call->state, "templateID"));

	if (!doc) {
		e2b_fail(c, status, m);
	} else if (id) {
		(void)str_copy(c->req->call->path, sizeof(c->req->call->path), id);
		create(c);
	} else if (strlen(name) > message_max_bytes(FIELD_id)) { /* no environment has such a name */
		e2b_reply_error(c, 404, "there is no template of so long a name");
	} else {
		message_put_text(door_fields(c), FIELD_id, name);
		door_ask(c, ROUTE_environment, FD_NONE, FD_NONE, on_template);
	}
	json_decref(doc);
}

void e2b_create(struct client *c)
{
	const json_t *doc = e2b_take_body(c);
	struct wrong wrong = { 0, NULL };
	char plain[TEMPLATE_MAX + 1];

	if (!doc)
		return;
	wrong = wrong_with(doc);
	if (wrong.why) {
		e2b_reply_error(c, wrong.status, wrong.why);
	} else if (plain_template(json_string_value(json_object_get(doc, "templateID")), plain) && is_usual(plain)) {
		(void)json_object_set_new(c->req->call->state, "templateID", json_string(plain));
		create(c);
	} else {
		(void)door_fields(c);
		door_ask(c, ROUTE_snapshots, FD_NONE, FD_NONE, on_snapshots);
	}
}

/* ---- connect --------------------------------------------------------------------------------------------------- */

static void on_running(struct client *c, unsigned status, const struct message *m)
{
	reply_sandbox(c, status, m, 200, 200);
}

static void on_resumed_for(struct client *c, unsigned status, const struct message *m)
{
	reply_sandbox(c, status, m, 200, 201);
}

/* at_least: the new deadline never shortens the current one. */
static void ask_timeout(struct client *c, const char *member, bool at_least,
			void (*then)(struct client *c, unsigned status, const struct message *m))
{
	struct buf *fields = fields_of(c);
	uint64_t seconds = 0;

	if (!e2b_take_seconds(c, c->req->call->state, member, E2B_TIMEOUT, &seconds))
		return;
	message_put_number(fields, FIELD_timeout_ms, seconds * 1000);
	if (at_least)
		message_put_number(fields, FIELD_at_least, 1);
	door_ask(c, ROUTE_session_timeout, FD_NONE, FD_NONE, then);
}

static void on_resumed(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200)
		ask_timeout(c, "timeout", false, on_resumed_for);
	else
		e2b_fail(c, status, m);
}

static void on_looked(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;
	bool is_cold = json_is_false(json_object_get(c->req->call->state, "memory"));

	if (!doc) {
		e2b_fail(c, status, m);
	} else if (str_eq(state_of(doc), "ended") || str_eq(state_of(doc), "ending")) {
		e2b_not_found(c);
	} else if (!str_eq(state_of(doc), "paused")) {
		ask_timeout(c, "timeout", true, on_running);
	} else if (is_cold) {
		e2b_reply_error(c, 501,
				"a sandbox goes on where it was paused, and cannot boot anew: leave memory out");
	} else {
		(void)fields_of(c);
		door_ask(c, ROUTE_session_resume, FD_NONE, FD_NONE, on_resumed);
	}
	json_decref(doc);
}

void e2b_resume(struct client *c)
{
	if (!e2b_take_body(c))
		return;
	(void)fields_of(c);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, on_looked);
}

/* ---- time, pause and end --------------------------------------------------------------------------------------- */

void e2b_timeout(struct client *c)
{
	const json_t *doc = e2b_take_body(c);

	if (!doc)
		return;
	if (!json_is_integer(json_object_get(doc, "timeout")))
		e2b_reply_error(c, 400, "timeout is missing, or no number of seconds");
	else
		ask_timeout(c, "timeout", false, on_done);
}

void e2b_refresh(struct client *c)
{
	if (e2b_take_body(c))
		ask_timeout(c, "duration", true, on_done);
}

/* A paused session is kept for the longest lifetime; the request that resumes it sets a new timeout. */
static void on_paused(struct client *c, unsigned status, const struct message *m)
{
	struct buf *fields;

	if (status != 200) {
		e2b_fail(c, status, m);
		return;
	}
	fields = fields_of(c);
	message_put_number(fields, FIELD_timeout_ms, (uint64_t)TIMEOUT_MAX * 1000);
	door_ask(c, ROUTE_session_timeout, FD_NONE, FD_NONE, on_done);
}

static void on_state(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;

	if (!doc) {
		e2b_fail(c, status, m);
	} else if (str_eq(state_of(doc), "paused")) {
		e2b_reply_error(c, 409, "the sandbox is paused already");
	} else if (!str_eq(state_of(doc), "ready")) {
		e2b_not_found(c);
	} else {
		(void)fields_of(c);
		door_ask(c, ROUTE_session_pause, FD_NONE, FD_NONE, on_paused);
	}
	json_decref(doc);
}

void e2b_pause(struct client *c)
{
	const json_t *doc = e2b_take_body(c);

	if (!doc)
		return;
	if (json_is_false(json_object_get(doc, "memory"))) {
		e2b_reply_error(c, 501, NO_COLD_PAUSE);
		return;
	}
	(void)fields_of(c);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, on_state);
}

void e2b_kill(struct client *c)
{
	(void)fields_of(c);
	door_ask(c, ROUTE_session_delete, FD_NONE, FD_NONE, on_done);
}

/* ---- network --------------------------------------------------------------------------------------------------- */

/* Keeps the requested network in the note, for later reads of the sandbox. */
static void keep_network(struct client *c, const json_t *session)
{
	json_t *note = e2b_note(session), *asked = c->req->call->state, *access;
	struct buf *fields = fields_of(c);

	access = json_object_get(asked, "allow_internet_access");
	(void)json_object_del(note, "allow_internet_access");
	if (access)
		(void)json_object_set(note, "allow_internet_access", access);
	(void)json_object_set(note, "network", asked);
	(void)json_object_del(json_object_get(note, "network"), "allow_internet_access");
	if (put_note(fields, note))
		door_ask(c, ROUTE_session_timeout, FD_NONE, FD_NONE, on_done);
	else
		e2b_reply_error(c, 400, "metadata and network are too long: they may have 16 KiB");
}

static void on_network(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;
	const char *mode = json_string_value(json_object_get(doc, "network"));

	if (!doc)
		e2b_fail(c, status, m);
	else if (str_eq(state_of(doc), "ended") || str_eq(state_of(doc), "ending"))
		e2b_not_found(c);
	else if (mode && str_eq(mode, "none")) /* stricter than any request */
		keep_network(c, doc);
	else
		e2b_reply_error(c, 501, "the network of a sandbox is the policy's, and does not change while it runs");
	json_decref(doc);
}

void e2b_network(struct client *c)
{
	const json_t *doc = e2b_take_body(c);
	struct wrong wrong;

	if (!doc)
		return;
	wrong = wrong_with_network(doc);
	if (wrong.why) {
		e2b_reply_error(c, wrong.status, wrong.why);
		return;
	}
	(void)fields_of(c);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, on_network);
}

/* ---- not supported --------------------------------------------------------------------------------------------- */

static void say_not_there(struct client *c)
{
	e2b_reply_error(c, 501, "brig does not serve this part of E2B's API");
}

void e2b_later(struct client *c)
{
	door_when_let_in(c, say_not_there);
}

static void say_no_path(struct client *c)
{
	e2b_reply_error(c, 404, "there is nothing at this address");
}

void e2b_no_path(struct client *c)
{
	door_when_let_in(c, say_no_path);
}
