/* SPDX-License-Identifier: Apache-2.0 */
/* door.c - from a head to a handler of a door, and from there to the runner and back (door.h) */
#include "server/doors/door.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>

#include "base/base64.h"
#include "base/str.h"
#include "server/front/body.h"
#include "server/front/websocket.h"

#define KEY_MAX      256
#define KEY_PATH     "/t/"
#define KEY_ALPHABET "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static const struct door_route routes[] = {
#define DOOR_ROUTE(d, verb, pattern, takes, opened, function, text) \
	{ .door = DOOR_##d,                                         \
	  .method = #verb,                                          \
	  .path = pattern,                                          \
	  .summary = text,                                          \
	  .body = DOOR_BODY_##takes,                                \
	  .access = DOOR_ACCESS_##opened,                           \
	  .handler = function },
#include "server/doors.def"
};

/* Routes for requests that a header field claims for a door (DOOR_OWN) and that match none of its rows. */
static const struct {
	const char *line;
	struct door_route row;
} owns[] = {
#define DOOR_OWN(d, name, function)               \
	{ .line = name,                           \
	  .row = { .door = DOOR_##d,              \
		   .method = "ANY",               \
		   .path = "/{path}",             \
		   .body = DOOR_BODY_BODY,        \
		   .access = DOOR_ACCESS_SESSION, \
		   .handler = function } },
#include "server/doors.def"
};

/* The same for requests to a host name of a session's port. */
static const struct {
	uint16_t port;
	const char *session_line, *port_line;
	struct door_route row;
} ports[] = {
#define DOOR_PORT(d, number, of_session, of_port, function) \
	{ .port = (number),                                 \
	  .session_line = of_session,                       \
	  .port_line = of_port,                             \
	  .row = { .door = DOOR_##d,                        \
		   .method = "ANY",                         \
		   .path = "/{path}",                       \
		   .body = DOOR_BODY_BODY,                  \
		   .access = DOOR_ACCESS_SESSION,           \
		   .handler = function } },
#include "server/doors.def"
};

static const struct {
	enum door door;
	void (*reply)(struct client *c, const char *session, uint16_t port, enum door_absence why);
} absent[] = {
#define DOOR_ABSENT(d, function) { DOOR_##d, function },
#include "server/doors.def"
};

static void (*const errors[DOOR_COUNT])(struct client *c, unsigned status, const char *message) = {
#define DOOR(name, title, keys, trust, move) [DOOR_##name] = name##_error,
#include "server/doors.def"
};

void door_error(struct client *c, unsigned status, const char *message)
{
	errors[c->req->call->door](c, status, message);
}

/* ---- routes ------------------------------------------------------------------------------------------------- */

void door_call_free(struct door_call *call)
{
	if (!call)
		return;
	if (call->release)
		call->release(call->state);
	if (call->head.data) /* may hold a key */
		explicit_bzero(call->head.data, call->head.len);
	buf_release(&call->head);
	buf_release(&call->lines);
	json_decref(call->variables);
	free(call);
}

/* The row that claims the request by a header field; NULL: none. */
static const struct door_route *find_owner(const struct client *c, const char *bytes, const struct http1_head *head)
{
	for (size_t i = 0; i < ARRAY_LEN(owns); i++)
		if (c->front->options->doors.is_open[owns[i].row.door] && http1_find(bytes, head, owns[i].line))
			return &owns[i].row;
	return NULL;
}

bool door_owns(const struct client *c, const char *bytes, const struct http1_head *head)
{
	return find_owner(c, bytes, head) != NULL;
}

/* True if the request matches this row; *ret_is_path: its path does, whatever the method. */
static bool is_for(const struct client *c, const struct door_route *row, const char *method, size_t method_len,
		   struct http1_text path, const char *bytes, struct route_match *m, bool *ret_is_path)
{
	if (!c->front->options->doors.is_open[row->door] ||
	    !route_fits(row->path, bytes + path.at, bytes + path.at + path.len, m))
		return false;
	*ret_is_path = true;
	return str_eq(row->method, "ANY") ||
	       (strlen(row->method) == method_len && memcmp(row->method, method, method_len) == 0);
}

