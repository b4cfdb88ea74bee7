/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - one connection: input, output, states (see front.h)
 *
 * A client that hangs up while the runner has its request counts as gone, and so does one that only shuts down sending:
 * the two cannot be distinguished before something is written.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "server/front/port.h"
#include "server/front/websocket.h"

#define ACCEPTS_OF_ROUND 64

/* ---- peers ------------------------------------------------------------------------------------------ */

static size_t bucket_of(const struct address *a)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(a->byte); i++)
		hash = (hash ^ a->byte[i]) * 16777619u;
	return hash % PEER_BUCKETS;
}

/* Counts a connection from this address; NULL: out of memory. */
static struct peer *peer_take(struct front *f, const struct address *a)
{
	struct peer **bucket = &f->peers[bucket_of(a)], *p = *bucket;

	while (p && !address_eq(&p->address, a))
		p = p->next;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return NULL;
		p->address = *a;
		p->next = *bucket;
		*bucket = p;
	}
	p->n++;
	return p;
}

static void peer_drop(struct front *f, struct peer *p)
{
	struct peer **at;

	if (!p || --p->n > 0)
		return;
	at = &f->peers[bucket_of(&p->address)];
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

/* ---- accepting ------------------------------------------------------------------------------------------ */

/* Converts IPv4-mapped IPv6 addresses to IPv4. */
static bool plain_address(const struct sockaddr_storage *sa, struct address *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!address_from_sockaddr((const struct sockaddr *)sa, ret))
		return false;
	if (ret->v6 && memcmp(ret->byte, mapped, sizeof(mapped)) == 0) {
		struct address v4 = { .v6 = false };

		memcpy(v4.byte, ret->byte + sizeof(mapped), 4);
		*ret = v4;
	}
	return true;
}

