/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.c - connections to servers in sessions (port.h)
 *
 *	client -> out -> server      the head, then the decoded body; for a WebSocket all bytes
 *	client <- c->out <- in       likewise
 *
 * Each side is read only while the buffer for the other one is below its limit.  The socket was created in the cell, so
 * programs there may have it as well and change its options: no operation on it may block, and any error ends the
 * connection.
 */
#include "server/front/port.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "base/str.h"
#include "server/doors/door.h"

/* ---- life cycle ------------------------------------------------------------------------------------------------- */

struct port *port_new(struct client *c)
{
	struct front *f = c->front;
	struct port *p = f->n_ports < FRONT_PORTS_MAX ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		c->is_last = true;
		reply_error(c, 503, "too many use servers of sessions: try again in a moment");
		return NULL;
	}
	p->source = (struct source){ .kind = SOURCE_PORT, .fd = FD_NONE };
	p->client = c;
	p->out = (struct buf)BUF_INIT(PORT_HEAD_MAX + PORT_WINDOW + 2 * FRONT_READ_BYTES);
	p->in = (struct buf)BUF_INIT(HTTP1_HEAD_MAX + FRONT_READ_BYTES);
	f->n_ports++;
	LIST_INSERT_HEAD(&f->ports, p, in_all);
	c->req->port = p;
	return p;
}

void port_close(struct port *p)
{
	struct front *f;

	if (!p || !p->client)
		return;
	f = p->client->front;
	front_watch(f, &p->source, 0); /* RULE F1 */
	fd_closep(&p->source.fd);
	if (p->out.data) /* requests may contain secrets */
		explicit_bzero(p->out.data, p->out.len);
	buf_release(&p->out);
	buf_release(&p->in);
	p->client->req->port = NULL;
	p->client = NULL;
	f->n_ports--;
	LIST_REMOVE(p, in_all);
	p->next_dead = f->dead_ports;
	f->dead_ports = p;
}

void ports_free_closed(struct front *f)
{
	while (f->dead_ports) {
		struct port *p = f->dead_ports;

		f->dead_ports = p->next_dead;
		free(p);
	}
}

/* Answers with an error; nothing has been sent yet. */
static void fail(struct port *p, unsigned status, const char *why)
{
	struct client *c = p->client;

	port_close(p);
	c->is_last |= !c->req->reader.done; /* the rest of the body is not read */
	reply_error(c, status, "%s", why);
}

/* The answer is complete, or cannot be completed. */
static void finish(struct port *p, bool is_whole)
{
	struct client *c = p->client;

	port_close(p);
	c->is_last |= !is_whole;
	client_finish(c);
}

/* Limits the connections of one session. */
static bool has_room(const struct front *f, const struct port *p)
{
	const struct port *other;
	size_t n = 0;

	LIST_FOREACH(other, &f->ports, in_all)
	n += str_eq(other->id, p->id);
	return n <= PORTS_OF_SESSION;
}

void port_ask(struct client *c, struct port *p, const struct http1_head *head)
{
	struct request *req = c->req;

	http1_body_begin(&req->reader, head);
	p->expects_continue = head->expects_continue;
	if (p->out.full || p->out.no_memory) {
		fail(p, 503, "there is no memory for the request");
		return;
	}
	if (!has_room(c->front, p)) {
		fail(p, 503, "the session has as many connections to its servers as it may: try again in a moment");
		return;
	}
	req->route = ROUTE_session_port;
	message_put_number(&req->fields, FIELD_route, ROUTE_session_port);
	message_put_text(&req->fields, FIELD_id, p->id);
	message_put_number(&req->fields, FIELD_item, p->number);
	if (p->only_check)
		message_put_number(&req->fields, FIELD_only_check, 1);
	c->is_last |= p->only_check && !req->reader.done;
	request_ask(c, FD_NONE, FD_NONE);
}

