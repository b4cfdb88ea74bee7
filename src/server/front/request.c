/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - from a head to a request or a refusal; from a complete request to an answer or a message to the runner */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/sealed.h"
#include "base/str.h"
#include "server/doors/door.h"
#include "server/front/port.h"

#define ID_LEN          16
#define IDEMPOTENCY_MAX 128
#define POLICY_OF_FILES "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"

struct request *request_new(struct client *c)
{
	struct request *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->route = ROUTE_COUNT;
	req->fields = (struct buf)BUF_INIT(MESSAGE_MAX);
	req->body = (struct buf)BUF_INIT(c->front->body_max);
	req->began_ns = clock_now_ns();
	if (id_random(req->id, ID_LEN) < 0)
		(void)str_copy(req->id, sizeof(req->id), "unknown");
	c->req = req;
	c->front->n_active++;
	return req;
}

static void forget_body(struct client *c)
{
	c->front->spooled -= c->req->body.len;
	buf_release(&c->req->body);
	c->req->body = (struct buf)BUF_INIT(0);
}

static void forget_fields(struct request *req)
{
	if (req->fields.data) /* they may contain a credential */
		explicit_bzero(req->fields.data, req->fields.len);
	buf_release(&req->fields);
}

void request_free(struct client *c)
{
	if (!c->req)
		return;
	if (c->req->tag)
		front_drop_tag(c->front, c);
	forget_body(c);
	forget_fields(c->req);
	door_call_free(c->req->call);
	port_close(c->req->port);
	free(c->req);
	c->req = NULL;
	c->front->n_active--;
}

/* ---- heads -------------------------------------------------------------------------------------------- */

/* Out of memory. */
static bool refuse_lost(struct client *c, const struct http1_head *head)
{
	c->is_last |= head->body != HTTP1_BODY_NONE;
	reply_error(c, 503, "the service has too much to do: try again in a moment");
	return false;
}

/* The console's address is a door's for clients other than browsers, which name the type of pages. */
static bool is_of_door(struct client *c, enum route route, const char *bytes, const struct http1_head *head)
{
	return route == ROUTE_page && !c->req->is_head &&
	       !http1_has_word(bytes, head, "Accept", "text/html", strlen("text/html")) &&
	       door_find_route(c, bytes, head);
}

static bool find_route(struct client *c, const char *bytes, const struct http1_head *head)
{
	struct request *req = c->req;
	struct route_match m;
	size_t len = head->path.len;

	if (door_owns(c, bytes, head))
		return door_find_route(c, bytes, head) || refuse_lost(c, head);
	route_find(bytes + head->method.at, head->method.len, len ? bytes + head->path.at : "/", len ? len : 1, &m);
	if (((m.route == ROUTE_COUNT || m.is_wrong_method) && door_find_route(c, bytes, head)) ||
	    is_of_door(c, m.route, bytes, head))
		return true;
	if (m.route == ROUTE_COUNT || m.is_wrong_method) {
		c->is_last |= head->body != HTTP1_BODY_NONE; /* which is not read */
		if (!m.is_wrong_method)
			reply_error(c, 404, "there is nothing at '%.*s'%s%s: /openapi.json tells what there is",
				    (int)min_u64(len, 200), bytes + head->path.at, m.why ? ", because " : "",
				    m.why ? m.why : "");
		else
			reply_not_allowed(c, route_rows[m.route].path, m.allow);
		return false;
	}
	if (route_is_events(m.route) && req->is_head) { /* a stream has no length */
		reply_not_allowed(c, route_rows[m.route].path, "GET");
		return false;
	}
	req->route = m.route;
	(void)str_copy(req->path, sizeof(req->path), m.path);
	message_put_number(&req->fields, FIELD_route, m.route);
	if (m.id[0])
		message_put_text(&req->fields, FIELD_id, m.id);
	if (m.item)
		message_put_number(&req->fields, FIELD_item, m.item);
	if (m.path[0])
		message_put_text(&req->fields, FIELD_path, m.path);
	return true;
}

static bool read_query(struct client *c, const char *bytes, const struct http1_head *head)
{
	struct brig_error err = BRIG_ERROR_INIT;

	/* Requests outside of the API may have parameters that browsers use to bypass caches. */
	if (route_rows[c->req->route].answers == ANSWERS_FRONT ||
	    route_query(c->req->route, bytes + head->query.at, head->query.len, &c->req->fields, &err) == 0)
		return true;
	c->is_last |= head->body != HTTP1_BODY_NONE;
	reply_error(c, 400, "%s", err.msg);
	return false;
}

