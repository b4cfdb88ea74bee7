/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - messages of the Connect protocol (connect.h) */
#include "server/doors/e2b/connect.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/str.h"

#define TYPE_UNARY  "application/json"
#define TYPE_STREAM "application/connect+json"
#define FRAME_HEAD  5
#define FLAG_END    2
#define FRAMES_MAX  4096
#define WHY_MAX     4096

#define STREAM_PENDING_MAX \
	(64 * MiB) /* queued for one client: commands write up to 100 MiB, faster than callbacks read it */

static const struct {
	const char *name;
	unsigned status;
} codes[] = {
#define CONNECT_CODE(name, status) [CONNECT_##name] = { #name, status },
#include "server/doors/e2b/connect.def"
};

/* ---- frames -------------------------------------------------------------------------------------------------- */

static void put_length(char dst[4], size_t len)
{
	for (int i = 0; i < 4; i++)
		dst[i] = (char)(unsigned char)(len >> (24 - 8 * i));
}

static size_t get_length(const char *bytes)
{
	size_t len = 0;

	for (int i = 0; i < 4; i++)
		len = len << 8 | (unsigned char)bytes[i];
	return len;
}

enum connect_frame connect_next(const char *bytes, size_t len, size_t *at, struct bytes *ret, const char **ret_why)
{
	size_t left = len - *at;

	if (left == 0)
		return CONNECT_NO_MORE;
	if (left < FRAME_HEAD || get_length(bytes + *at + 1) > left - FRAME_HEAD) {
		*ret_why = "a message is not whole";
		return CONNECT_BAD;
	}
	if (bytes[*at] & FLAG_END) {
		*at = len; /* the end of the stream, whatever the frame holds */
		return CONNECT_NO_MORE;
	}
	if (bytes[*at] != 0) {
		*ret_why = "a message is compressed, which is not taken: send it as it is";
		return CONNECT_BAD;
	}
	*ret = (struct bytes){ bytes + *at + FRAME_HEAD, get_length(bytes + *at + 1) };
	*at += FRAME_HEAD + ret->len;
	return CONNECT_FRAME;
}

static bool put_frame(struct client *c, char flag, const char *text, size_t len)
{
	AUTO_BUF frame = BUF_INIT(len + FRAME_HEAD);
	char head[FRAME_HEAD] = { flag };

	put_length(head + 1, len);
	(void)buf_add(&frame, head, sizeof(head));
	(void)buf_add(&frame, text, len);
	if (frame.no_memory || (!c->req->was_streaming && !door_stream_begin(c, TYPE_STREAM))) {
		if (frame.no_memory)
			client_close(c, true);
		return false;
	}
	return door_stream_put(c, frame.data, frame.len);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static bool has_type(const struct client *c, const char *type)
{
	const char *own = c->req->content_type;
	size_t len = strlen(type);

	return strncasecmp(own, type, len) == 0 && (own[len] == '\0' || strchr("; \t", own[len]));
}

static bool is_stream(const struct client *c)
{
	return has_type(c, TYPE_STREAM);
}

static json_t *parse(struct client *c, const struct bytes *text)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = text->len > 0 ? door_parse(text->data, text->len, &err) : json_object();

	if (doc && json_is_object(doc))
		return doc;
	connect_fail(c, CONNECT_invalid_argument, "%s", doc ? "a message must be a JSON object" : err.msg);
	json_decref(doc);
	return NULL;
}

static json_t *parse_frames(struct client *c)
{
	const char *bytes = buf_str(&c->req->body), *why = "there are too many messages";
	json_t *list = json_array(), *doc;
	enum connect_frame what = CONNECT_NO_MORE;
	struct bytes text;
	size_t at = 0;

	while (json_array_size(list) < FRAMES_MAX &&
	       (what = connect_next(bytes, c->req->body.len, &at, &text, &why)) == CONNECT_FRAME) {
		doc = parse(c, &text);
		if (!doc) {
			json_decref(list);
			return NULL;
		}
		(void)json_array_append_new(list, doc);
	}
	if (what == CONNECT_NO_MORE)
		return list;
	json_decref(list);
	connect_fail(c, CONNECT_invalid_argument, "%s", why);
	return NULL;
}

json_t *connect_requests(struct client *c)
{
	if (is_stream(c))
		return parse_frames(c);
	door_error(c, 415, "the Content-Type must be " TYPE_STREAM);
	return NULL;
}

