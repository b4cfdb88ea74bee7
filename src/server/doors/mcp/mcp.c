/* SPDX-License-Identifier: Apache-2.0 */
/* mcp.c - requests over HTTP in both eras, and methods that the door answers itself (mcp.h) */
#include "server/doors/mcp/mcp.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/str.h"
#include "mcp_shared/text.h"
#include "mcp_shared/tool_list.h"

/* shorter messages cannot hold too many values, so they are parsed without door_parse() */
#define PLAIN_MAX (64 * KiB)

static const char instructions[] = ERA_INSTRUCTIONS " Nothing is kept between calls. " ERA_ADVICE;

/* ---- answers --------------------------------------------------------------------------------------------------- */

void mcp_refuse(struct client *c, unsigned status, enum rpc_code code, const char *why, json_t *data)
{
	const struct mcp_request *r = mcp_request_of(c);
	json_t *clean = text_json(why, strlen(why));
	json_t *doc = clean ? rpc_error(r ? r->m.id : NULL, code, json_string_value(clean), data) : NULL;
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(clean);
	json_decref(doc);
	if (!text) {
		client_close(c, true);
		return;
	}
	reply_send(c, &(struct reply){ .status = status,
				       .body = text,
				       .len = strlen(text),
				       .allow = status == 405 ? "POST, DELETE" : NULL });
}

void mcp_error(struct client *c, unsigned status, const char *message)
{
	const struct mcp_request *r = mcp_request_of(c);
	bool is_busy = status == 429 || status == 503;

	/* Clients give up on a server that fails with an HTTP status, but not on one that fails a single call. */
	if (r && r->m.id && (is_busy || status == 500))
		mcp_refuse(c, 200, is_busy ? RPC_BUSY : RPC_INTERNAL, message, NULL);
	else
		mcp_refuse(c, status, RPC_BUSY, message, NULL);
}

void mcp_answer(struct client *c, json_t *result, int ttl_ms)
{
	const struct mcp_request *r = mcp_request_of(c);

	door_reply(c, 200, rpc_result(r->m.id, era_dress(result, r->modern, ttl_ms)));
}

static void accepted(struct client *c)
{
	door_reply_bytes(c, 202, "application/json", "", 0);
}

/* ---- methods --------------------------------------------------------------------------------------------------- */

const json_t *mcp_tool_list(void)
{
	static json_t *tools; /* loaded once, never changes */

	if (!tools)
		tools = tools_load(false, NULL);
	return tools;
}

static void on_initialize(struct client *c)
{
	const struct mcp_request *r = mcp_request_of(c);
	const char *wanted = json_string_value(json_object_get(r->m.params, "protocolVersion"));
	struct mcp_session *s = wanted ? mcp_session_new(c) : NULL;
	AUTO_FREE char *text = NULL;
	char line[80];
	json_t *doc;

	if (!wanted || !s) {
		if (!wanted)
			mcp_refuse(c, 200, RPC_PARAMS, "initialize needs a protocolVersion", NULL);
		else
			mcp_refuse(c, 200, RPC_BUSY, "too many sessions are in use: end one", NULL);
		return;
	}
	doc = rpc_result(r->m.id, era_initialized(wanted, instructions));
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	if (!text) {
		client_close(c, true);
		return;
	}
	(void)snprintf(line, sizeof(line), "Mcp-Session-Id: %s\r\n", mcp_session_id(s));
	reply_send(c, &(struct reply){ .status = 200, .body = text, .len = strlen(text), .more = line });
}

static void on_discover(struct client *c)
{
	mcp_answer(c, era_discovered(instructions), ERA_KEEP_MS);
}

static void on_ping(struct client *c)
{
	mcp_answer(c, json_object(), -1);
}

/* Lists have one page. */
static void answer_list(struct client *c, const char *name, json_t *list)
{
	const json_t *cursor = json_object_get(mcp_request_of(c)->m.params, "cursor");

	if (cursor && !json_is_null(cursor)) {
		mcp_refuse(c, 200, RPC_PARAMS, "there is no such page: leave cursor out", NULL);
		json_decref(list);
	} else {
		mcp_answer(c, json_pack("{s:o}", name, list), ERA_KEEP_MS);
	}
}

static void on_tools_list(struct client *c)
{
	answer_list(c, "tools", json_deep_copy(mcp_tool_list()));
}

static void on_resources_list(struct client *c)
{
	answer_list(c, "resources", resources_list());
}