/* Routes that start something and thus accept an Idempotency-Key. */
static bool takes_key(enum route route)
{
	enum route_body body = route_rows[route].body;

	return route == ROUTE_session_make || route == ROUTE_session_fork || route == ROUTE_session_run ||
	       route == ROUTE_process_start || body == BODY_JOB || body == BODY_BATCH || body == BODY_ENVIRONMENT;
}

static bool read_idempotency(struct client *c, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *line = http1_find(bytes, head, "Idempotency-Key");
	char text[IDEMPOTENCY_MAX + 1];

	if (!line || !takes_key(c->req->route))
		return true;
	if (line->value.len == 0 || line->value.len > IDEMPOTENCY_MAX ||
	    http1_count(bytes, head, "Idempotency-Key") > 1) {
		reply_refuse(c, 400, "Idempotency-Key must be there once and have 1 to %d characters", IDEMPOTENCY_MAX);
		return false;
	}
	memcpy(text, bytes + line->value.at, line->value.len);
	text[line->value.len] = '\0';
	message_put_text(&c->req->fields, FIELD_idempotency_key, text);
	return true;
}

void request_read_body(struct client *c, const struct http1_head *head)
{
	char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct iovec piece = { text, strlen(text) };

	http1_body_begin(&c->req->reader, head);
	c->state = CLIENT_BODY;
	deadline_set(c, DEADLINE_BODY);
	if (head->expects_continue && c->in_at == c->in.len)
		(void)client_put(c, &piece, 1);
}

void request_begin(struct client *c, const char *bytes, const struct http1_head *head)
{
	struct request *req = c->req;

	req->version_1_0 = head->version_1_0;
	req->keep_alive = head->keep_alive;
	req->is_head = http1_is(bytes, head->method, "HEAD");
	(void)snprintf(req->method, sizeof(req->method), "%.*s",
		       (int)min_u64(head->method.len, sizeof(req->method) - 1), bytes + head->method.at);
	check_id(req, bytes, head);
	if (head->form == HTTP1_AUTHORITY) {
		reply_refuse(c, 501, "this is no proxy: ask for a path");
		return;
	}
	if (head->form == HTTP1_ASTERISK) {
		c->is_last = true;
		reply_not_allowed(c, "*", "GET, HEAD, POST, PUT, DELETE");
		return;
	}
	if (port_take_host(c, bytes, head) || !check_host(c, bytes, head) || port_take_path(c, bytes, head) ||
	    !find_route(c, bytes, head))
		return;
	if (req->call) {
		door_begin(c, bytes, head);
		return;
	}
	if (!check_credentials(c, bytes, head) || !check_media(c, bytes, head) || !read_query(c, bytes, head) ||
	    !read_idempotency(c, bytes, head))
		return;
	if (req->route == ROUTE_session_link)
		port_put_origin(c, bytes, head);
	if (req->wants_stream)
		message_put_number(&req->fields, FIELD_stream, 1);
	if (head->body != HTTP1_BODY_NONE)
		request_read_body(c, head);
	else
		request_finish(c);
}

/* ---- complete requests ----------------------------------------------------------------------------------- */

static int read_body(struct client *c, int *ret_files, struct brig_error *err)
{
	struct request *req = c->req;
	const struct bytes body = { buf_str(&req->body), req->body.len };

	if (req->media == MEDIA_FORM)
		return form_to_fields(req->route, req->content_type, &body, &req->fields, ret_files, err);
	*ret_files = FD_NONE;
	if (req->media == MEDIA_TAR)
		return tar_to_file(body.data, body.len, ret_files, err);
	if (req->media == MEDIA_FILE) {
		*ret_files = sealed_make("file", body.data, body.len);
		return *ret_files < 0 ? err_set(err, BRIG_E_SYSTEM, -*ret_files, "there is no room for the file") : 0;
	}
	if (req->media == MEDIA_LINES)
		return batch_lines_to_fields(body.data, body.len, &req->fields, err);
	return body_to_fields(req->route, &body, &(struct body_parts){ 0 }, &req->fields, ret_files, err);
}

/* Validates the message, so that an invalid one is an error for this client; the runner would cut off the front. */
static bool is_sound(struct client *c)
{
	const struct buf *fields = &c->req->fields;
	const char *why;
	struct message m;

	if (fields->no_memory || !front_can_ask(c->front))
		reply_error(c, 503, "the service has too much to do: try again in a moment");
	else if (fields->full)
		reply_error(c, 413, "the request is longer than the %llu MB that can be passed on",
			    (unsigned long long)(MESSAGE_MAX / MiB));
	else if (!message_read(fields->data, fields->len, &m, &why))
		reply_error(c, 400, "the request has %s", why);
	else
		return true;
	return false;
}

