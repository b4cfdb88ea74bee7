/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpreter.c - the code interpreter: /execute and /contexts
 *
 * An execution is a run in the session (runner/session_pieces.c), and its events become lines of JSON. Non-ASCII
 * characters are escaped, because the clients decode each network chunk on its own; empty lines are never sent, because
 * clients take them for malformed documents.
 *
 *	started             the response head is sent: from here on nothing can be refused, and the client's timer starts
 *	stdout, stderr      {"type": "stdout", "text", "timestamp"}
 *	result              {"type": "result", "is_main_result", every form}, or {"type": "error"}
 *	verdict             an {"type": "error"} if something other than the code's own error ended the run;
 *	                    number_of_executions, end_of_execution
 *
 * If the client disconnects, the runner interrupts the run, as for every client; E2B's clients implement their timeouts
 * this way. If the session ends during the run, the connection is closed; the client then checks the sandbox's health
 * and reports that.
 */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "server/doors/e2b/e2b.h"

#define LINES       "application/x-ndjson"
#define TEXT        "text/plain; charset=utf-8"
#define FINDING_MAX (64 * KiB)

struct run {
	json_t *result; /* of the verdict; NULL: no verdict yet */
	size_t n_results;
	bool had_error;
	char context[65]; /* as the client named it; "": it named none */
};

static void run_free(void *state)
{
	struct run *r = state;

	if (r)
		json_decref(r->result);
	free(r);
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

static void say(struct client *c, unsigned status, const char *text)
{
	door_reply_bytes(c, status, TEXT, text, strlen(text));
}

static void say_no_context(struct client *c, const char *id)
{
	AUTO_BUF text = BUF_INIT(KiB);

	(void)buf_addf(&text, "Context %s not found", id);
	say(c, 404, buf_str(&text));
}

/* Parses the client's context id; false: it is not a number, so no such context exists. */
static bool read_context(const char *id, uint64_t *ret)
{
	return str_to_u64(id, ret) && *ret > 0;
}

/* Relays a refusal of the runner. An unknown language or folder is 422 in the runner and 500 in E2B's API. */
static void refuse(struct client *c, unsigned status, const struct message *m, const char *context)
{
	json_t *doc;

	if (e2b_is_gone(status, m)) {
		e2b_gone(c);
		return;
	}
	if (status == 404 && context) {
		say_no_context(c, context);
		return;
	}
	if (message_number(m, FIELD_error_number, 0) == EAGAIN) {
		say(c, 409, "the sandbox runs as many processes as it may (pids_limit): end a context or a command");
		return;
	}
	doc = door_answer_json(m);
	say(c, status == 422 ? 500 : status, door_answer_message(doc));
	json_decref(doc);
}

/* ---- documents ------------------------------------------------------------------------------------------------ */

/* The body; an empty one counts as an empty object. NULL: the request was answered. */
static json_t *read_body(struct client *c)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = c->req->body.len > 0 ? door_json(c, &err) : json_object();

	if (!doc) {
		say(c, 400, err.msg);
	} else if (!json_is_object(doc)) {
		json_decref(doc);
		say(c, 400, "the body must be an object");
		return NULL;
	}
	return doc;
}

/* A string member; *ret is NULL if it is missing or null. False: it has another type, and the request was answered. */
static bool read_text(struct client *c, const json_t *doc, const char *name, enum field field, const char **ret)
{
	const json_t *value = json_object_get(doc, name);
	AUTO_BUF why = BUF_INIT(KiB);

	*ret = json_string_value(value);
	if (!value || json_is_null(value))
		return true;
	if (*ret && strlen(*ret) == json_string_length(value) && strlen(*ret) <= message_max_bytes(field))
		return true;
	(void)buf_addf(&why, "%s must be a string of at most %zu bytes", name, message_max_bytes(field));
	say(c, 400, buf_str(&why));
	return false;
}

static bool put_variable(struct buf *fields, const char *name, const json_t *value)
{
	AUTO_BUF text = BUF_INIT(BRIG_STRING_MAX);

	if (!json_is_string(value) || !*name || strchr(name, '=') ||
	    strlen(json_string_value(value)) != json_string_length(value))
		return false;
	(void)buf_addf(&text, "%s=%s", name, json_string_value(value));
	if (text.full || text.no_memory)
		return false;
	message_put_text(fields, FIELD_variable, buf_str(&text));
	return true;
}

