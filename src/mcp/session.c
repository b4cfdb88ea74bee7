/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - the protocol level, in both eras.
 *
 * A request whose _meta names a protocol version is of the modern era (2026-07-28): request and answer stand alone. Any
 * other request is of the legacy era (2024-11-05 to 2025-11-25), which begins with `initialize`. One client may mix
 * them: nothing that one era requires is forbidden in the other.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "mcp_shared/schema.h"
#include "mcp/server.h"
#include "mcp_shared/text.h"

#define ROOTS_NS     (5 * NS_PER_SEC)
#define ROOTS_PREFIX "brig-roots-"

static const char instructions[] = ERA_INSTRUCTIONS
	" With a project, runs and write_file work on a copy; their changes wait until apply_changes. " ERA_ADVICE;

/* ---- messages ------------------------------------------------------------------------------------- */

void server_put(struct server *s, json_t *message, const json_t *about)
{
	if (message)
		s->send(s->user, message, about);
	else
		s->failed = true;
	json_decref(message);
}

static void refuse(struct server *s, const struct rpc_message *m, enum rpc_code code, const char *why)
{
	json_t *clean = text_json(why, strlen(why));

	server_put(s, clean ? rpc_error(m->id, code, json_string_value(clean), NULL) : NULL, m->id);
	json_decref(clean);
}

static void answer(struct server *s, const struct rpc_message *m, bool modern, json_t *result)
{
	server_put(s, rpc_result(m->id, era_dress(result, modern, ERA_KEEP_MS)), m->id);
}

/* ---- the project ---------------------------------------------------------------------------------- */

static void ask_for_roots(struct server *s)
{
	char id[48];

	if (s->options->workspace || !s->client_has_roots)
		return;
	(void)snprintf(id, sizeof(id), ROOTS_PREFIX "%u", ++s->n_roots_asked);
	s->roots_asked = true;
	s->roots_until_ns = clock_now_ns() + ROOTS_NS;
	server_put(s, rpc_request(id, "roots/list"), NULL);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* "file:///a%20b" -> "/a b"; false if the URI is no local path. */
static bool path_of_uri(const char *uri, char *dst, size_t size)
{
	static const char *const fronts[] = { "file:///", "file://localhost/" };
	const char *at = NULL;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(fronts); i++)
		if (strncmp(uri, fronts[i], strlen(fronts[i])) == 0)
			at = uri + strlen(fronts[i]) - 1;
	for (; at && *at; at++) {
		int high = *at == '%' ? hex_digit(at[1]) : -1, low = high >= 0 ? hex_digit(at[2]) : -1;
		char c = low >= 0 ? (char)(high * 16 + low) : *at;

		if (n + 1 >= size || !c)
			return false;
		dst[n++] = c;
		at += low >= 0 ? 2 : 0;
	}
	dst[n] = '\0';
	return n > 0;
}

/* Takes the first root that is a local folder. */
static void take_roots(struct server *s, const json_t *roots)
{
	char path[PATH_MAX], real[PATH_MAX];
	const json_t *root;
	struct stat st;
	size_t i;

	s->root[0] = '\0';
	json_array_foreach(roots, i, root)
	{
		if (path_of_uri(text_member(root, "uri"), path, sizeof(path)) && realpath(path, real) &&
		    stat(real, &st) == 0 && S_ISDIR(st.st_mode)) {
			(void)str_copy(s->root, sizeof(s->root), real);
			return;
		}
	}
}

/* A response of the client. The server requests only roots, and only the latest request counts. */
static void on_response(struct server *s, const struct rpc_message *m)
{
	char id[48];

	(void)snprintf(id, sizeof(id), ROOTS_PREFIX "%u", s->n_roots_asked);
	if (!s->roots_asked || !json_is_string(m->id) || !str_eq(json_string_value(m->id), id))
		return;
	s->roots_asked = false;
	take_roots(s, json_object_get(json_object_get(m->doc, "result"), "roots"));
}

/* ---- methods -------------------------------------------------------------------------------------- */