static void on_templates_list(struct client *c)
{
	answer_list(c, "resourceTemplates", resources_templates());
}

struct method {
	const char *name;
	bool legacy, modern;  /* the eras that have the method */
	const char *named_by; /* the member of params that the Mcp-Name header repeats; NULL: none */
	void (*fn)(struct client *c);
};

static const struct method *find_method(const struct mcp_request *r)
{
	static const struct method methods[] = {
		{ "initialize", true, false, NULL, on_initialize },
		{ "ping", true, false, NULL, on_ping },
		{ "server/discover", false, true, NULL, on_discover },
		{ "tools/list", true, true, NULL, on_tools_list },
		{ "tools/call", true, true, "name", mcp_call_tool },
		{ "resources/list", true, true, NULL, on_resources_list },
		{ "resources/templates/list", true, true, NULL, on_templates_list },
		{ "resources/read", true, true, "uri", mcp_read_resource },
	};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (str_eq(methods[i].name, r->m.method) && (r->modern ? methods[i].modern : methods[i].legacy))
			return &methods[i];
	return NULL;
}

/* ---- the legacy era -------------------------------------------------------------------------------------------- */

/* The session that the request names; NULL: the request was answered. */
static struct mcp_session *take_session(struct client *c)
{
	const char *id = door_line(c, "Mcp-Session-Id");
	struct mcp_session *s = id ? mcp_session_find(c, id) : NULL;

	if (!id)
		mcp_refuse(c, 400, RPC_INVALID, "there is no Mcp-Session-Id: begin with initialize", NULL);
	else if (!s)
		mcp_refuse(c, 404, RPC_INVALID, "there is no such session, or no longer: begin with initialize", NULL);
	return s;
}

static void take_legacy(struct client *c)
{
	struct mcp_request *r = mcp_request_of(c);
	const char *version = door_line(c, "MCP-Protocol-Version");
	bool is_begin = r->m.kind == RPC_REQUEST && str_eq(r->m.method, "initialize");
	const json_t *id = json_object_get(r->m.params, "requestId");
	const struct method *method = NULL;
	struct mcp_session *s = NULL;

	if (version && !era_has_legacy(version)) {
		mcp_refuse(c, 400, RPC_INVALID, "this MCP-Protocol-Version is not served", NULL);
		return;
	}
	if (!is_begin && !(s = take_session(c)))
		return;
	if (r->m.kind == RPC_REQUEST) {
		method = find_method(r);
		if (s)
			mcp_session_add(s, c);
		if (method)
			method->fn(c);
		else
			mcp_refuse(c, 200, RPC_NO_METHOD, "there is no such method", NULL);
		return;
	}
	if (r->m.kind == RPC_NOTIFICATION && str_eq(r->m.method, "notifications/cancelled") && id)
		mcp_session_cancel(s, id);
	accepted(c);
}

/* ---- the modern era -------------------------------------------------------------------------------------------- */

/* True for a version of the modern era, supported or not. */
static bool is_modern_version(const char *version)
{
	return version && strlen(version) == strlen(ERA_MODERN) && strcmp(version, ERA_MODERN) >= 0 &&
	       version[0] <= '9';
}

/* True if the header repeats the message's value; non-ASCII values are sent as "=?base64?...?=". */
static bool line_says(const struct client *c, const char *name, const char *wanted)
{
	static const char front[] = "=?base64?", end[] = "?=";
	const char *line = door_line(c, name);
	size_t len = line ? strlen(line) : 0, skip = strlen(front) + strlen(end);
	AUTO_FREE char *plain = NULL;
	ssize_t n;

	if (!line || len < skip || strncasecmp(line, front, strlen(front)) != 0 ||
	    !str_eq(line + len - strlen(end), end))
		return line && str_eq(line, wanted);
	plain = malloc(len);
	n = plain ? base64_get(plain, line + strlen(front), len - skip) : -1;
	return n >= 0 && (size_t)n == strlen(wanted) && memcmp(plain, wanted, (size_t)n) == 0;
}

static bool lines_agree(struct client *c, const struct method *method)
{
	const struct mcp_request *r = mcp_request_of(c);
	const char *why = NULL;

	if (!line_says(c, "Mcp-Method", r->m.method))
		why = "the header Mcp-Method is missing, or says something else than the message";
	else if (method && method->named_by && !line_says(c, "Mcp-Name", text_member(r->m.params, method->named_by)))
		why = "the header Mcp-Name is missing, or says something else than the message";
	if (why)
		mcp_refuse(c, 400, RPC_HEADER, why, NULL);
	return !why;
}