/* Cuts the key from "/t/KEY/rest", leaving the rest as path; false: there is no key in the path. */
static bool cut_key(const char *bytes, struct http1_text *path, struct http1_text *ret_key)
{
	const size_t skip = strlen(KEY_PATH);
	const char *at = bytes + path->at, *slash;

	if (path->len <= skip || memcmp(at, KEY_PATH, skip) != 0)
		return false;
	slash = memchr(at + skip, '/', path->len - skip);
	if (!slash)
		return false;
	*ret_key = (struct http1_text){ path->at + skip, (size_t)(slash - at) - skip };
	path->len -= (size_t)(slash - at);
	path->at += (size_t)(slash - at);
	return true;
}

/* "/mcp/" is "/mcp": base addresses are often configured with a slash at their end, and the originals take them. */
static struct http1_text without_slash(const char *bytes, struct http1_text path)
{
	if (path.len > 1 && bytes[path.at + path.len - 1] == '/')
		path.len--;
	return path;
}

static bool make_call(struct client *c, const struct door_route *row, const struct route_match *m)
{
	struct door_call *call = calloc(1, sizeof(*call));

	if (!call)
		return false;
	call->door = row->door;
	call->route = row;
	call->head = (struct buf)BUF_INIT(16 * KiB);
	call->lines = (struct buf)BUF_INIT(HTTP1_HEAD_MAX * 2);
	(void)str_copy(call->id, sizeof(call->id), m->id);
	(void)str_copy(call->path, sizeof(call->path), m->path);
	c->req->call = call;
	return true;
}

/* With owner, only the SESSION rows of its door match, or else owner itself; NULL: any row may match. */
static bool find_row(struct client *c, const char *bytes, const struct http1_head *head, const struct door_route *owner)
{
	struct http1_text path = head->path, key = { 0 };
	const char *method = bytes + head->method.at;
	const struct door_route *by_path = NULL;
	struct route_match m = { .route = ROUTE_COUNT };

	(void)cut_key(bytes, &path, &key);
	if (path.len == 0 || bytes[path.at] != '/')
		return false;
	path = without_slash(bytes, path);
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		bool is_path = false;

		if (owner && (routes[i].door != owner->door || routes[i].access != DOOR_ACCESS_SESSION))
			continue;
		if (is_for(c, &routes[i], method, head->method.len, path, bytes, &m, &is_path))
			return make_call(c, &routes[i], &m);
		if (is_path && !by_path)
			by_path = &routes[i];
	}
	if (owner && !by_path)
		return make_call(c, owner, &m);
	if (!by_path || !make_call(c, by_path, &m))
		return false;
	c->req->call->route = NULL; /* wrong method: door_begin() answers 405 */
	return true;
}

bool door_find_route(struct client *c, const char *bytes, const struct http1_head *head)
{
	return find_row(c, bytes, head, find_owner(c, bytes, head));
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static bool is_key(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr(KEY_ALPHABET, text[i]))
			return false;
	return len > 0 && len <= KEY_MAX;
}

static bool keep_key(const char *text, size_t len, char dst[KEY_MAX + 1])
{
	if (!is_key(text, len))
		return false;
	memcpy(dst, text, len);
	dst[len] = '\0';
	return true;
}

/* From "user:password" in base64: the password, or the user name if the password is empty. */
static bool read_basic(const char *text, size_t len, char dst[KEY_MAX + 1])
{
	char plain[2 * KEY_MAX];
	ssize_t n = len / 4 * 3 <= sizeof(plain) ? base64_get(plain, text, len) : -1;
	const char *colon = n > 0 ? memchr(plain, ':', (size_t)n) : NULL;
	bool is_good = false;

	if (colon && colon + 1 < plain + n)
		is_good = keep_key(colon + 1, (size_t)(plain + n - colon - 1), dst);
	else if (colon)
		is_good = keep_key(plain, (size_t)(colon - plain), dst);
	explicit_bzero(plain, sizeof(plain));
	return is_good;
}