static void on_initialize(struct server *s, const struct rpc_message *m, bool modern UNUSED)
{
	const json_t *wanted = json_object_get(m->params, "protocolVersion");

	if (!json_is_string(wanted)) {
		refuse(s, m, RPC_PARAMS, "initialize needs a protocolVersion");
		return;
	}
	s->client_has_roots = json_is_object(json_object_get(json_object_get(m->params, "capabilities"), "roots"));
	answer(s, m, false, era_initialized(json_string_value(wanted), instructions));
}

static void on_discover(struct server *s, const struct rpc_message *m, bool modern)
{
	answer(s, m, modern, era_discovered(instructions));
}

static void on_ping(struct server *s, const struct rpc_message *m, bool modern)
{
	answer(s, m, modern, json_object());
}

/* Lists have one page. */
static bool has_cursor(struct server *s, const struct rpc_message *m)
{
	const json_t *cursor = json_object_get(m->params, "cursor");

	if (!cursor || json_is_null(cursor)) /* clients that serialize every member send null for the first page */
		return false;
	refuse(s, m, RPC_PARAMS, "there is no such page: leave cursor out");
	return true;
}

static void on_tools_list(struct server *s, const struct rpc_message *m, bool modern)
{
	if (!has_cursor(s, m))
		answer(s, m, modern, json_pack("{s:O}", "tools", s->tools));
}

static void on_resources_list(struct server *s, const struct rpc_message *m, bool modern)
{
	if (!has_cursor(s, m))
		answer(s, m, modern, json_pack("{s:o}", "resources", resources_list()));
}

static void on_templates_list(struct server *s, const struct rpc_message *m, bool modern)
{
	if (!has_cursor(s, m))
		answer(s, m, modern, json_pack("{s:o}", "resourceTemplates", resources_templates()));
}

static void on_resources_read(struct server *s, const struct rpc_message *m, bool modern)
{
	const char *uri = json_string_value(json_object_get(m->params, "uri"));
	json_t *args = NULL;
	const struct job *job = uri ? resource_find(uri, &args) : NULL;

	if (!uri)
		refuse(s, m, RPC_PARAMS, "resources/read needs a uri");
	else if (!job)
		refuse(s, m, modern ? RPC_PARAMS : RPC_NO_RESOURCE,
		       "there is no such resource: resources/list names those that are");
	else
		call_begin(s, m, job, args, modern, true);
	json_decref(args);
}

/* Errors in arguments are reported to the model, which can fix them. */
static void refuse_arguments(struct server *s, const struct rpc_message *m, bool modern, const char *name,
			     const char *why)
{
	json_t *content = json_array();
	AUTO_BUF text = BUF_INIT(1 * KiB);

	buf_addf(&text, "%s was not called: %s.", name, why);
	content_add_text(content, &text);
	server_put(s,
		   rpc_result(m->id, era_dress(json_pack("{s:o, s:b}", "content", content, "isError", 1), modern, -1)),
		   m->id);
}

static void on_tools_call(struct server *s, const struct rpc_message *m, bool modern)
{
	const char *name = json_string_value(json_object_get(m->params, "name"));
	json_t *args = json_object_get(m->params, "arguments");
	const struct job *job = name ? tool_find(name) : NULL;
	const json_t *schema = name ? json_object_get(tools_entry(s->tools, name), "inputSchema") : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *none = json_object();

	if (json_is_null(args)) /* of clients that serialize every member */
		args = NULL;
	if (!job || !schema)
		refuse(s, m, RPC_PARAMS,
		       name ? "there is no such tool: tools/list names those that are" : "tools/call needs a name");
	else if (args && !json_is_object(args))
		refuse(s, m, RPC_PARAMS, "arguments must be an object");
	else if (schema_check(schema, args ? args : none, &err) < 0)
		refuse_arguments(s, m, modern, name, err.msg);
	else
		call_begin(s, m, job, args, modern, false);
	json_decref(none);
}

