/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.c - tool calls and resource reads
 *
 * A tool is a route of the API: its arguments are converted to the document that an API client would send, which goes
 * through the same parser, and the answer is shown as `brig mcp` does. A run is streamed; its result is in the last
 * event.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "mcp_shared/schema.h"
#include "mcp_shared/show.h"
#include "mcp_shared/text.h"
#include "mcp_shared/tool_list.h"
#include "server/doors/mcp/mcp.h"

#define EXECUTIONS_SHOWN 200
#define WORD_LETTERS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

struct mcp_tool {
	const char *name;
	enum route route;
	bool is_run;
	/*
	 * Converts the arguments to the route's document; NULL: err says why it cannot. No function: the route takes
	 * none.
	 */
	json_t *(*document)(const json_t *args, struct brig_error *err);
	void (*show)(const json_t *args, json_t *doc, struct answer *a);
};

/* ---- arguments as documents ------------------------------------------------------------------------------------ */

static void copy(json_t *to, const char *as, const json_t *args, const char *name)
{
	json_t *value = json_object_get(args, name);

	if (value)
		(void)json_object_set(to, as, value);
}

static json_t *run_document(const json_t *args, struct brig_error *err UNUSED)
{
	static const char *const same[] = { "language", "code",     "stdin",       "args",
					    "files",    "packages", "environment", "artifacts" };
	const json_t *timeout = json_object_get(args, "timeout");
	json_t *doc = json_object(), *options = json_object();
	char text[40];

	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		copy(doc, same[i], args, same[i]);
	copy(doc, "code", args, "command");
	copy(options, "memory", args, "memory");
	if (timeout) {
		(void)snprintf(text, sizeof(text), "%.3fs", json_number_value(timeout));
		(void)json_object_set_new(options, "timeout", json_string(text));
	}
	(void)json_object_set_new(doc, "options", options);
	(void)json_object_set_new(doc, "inline_artifacts", json_string("4m"));
	if (json_array_size(json_object_get(doc, "artifacts")) == 0) /* all of them, because images are shown */
		(void)json_object_set_new(doc, "artifacts", json_pack("[s]", "**"));
	return doc;
}

static json_t *check_document(const json_t *args, struct brig_error *err)
{
	const char *kind = text_member(args, "kind");
	bool is_code = !*kind || str_eq(kind, "code");
	json_t *doc;

	if (is_code && !*text_member(args, "language")) {
		(void)err_set(err, BRIG_E_USAGE, 0, "Say the language of the code; list_languages names them.");
		return NULL;
	}
	doc = json_object();
	copy(doc, is_code ? "code" : kind, args, "code");
	if (is_code)
		copy(doc, "language", args, "language");
	return doc;
}

static json_t *receipt_document(const json_t *args, struct brig_error *err UNUSED)
{
	json_t *doc = json_object();

	copy(doc, "receipt", args, "receipt");
	copy(doc, "public_key", args, "public_key");
	return doc;
}

/* ---- documents as answers -------------------------------------------------------------------------------------- */

static void show_result(const json_t *args, json_t *doc, struct answer *a)
{
	show_run(args, false, doc, a);
}

static void show_inspection(const json_t *args UNUSED, json_t *doc, struct answer *a)
{
	show_check(doc, a);
}

static void show_one_rule(const json_t *args, json_t *doc, struct answer *a)
{
	const char *wanted = text_member(args, "rule");
	json_t *rules = json_is_array(doc) ? doc : json_object_get(doc, "rules"), *rule;
	size_t i;

	json_array_foreach(rules, i, rule)
	{
		if (str_eq(text_member(rule, "id"), wanted)) {
			show_rule(rule, a);
			return;
		}
	}
	(void)err_set(&a->why, BRIG_E_REFUSED, 0, "there is no rule '%.60s'", wanted);
}

static void show_all_languages(const json_t *args UNUSED, json_t *doc, struct answer *a)
{
	show_languages(doc, a);
}

static void show_record(const json_t *args UNUSED, json_t *doc, struct answer *a)
{
	show_execution(doc, a);
}

static void show_check_of_receipt(const json_t *args UNUSED, json_t *doc, struct answer *a)
{
	show_receipt(doc, a);
}

static const struct mcp_tool tools[] = {
	{ "run_code", ROUTE_execute, true, run_document, show_result },
	{ "run_command", ROUTE_command, true, run_document, show_result },
	{ "check_code", ROUTE_inspect, false, check_document, show_inspection },
	{ "explain_finding", ROUTE_rules, false, NULL, show_one_rule },
	{ "explain_policy", ROUTE_policy, false, NULL, show_policy },
	{ "list_languages", ROUTE_languages, false, NULL, show_all_languages },
	{ "get_execution", ROUTE_history_entry, false, NULL, show_record },
	{ "verify_receipt", ROUTE_verify_receipt, false, receipt_document, show_check_of_receipt },
};

/* ---- streams --------------------------------------------------------------------------------------------------- */

