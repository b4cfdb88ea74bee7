/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving bytes.  What is counted is what the host was sent and what it sent, including the rewritten head of a
 * forwarded request; not what proxy and program exchange.  At the run's limit nothing more moves in either direction:
 * the last byte allowed is the last byte moved.
 *
 * A tunnel supports half-closed connections: the end of one direction is passed on after everything before it.
 */
#include <string.h>

#include "base/clock.h"
#include "egress/server.h"

/* ---- pipes ----------------------------------------------------------------------------------------- */

size_t pipe_room(const struct pipe *p)
{
	return PIPE_BYTES - p->len;
}

static void pipe_pack(struct pipe *p)
{
	if (p->first > 0)
		memmove(p->data, p->data + p->first, p->len);
	p->first = 0;
}

void pipe_put(struct pipe *p, const char *bytes, size_t len)
{
	if (len > pipe_room(p))
		return; /* answers are short, and their pipe is empty by then */
	pipe_pack(p);
	memcpy(p->data + p->len, bytes, len);
	p->len += len;
}

void pipe_drop(struct pipe *p, size_t len)
{
	p->first += len;
	p->len -= len;
	if (p->len == 0)
		p->first = 0;
}

int pipe_fill(struct pipe *p, int fd, size_t max)
{
	ssize_t n;

	max = (size_t)min_u64(max, pipe_room(p));
	if (p->ended || max == 0)
		return 0;
	pipe_pack(p);
	do
		n = recv(fd, p->data + p->len, max, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
	if (n == 0)
		p->ended = true;
	p->len += (size_t)n;
	return n > 0;
}

ssize_t pipe_flush(struct pipe *p, int fd, size_t max)
{
	ssize_t n;

	max = (size_t)min_u64(max, p->len);
	if (max == 0)
		return 0;
	do
		n = send(fd, p->data + p->first, max, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
	pipe_drop(p, (size_t)n);
	return n;
}

/* ---- counting -------------------------------------------------------------------------------------- */

size_t relay_bytes_left(const struct server *s)
{
	return s->bytes < s->bytes_max ? (size_t)min_u64(s->bytes_max - s->bytes, SIZE_MAX) : 0;
}

static void count(struct conn *c, uint64_t sent, uint64_t received)
{
	c->server->bytes += sent + received;
	if (!c->row)
		return;
	c->row->sent += sent;
	c->row->received += received;
}

/* The limit is reached and one side has more to send. */
static void end_at_limit(struct conn *c)
{
	(void)table_note(c->server->table, c->req.host.text, c->req.port, WHY_bytes, "");
	conn_close(c);
}

/* ---- the two directions ------------------------------------------------------------------------------ */

/* Of what the client has sent since: how much of it belongs to the request. */
static bool measure(struct conn *c)
{
	size_t waiting = c->up.len - c->sendable;

	if (!c->req.forward) {
		c->sendable = c->up.len;
		return true;
	}
	if (!c->body.done && waiting > 0)
		c->sendable += http_body_take(&c->body, c->up.data + c->up.first + c->sendable, waiting);
	if (c->body.bad) {
		(void)table_note(c->server->table, c->req.host.text, c->req.port, WHY_ambiguous, "");
		return false;
	}
	if (c->body.done && c->up.len > c->sendable) {
		/* Said once; the rest is never sent. */
		(void)table_note(c->server->table, c->req.host.text, c->req.port, WHY_second, "");
		c->up.len = c->sendable;
		c->up.ended = true;
	}
	c->request_over = c->body.done;
	return true;
}

/* False: the connection is over. */
static bool move_up(struct conn *c)
{
	ssize_t n;

	if (pipe_fill(&c->up, c->client.fd, PIPE_BYTES) < 0 || !measure(c))
		return false;
	if (c->sendable > 0 && relay_bytes_left(c->server) == 0) {
		end_at_limit(c);
		return false;
	}
	n = pipe_flush(&c->up, c->host.fd, (size_t)min_u64(c->sendable, relay_bytes_left(c->server)));
	if (n < 0)
		return false;
	c->sendable -= (size_t)n;
	count(c, (uint64_t)n, 0);
	if (!c->up.ended || c->sendable > 0 || c->up.closed)
		return true;
	/* A client that leaves in the middle of its request leaves nothing that could be answered. */
	if (c->req.forward)
		return c->body.done;
	c->up.closed = true;
	return shutdown(c->host.fd, SHUT_WR) == 0;
}

/* At the limit: nothing may be taken any more, but the host's end is not a byte too many.  False: it has one. */
static bool only_end_is_left(struct conn *c)
{
	char byte;
	ssize_t n = recv(c->host.fd, &byte, 1, MSG_PEEK);

	if (n == 0)
		c->down.ended = true;
	return n == 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool move_down(struct conn *c)
{
	size_t before = c->down.len, left = relay_bytes_left(c->server);

	if (left > 0 && pipe_fill(&c->down, c->host.fd, left) < 0)
		return false;
	count(c, 0, c->down.len - before);
	if (pipe_flush(&c->down, c->client.fd, c->down.len) < 0)
		return false;
	if (left == 0 && c->down.len == 0 && !c->down.ended && !only_end_is_left(c)) {
		end_at_limit(c);
		return false;
	}
	if (!c->down.ended || c->down.len > 0 || c->down.closed)
		return true;
	c->down.closed = true;
	return shutdown(c->client.fd, SHUT_WR) == 0;
}

void relay_begin(struct conn *c)
{
	c->state = CONN_RELAY;
	c->deadline = 0;
	relay(c);
}

void relay(struct conn *c)
{
	bool up = move_up(c);
	bool down = c->state == CONN_RELAY && (up || c->up.ended) && move_down(c);

	/* An answer that is complete ends a forwarded request, whatever the client still has to say. */
	if (c->state == CONN_RELAY && (!up || !down || (c->down.closed && (c->up.closed || c->req.forward))))
		conn_close(c);
}

void relay_linger(struct conn *c)
{
	char waste[4096];
	ssize_t n;

	if (pipe_flush(&c->down, c->client.fd, c->down.len) < 0) {
		conn_close(c);
		return;
	}
	if (c->down.len > 0)
		return;
	if (!c->down.closed) {
		c->down.closed = true;
		(void)shutdown(c->client.fd, SHUT_WR);
	}
	while ((n = recv(c->client.fd, waste, sizeof(waste), 0)) > 0 && c->lingered < LINGER_BYTES)
		c->lingered += (size_t)n;
	if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		conn_close(c);
}