/* ---- polling --------------------------------------------------------------------------------- */

static size_t waiting_for_server(const struct port *p)
{
	return p->out.len - p->out_at;
}

static bool reads_client(const struct port *p)
{
	return (p->state == PORT_TUNNEL || !p->client->req->reader.done) && waiting_for_server(p) < PORT_WINDOW;
}

static bool reads_server(const struct port *p)
{
	return client_pending(p->client) < PORT_WINDOW;
}

/*
 * As everywhere in the front, EPOLLRDHUP after the request is complete means that the client has gone.  While it is
 * still sending, end of file is read after the data.
 */
static void watch(struct port *p)
{
	struct client *c = p->client;
	bool is_sending = p->state == PORT_TUNNEL || !c->req->reader.done;

	front_watch(c->front, &c->source,
		    (is_sending ? 0 : EPOLLRDHUP) | (reads_client(p) ? EPOLLIN : 0) |
			    (client_pending(c) > 0 || (c->tls && tls_wants_out(c->tls)) ? EPOLLOUT : 0));
	front_watch(c->front, &p->source, (reads_server(p) ? EPOLLIN : 0) | (waiting_for_server(p) > 0 ? EPOLLOUT : 0));
}

/* ---- to the server ---------------------------------------------------------------------------------------------------- */

/* False: the port was closed, and the client answered if possible. */
static bool flush(struct port *p)
{
	while (waiting_for_server(p) > 0) {
		ssize_t n =
			send(p->source.fd, p->out.data + p->out_at, waiting_for_server(p), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) /* or not connected yet */
			break;
		if (n < 0 && p->state == PORT_TUNNEL) {
			finish(p, false);
			return false;
		}
		if (n < 0) { /* the server may have answered nevertheless: continue reading */
			p->out_at = p->out.len;
			break;
		}
		p->out_at += (size_t)n;
	}
	if (waiting_for_server(p) == 0) {
		buf_release(&p->out);
		p->out.max = PORT_HEAD_MAX + PORT_WINDOW + 2 * FRONT_READ_BYTES;
		p->out_at = 0;
	} else if (p->out_at > PORT_WINDOW / 2) {
		memmove(p->out.data, p->out.data + p->out_at, waiting_for_server(p));
		p->out.len -= p->out_at;
		p->out_at = 0;
	}
	return true;
}

/* Forwards body data: the number of bytes consumed; -1: it is invalid, and the client was answered. */
static ssize_t take_body(struct port *p, const char *bytes, size_t len)
{
	struct http1_body_reader *r = &p->client->req->reader;
	size_t used = 0;

	while (used < len && !r->done && !r->bad) {
		size_t at, n, taken = http1_body_take(r, bytes + used, len - used, &at, &n);

		if (n > 0 && r->kind == HTTP1_BODY_CHUNKED)
			(void)buf_addf(&p->out, "%zx\r\n", n);
		(void)buf_add(&p->out, bytes + used + at, n);
		if (n > 0 && r->kind == HTTP1_BODY_CHUNKED)
			(void)buf_adds(&p->out, "\r\n");
		used += taken;
	}
	if (r->done && r->kind == HTTP1_BODY_CHUNKED)
		(void)buf_adds(&p->out, "0\r\n\r\n");
	if (!r->bad && !p->out.full && !p->out.no_memory)
		return (ssize_t)used;
	if (p->state == PORT_HEAD)
		fail(p, r->bad ? r->status : 503, r->bad ? r->why : "there is no memory for the body");
	else
		finish(p, false);
	return -1;
}

/* False: the port was closed. */
static bool take_bytes(struct port *p, const char *bytes, size_t len, size_t *ret_used)
{
	ssize_t used;

	*ret_used = len;
	if (p->state == PORT_TUNNEL) {
		(void)buf_add(&p->out, bytes, len);
		return !p->out.full && !p->out.no_memory ? true : (finish(p, false), false);
	}
	used = take_body(p, bytes, len);
	*ret_used = used < 0 ? 0 : (size_t)used;
	return used >= 0;
}