static bool read_tcp_peer(struct client *c, const struct sockaddr_storage *from)
{
	struct sockaddr_storage to = { 0 };
	socklen_t len = sizeof(to);
	struct address peer;
	const int on = 1;

	if (!plain_address(from, &peer) || getsockname(c->source.fd, (struct sockaddr *)&to, &len) < 0 ||
	    !plain_address(&to, &c->local))
		return false;
	c->local_port = address_port((struct sockaddr *)&to);
	/* Answers are written completely, so delaying them gains nothing. */
	(void)setsockopt(c->source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->peer = peer_take(c->front, &peer);
	return c->peer != NULL;
}

/* NULL: below the limits. */
static const char *too_many(const struct client *c)
{
	const struct front *f = c->front;

	if (f->n_clients > f->connections)
		return "too many connections: try again in a moment, or use fewer";
	if (c->peer && c->peer->n > f->connections_of_peer && !address_is_loopback(&c->peer->address))
		return "too many connections of your address: use fewer";
	return NULL;
}

static void begin(struct front *f, const struct watched_listener *at, int fd, const struct sockaddr_storage *from)
{
	struct client *c = f->n_clients < f->connections + FRONT_REFUSED_MAX ? calloc(1, sizeof(*c)) : NULL;
	const char *why;

	if (!c) {
		(void)close(fd);
		return;
	}
	c->source = (struct source){ .kind = SOURCE_CLIENT, .fd = fd };
	c->front = f;
	c->listener = at->listener;
	c->is_tls = f->tls && !at->listener->is_unix;
	c->deadline_kind = DEADLINE_NONE;
	c->in = (struct buf)BUF_INIT(HTTP1_HEAD_MAX + 2 * FRONT_READ_BYTES);
	c->out = (struct buf)BUF_INIT(FRONT_PENDING_MAX);
	f->n_clients++;
	if (!at->listener->is_unix && !read_tcp_peer(c, from)) {
		client_close(c, true);
		return;
	}
	why = too_many(c);
	if (why && c->is_tls) { /* a handshake would cost more than serving the request */
		client_close(c, true);
		return;
	}
	if (why && request_new(c)) {
		reply_refuse(c, 503, "%s", why);
		return;
	}
	c->state = CLIENT_HEAD; /* not idle: the first request has the head's deadline */
	deadline_set(c, DEADLINE_HEAD);
	front_watch(f, &c->source, EPOLLIN | EPOLLRDHUP);
}

void client_accept(struct front *f, const struct watched_listener *at)
{
	for (int i = 0; i < ACCEPTS_OF_ROUND && at->source.fd >= 0; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int fd = accept4(at->source.fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			front_pause_listeners(f);
		if (fd < 0)
			return;
		begin(f, at, fd, &from);
	}
}

/* ---- closing --------------------------------------------------------------------------------------------- */

static void release_out(struct client *c)
{
	c->front->pending -= c->out.len;
	buf_release(&c->out);
	c->out = (struct buf)BUF_INIT(FRONT_PENDING_MAX);
	c->out_at = 0;
}

void client_close(struct client *c, bool at_once)
{
	const struct linger none = { .l_onoff = 1 };
	struct front *f = c->front;

	if (c->state == CLIENT_DEAD)
		return;
	if (c->req) {
		if (c->req->tag)
			front_send(f, &(struct record){ .type = RECORD_GONE, .tag = c->req->tag });
		if (c->req->status == 0)
			c->req->status = 499;
		log_request(c);
		request_free(c);
	}
	input_close(c);
	front_watch(f, &c->source, 0); /* RULE F1 */
	deadline_set(c, DEADLINE_NONE);
	if (at_once)
		(void)setsockopt(c->source.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	else
		tls_say_end(c->tls);
	tls_free(c->tls);
	c->tls = NULL;
	fd_closep(&c->source.fd);
	buf_release(&c->in);
	release_out(c);
	peer_drop(f, c->peer);
	f->n_clients--;
	c->state = CLIENT_DEAD;
	c->next_dead = f->dead;
	f->dead = c;
}

/* Lets the client read the answer: closing a socket with unread input would send RST and discard it. */
static void linger(struct client *c)
{
	buf_release(&c->in);
	c->in_at = 0;
	tls_say_end(c->tls);
	if (shutdown(c->source.fd, SHUT_WR) < 0) {
		client_close(c, false);
		return;
	}
	c->state = CLIENT_LINGER;
	deadline_set(c, DEADLINE_LINGER);
	front_watch(c->front, &c->source, EPOLLIN | EPOLLRDHUP);
}

/* ---- output ------------------------------------------------------------------------------------------------- */

size_t client_pending(const struct client *c)
{
	return c->out.len - c->out_at;
}

/* The answer has been sent completely. */
static void answered(struct client *c)
{
	release_out(c);
	log_request(c);
	request_free(c);
	if (c->is_last) {
		linger(c);
		return;
	}
	c->state = CLIENT_IDLE;
	deadline_set(c, DEADLINE_IDLE);
	front_watch(c->front, &c->source, EPOLLIN | EPOLLRDHUP);
}

void client_finish(struct client *c)
{
	if (client_pending(c) == 0) {
		answered(c);
		return;
	}
	c->state = CLIENT_ANSWER;
	deadline_set(c, DEADLINE_WRITE);
	front_watch(c->front, &c->source, EPOLLOUT);
}

/* Number of bytes sent; -1: the connection is broken. */
static ssize_t send_now(struct client *c, const struct iovec *pieces, size_t n)
{
	/* only read */
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = n };
	ssize_t sent;

	do
		sent = c->tls ? tls_write(c->tls, pieces, n) : sendmsg(c->source.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 && errno == EAGAIN ? 0 : sent;
}

bool client_put(struct client *c, const struct iovec *pieces, size_t n)
{
	ssize_t sent = client_pending(c) == 0 ? send_now(c, pieces, n) : 0;
	size_t skip = sent < 0 ? 0 : (size_t)sent, before = c->out.len;

	for (size_t i = 0; i < n && sent >= 0; i++) {
		size_t gone = skip < pieces[i].iov_len ? skip : pieces[i].iov_len;

		skip -= gone;
		(void)buf_add(&c->out, (const char *)pieces[i].iov_base + gone, pieces[i].iov_len - gone);
	}
	c->front->pending += c->out.len - before;
	if (sent < 0 || c->out.full || c->out.no_memory || c->front->pending > FRONT_PENDING_MAX) {
		client_close(c, true);
		return false;
	}
	return true;
}

/* Compacts the buffer, which would otherwise grow without bound for a stream that never drains. */
static void close_gap(struct client *c)
{
	if (c->out_at < FRONT_STREAM_FULL || c->out_at < c->out.len / 2)
		return;
	memmove(c->out.data, c->out.data + c->out_at, client_pending(c));
	c->front->pending -= c->out_at;
	c->out.len -= c->out_at;
	c->out_at = 0;
}

void client_write(struct client *c)
{
	struct iovec piece = { c->out.data + c->out_at, client_pending(c) };
	ssize_t sent = client_pending(c) ? send_now(c, &piece, 1) : 0;

	if (sent < 0) {
		client_close(c, true);
		return;
	}
	c->out_at += (size_t)sent;
	close_gap(c);
	if (client_pending(c) == 0 && c->state == CLIENT_ANSWER) {
		answered(c);
		return;
	}
	if (sent > 0)
		deadline_set(c, c->state == CLIENT_PORT ? DEADLINE_PORT : DEADLINE_WRITE);
	if (client_pending(c) == 0) { /* a stream that continues */
		release_out(c);
		if (c->state == CLIENT_PORT)
			return;
		if (c->state == CLIENT_SOCKET) {
			websocket_on_drained(c);
			front_watch(c->front, &c->source, EPOLLIN | EPOLLRDHUP);
			return;
		}
		stream_rest(c);
		front_watch(c->front, &c->source, EPOLLRDHUP);
	}
}

/* ---- input -------------------------------------------------------------------------------------------------- */

static void release_in(struct client *c)
{
	if (c->in_at < c->in.len)
		return;
	buf_release(&c->in);
	c->in = (struct buf)BUF_INIT(HTTP1_HEAD_MAX + 2 * FRONT_READ_BYTES);
	c->in_at = 0;
}

void client_used(struct client *c, size_t len)
{
	c->in_at += len;
	release_in(c);
}

/* Compacts the buffer first: pipelined requests leave a gap at its start. */
bool client_keep(struct client *c, const char *bytes, size_t len)
{
	if (c->in_at > 0) {
		memmove(c->in.data, c->in.data + c->in_at, c->in.len - c->in_at);
		c->in.len -= c->in_at;
		c->in_at = 0;
	}
	return buf_add(&c->in, bytes, len) == len;
}

/* Some errors concern the head as a whole, not a line. */
static void refuse_head(struct client *c, const struct http1_head *head)
{
	if (head->bad_line > 0)
		reply_refuse(c, head->status, "%s (line %zu of the head)", head->why, head->bad_line);
	else
		reply_refuse(c, head->status, "%s", head->why);
}

/* True: a request has begun. */
static bool take_head(struct client *c)
{
	const char *bytes = buf_str(&c->in) + c->in_at;
	struct http1_head head;
	enum http1_parse rc = http1_head_parse(bytes, c->in.len - c->in_at, &c->seen, &head);

	if (rc == HTTP1_MORE)
		return false;
	c->seen = 0;
	if (!request_new(c)) {
		client_close(c, true);
		return false;
	}
	if (rc == HTTP1_BAD) {
		refuse_head(c, &head);
		return false;
	}
	c->in_at += head.used;
	request_begin(c, bytes, &head);
	release_in(c);
	return true;
}

static bool add_to_body(struct client *c, const char *data, size_t len)
{
	size_t added = buf_add(&c->req->body, data, len);

	c->front->spooled += added;
	return added == len;
}

/* False: the body was refused. */
static bool take_data(struct client *c, const char *data, size_t len)
{
	struct request *req = c->req;
	struct front *f = c->front;

	if (req->body.len + len > f->body_max) {
		reply_refuse(c, 413, "the body is longer than the %llu bytes that are taken here",
			     (unsigned long long)f->body_max);
		return false;
	}
	if (f->spooled + len > FRONT_SPOOL_MAX || !add_to_body(c, data, len)) {
		reply_refuse(c, 503, "there is no room for the body now: try again in a moment");
		return false;
	}
	req->period_bytes += len;
	return true;
}

/* Number of bytes that belong to the body; -1: it was refused.  reader->done says whether it is complete. */
static ssize_t feed_body(struct client *c, const char *bytes, size_t len)
{
	struct http1_body_reader *reader = &c->req->reader;
	size_t used = 0;

	while (used < len && !reader->done && !reader->bad) {
		size_t at, n, taken = http1_body_take(reader, bytes + used, len - used, &at, &n);

		if (n > 0 && !take_data(c, bytes + used + at, n))
			return -1;
		used += taken;
	}
	if (reader->bad) {
		reply_refuse(c, reader->status, "%s", reader->why);
		return -1;
	}
	return (ssize_t)used;
}

/* True: the request is complete and being processed. */
static bool take_body(struct client *c)
{
	ssize_t used = feed_body(c, buf_str(&c->in) + c->in_at, c->in.len - c->in_at);

	if (used < 0)
		return false;
	c->in_at += (size_t)used;
	release_in(c);
	if (!c->req->reader.done)
		return false;
	request_finish(c);
	return true;
}

static void take_frames(struct client *c)
{
	AUTO_BUF frames = c->in;
	size_t at = c->in_at;

	c->in = (struct buf)BUF_INIT(HTTP1_HEAD_MAX + 2 * FRONT_READ_BYTES);
	c->in_at = 0;
	if (frames.len > at)
		websocket_on_bytes(c, frames.data + at, frames.len - at);
}

void client_advance(struct client *c)
{
	bool goes_on = true;

	while (goes_on) {
		switch (c->state) {
		case CLIENT_IDLE:
			release_in(c);
			goes_on = c->in.len > c->in_at;
			if (goes_on) {
				c->state = CLIENT_HEAD;
				deadline_set(c, DEADLINE_HEAD);
			}
			break;
		case CLIENT_HEAD:
			goes_on = take_head(c) || c->state == CLIENT_IDLE;
			break;
		case CLIENT_BODY:
			goes_on = take_body(c);
			break;
		case CLIENT_SOCKET: /* data received right after the handshake */
			goes_on = false;
			take_frames(c);
			break;
		default:
			goes_on = false;
		}
	}
}

/* Detects TLS by the first byte.  False: no data yet, or the connection was closed. */
static bool begin_tls(struct client *c)
{
	const char handshake = 0x16;
	char first;
	ssize_t n = recv(c->source.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n == 1 && first == handshake)
		c->tls = tls_begin(c->front->tls, c->source.fd);
	else if (n == 1 && first >= 'A' && first <= 'Z' && request_new(c)) {
		reply_refuse(c, 400, "this port speaks TLS: use https://");
		return false;
	}
	if (!c->tls)
		client_close(c, false);
	return c->tls != NULL;
}

/* Like recv(), decrypted if the connection uses TLS. */
ssize_t client_receive(struct client *c)
{
	struct front *f = c->front;
	ssize_t n;

	if (!c->tls)
		return recv(c->source.fd, f->scratch, sizeof(f->scratch), MSG_DONTWAIT);
	n = tls_read(c->tls, f->scratch, sizeof(f->scratch));
	front_watch(f, &c->source, EPOLLIN | EPOLLRDHUP | (tls_wants_out(c->tls) ? EPOLLOUT : 0));
	return n;
}

static void read_in(struct client *c)
{
	struct front *f = c->front;
	const char *bytes = f->scratch;
	ssize_t n, used = 0;

	if (c->is_tls && !c->tls && !begin_tls(c))
		return;
	n = client_receive(c);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c, false);
		return;
	}
	if (c->state == CLIENT_SOCKET) {
		websocket_on_bytes(c, bytes, (size_t)n);
		return;
	}
	if (c->state == CLIENT_BODY && c->in.len == 0) /* fast path for long bodies: avoids a copy */
		used = feed_body(c, bytes, (size_t)n);
	if (used < 0)
		return;
	if (!client_keep(c, bytes + used, (size_t)(n - used))) {
		client_close(c, true);
		return;
	}
	client_advance(c);
}

static void drop_in(struct client *c)
{
	ssize_t n = recv(c->source.fd, c->front->scratch, sizeof(c->front->scratch), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		client_close(c, false);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

void client_on_event(struct client *c, uint32_t events)
{
	switch (c->state) {
	case CLIENT_IDLE:
	case CLIENT_HEAD:
	case CLIENT_BODY:
		read_in(c);
		return;
	case CLIENT_LINGER:
		drop_in(c);
		return;
	case CLIENT_ASKED:
	case CLIENT_STREAM:
		if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			client_close(c, false);
		else if (events & EPOLLOUT)
			client_write(c);
		return;
	case CLIENT_SOCKET:
		if (events & EPOLLOUT)
			client_write(c);
		if (events & ~(uint32_t)EPOLLOUT && c->state == CLIENT_SOCKET)
			read_in(c);
		return;
	case CLIENT_PORT:
		port_on_client(c, events);
		return;
	case CLIENT_ANSWER:
		if (events & EPOLLERR)
			client_close(c, true);
		else
			client_write(c);
		client_advance(c);
		return;
	case CLIENT_DEAD:
		return;
	}
}

static void on_late_body(struct client *c)
{
	struct request *req = c->req;

	if (req->period_bytes < FRONT_BODY_WINDOW || ++req->periods >= FRONT_BODY_PERIODS) {
		reply_refuse(c, 408, "the body came too slowly");
		return;
	}
	req->period_bytes = 0;
	deadline_set(c, DEADLINE_BODY);
}

void client_on_deadline(struct client *c)
{
	switch (c->state) {
	case CLIENT_HEAD:
		if (c->in.len > c->in_at && request_new(c))
			reply_refuse(c, 408, "the head of the request came too slowly");
		else
			client_close(c, false);
		return;
	case CLIENT_BODY:
		on_late_body(c);
		return;
	case CLIENT_SOCKET:
		websocket_on_deadline(c);
		return;
	case CLIENT_PORT:
		port_on_deadline(c);
		return;
	case CLIENT_STREAM:
		if (client_pending(c) == 0) {
			stream_ping(c);
			return;
		}
		client_close(c, true);
		return;
	case CLIENT_ANSWER:
	case CLIENT_LINGER:
		client_close(c, true);
		return;
	default:
		client_close(c, false);
		return;
	}
}