static bool put_variables(struct buf *fields, json_t *variables)
{
	const char *name;
	json_t *value;

	if (!variables || json_is_null(variables))
		return true;
	if (!json_is_object(variables) || json_object_size(variables) > message_max_count(FIELD_variable))
		return false;
	json_object_foreach(variables, name, value) if (!put_variable(fields, name, value)) return false;
	return true;
}

/* ---- lines of a run -------------------------------------------------------------------------------------------- */

/* Takes the line. False: the client is gone. */
static bool put_line(struct client *c, json_t *line)
{
	AUTO_FREE char *text = line ? json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	size_t len = text ? strlen(text) : 0;

	json_decref(line);
	if (!text) {
		client_close(c, true);
		return false;
	}
	text[len] = '\n'; /* in place of the NUL; the length is passed on */
	return door_stream_put(c, text, len + 1);
}

static bool put_error(struct client *c, const char *name, const char *value, const char *traceback)
{
	return put_line(c, json_pack("{s:s, s:s, s:s%, s:s%}", "type", "error", "name", name, "value", value,
				     str_utf8_prefix(value, strlen(value)), "traceback", traceback,
				     str_utf8_prefix(traceback, strlen(traceback))));
}

static void put_output(struct client *c, enum event_kind kind, const json_t *event)
{
	const json_t *data = json_object_get(event, "data");
	char now[WHEN_TEXT_MAX];

	if (!json_is_string(data))
		return;
	(void)put_line(c, json_pack("{s:s, s:o, s:s}", "type", kind == EVENT_stderr ? "stderr" : "stdout", "text",
				    door_text(json_string_value(data), json_string_length(data),
					      json_object_get(event, "encoding") != NULL),
				    "timestamp", when_utc(now, sizeof(now), clock_wall_ns())));
}

/*
 * The runner keeps these documents as text; here they become JSON values. Numbers too large for an integer become
 * reals, as in JavaScript.
 */
static json_t *form_value(const char *name, json_t *value)
{
	static const char *const documents[] = { "json", "data", "chart", "extra" };
	bool is_document = false;
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);
	json_t *doc = NULL;

	for (size_t i = 0; i < ARRAY_LEN(documents); i++)
		is_document |= str_eq(name, documents[i]);
	if (is_document && text)
		doc = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	if (is_document && text && !doc)
		doc = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
	return doc ? doc : json_incref(value);
}

static bool put_result(struct client *c, json_t *forms)
{
	struct run *r = c->req->call->state;
	bool is_error = json_object_get(forms, "traceback") != NULL;
	json_t *line = json_pack("{s:s}", "type", is_error ? "error" : "result"), *value;
	const char *name;

	json_object_foreach(forms, name, value)
	{
		bool is_main = str_eq(name, "main");

		(void)json_object_set_new(line, is_main ? "is_main_result" : name,
					  is_main ? json_incref(value) : form_value(name, value));
	}
	/* Forms without a name of their own appear under their media type. */
	(void)json_object_update_missing(line, json_object_get(line, "extra"));
	(void)json_object_del(line, "extra");
	r->had_error |= is_error;
	r->n_results += !is_error;
	return put_line(c, line);
}

static bool begin_stream(struct client *c)
{
	return c->req->was_streaming ||
	       (door_stream_begin(c, LINES) && put_line(c, json_pack("{s:s}", "type", "keepalive")));
}

static void on_event(struct client *c, enum event_kind kind, const char *text, size_t len)
{
	struct run *r = c->req->call->state;
	bool is_read = kind == EVENT_stdout || kind == EVENT_stderr || kind == EVENT_result || kind == EVENT_verdict;
	json_t *event;

	if (!begin_stream(c) || !is_read)
		return;
	event = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	if (kind == EVENT_verdict) {
		json_decref(r->result);
		r->result = json_incref(json_object_get(event, "result"));
		/* the result was too long to include; the verdict itself is still known */
		if (!json_is_object(r->result))
			r->result = json_incref(event);
	} else if (kind == EVENT_result) {
		(void)put_result(c, json_object_get(event, "result"));
	} else {
		put_output(c, kind, event);
	}
	json_decref(event);
}

static void on_quiet(struct client *c)
{
	(void)put_line(c, json_pack("{s:s}", "type", "keepalive"));
}

/* ---- the end of a run ------------------------------------------------------------------------------------------ */

static const char *member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static bool put_findings(struct client *c, const json_t *result)
{
	AUTO_BUF text = BUF_INIT(FINDING_MAX);

	door_findings_text(result, &text);
	return put_error(c, "BlockedByPolicy", member(result, "reason"), buf_str(&text));
}

