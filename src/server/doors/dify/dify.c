/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dify.c - dify-sandbox
 *
 * Dify always asks for network access. The cell has the network of the policy all the same: a refusal would fail every
 * code node, and a program that needs the network sees its own failure. Responses are 200 except where Dify looks at
 * the status: malformed body or unsupported language (400), bad key (401), overload (503).
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/door.h"

static void reply(struct client *c, unsigned status, int code, const char *message, json_t *data)
{
	door_reply(c, status,
		   json_pack("{s:i, s:s%, s:o}", "code", code, "message", message,
			     str_utf8_prefix(message, strlen(message)), "data", data ? data : json_null()));
}

void dify_error(struct client *c, unsigned status, const char *message)
{
	if (status == 401) {
		door_reply_bytes(c, 401, "text/plain", "", 0);
		return;
	}
	if (status == 429)
		reply(c, 200, -429, message, NULL);
	else if (status == 503)
		reply(c, 503, -503, message, NULL);
	else if (status == 403 || status == 422)
		reply(c, 200, -400, message, NULL);
	else if (status >= 500)
		reply(c, 200, -500, message, NULL);
	else
		reply(c, status, -(int)status, message, NULL);
}

void dify_health(struct client *c)
{
	door_reply(c, 200, json_string("ok"));
}

/* ---- run --------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* Explains the failure, followed by the program's stderr; details are on lines of their own, as in the original. */
static json_t *error_text(const json_t *result, long code)
{
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);
	const char *verdict = text_of(result, "verdict");
	json_t *errors = door_output(result, "stderr");
	bool is_own = str_eq(verdict, "error");

	(void)buf_addf(&text, "process exited with code %ld", code);
	if (!is_own || json_string_length(errors) > 0)
		(void)buf_adds(&text, "\n");
	if (str_eq(verdict, "timeout") || str_eq(verdict, "cpu_limit"))
		(void)buf_adds(&text, "error: timeout\n"); /* the original's wording */
	if (str_eq(verdict, "blocked"))
		door_findings_text(result, &text);
	else if (!is_own)
		(void)buf_addf(&text, "%s\n", text_of(result, "reason"));
	(void)buf_add(&text, json_string_value(errors), json_string_length(errors));
	json_decref(errors);
	return json_stringn(buf_str(&text), str_utf8_prefix(buf_str(&text), text.len));
}

static void on_result(struct client *c, unsigned status, const struct message *m)
{
	json_t *result = door_answer_json(m), *exit_code = json_object_get(result, "exit_code");
	const char *verdict = text_of(result, "verdict");
	bool is_ok = str_eq(verdict, "ok");
	long code = is_ok                        ? 0
		    : str_eq(verdict, "blocked") ? 126
		    : json_is_integer(exit_code) ? (long)json_integer_value(exit_code)
						 : -1;

	if (status != 200)
		dify_error(c, status, door_answer_message(result));
	else if (str_eq(verdict, "refused"))
		reply(c, 200, -400, text_of(result, "reason"), NULL);
	else if (str_eq(verdict, "failed") || str_eq(verdict, "violated") || str_eq(verdict, "cancelled"))
		reply(c, 200, -500, text_of(result, "reason"), NULL);
	else
		reply(c, 200, 0, "success",
		      json_pack("{s:o, s:o, s:o, s:I}", "stdout", door_output(result, "stdout"), "stderr",
				door_output(result, "stderr"), "error",
				is_ok ? json_string("") : error_text(result, code), "exit_code", (json_int_t)code));
	json_decref(result);
}

static bool is_given(const json_t *doc, const char *name)
{
	return json_string_length(json_object_get(doc, name)) > 0;
}

/* NULL: the request is well-formed.  An empty string counts as absent. */
static const char *wrong_with(const json_t *doc)
{
	const json_t *preload = json_object_get(doc, "preload"), *network = json_object_get(doc, "enable_network");

	if (!is_given(doc, "language"))
		return "language is required as a string";
	if (!is_given(doc, "code"))
		return "code is required as a string";
	if (preload && !json_is_null(preload) && !json_is_string(preload))
		return "preload must be a string";
	if (network && !json_is_null(network) && !json_is_boolean(network))
		return "enable_network must be true or false";
	return NULL;
}

static void run(struct client *c, const json_t *doc, const char *language)
{
	const json_t *code = json_object_get(doc, "code");
	struct buf *fields = door_fields(c);

	if (json_string_length(code) > message_max_bytes(FIELD_code)) {
		reply(c, 200, -400, "code is too long", NULL);
		return;
	}
	message_put_number(fields, FIELD_kind, BRIG_KIND_CODE);
	message_put_text(fields, FIELD_language, language);
	message_put_bytes(fields, FIELD_code, json_string_value(code), json_string_length(code));
	door_ask(c, ROUTE_execute, FD_NONE, FD_NONE, on_result);
}

void dify_run(struct client *c)
{
	static const struct {
		const char *theirs, *ours;
	} languages[] = { { "python3", "python" }, { "nodejs", "javascript" } };
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = door_json(c, &err);
	const char *why = doc ? wrong_with(doc) : err.msg;
	unsigned bad = str_eq(c->req->content_type, "application/json") ? 400 : 200;
	size_t i = 0;

	while (!why && i < ARRAY_LEN(languages) && !str_eq(languages[i].theirs, text_of(doc, "language")))
		i++;
	if (why)
		reply(c, bad, -400, why, NULL);
	else if (i == ARRAY_LEN(languages))
		reply(c, 400, -400, "unsupported language", NULL);
	else
		run(c, doc, languages[i].ours);
	json_decref(doc);
}

/* ---- dependencies -------------------------------------------------------------------------------------------- */

/* Some callers name the language in a JSON body of the GET, which nothing here reads: to them the list is python3's. */
static void list(struct client *c)
{
	char language[32] = "";

	(void)door_query(c, "language", language, sizeof(language));
	if (!*language && !*c->req->content_type)
		reply(c, 200, -400, "language is required as a string", NULL);
	else if (*language && !str_eq(language, "python3"))
		reply(c, 400, -400, "unsupported language", NULL);
	else
		reply(c, 200, 0, "success", json_pack("{s:[]}", "dependencies"));
}

void dify_dependencies(struct client *c)
{
	door_when_let_in(c, list);
}

static void refuse_update(struct client *c)
{
	reply(c, 200, -400, "packages are those of the policy's environment: nothing is installed", NULL);
}

void dify_update(struct client *c)
{
	door_when_let_in(c, refuse_update);
}