static void take_modern(struct client *c)
{
	struct mcp_request *r = mcp_request_of(c);
	const struct method *method;
	struct era_fault fault = { .why = "" };
	bool is_good;

	if (r->m.kind != RPC_REQUEST) {
		accepted(c);
		return;
	}
	is_good = era_check(&r->m, &fault);
	if (!is_good && fault.code != RPC_VERSION) {
		mcp_refuse(c, 400, fault.code, fault.why, fault.data);
		return;
	}
	if (!line_says(c, "MCP-Protocol-Version", era_version(&r->m))) {
		json_decref(fault.data);
		mcp_refuse(c, 400, RPC_HEADER,
			   "the header MCP-Protocol-Version is missing, or says something else than the message", NULL);
		return;
	}
	if (!is_good) {
		mcp_refuse(c, 400, fault.code, fault.why, fault.data);
		return;
	}
	method = find_method(r);
	if (!lines_agree(c, method))
		return;
	if (method)
		method->fn(c);
	else
		mcp_refuse(c, 404, RPC_NO_METHOD, "there is no such method", NULL);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static void request_release(void *state)
{
	struct mcp_request *r = state;

	mcp_session_drop(r);
	rpc_release(&r->m);
	json_decref(r->args);
	json_decref(r->result);
	progress_release(&r->progress);
	free(r);
}

static bool takes(const char *accept, const char *type, const char *of_kind)
{
	return !accept || strcasestr(accept, type) || strcasestr(accept, of_kind) || strcasestr(accept, "*/*");
}

static bool is_json(const char *type)
{
	size_t len = strlen("application/json");

	return strncasecmp(type, "application/json", len) == 0 && (!type[len] || strchr("; \t", type[len]));
}

static void post_let_in(struct client *c)
{
	struct mcp_request *r = mcp_request_of(c);
	const char *accept = door_line(c, "Accept");

	if (!takes(accept, "application/json", "application/*") || !takes(accept, "text/event-stream", "text/*")) {
		mcp_refuse(c, 406, RPC_INVALID, "Accept must have application/json and text/event-stream", NULL);
	} else if (!is_json(c->req->content_type)) {
		mcp_refuse(c, 415, RPC_INVALID, "the Content-Type must be application/json", NULL);
	} else if (r->m.kind == RPC_BAD || (r->m.kind != RPC_RESPONSE && !r->m.method)) {
		mcp_refuse(c, 400, r->m.code, r->m.why, NULL);
	} else {
		r->modern = (r->m.method && era_is_modern(&r->m)) ||
			    is_modern_version(door_line(c, "MCP-Protocol-Version"));
		if (r->modern)
			take_modern(c);
		else
			take_legacy(c);
	}
}

static void read_message(struct client *c, struct rpc_message *ret)
{
	const char *text = buf_str(&c->req->body);
	struct brig_error err = BRIG_ERROR_INIT;
	size_t len = c->req->body.len;
	json_t *doc = len > PLAIN_MAX && len <= RPC_LINE_MAX ? door_parse(text, len, &err) : NULL;

	if (len <= PLAIN_MAX || doc)
		rpc_read(text, len, ret);
	else
		rpc_bad(ret, RPC_PARSE, len > RPC_LINE_MAX ? "the message is longer than 8 MiB: send less" : err.msg);
	json_decref(doc);
}

void mcp_post(struct client *c)
{
	struct mcp_request *r = calloc(1, sizeof(*r));

	if (!r) {
		client_close(c, true);
		return;
	}
	c->req->call->state = r;
	c->req->call->release = request_release;
	read_message(c, &r->m);
	door_when_let_in(c, post_let_in);
}

static void get_let_in(struct client *c)
{
	mcp_refuse(c, 405, RPC_INVALID, "there is no stream to listen to: answers come with their requests", NULL);
}

void mcp_get(struct client *c)
{
	door_when_let_in(c, get_let_in);
}

static void delete_let_in(struct client *c)
{
	const char *id = door_line(c, "Mcp-Session-Id");
	struct mcp_session *s;

	if (!id) {
		mcp_refuse(c, 405, RPC_INVALID, "without an Mcp-Session-Id there is nothing to end", NULL);
		return;
	}
	s = take_session(c);
	if (!s)
		return;
	mcp_session_end(c->front, s);
	door_reply_bytes(c, 200, "application/json", "", 0);
}

void mcp_delete(struct client *c)
{
	door_when_let_in(c, delete_let_in);
}
