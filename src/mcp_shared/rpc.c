/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_shared/rpc.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* ---- lines ---------------------------------------------------------------------------------------- */

static bool is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r", line[i]) || !line[i])
			return false;
	return true;
}

static void end_line(struct rpc_lines *l, rpc_line_fn fn, void *user)
{
	if (l->skipping)
		fn(user, NULL, 0);
	else if (!is_blank(buf_str(&l->part), l->part.len))
		fn(user, buf_str(&l->part), l->part.len);
	l->part.len = 0;
	l->part.full = false;
	l->skipping = false;
}

void rpc_lines_feed(struct rpc_lines *l, const char *data, size_t len, rpc_line_fn fn, void *user)
{
	while (len > 0) {
		const char *newline = memchr(data, '\n', len);
		size_t piece = newline ? (size_t)(newline - data) : len;

		if (!l->skipping && buf_add(&l->part, data, piece) != piece)
			l->skipping = true;
		if (!newline)
			return;
		end_line(l, fn, user);
		data += piece + 1;
		len -= piece + 1;
	}
}

void rpc_lines_release(struct rpc_lines *l)
{
	buf_release(&l->part);
}

/* ---- received messages ----------------------------------------------------------------------------- */

/* Checks the depth (brackets outside strings) before the recursive parser sees the text. */
static bool is_too_deep(const char *text, size_t len)
{
	bool in_string = false;
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (in_string) {
			if (text[i] == '\\')
				i++;
			else if (text[i] == '"')
				in_string = false;
		} else if (text[i] == '"') {
			in_string = true;
		} else if (text[i] == '[' || text[i] == '{') {
			if (++depth > RPC_DEPTH_MAX)
				return true;
		} else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
			depth--;
		}
	}
	return false;
}

void rpc_bad(struct rpc_message *m, enum rpc_code code, const char *why)
{
	m->kind = RPC_BAD;
	m->code = code;
	(void)str_copy(m->why, sizeof(m->why), why);
}

static void load(const char *line, size_t len, struct rpc_message *ret)
{
	json_error_t error;

	if (!line) {
		rpc_bad(ret, RPC_PARSE, "the message is longer than 8 MiB: send less at once");
	} else if (!str_is_utf8(line, len)) {
		rpc_bad(ret, RPC_PARSE, "the message is not UTF-8");
	} else if (is_too_deep(line, len)) {
		rpc_bad(ret, RPC_PARSE, "the message is nested deeper than 64 levels");
	} else {
		ret->doc = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
		if (!ret->doc) {
			rpc_bad(ret, RPC_PARSE, "");
			(void)snprintf(ret->why, sizeof(ret->why), "the message is not JSON: %.100s", error.text);
			ret->why[str_utf8_prefix(ret->why, strlen(ret->why))] =
				'\0'; /* the quotation may end within a character */
		}
	}
}

static bool is_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

static void classify(struct rpc_message *m)
{
	const json_t *id = json_object_get(m->doc, "id"), *version = json_object_get(m->doc, "jsonrpc");
	const json_t *method = json_object_get(m->doc, "method");

	m->id = is_id(id) ? id : NULL;
	m->params = json_object_get(m->doc, "params");
	if (!json_is_string(version) || !str_eq(json_string_value(version), "2.0"))
		rpc_bad(m, RPC_INVALID, "\"jsonrpc\" must be \"2.0\"");
	else if (!method && (json_object_get(m->doc, "result") || json_object_get(m->doc, "error")))
		m->kind = RPC_RESPONSE;
	else if (!json_is_string(method) || strlen(json_string_value(method)) != json_string_length(method))
		rpc_bad(m, RPC_INVALID, "\"method\" must be a string");
	else if (id && !m->id)
		rpc_bad(m, RPC_INVALID, "\"id\" must be a string or an integer");
	else if (m->params && !json_is_object(m->params))
		rpc_bad(m, id ? RPC_PARAMS : RPC_INVALID, "\"params\" must be an object");
	else
		m->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
	m->method = json_string_value(method);
	if (!json_is_object(m->params))
		m->params = NULL;
}

void rpc_read(const char *line, size_t len, struct rpc_message *ret)
{
	*ret = (struct rpc_message){ .kind = RPC_NOTIFICATION };
	load(line, len, ret);
	if (ret->kind == RPC_BAD)
		return;
	if (json_is_array(ret->doc))
		rpc_bad(ret, RPC_INVALID, "batches are not served: send messages one by one");
	else if (!json_is_object(ret->doc))
		rpc_bad(ret, RPC_INVALID, "a message is a JSON object");
	else
		classify(ret);
}

void rpc_release(struct rpc_message *m)
{
	json_decref(m->doc);
	m->doc = NULL;
}

/* ---- messages to send ------------------------------------------------------------------------------ */

/* A copy of an id or progress token. */
static json_t *shared(const json_t *id)
{
	return id ? json_deep_copy(id) : json_null();
}

json_t *rpc_result(const json_t *id, json_t *result)
{
	return json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", shared(id), "result", result);
}

json_t *rpc_error(const json_t *id, enum rpc_code code, const char *why, json_t *data)
{
	json_t *error = json_pack("{s:i, s:s}", "code", (int)code, "message", why);

	if (data && json_object_set_new(error, "data", data) < 0) {
		json_decref(error);
		return NULL;
	}
	return json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", shared(id), "error", error);
}

json_t *rpc_notification(const char *method, json_t *params)
{
	return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}

json_t *rpc_request(const char *id, const char *method)
{
	return json_pack("{s:s, s:s, s:s}", "jsonrpc", "2.0", "id", id, "method", method);
}
