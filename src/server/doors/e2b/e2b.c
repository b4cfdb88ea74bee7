/* SPDX-License-Identifier: Apache-2.0 */
/* e2b.c - refusals, and which sandbox a request is for (e2b.h) */
#include "server/doors/e2b/e2b.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/doors/e2b/control.h"

#define SIGNATURE_PREFIX "v1_"

/* ---- refusals ------------------------------------------------------------------------------------------------- */

const char *e2b_connect_code(unsigned status)
{
	static const struct {
		unsigned status;
		const char *code;
	} codes[] = {
		{ 400, "invalid_argument" },   { 401, "unauthenticated" },    { 403, "permission_denied" },
		{ 404, "not_found" },          { 405, "unimplemented" },      { 409, "failed_precondition" },
		{ 413, "resource_exhausted" }, { 415, "invalid_argument" },   { 422, "invalid_argument" },
		{ 429, "resource_exhausted" }, { 501, "unimplemented" },      { 502, "unavailable" },
		{ 503, "unavailable" },        { 507, "resource_exhausted" },
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return "internal";
}

void e2b_reply_error(struct client *c, unsigned status, const char *message)
{
	door_reply(c, status,
		   json_pack("{s:i, s:s%}", "code", (int)status, "message", message,
			     str_utf8_prefix(message, strlen(message))));
}

static bool starts_with(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

/* Each of the three services has an error format of its own. */
void e2b_error(struct client *c, unsigned status, const char *message)
{
	const struct door_route *row = c->req->call->route;
	const char *path = row ? row->path : "";

	if (starts_with(path, "/process.") || starts_with(path, "/filesystem."))
		door_reply(c, status,
			   json_pack("{s:s, s:s%}", "code", e2b_connect_code(status), "message", message,
				     str_utf8_prefix(message, strlen(message))));
	else if (starts_with(path, "/execute") || starts_with(path, "/contexts"))
		door_reply_bytes(c, status, "text/plain; charset=utf-8", message, strlen(message));
	else
		e2b_reply_error(c, status, message);
}

/* The value of a header field if it fits a field of the runner; "": it is missing or invalid. */
static const char *short_line(const struct client *c, const char *name)
{
	const char *text = door_line(c, name);

	return text && strlen(text) <= 64 && str_is_utf8(text, strlen(text)) ? text : "";
}

void e2b_gone(struct client *c)
{
	const char *id = c->req->call->session[0] ? c->req->call->session : short_line(c, "E2b-Sandbox-Id");

	door_reply(c, 502,
		   json_pack("{s:s, s:s, s:i}", "sandboxId", id, "message", "The sandbox was not found", "code", 502));
}

/* The answers of the original's proxy, which does not tell a pause from an end. */
void e2b_absent(struct client *c, const char *session, uint16_t port, enum door_absence why)
{
	static const char *const messages[] = {
		[DOOR_NO_SESSION] = "The sandbox was not found",
		[DOOR_PAUSED] = "The sandbox is paused",
		[DOOR_PORT_CLOSED] = "The sandbox is running but port is not open",
	};
	json_t *doc = json_pack("{s:s, s:s}", "sandboxId", session, "message", messages[why]);

	if (why == DOOR_PORT_CLOSED)
		(void)json_object_set_new(doc, "port", json_integer(port));
	(void)json_object_set_new(doc, "code", json_integer(502));
	door_reply(c, 502, doc);
}

bool e2b_is_gone(unsigned status, const struct message *m)
{
	json_t *doc;
	bool is_ended;

	if (status == 410)
		return true;
	if (status != 404)
		return false;
	doc = door_answer_json(m); /* 404 may also mean a missing file, process or context */
	is_ended = starts_with(door_answer_message(doc), "there is no session");
	json_decref(doc);
	return is_ended;
}

/* ---- which sandbox --------------------------------------------------------------------------------------------- */

/* Adds the signature of a signed URL and the text that the runner computes it over; false: the URL has none. */
static bool put_signature(struct client *c, struct buf *head)
{
	char signature[80], path[E2B_PATH_MAX + 1], user[65] = "", expires[24], text[5121];
	bool is_write = str_eq(c->req->method, "POST");
	uint64_t until = 0;

	if (!door_query(c, "signature", signature, sizeof(signature)) || !starts_with(signature, SIGNATURE_PREFIX) ||
	    strlen(signature) > 64)
		return false;
	if (!door_query(c, "path", path, sizeof(path)))
		path[0] = '\0';
	(void)door_query(c, "username", user, sizeof(user));
	if (door_query(c, "signature_expiration", expires, sizeof(expires))) {
		if (!str_to_u64(expires, &until) || until == 0)
			return false;
		message_put_number(head, FIELD_expires, until);
	}
	(void)snprintf(text, sizeof(text), "%s:%s:%s:", path, is_write ? "write" : "read", user);
	message_put_text(head, FIELD_signature, signature + strlen(SIGNATURE_PREFIX));
	message_put_text(head, FIELD_signed_text, text);
	return true;
}

static void on_session(struct client *c, unsigned status, const struct message *m);

/* A sandbox resumed by a request gets the default timeout, as if a client had connected to it. */
static void on_resumed(struct client *c, unsigned status, const struct message *m)
{
	struct buf *fields;

	if (status != 200) {
		on_session(c, status, m);
		return;
	}
	door_keep_body(c);
	fields = door_fields(c);
	message_put_number(fields, FIELD_timeout_ms, E2B_TIMEOUT * 1000);
	door_ask(c, ROUTE_session_timeout, FD_NONE, FD_NONE, on_session);
}

/* True: the sandbox is paused and asks for automatic resume, so it is being resumed. */
static bool resume_paused(struct client *c, const json_t *session)
{
	const char *state = json_string_value(json_object_get(session, "state"));
	json_t *note = e2b_note(session);
	bool is_wanted = state && str_eq(state, "paused") && e2b_goes_on(note);

	json_decref(note);
	if (!is_wanted)
		return false;
	door_keep_body(c);
	(void)door_fields(c);
	door_ask(c, ROUTE_session_resume, FD_NONE, FD_NONE, on_resumed);
	return true;
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

#define OWN_VARIABLES "variables" /* member of the note: a list of names */

void e2b_note_variables(json_t *note, const json_t *variables)
{
	static const char *const names[] = { "E2B_SANDBOX", "E2B_SANDBOX_ID", "E2B_TEMPLATE_ID", "E2B_TEAM_ID" };
	json_t *own = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (json_object_get(variables, names[i]))
			(void)json_array_append_new(own, json_string(names[i]));
	if (json_array_size(own) > 0)
		(void)json_object_set(note, OWN_VARIABLES, own);
	json_decref(own);
}

/* A new reference. */
static json_t *variables_of(const json_t *session)
{
	json_t *note = e2b_note(session), *name;
	const char *template = json_string_value(json_object_get(note, "templateID"));
	json_t *variables = json_pack("{s:s, s:s?, s:s, s:s}", "E2B_SANDBOX", "true", "E2B_SANDBOX_ID",
				      json_string_value(json_object_get(session, "id")), "E2B_TEMPLATE_ID",
				      template ? template : "base", "E2B_TEAM_ID", "local");
	size_t i;

	json_array_foreach(json_object_get(note, OWN_VARIABLES), i, name) if (json_is_string(name))(void)
		json_object_del(variables, json_string_value(name));
	json_decref(note);
	return variables;
}

void e2b_put_variables(struct client *c, struct buf *fields, const json_t *own)
{
	const char *name;
	json_t *value;

	json_object_foreach(c->req->call->variables, name, value)
	{
		char text[256];

		(void)snprintf(text, sizeof(text), "%s=%s", name, json_string_value(value));
		if (!json_object_get(own, name))
			message_put_text(fields, FIELD_variable, text);
	}
}

void e2b_hide_variables(const struct client *c, json_t *variables)
{
	const char *name;
	json_t *value;

	json_object_foreach(c->req->call->variables, name,
			    value) if (json_equal(json_object_get(variables, name), value))(void)
		json_object_del(variables, name);
}

/* ---- the sandbox found ------------------------------------------------------------------------------------------- */

static void found(struct client *c, const json_t *doc)
{
	struct door_call *call = c->req->call;
	const char *id = json_string_value(json_object_get(doc, "id"));
	const char *state = json_string_value(json_object_get(doc, "state"));

	if (resume_paused(c, doc))
		return;
	if (!id || !state || !(str_eq(state, "ready") || str_eq(state, "starting"))) {
		e2b_gone(c);
		return;
	}
	(void)str_copy(call->session, sizeof(call->session), id);
	if (!call->has_id)
		message_put_text(&call->head, FIELD_id, id);
	json_decref(call->variables);
	call->variables = variables_of(doc);
	call->then_let_in(c);
}

/* True if the signature of the URL has expired. */
static bool has_expired(struct client *c)
{
	char expires[24];
	uint64_t until = 0;

	return door_query(c, "signature_expiration", expires, sizeof(expires)) && str_to_u64(expires, &until) &&
	       until <= clock_wall_ns() / NS_PER_SEC;
}

static void on_session(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = door_answer_json(m);

	if (status == 200 || status == 201)
		found(c, doc);
	else if (e2b_is_gone(status, m))
		e2b_gone(c);
	else
		door_error(c, status,
			   status == 401 && has_expired(c) ? "signature is already expired" : door_answer_message(doc));
	json_decref(doc);
}

static const char *key_of(const struct client *c, enum e2b_service service)
{
	const char *key = short_line(c, "X-Access-Token");

	return *key || service == E2B_ENVD ? key : short_line(c, "E2B-Traffic-Access-Token");
}

/*
 * E2B's clients know no output limit and stop each run by their own clock, so both limits are set high: the runner
 * lowers them to the policy's maxima.
 */
void e2b_put_options(struct buf *fields)
{
	message_put_text(fields, FIELD_option, "workspace_alias=" E2B_HOME);
	door_put_option(fields, "output_limit", 100 * MiB);
	door_put_option(fields, "execution_timeout_ms", 300000);
}

/*
 * Clients in debug mode have no control plane and no key: their one sandbox is created on first use. Older clients do
 * not even name it; they connect to the ports where envd and the interpreter would be.
 */
static bool is_debugged(const struct client *c, const char *id, const char *key)
{
	if (!c->front->options->no_auth || *key)
		return false;
	return str_eq(id, E2B_DEBUG_ID) ||
	       (!door_line(c, "E2b-Sandbox-Id") && !strstr(c->req->call->query, "signature="));
}

static void ask_debugged(struct client *c)
{
	struct buf *fields;

	door_keep_body(c);
	fields = door_fields(c);
	message_put_text(fields, FIELD_shared_id, E2B_DEBUG_ID);
	e2b_put_options(fields);
	door_ask(c, ROUTE_session_make, FD_NONE, FD_NONE, on_session);
}

void e2b_with_sandbox(struct client *c, enum e2b_service service, void (*then)(struct client *c))
{
	const char *id = short_line(c, "E2b-Sandbox-Id"), *key = key_of(c, service);
	struct door_call *call = c->req->call;

	call->then_let_in = then;
	if (is_debugged(c, id, key)) {
		ask_debugged(c);
		return;
	}
	if (!*id && door_line(c, "E2b-Sandbox-Id")) { /* no sandbox has such a name */
		e2b_gone(c);
		return;
	}
	if (*key || !put_signature(c, &call->head))
		message_put_text(&call->head, FIELD_session_key, key);
	call->has_id = *id != '\0';
	if (call->has_id)
		message_put_text(&call->head, FIELD_id, id);
	door_keep_body(c);
	(void)door_fields(c);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, on_session);
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* The user root is the same as user, so /root maps to the home folder. */
static bool is_in_root(const char *path)
{
	return strncmp(path, "/root", 5) == 0 && (path[5] == '\0' || path[5] == '/');
}

bool e2b_path(const char *path, char dst[E2B_PATH_MAX + 1])
{
	int len;

	if (is_in_root(path))
		len = snprintf(dst, E2B_PATH_MAX + 1, "%s%s", E2B_HOME, path + 5);
	else if (path[0] == '/')
		len = snprintf(dst, E2B_PATH_MAX + 1, "%s", path);
	else if (path[0] == '~' && (path[1] == '\0' || path[1] == '/'))
		len = snprintf(dst, E2B_PATH_MAX + 1, "%s%s", E2B_HOME, path + 1);
	else if (path[0] == '~')
		return false;
	else
		len = snprintf(dst, E2B_PATH_MAX + 1, "%s%s%s", E2B_HOME, *path ? "/" : "", path);
	return len >= 0 && len <= E2B_PATH_MAX;
}

void e2b_shown_path(const char *path, char dst[E2B_PATH_MAX + 1])
{
	size_t len = min_u64(strlen(path), E2B_PATH_MAX);

	memmove(dst, path, len);
	dst[len] = '\0';
}

/* ---- health ---------------------------------------------------------------------------------------------------- */

static void say_healthy(struct client *c)
{
	if (str_eq(short_line(c, "E2b-Sandbox-Port"), "49999"))
		door_reply(c, 200, json_string("OK"));
	else
		door_reply_bytes(c, 204, NULL, "", 0);
}

/* Health needs no key: a 401 for a named sandbox means that only the key is wrong. */
static void on_health(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = door_answer_json(m);
	const char *state = json_string_value(json_object_get(doc, "state"));

	if ((status == 401 && *short_line(c, "E2b-Sandbox-Id")) || (status == 200 && state && str_eq(state, "ready")))
		say_healthy(c);
	else if (status == 200 || status == 401 || e2b_is_gone(status, m))
		e2b_gone(c);
	else
		e2b_reply_error(c, status, door_answer_message(doc));
	json_decref(doc);
}

void e2b_health(struct client *c)
{
	const char *id = short_line(c, "E2b-Sandbox-Id"), *key = key_of(c, E2B_INTERPRETER);
	struct buf *fields = door_fields(c);

	if (!*id && door_line(c, "E2b-Sandbox-Id")) { /* no sandbox has such a name */
		e2b_gone(c);
		return;
	}
	/* health of the service, or of a debug sandbox, which is created on first use */
	if ((!*id && !*key) || is_debugged(c, id, key)) {
		say_healthy(c);
		return;
	}
	message_put_text(fields, FIELD_session_key, key);
	if (*id)
		message_put_text(fields, FIELD_id, id);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, on_health);
}

static void say_no_service(struct client *c)
{
	e2b_reply_error(c, 404, "the sandbox has nothing at this address");
}

/* If the sandbox does not run, the answer is 502 whatever the path. */
void e2b_no_service(struct client *c)
{
	e2b_with_sandbox(c, E2B_INTERPRETER, say_no_service);
}