json_t *connect_request(struct client *c)
{
	const struct bytes body = { buf_str(&c->req->body), c->req->body.len };
	json_t *list, *doc;

	if (has_type(c, TYPE_UNARY))
		return parse(c, &body);
	list = connect_requests(c);
	if (!list)
		return NULL;
	doc = json_incref(json_array_get(list, 0));
	if (!doc)
		connect_fail(c, CONNECT_invalid_argument, "there is no message");
	json_decref(list);
	return doc;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

bool connect_put(struct client *c, json_t *message)
{
	AUTO_FREE char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

	json_decref(message);
	if (text && client_pending(c) < STREAM_PENDING_MAX)
		return put_frame(c, 0, text, strlen(text));
	client_close(c, true); /* no memory, or the client does not read: its command goes on without it */
	return false;
}

void connect_end(struct client *c)
{
	if (put_frame(c, FLAG_END, "{}", 2))
		door_stream_end(c);
}

void connect_reply(struct client *c, json_t *message)
{
	if (!is_stream(c))
		door_reply(c, 200, message);
	else if (connect_put(c, message))
		connect_end(c);
}

void connect_fail(struct client *c, enum connect_code code, const char *fmt, ...)
{
	char why[WHY_MAX];
	va_list ap;
	json_t *doc;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	doc = json_pack("{s:s, s:s%}", "code", codes[code].name, "message", why, str_utf8_prefix(why, strlen(why)));
	if (!is_stream(c)) {
		door_reply(c, codes[code].status, doc);
	} else {
		json_t *end = json_pack("{s:o}", "error", doc);
		AUTO_FREE char *text = end ? json_dumps(end, JSON_COMPACT) : NULL;

		json_decref(end);
		if (put_frame(c, FLAG_END, text ? text : "{}", text ? strlen(text) : 2))
			door_stream_end(c);
	}
}

enum connect_code connect_code_of(int error)
{
	switch (error) {
	case ENOENT:
	case ESRCH:
		return CONNECT_not_found;
	case EEXIST:
		return CONNECT_already_exists;
	case EACCES:
	case EPERM:
	case EROFS:
		return CONNECT_permission_denied;
	case ENOTDIR:
	case EISDIR:
	case EINVAL:
	case ENAMETOOLONG:
	case E2BIG:
	case ELOOP:
		return CONNECT_invalid_argument;
	case ENOSPC:
	case EDQUOT:
	case EAGAIN:
		return CONNECT_resource_exhausted;
	default:
		return CONNECT_CODES;
	}
}

static enum connect_code code_named(const char *name)
{
	for (int i = 0; i < CONNECT_CODES; i++)
		if (str_eq(codes[i].name, name))
			return (enum connect_code)i;
	return CONNECT_internal;
}

/*
 * If the sandbox ended while the stream ran, the connection breaks, as it would with the VM that the client expects;
 * the client then asks for the sandbox's health.
 */
void connect_refuse(struct client *c, unsigned status, const struct message *m)
{
	enum connect_code code = connect_code_of((int)min_u64(message_number(m, FIELD_error_number, 0), 4095));
	json_t *doc;

	if (e2b_is_gone(status, m)) {
		if (c->req->was_streaming)
			client_close(c, true);
		else
			e2b_gone(c);
		return;
	}
	doc = door_answer_json(m);
	if (code == CONNECT_CODES)
		code = code_named(e2b_connect_code(status));
	connect_fail(c, code, "%s", door_answer_message(doc));
	json_decref(doc);
}

/* ---- users ----------------------------------------------------------------------------------------------------- */

/* Every name maps to the one user that the session's programs run as, so root is accepted as well. */
bool connect_is_user(const char *name)
{
	return *name == '\0' || str_eq(name, E2B_USER) || str_eq(name, "root");
}

bool connect_check_user(struct client *c)
{
	const char *line = door_line(c, "Authorization");
	char plain[260];
	size_t len;
	ssize_t n;

	if (!line || strncasecmp(line, "Basic ", 6) != 0)
		return true;
	len = strlen(line + 6);
	n = len / 4 * 3 < sizeof(plain) ? base64_get(plain, line + 6, len) : -1;
	plain[n > 0 ? n : 0] = '\0';
	plain[strcspn(plain, ":")] = '\0';
	if (n >= 0 && connect_is_user(plain))
		return true;
	if (is_stream(c))
		connect_fail(c, CONNECT_unauthenticated, "there is no such user");
	else
		door_error(c, 401, "there is no such user");
	return false;
}

void connect_serve(struct client *c, void (*fn)(struct client *c, const json_t *request))
{
	json_t *request = connect_check_user(c) ? connect_request(c) : NULL;

	if (!request)
		return;
	fn(c, request);
	json_decref(request);
}

/* ---- members --------------------------------------------------------------------------------------------------- */

const char *connect_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

uint64_t connect_number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	uint64_t n = 0;

	if (json_is_integer(value))
		return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
	return json_is_string(value) && str_to_u64(json_string_value(value), &n) ? n : 0;
}

char *connect_bytes(const json_t *object, const char *name, size_t *ret_len)
{
	const json_t *value = json_object_get(object, name);
	size_t len = json_string_length(value);
	char *bytes = malloc(len / 4 * 3 + 1);
	ssize_t n = bytes ? base64_get(bytes, json_is_string(value) ? json_string_value(value) : "", len) : -1;

	if (n < 0) {
		free(bytes);
		return NULL;
	}
	*ret_len = (size_t)n;
	return bytes;
}