/* Handles data received before, or reads more. */
static bool read_client(struct port *p)
{
	struct client *c = p->client;
	size_t used;
	ssize_t n;

	if (c->in.len > c->in_at) {
		if (!take_bytes(p, c->in.data + c->in_at, c->in.len - c->in_at, &used))
			return false;
		client_used(c, used);
		return true;
	}
	n = client_receive(c);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		client_close(c, false);
		return false;
	}
	deadline_set(c, DEADLINE_PORT);
	if (!take_bytes(p, c->front->scratch, (size_t)n, &used))
		return false;
	return client_keep(c, c->front->scratch + used, (size_t)n - used) ? true : (client_close(c, true), false);
}

/* Forwards as much as possible; false: the port was closed. */
static bool feed_server(struct port *p)
{
	const struct client *c = p->client;

	while (c->in.len > c->in_at && reads_client(p))
		if (!read_client(p))
			return false;
	return flush(p);
}

/* ---- to the client ------------------------------------------------------------------------------------------------------- */

/* Data of the answer's body, or of a WebSocket.  False: the client has gone. */
static bool pass_on(struct port *p, const char *bytes, size_t len)
{
	struct client *c = p->client;
	char size[24], line_end[] = "\r\n";
	struct iovec pieces[3];
	size_t k = 0;

	if (len == 0)
		return true;
	(void)snprintf(size, sizeof(size), "%zx\r\n", len);
	if (p->is_chunked)
		pieces[k++] = (struct iovec){ size, strlen(size) };
	memcpy(&pieces[k].iov_base, &bytes, sizeof(bytes)); /* only read */
	pieces[k++].iov_len = len;
	if (p->is_chunked)
		pieces[k++] = (struct iovec){ line_end, strlen(line_end) };
	c->req->sent += len;
	return client_put(c, pieces, k);
}

static void end_body(struct port *p)
{
	char last[] = "0\r\n\r\n";
	struct iovec piece = { last, strlen(last) };

	if (!p->is_chunked || client_put(p->client, &piece, 1))
		finish(p, true);
}

/* False: the port was closed. */
static bool take_answer(struct port *p, const char *bytes, size_t len)
{
	struct http1_body_reader *r = &p->reader;

	while (len > 0 && !r->done && !r->bad) {
		size_t at, n, taken = http1_body_take(r, bytes, len, &at, &n);

		if (!pass_on(p, bytes + at, n))
			return false;
		bytes += taken;
		len -= taken;
	}
	if (r->bad)
		finish(p, false); /* the missing end tells the client that the body is incomplete */
	else if (r->done)
		end_body(p);
	return !r->bad && !r->done;
}

/* ---- the server's answer --------------------------------------------------------------------- */

/* Handles the final head; p->in holds it and the start of the body. */
static bool begin_answer(struct port *p, const struct http1_head *h)
{
	struct client *c = p->client;
	AUTO_BUF head = BUF_INIT(PORT_HEAD_MAX);
	AUTO_BUF rest = BUF_INIT(HTTP1_HEAD_MAX + FRONT_READ_BYTES);
	struct iovec piece;

	http1_body_begin(&p->reader, h);
	c->is_last |= !c->req->keep_alive || c->front->draining || !c->req->reader.done ||
		      (c->req->version_1_0 && h->body != HTTP1_BODY_LENGTH && h->body != HTTP1_BODY_NONE);
	p->is_chunked = !c->req->version_1_0 && (h->body == HTTP1_BODY_CHUNKED || h->body == HTTP1_BODY_UNTIL_END);
	port_write_answer(p, p->in.data, h, &head);
	(void)buf_add(&rest, p->in.data + h->used, p->in.len - h->used);
	buf_release(&p->in);
	if (head.full || head.no_memory || rest.no_memory) {
		fail(p, 502, "the head of the answer of the server in the session is too long");
		return false;
	}
	c->req->status = h->code;
	p->state = h->code == 101 ? PORT_TUNNEL : PORT_BODY;
	piece = (struct iovec){ head.data, head.len };
	if (!client_put(c, &piece, 1))
		return false;
	if (p->state == PORT_TUNNEL)
		return pass_on(p, rest.data, rest.len);
	if (p->reader.done) {
		end_body(p);
		return false;
	}
	return take_answer(p, rest.data, rest.len);
}