/* Sends one message as an event; takes it. False: the client is gone. */
static bool stream_message(struct client *c, json_t *message)
{
	AUTO_FREE char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	AUTO_BUF event = BUF_INIT(MESSAGE_MAX);

	json_decref(message);
	if (text)
		(void)buf_addf(&event, "event: message\ndata: %s\n\n", text);
	if (!text || event.full || event.no_memory || client_pending(c) + event.len > FRONT_PENDING_MAX) {
		client_close(c, true);
		return false;
	}
	return door_stream_put(c, event.data, event.len);
}

/* Sends the answer; takes the message. */
static void send_last(struct client *c, json_t *message)
{
	if (!c->req->was_streaming)
		door_reply(c, 200, message);
	else if (stream_message(c, message))
		door_stream_end(c);
}

static bool begin_stream(struct client *c)
{
	static const char hello[] = ": brig\n\n"; /* starts the interval that on_quiet() measures */

	if (c->req->was_streaming)
		return true;
	progress_begin(&mcp_request_of(c)->progress, c->front->now_ns);
	return door_stream_begin(c, "text/event-stream") && door_stream_put(c, hello, strlen(hello));
}

/* Sends progress, but skips it while the client reads too slowly. */
static bool tell(struct client *c)
{
	struct mcp_request *r = mcp_request_of(c);

	if (client_pending(c) > FRONT_STREAM_FULL)
		return true;
	return stream_message(c, progress_tell(&r->progress, r->token, c->front->now_ns));
}

static void on_quiet(struct client *c)
{
	static const char ping[] = ": ping\n\n";

	if (mcp_request_of(c)->token)
		(void)tell(c);
	else
		(void)door_stream_put(c, ping, strlen(ping));
}

static void add_output(struct mcp_request *r, enum event_kind kind, const json_t *event)
{
	const json_t *text = json_object_get(event, kind == EVENT_notice ? "text" : "data");

	if (!r->token || !json_is_string(text) || json_object_get(event, "encoding"))
		return;
	progress_add(&r->progress, json_string_value(text), json_string_length(text));
	if (kind == EVENT_notice)
		progress_add(&r->progress, "\n", 1);
}