static const struct {
	const char *name;
	bool legacy, modern; /* the eras that have the method */
	void (*fn)(struct server *s, const struct rpc_message *m, bool modern);
} methods[] = {
	{ "initialize", true, false, on_initialize },
	{ "ping", true, false, on_ping },
	{ "server/discover", false, true, on_discover },
	{ "tools/list", true, true, on_tools_list },
	{ "tools/call", true, true, on_tools_call },
	{ "resources/list", true, true, on_resources_list },
	{ "resources/templates/list", true, true, on_templates_list },
	{ "resources/read", true, true, on_resources_read },
};

/* ---- dispatch ------------------------------------------------------------------------------------- */

/* True if the envelope of a modern request is valid; otherwise the request was answered. */
static bool envelope_is_good(struct server *s, const struct rpc_message *m)
{
	struct era_fault fault;

	if (era_check(m, &fault))
		return true;
	server_put(s, rpc_error(m->id, fault.code, fault.why, fault.data), m->id);
	return false;
}

static void on_request(struct server *s, const struct rpc_message *m)
{
	bool modern = era_is_modern(m);

	if (modern && !envelope_is_good(s, m))
		return;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (str_eq(methods[i].name, m->method) && (modern ? methods[i].modern : methods[i].legacy)) {
			methods[i].fn(s, m, modern);
			return;
		}
	refuse(s, m, RPC_NO_METHOD, "there is no such method");
}

static void on_notification(struct server *s, const struct rpc_message *m)
{
	const json_t *id = json_object_get(m->params, "requestId");

	if (str_eq(m->method, "notifications/cancelled") && id)
		call_cancel(s, id);
	else if (str_eq(m->method, "notifications/initialized") ||
		 str_eq(m->method, "notifications/roots/list_changed"))
		ask_for_roots(s);
}

void server_receive(struct server *s, const char *line, size_t len)
{
	struct rpc_message m;

	rpc_read(line, len, &m);
	switch (m.kind) {
	case RPC_REQUEST:
		on_request(s, &m);
		break;
	case RPC_NOTIFICATION:
		on_notification(s, &m);
		break;
	case RPC_RESPONSE:
		on_response(s, &m);
		break;
	case RPC_BAD:
		refuse(s, &m, m.code, m.why);
		break;
	}
	rpc_release(&m);
}

/* ---- start and end --------------------------------------------------------------------------------- */

int server_init(struct server *s, const struct mcp_options *options, server_send_fn send, void *user,
		struct brig_error *err)
{
	struct stat st;

	*s = (struct server){ .options = options, .send = send, .user = user, .start = child_start };
	if (options->workspace && (!realpath(options->workspace, s->root) || stat(s->root, &st) < 0))
		return err_set(err, BRIG_E_USAGE, errno, "cannot open the workspace '%.200s'", options->workspace);
	if (options->workspace && !S_ISDIR(st.st_mode))
		return err_set(err, BRIG_E_USAGE, 0, "the workspace '%.200s' is not a folder", options->workspace);
	s->tools = tools_load(true, err);
	if (s->tools && options->apply)
		(void)json_object_set_new(json_object_get(tools_entry(s->tools, "write_file"), "annotations"),
					  "destructiveHint", json_true());
	return s->tools ? 0 : -err->code;
}

void server_release(struct server *s)
{
	server_stop(s, true);
	while (s->calls) {
		/* their children have ended or will be; the answers no longer matter */
		s->calls->state = CALL_WAITING;
		call_cancel(s, s->calls->id);
	}
	json_decref(s->tools);
	free(s->own);
}

bool server_owns(const struct server *s, const char *id)
{
	size_t n = s->n_own < OWN_MAX ? s->n_own : OWN_MAX;

	if (s->options->history)
		return true;
	for (size_t i = 0; i < n; i++)
		if (str_eq(s->own[i], id))
			return true;
	return false;
}

void server_own(struct server *s, const char *id)
{
	if (!*id || strlen(id) >= EXECUTION_ID_MAX || (!s->options->history && server_owns(s, id)))
		return;
	if (!s->own)
		s->own = calloc(OWN_MAX, sizeof(*s->own));
	if (s->own)
		(void)str_copy(s->own[s->n_own++ % OWN_MAX], EXECUTION_ID_MAX, id);
}