void request_ask(struct client *c, int files, int input)
{
	struct request *req = c->req;
	struct record r = { .type = RECORD_ASK };

	if (!req->keeps_body)
		forget_body(c);
	req->keeps_body = false;
	if (files >= 0) {
		message_put_number(&req->fields, FIELD_has_files, 1);
		r.fds[r.n_fds++] = files;
	}
	if (input >= 0) {
		message_put_number(&req->fields, FIELD_has_input_fd, 1);
		r.fds[r.n_fds++] = input;
	}
	if (c->listener->is_unix) { /* the runner, not the front, asks the kernel for the user */
		message_put_number(&req->fields, FIELD_has_peer, 1);
		r.fds[r.n_fds++] = c->source.fd;
	}
	if (!is_sound(c))
		return;
	front_add_tag(c->front, c);
	r.tag = req->tag;
	r.data = req->fields.data;
	r.len = req->fields.len;
	front_send(c->front, &r); /* first: the runner works while this round goes on */
	if (c->state != CLIENT_SOCKET) {
		c->state = CLIENT_ASKED;
		deadline_set(c, DEADLINE_NONE);
		front_watch(c->front, &c->source, EPOLLRDHUP); /* RULE F4 */
	}
	forget_fields(req);
}

void request_finish(struct client *c)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD files = FD_NONE;
	int rc = 0;

	if (c->req->call) {
		c->req->call->route->handler(c);
		return;
	}
	if (route_rows[c->req->route].answers == ANSWERS_FRONT) {
		page_answer(c);
		return;
	}
	if (route_rows[c->req->route].body != BODY_NONE)
		rc = read_body(c, &files, &err);
	forget_body(c);
	if (rc < 0)
		reply_error(c, err.code == BRIG_E_USAGE ? 400 : 503, "%s", err.msg);
	else
		request_ask(c, files, FD_NONE);
}

/* ---- answers of the runner ---------------------------------------------------------------------------------- */

/* Content-Disposition with the last component of the path. */
static void name_file(const char *path, char *dst, size_t size)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = (size_t)snprintf(dst, size, "Content-Disposition: attachment; filename*=UTF-8''");

	for (; *name && len + 6 < size; name++) {
		bool is_plain =
			strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *name) != NULL;

		len += (size_t)snprintf(dst + len, size - len, is_plain ? "%c" : "%%%02X", (unsigned char)*name);
	}
	(void)snprintf(dst + len, size - len, "\r\n");
}

/* A text of the runner for a header; NULL if it has control characters. */
static const char *line_text(const struct message *m, enum field f)
{
	const char *text = message_text(m, f);

	for (const char *at = text; at && *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return NULL;
	return text;
}

static void keep_for_log(struct request *req, const struct message *m)
{
	const char *who = message_text(m, FIELD_who), *execution = message_text(m, FIELD_execution);
	const char *verdict = message_text(m, FIELD_verdict);

	if (who)
		(void)str_copy(req->who, sizeof(req->who), who);
	if (execution)
		(void)str_copy(req->execution, sizeof(req->execution), execution);
	if (verdict)
		(void)str_copy(req->verdict, sizeof(req->verdict), verdict);
}

void request_on_answer(struct client *c, struct record *r)
{
	struct request *req = c->req;
	struct reply a = { .status = r->status };
	char disposition[700];
	const char *why;
	struct message m;

	front_drop_tag(c->front, c);
	if (!message_read(r->data, r->len, &m, &why)) {
		log_trouble(c->front, why);
		client_close(c, true);
		return;
	}
	keep_for_log(req, &m);
	if (req->port) {
		port_on_answer(c, r, &m);
		return;
	}
	if (req->call) {
		req->call->on_answer(c, r->status, &m);
		return;
	}
	if (req->was_streaming) {
		stream_end(c);
		return;
	}
	a.content_type = line_text(&m, FIELD_content_type);
	a.location = line_text(&m, FIELD_location);
	a.retry_after = message_number(&m, FIELD_retry_after, 0);
	a.body = message_bytes(&m, FIELD_body, &a.len);
	if ((req->route == ROUTE_artifact || req->route == ROUTE_workspace_archive ||
	     req->route == ROUTE_session_file) &&
	    r->status == 200) {
		name_file(req->route == ROUTE_workspace_archive ? "workspace.tar" : req->path, disposition,
			  sizeof(disposition));
		a.more = disposition;
		a.policy = POLICY_OF_FILES;
	}
	reply_send(c, &a);
}