/* Reports what ended the run other than the code's own error. False: the client is gone. */
static bool put_trouble(struct client *c, const struct run *r)
{
	static const struct {
		const char *verdict, *name, *value; /* value NULL: use the reason */
		bool is_also_told; /* report it even if the code raised an error, which this explains */
	} rows[] = {
		{ "ok", NULL, NULL, false },
		{ "crash", "ContextRestarting", "Context was restarted", true },
		{ "memory_limit", "ContextRestarting", "Context was restarted: it needed more than its memory", true },
		{ "timeout", "TimeoutError", NULL, true },
		{ "cpu_limit", "TimeoutError", NULL, true },
		{ "output_limit", "OutputLimitExceeded", NULL, true },
		{ "error", "Error", NULL, false },
		{ "cancelled", "Cancelled", NULL, false },
		{ "failed", "SandboxError", NULL, true },
	};
	const char *verdict = member(r->result, "verdict"), *value;
	size_t i = 0;

	if (str_eq(verdict, "blocked"))
		return put_findings(c, r->result);
	while (i + 1 < ARRAY_LEN(rows) && !str_eq(rows[i].verdict, verdict))
		i++;
	if (!rows[i].name || (r->had_error && !rows[i].is_also_told))
		return true;
	value = rows[i].value ? rows[i].value : member(r->result, "reason");
	return put_error(c, rows[i].name, value, value);
}

/* Sends the results that did not come as events while the code ran: the runner limits the number of large ones. */
static bool put_late(struct client *c, struct run *r)
{
	const json_t *results = json_object_get(r->result, "results");
	json_t *error = json_object_get(r->result, "error");
	bool is_cut = json_is_true(json_object_get(r->result, "results_truncated"));

	while (r->n_results < json_array_size(results))
		if (!put_result(c, json_array_get(results, r->n_results)))
			return false;
	if (json_is_object(error) && !r->had_error && !put_result(c, error))
		return false;
	return !is_cut || put_line(c, json_pack("{s:s, s:s}", "type", "stderr", "text",
						"brig: some results were left out, they were too many or too large\n"));
}

static void on_ran(struct client *c, unsigned status, const struct message *m)
{
	struct run *r = c->req->call->state;
	const char *reason;

	if (!c->req->was_streaming) {
		refuse(c, status, m, r->context[0] ? r->context : NULL);
		return;
	}
	reason = member(r->result, "reason");
	if (status != 200 || !r->result ||
	    (str_eq(member(r->result, "verdict"), "cancelled") && str_eq(reason, "the session ended first"))) {
		client_close(c, true);
		return;
	}
	if (put_late(c, r) && put_trouble(c, r) &&
	    put_line(c, json_pack("{s:s, s:I}", "type", "number_of_executions", "execution_count",
				  json_integer_value(json_object_get(r->result, "execution_count")))) &&
	    put_line(c, json_pack("{s:s}", "type", "end_of_execution")))
		door_stream_end(c);
}

/* ---- /execute -------------------------------------------------------------------------------------------------- */

/* The home folder as a path in the session. */
static void put_home(struct buf *fields)
{
	char home[E2B_PATH_MAX + 1];

	if (e2b_path("", home))
		message_put_text(fields, FIELD_cwd, home);
}

/* The fields of a run; false: the request was answered. */
static bool put_run(struct client *c, const json_t *doc, struct run *r)
{
	const json_t *code = json_object_get(doc, "code");
	const char *language, *context;
	struct buf *fields = door_fields(c);
	uint64_t number = 0;

	if (!json_is_string(code) || json_string_length(code) > BRIG_CODE_MAX) {
		say(c, 400, "code must be a string, and not longer than code can be");
		return false;
	}
	if (!read_text(c, doc, "language", FIELD_language, &language) ||
	    !read_text(c, doc, "context_id", FIELD_id, &context))
		return false;
	if (language && context) {
		say(c, 400, "Only one of context_id or language can be provided");
		return false;
	}
	if (context && !read_context(context, &number)) {
		say_no_context(c, context);
		return false;
	}
	message_put_bytes(fields, FIELD_code, json_string_value(code), json_string_length(code));
	message_put_number(fields, FIELD_stream, 1);
	message_put_number(fields, FIELD_no_capture, 1);
	(void)str_copy(r->context, sizeof(r->context), context ? context : "");
	if (context)
		message_put_number(fields, FIELD_context, number);
	else
		message_put_text(fields, FIELD_language, language && *language ? language : "python");
	put_home(fields);
	e2b_put_variables(c, fields, json_object_get(doc, "env_vars"));
	if (put_variables(fields, json_object_get(doc, "env_vars")))
		return true;
	say(c, 400, "env_vars must be an object of strings");
	return false;
}