/* 1: the answer has begun; 0: incomplete; -1: the port was closed. */
static int read_head(struct port *p)
{
	struct http1_head h;
	enum http1_parse rc;

	for (;;) {
		rc = http1_answer_parse(buf_str(&p->in), p->in.len, &p->seen, p->is_of_head, &h);
		if (rc == HTTP1_MORE)
			return 0;
		p->seen = 0;
		if (rc == HTTP1_BAD || (h.code == 101 && (!p->wants_upgrade || !h.upgrade)) ||
		    (h.code < 200 && h.code != 101 && ++p->n_interim > PORT_INTERIM_MAX)) {
			char why[300];

			(void)snprintf(why, sizeof(why),
				       "what the server in the session answers cannot be passed on: %s",
				       rc == HTTP1_BAD ? h.why : "it changes the protocol unasked, or never begins");
			fail(p, 502, why);
			return -1;
		}
		if (h.code >= 200 || h.code == 101)
			return begin_answer(p, &h) ? 1 : -1;
		memmove(p->in.data, p->in.data + h.used, p->in.len - h.used); /* 100 or 103: dropped */
		p->in.len -= h.used;
	}
}

static bool take_from_server(struct port *p, const char *bytes, size_t len)
{
	switch (p->state) {
	case PORT_HEAD:
		if (buf_add(&p->in, bytes, len) < len) {
			fail(p, 502, "the head of the answer of the server in the session is too long");
			return false;
		}
		return read_head(p) >= 0;
	case PORT_BODY:
		return take_answer(p, bytes, len);
	case PORT_TUNNEL:
		return pass_on(p, bytes, len);
	case PORT_ASKED:
		break;
	}
	return true;
}

/* Nothing listens at the port. */
static void fail_closed(struct port *p)
{
	struct client *c = p->client;
	char session[sizeof(p->id)];
	uint16_t number = p->number;
	bool by_host = p->by_host;

	(void)str_copy(session, sizeof(session), p->id);
	port_close(p);
	c->is_last |= !c->req->reader.done; /* the rest of the body is not read */
	if (!by_host || !door_reply_absent(c, session, number, DOOR_PORT_CLOSED))
		reply_error(c, 502, "no process in the session listens at this port: start a server there");
}