static void on_event(struct client *c, enum event_kind kind, const char *text, size_t len)
{
	struct mcp_request *r = mcp_request_of(c);
	bool is_read = kind == EVENT_notice || kind == EVENT_stdout || kind == EVENT_stderr || kind == EVENT_verdict;
	json_t *event;

	if (!begin_stream(c) || !is_read)
		return;
	event = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	if (kind == EVENT_verdict) {
		json_decref(r->result);
		r->result = json_incref(json_object_get(event, "result"));
	} else {
		add_output(r, kind, event);
		if (r->progress.fresh.len > 0)
			(void)tell(c);
	}
	json_decref(event);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* Converts a refusal: overload and failures of the service become protocol errors, the rest goes to the model. */
static void take_refusal(unsigned status, const json_t *doc, struct answer *a)
{
	bool is_busy = status == 429 || status == 503 || status == 504;

	if (is_busy || status >= 500)
		a->code = is_busy ? RPC_BUSY : RPC_INTERNAL;
	(void)err_set(&a->why, BRIG_E_REFUSED, 0, "%.400s", door_answer_message(doc));
}

static void finish(struct client *c, struct answer *a)
{
	struct mcp_request *r = mcp_request_of(c);
	json_t *why;

	if (c->req->was_streaming && r->token && r->progress.fresh.len > 0 && !tell(c))
		return;
	if (a->code) {
		why = text_json(a->why.msg, strlen(a->why.msg));
		send_last(c, why ? rpc_error(r->m.id, (enum rpc_code)a->code, json_string_value(why), NULL) : NULL);
		json_decref(why);
	} else {
		send_last(c, rpc_result(r->m.id, era_dress(answer_result(a), r->modern, -1)));
	}
}

static void on_answer(struct client *c, unsigned status, const struct message *m)
{
	struct mcp_request *r = mcp_request_of(c);
	struct answer a = { .content = json_array() };
	json_t *doc = r->result ? json_incref(r->result) : door_answer_json(m);

	if (status == 401 && !c->req->was_streaming) {
		door_error(c, status, door_answer_message(doc));
	} else {
		if (status != 200 || !json_is_object(doc))
			take_refusal(status == 200 ? 500 : status, doc, &a);
		else
			r->tool->show(r->args, doc, &a);
		finish(c, &a);
	}
	json_decref(doc);
	answer_release(&a);
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* Errors in arguments go to the model, which can correct them. */
static void refuse_arguments(struct client *c, const char *why)
{
	struct answer a = { .content = json_array() };

	(void)err_set(&a.why, BRIG_E_USAGE, 0, "%s was not called: %.400s.", mcp_request_of(c)->tool->name, why);
	finish(c, &a);
	answer_release(&a);
}

static bool is_word(const char *text)
{
	return *text && *text != '-' && strspn(text, WORD_LETTERS) == strlen(text) && strlen(text) <= 64;
}

/* Adds the tool's arguments to the fields. */
static int put_arguments(struct client *c, struct buf *fields, int *ret_files, struct brig_error *err)
{
	const struct mcp_request *r = mcp_request_of(c);
	const char *id = text_member(r->args, "execution_id");
	json_t *doc = r->tool->document ? r->tool->document(r->args, err) : NULL;
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	struct bytes body = { text, text ? strlen(text) : 0 };

	json_decref(doc);
	*ret_files = FD_NONE;
	if (r->tool->document && !text)
		return err->code ? -err->code : err_nomem(err);
	if (text)
		return body_to_fields(r->tool->route, &body, &(struct body_parts){ 0 }, fields, ret_files, err);
	if (r->tool->route != ROUTE_history_entry)
		return 0;
	if (!is_word(id))
		return err_set(err, BRIG_E_USAGE, 0, "execution_id '%.60s' is none", id);
	message_put_text(fields, FIELD_id, id);
	return 0;
}

static void call_tool(struct client *c)
{
	struct mcp_request *r = mcp_request_of(c);
	json_t *token = json_object_get(json_object_get(r->m.params, "_meta"), "progressToken");
	struct brig_error err = BRIG_ERROR_INIT;
	struct buf *fields = door_fields(c);
	AUTO_FD files = FD_NONE;

	if (put_arguments(c, fields, &files, &err) < 0) {
		refuse_arguments(c, err.msg);
		return;
	}
	if (r->tool->is_run) {
		r->token = json_is_string(token) || json_is_integer(token) ? token : NULL;
		message_put_number(fields, FIELD_stream, 1);
		c->req->call->on_event = on_event;
		c->req->call->on_quiet = on_quiet;
	}
	door_ask(c, r->tool->route, files, FD_NONE, on_answer);
}

void mcp_call_tool(struct client *c)
{
	struct mcp_request *r = mcp_request_of(c);
	const char *name = json_string_value(json_object_get(r->m.params, "name"));
	json_t *args = json_object_get(r->m.params, "arguments");
	const json_t *schema = name ? json_object_get(tools_entry(mcp_tool_list(), name), "inputSchema") : NULL;
	struct brig_error err = BRIG_ERROR_INIT;

	for (size_t i = 0; name && i < ARRAY_LEN(tools); i++)
		if (str_eq(tools[i].name, name))
			r->tool = &tools[i];
	r->args = args && !json_is_null(args) ? json_incref(args) : json_object();
	if (!name)
		mcp_refuse(c, 200, RPC_PARAMS, "tools/call needs a name", NULL);
	else if (!r->tool || !schema)
		mcp_refuse(c, 200, RPC_PARAMS, "there is no such tool: tools/list names those that are", NULL);
	else if (!json_is_object(r->args))
		mcp_refuse(c, 200, RPC_PARAMS, "arguments must be an object", NULL);
	else if (schema_check(schema, r->args, &err) < 0)
		refuse_arguments(c, err.msg);
	else
		call_tool(c);
}

/* ---- resources ------------------------------------------------------------------------------------------------- */

static void on_resource(struct client *c, unsigned status, const struct message *m)
{
	const struct mcp_request *r = mcp_request_of(c);
	json_t *doc = door_answer_json(m);
	bool is_busy = status == 429 || status == 503;

	if (status == 401)
		door_error(c, status, door_answer_message(doc));
	else if (status == 200 && doc)
		mcp_answer(c, json_pack("{s:o}", "contents", resource_contents(r->uri, doc)), 0);
	else
		mcp_refuse(c, 200,
			   is_busy         ? RPC_BUSY
			   : status >= 500 ? RPC_INTERNAL
			   : r->modern     ? RPC_PARAMS
					   : RPC_NO_RESOURCE,
			   door_answer_message(doc), NULL);
	json_decref(doc);
}

void mcp_read_resource(struct client *c)
{
	static const enum route routes[] = {
		[RESOURCE_POLICY] = ROUTE_policy,
		[RESOURCE_EXECUTIONS] = ROUTE_history,
		[RESOURCE_EXECUTION] = ROUTE_history_entry,
	};
	struct mcp_request *r = mcp_request_of(c);
	const char *id = "";
	enum resource_kind kind;
	struct buf *fields;

	r->uri = json_string_value(json_object_get(r->m.params, "uri"));
	kind = r->uri ? resource_parse(r->uri, &id) : RESOURCE_NONE;
	if (kind == RESOURCE_NONE) {
		mcp_refuse(c, 200, !r->uri || r->modern ? RPC_PARAMS : RPC_NO_RESOURCE,
			   r->uri ? "there is no such resource: resources/list names those that are"
				  : "resources/read needs a uri",
			   NULL);
		return;
	}
	fields = door_fields(c);
	if (kind == RESOURCE_EXECUTION)
		message_put_text(fields, FIELD_id, id);
	else if (kind == RESOURCE_EXECUTIONS)
		message_put_number(fields, FIELD_limit, EXECUTIONS_SHOWN);
	door_ask(c, routes[kind], FD_NONE, FD_NONE, on_resource);
}