static void execute(struct client *c)
{
	struct door_call *call = c->req->call;
	struct run *r = calloc(1, sizeof(*r));
	json_t *doc;

	if (!r) {
		client_close(c, true);
		return;
	}
	call->state = r;
	call->release = run_free;
	doc = read_body(c);
	if (doc && put_run(c, doc, r)) {
		call->on_event = on_event;
		call->on_quiet = on_quiet;
		call->pings_soon = true;
		door_ask(c, ROUTE_session_run, FD_NONE, FD_NONE, on_ran);
	}
	json_decref(doc);
}

void e2b_execute(struct client *c)
{
	e2b_with_sandbox(c, E2B_INTERPRETER, execute);
}

/* ---- /contexts ------------------------------------------------------------------------------------------------- */

static json_t *context_json(const json_t *context)
{
	AUTO_BUF id = BUF_INIT(32);
	const char *language = member(context, "language");
	char cwd[E2B_PATH_MAX + 1];

	(void)buf_addf(&id, "%lld", (long long)json_integer_value(json_object_get(context, "id")));
	e2b_shown_path(member(context, "cwd"), cwd);
	return json_pack("{s:s, s:s, s:s}", "id", buf_str(&id), "language",
			 str_eq(language, "shell") ? "bash" : language, "cwd", cwd);
}

static void on_contexts(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc, *list, *context;
	size_t i, n_defaults = 0;

	if (status != 200) {
		refuse(c, status, m, NULL);
		return;
	}
	doc = door_answer_json(m);
	list = json_array();
	json_array_foreach(json_object_get(doc, "contexts"), i, context)
	{
		bool is_default = json_is_true(json_object_get(context, "default"));

		(void)json_array_insert_new(list, is_default ? n_defaults : json_array_size(list),
					    context_json(context));
		n_defaults += is_default;
	}
	json_decref(doc);
	door_reply(c, 200, list);
}

/*
 * The original has default contexts for Python and JavaScript from the start, so they are listed before those that
 * clients created.
 */
static void list_contexts(struct client *c)
{
	struct buf *fields = door_fields(c);

	message_put_text(fields, FIELD_language, "python javascript");
	put_home(fields);
	door_ask(c, ROUTE_contexts, FD_NONE, FD_NONE, on_contexts);
}

void e2b_contexts(struct client *c)
{
	e2b_with_sandbox(c, E2B_INTERPRETER, list_contexts);
}

static void on_made(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc;

	if (status != 201) {
		refuse(c, status == 404 && !e2b_is_gone(status, m) ? 422 : status, m, NULL);
		return;
	}
	doc = door_answer_json(m);
	door_reply(c, 200, context_json(doc));
	json_decref(doc);
}

static void make_context(struct client *c)
{
	json_t *doc = read_body(c);
	const char *language, *cwd;
	char path[E2B_PATH_MAX + 1];
	struct buf *fields;

	if (doc && read_text(c, doc, "language", FIELD_language, &language) &&
	    read_text(c, doc, "cwd", FIELD_cwd, &cwd)) {
		fields = door_fields(c);
		message_put_text(fields, FIELD_language, language && *language ? language : "python");
		if (!e2b_path(cwd ? cwd : "", path)) {
			say(c, 400, "cwd must be a path");
		} else {
			message_put_text(fields, FIELD_cwd, path);
			door_ask(c, ROUTE_context_make, FD_NONE, FD_NONE, on_made);
		}
	}
	json_decref(doc);
}

void e2b_context_make(struct client *c)
{
	e2b_with_sandbox(c, E2B_INTERPRETER, make_context);
}

static void on_changed(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200)
		door_reply(c, 200, json_object());
	else
		refuse(c, status, m, c->req->call->id);
}

static void change_context(struct client *c, enum route route)
{
	uint64_t number;

	if (!read_context(c->req->call->id, &number)) {
		say_no_context(c, c->req->call->id);
		return;
	}
	message_put_number(door_fields(c), FIELD_item, number);
	door_ask(c, route, FD_NONE, FD_NONE, on_changed);
}

static void restart(struct client *c)
{
	change_context(c, ROUTE_context_restart);
}

void e2b_context_restart(struct client *c)
{
	e2b_with_sandbox(c, E2B_INTERPRETER, restart);
}

static void delete_context(struct client *c)
{
	change_context(c, ROUTE_context_delete);
}

void e2b_context_delete(struct client *c)
{
	e2b_with_sandbox(c, E2B_INTERPRETER, delete_context);
}