static void on_server_end(struct port *p, int error)
{
	if (p->state == PORT_HEAD && error == ECONNREFUSED)
		fail_closed(p);
	else if (p->state == PORT_HEAD)
		fail(p, 502, "the server in the session hung up before it had answered");
	else if (p->state == PORT_BODY && p->reader.kind == HTTP1_BODY_UNTIL_END && error == 0)
		end_body(p);
	else
		finish(p, false);
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

/* To be called after each event: p may have been closed. */
static void go_on(struct client *c)
{
	struct port *p = c->state == CLIENT_PORT ? c->req->port : NULL;

	if (p && feed_server(p))
		watch(p);
	if (c->state != CLIENT_DEAD && c->state != CLIENT_PORT)
		client_advance(c);
}

void port_on_event(struct port *p, uint32_t events)
{
	struct client *c = p->client;
	ssize_t n;

	if (!c || p->state == PORT_ASKED)
		return;
	if (events & ~(uint32_t)EPOLLOUT && reads_server(p)) {
		n = recv(p->source.fd, c->front->scratch, sizeof(c->front->scratch), MSG_DONTWAIT);
		if (n > 0) {
			deadline_set(c, DEADLINE_PORT);
			(void)take_from_server(p, c->front->scratch, (size_t)n);
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			on_server_end(p, n == 0 ? 0 : errno);
		}
	}
	go_on(c);
}

void port_on_client(struct client *c, uint32_t events)
{
	struct port *p = c->req->port;

	if (events & EPOLLOUT)
		client_write(c);
	if (c->state != CLIENT_PORT)
		return;
	if (events & (EPOLLHUP | EPOLLERR) || (events & EPOLLRDHUP && c->req->reader.done && p->state != PORT_TUNNEL)) {
		client_close(c, false);
		return;
	}
	if (!(events & EPOLLIN) || !reads_client(p) || read_client(p))
		go_on(c);
	else if (c->state != CLIENT_DEAD)
		client_advance(c);
}

void port_on_deadline(struct client *c)
{
	struct port *p = c->req->port;

	if (p->state != PORT_HEAD) {
		client_close(c, true);
		return;
	}
	fail(p, 504, "the server in the session has not answered in ten minutes");
	client_advance(c);
}

/* ---- the runner's answer -------------------------------------------------------------------------------------------------- */

static void begin(struct port *p, int *fd)
{
	struct client *c = p->client;
	char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct iovec piece = { text, strlen(text) };

	p->source.fd = fd_move(fd);
	p->state = PORT_HEAD;
	c->state = CLIENT_PORT;
	deadline_set(c, DEADLINE_PORT);
	if (p->expects_continue && c->in_at == c->in.len && !client_put(c, &piece, 1))
		return;
	go_on(c);
}

/* The link was valid: sets the cookie and redirects to the address without it. */
static void give_cookie(struct port *p)
{
	struct client *c = p->client;
	char more[300], where[sizeof(p->redirect)];

	(void)snprintf(more, sizeof(more), "Set-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Lax%s\r\n", PORT_COOKIE,
		       p->link, c->is_tls ? "; Secure" : "");
	/* "//evil.example" would be another host. */
	if (p->redirect[0] != '/' || p->redirect[1] == '/' || strchr(p->redirect, '\\'))
		(void)str_copy(where, sizeof(where), "/");
	else
		memcpy(where, p->redirect, sizeof(where));
	port_close(p);
	reply_send(c, &(struct reply){ .status = 303, .location = where, .more = more, .content_type = "text/plain" });
}

/* Whether the runner's answer says that there is no server, and why. */
static bool read_absence(unsigned status, const struct message *m, enum door_absence *ret)
{
	*ret = status == 409 ? DOOR_PAUSED : status == 502 ? DOOR_PORT_CLOSED : DOOR_NO_SESSION;
	if (status == 502)
		return message_number(m, FIELD_error_number, 0) == ECONNREFUSED;
	return status == 404 || status == 409 || status == 410;
}

void port_on_answer(struct client *c, struct record *r, const struct message *m)
{
	struct port *p = c->req->port;
	struct reply a = { .status = r->status };
	char session[sizeof(p->id)];
	uint16_t number = p->number;
	enum door_absence why;
	bool is_absent;

	if (r->status == 200 && p->only_check) {
		give_cookie(p);
		return;
	}
	if (r->status == 200 && r->n_fds == 1) {
		begin(p, &r->fds[0]);
		return;
	}
	is_absent = read_absence(r->status, m, &why) && p->by_host;
	(void)str_copy(session, sizeof(session), p->id);
	port_close(p);
	c->is_last |= !c->req->reader.done;
	if (is_absent && door_reply_absent(c, session, number, why))
		return;
	if (r->status == 200)
		a.status = 502;
	a.retry_after = message_number(m, FIELD_retry_after, 0);
	a.body = message_bytes(m, FIELD_body, &a.len);
	reply_send(c, &a);
}