static bool starts_with(const char *text, size_t len, const char *word)
{
	return len > strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

/* Finds a well-formed key; *ret_is_sent: the client sent a credential, even if a malformed one. */
static bool find_key(const struct client *c, const char *bytes, const struct http1_head *head, char dst[KEY_MAX + 1],
		     bool *ret_is_sent)
{
	unsigned keys = door_rows[c->req->call->door].keys;
	const struct http1_line *line = http1_find(bytes, head, "Authorization");
	const struct http1_line *own = keys & DOOR_KEY_HEADER ? http1_find(bytes, head, "X-API-Key") : NULL;
	struct http1_text path = head->path, key;
	const char *value = line ? bytes + line->value.at : "";
	size_t len = line ? line->value.len : 0;

	*ret_is_sent = true;
	if (cut_key(bytes, &path, &key))
		return keep_key(bytes + key.at, key.len, dst);
	if (own)
		return http1_count(bytes, head, "X-API-Key") == 1 &&
		       keep_key(bytes + own->value.at, own->value.len, dst);
	if (line && http1_count(bytes, head, "Authorization") > 1)
		return false;
	if (keys & DOOR_KEY_BEARER && starts_with(value, len, "Bearer "))
		return keep_key(value + strlen("Bearer "), len - strlen("Bearer "), dst);
	if (keys & DOOR_KEY_BASIC && starts_with(value, len, "Basic "))
		return read_basic(value + strlen("Basic "), len - strlen("Basic "), dst);
	*ret_is_sent = line != NULL;
	return false;
}

/* The runner authenticates the key; a request without any credential need not reach it. */
static bool take_key(struct client *c, const char *bytes, const struct http1_head *head)
{
	struct door_call *call = c->req->call;
	char key[KEY_MAX + 1] = "";
	bool is_session = call->route->access == DOOR_ACCESS_SESSION, is_sent = false;
	bool is_good = !is_session && find_key(c, bytes, head, key, &is_sent);

	message_put_text(&call->head, FIELD_request_id, c->req->id);
	message_put_text(&call->head, FIELD_traceparent, c->req->trace[0] ? c->req->trace : NULL);
	message_put_number(&call->head, FIELD_door, call->door);
	if (is_good)
		message_put_text(&call->head, FIELD_credential, key);
	explicit_bzero(key, sizeof(key));
	if (is_good || call->route->access != DOOR_ACCESS_KEY || c->front->options->no_auth ||
	    (!is_sent && c->listener->is_unix))
		return true;
	reply_refuse(c, 401, "%s",
		     is_sent ? "the key is no token of brig's"
			     : "this needs a token: 'brig token create --door' makes one");
	return false;
}

/* ---- heads ----------------------------------------------------------------------------------------------------- */

static const struct {
	enum door door;
	const char *name;
} lines[] = {
#define DOOR_LINE(d, text) { .door = DOOR_##d, .name = text },
#include "server/doors.def"
};

static void keep_line(struct door_call *call, const char *name, const char *bytes, const struct http1_head *head)
{
	bool is_first = true;

	for (size_t i = 0; i < head->n_lines; i++) {
		if (!http1_is(bytes, head->line[i].name, name))
			continue;
		if (is_first)
			(void)buf_add(&call->lines, name, strlen(name) + 1);
		else
			(void)buf_adds(&call->lines, ", ");
		(void)buf_add(&call->lines, bytes + head->line[i].value.at, head->line[i].value.len);
		is_first = false;
	}
	if (!is_first)
		(void)buf_add(&call->lines, "", 1);
}

/* Keeps each field with this prefix as an entry of its own, the rest of its name in lower case. */
static void keep_prefixed(struct door_call *call, const char *prefix, size_t len, const char *bytes,
			  const struct http1_head *head)
{
	for (size_t i = 0; i < head->n_lines; i++) {
		const struct http1_text *name = &head->line[i].name, *value = &head->line[i].value;

		if (name->len <= len || strncasecmp(bytes + name->at, prefix, len) != 0)
			continue;
		(void)buf_add(&call->lines, prefix, len);
		for (size_t k = len; k < name->len; k++) {
			char letter = bytes[name->at + k];

			letter = (char)(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
			(void)buf_add(&call->lines, &letter, 1);
		}
		(void)buf_add(&call->lines, "", 1);
		(void)buf_add(&call->lines, bytes + value->at, value->len);
		(void)buf_add(&call->lines, "", 1);
	}
}

const char *door_next_line(const struct client *c, const char *prefix, size_t *at, const char **ret_value)
{
	const struct buf *kept = &c->req->call->lines;

	while (*at < kept->len) {
		const char *name = kept->data + *at, *value = name + strlen(name) + 1;

		*at += strlen(name) + 1 + strlen(value) + 1;
		if (strncmp(name, prefix, strlen(prefix)) == 0) {
			*ret_value = value;
			return name;
		}
	}
	return NULL;
}

const char *door_line(const struct client *c, const char *name)
{
	const struct buf *kept = &c->req->call->lines;

	for (size_t at = 0; at < kept->len; at += strlen(kept->data + at) + 1) {
		const char *own = kept->data + at;

		at += strlen(own) + 1;
		if (str_eq(own, name))
			return kept->data + at;
	}
	return NULL;
}

static void keep_lines(struct client *c, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *type = http1_find(bytes, head, "Content-Type");
	struct door_call *call = c->req->call;
	size_t len = min_u64(head->query.len, sizeof(call->query) - 1);

	memcpy(call->query, bytes + head->query.at, len);
	call->query[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (lines[i].door == call->door && lines[i].name[strlen(lines[i].name) - 1] == '*')
			keep_prefixed(call, lines[i].name, strlen(lines[i].name) - 1, bytes, head);
		else if (lines[i].door == call->door)
			keep_line(call, lines[i].name, bytes, head);
	if (!type || type->value.len >= sizeof(c->req->content_type))
		return;
	memcpy(c->req->content_type, bytes + type->value.at, type->value.len);
	c->req->content_type[type->value.len] = '\0';
}

static bool pass_guard(struct client *c)
{
	static bool (*const guards[DOOR_COUNT])(struct client * c) = {
#define DOOR_GUARD(d, handler) [DOOR_##d] = handler,
#include "server/doors.def"
	};

	return !guards[c->req->call->door] || guards[c->req->call->door](c);
}

void door_begin(struct client *c, const char *bytes, const struct http1_head *head)
{
	struct door_call *call = c->req->call;

	if (!call->route) {
		c->is_last |= head->body != HTTP1_BODY_NONE;
		door_error(c, 405, "Method Not Allowed");
		return;
	}
	if (!take_key(c, bytes, head))
		return;
	if (http1_find(bytes, head, "Content-Encoding") && call->route->access != DOOR_ACCESS_SESSION) {
		reply_refuse(c, 415, "a Content-Encoding is not taken: send the body as it is");
		return;
	}
	if (head->body == HTTP1_BODY_LENGTH && head->length > c->front->body_max) {
		reply_refuse(c, 413, "a body of %llu bytes is longer than the %llu that are taken here",
			     (unsigned long long)head->length, (unsigned long long)c->front->body_max);
		return;
	}
	keep_lines(c, bytes, head);
	if (!pass_guard(c))
		return;
	if (call->route->body == DOOR_BODY_SOCKET && !websocket_check(c, bytes, head))
		return;
	if (head->body != HTTP1_BODY_NONE)
		request_read_body(c, head);
	else
		request_finish(c);
}

/* ---- host names of ports --------------------------------------------------------------------------------------- */

/* Returns ARRAY_LEN(ports) if there is none. */
static size_t find_port(const struct client *c, uint16_t port)
{
	size_t i = 0;

	while (i < ARRAY_LEN(ports) && (ports[i].port != port || !c->front->options->doors.is_open[ports[i].row.door]))
		i++;
	return i;
}

bool door_has_port(const struct client *c, uint16_t port)
{
	return find_port(c, port) < ARRAY_LEN(ports);
}

static void put_line(struct door_call *call, const char *name, const char *value)
{
	(void)buf_add(&call->lines, name, strlen(name) + 1);
	(void)buf_add(&call->lines, value, strlen(value) + 1);
}

void door_begin_port(struct client *c, const char *bytes, const struct http1_head *head, const char *session,
		     uint16_t port)
{
	size_t i = find_port(c, port);
	char number[8];

	if (!find_row(c, bytes, head, &ports[i].row)) {
		reply_refuse(c, 503, "the service has too much to do: try again in a moment");
		return;
	}
	(void)snprintf(number, sizeof(number), "%u", port);
	put_line(c->req->call, ports[i].session_line,
		 session); /* before the client's own header fields: door_line() finds the first */
	put_line(c->req->call, ports[i].port_line, number);
	door_begin(c, bytes, head);
}

bool door_reply_absent(struct client *c, const char *session, uint16_t port, enum door_absence why)
{
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		if (c->front->options->doors.is_open[absent[i].door]) {
			absent[i].reply(c, session, port, why);
			return true;
		}
	return false;
}

/* ---- requests to the runner ------------------------------------------------------------------------------------ */

struct buf *door_fields(struct client *c)
{
	struct request *req = c->req;

	if (req->fields.data)
		explicit_bzero(req->fields.data, req->fields.len);
	buf_release(&req->fields);
	req->fields = (struct buf)BUF_INIT(MESSAGE_MAX);
	(void)buf_add(&req->fields, buf_str(&req->call->head), req->call->head.len);
	return &req->fields;
}

void door_ask(struct client *c, enum route route, int files, int input,
	      void (*on_answer)(struct client *c, unsigned status, const struct message *m))
{
	message_put_number(&c->req->fields, FIELD_route, route);
	c->req->call->on_answer = on_answer;
	request_ask(c, files, input);
}

void door_keep_body(struct client *c)
{
	c->req->keeps_body = true;
}

void door_give_up(struct client *c)
{
	if (!c->req->tag)
		return;
	front_send(c->front, &(struct record){ .type = RECORD_GONE, .tag = c->req->tag });
	front_drop_tag(c->front, c);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

void door_reply_bytes(struct client *c, unsigned status, const char *content_type, const void *body, size_t len)
{
	reply_send(c, &(struct reply){ .status = status, .content_type = content_type, .body = body, .len = len });
}

void door_reply(struct client *c, unsigned status, json_t *doc)
{
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(doc);
	if (text)
		door_reply_bytes(c, status, "application/json; charset=utf-8", text, strlen(text));
	else
		client_close(c, true);
}

json_t *door_parse(const char *text, size_t len, struct brig_error *err)
{
	return body_parse(text, len, err);
}

json_t *door_json(struct client *c, struct brig_error *err)
{
	return door_parse(buf_str(&c->req->body), c->req->body.len, err);
}

json_t *door_answer_json(const struct message *m)
{
	size_t len = 0;
	const char *body = message_bytes(m, FIELD_body, &len);

	return body ? json_loadb(body, len, JSON_ALLOW_NUL, NULL) : NULL;
}

const char *door_answer_message(const json_t *doc)
{
	const char *text = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));

	return text ? text : "the service gave no reason";
}

bool door_stream_begin(struct client *c, const char *content_type)
{
	return stream_begin(c, content_type);
}

bool door_stream_put(struct client *c, const void *bytes, size_t len)
{
	struct iovec part = { .iov_len = len };

	memcpy(&part.iov_base, &bytes, sizeof(bytes)); /* only read */
	return stream_put(c, &part, 1);
}

void door_stream_end(struct client *c)
{
	stream_end(c);
}
