/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's loop.  One thread, one epoll set, a fixed number of places for connections, two bounded pipes in each:
 * whatever a program does, this process needs so much memory and no more (INV-7), and it is the program's own
 * connections that wait.
 *
 *	head -> lookup -> connect -> relay      a request that is let through
 *	head -> linger                          one that is not: an answer, and a moment for the client to read it
 *
 * Each state but relay has a deadline; a relay ends with the run.  Every attempt is a row of the shared table from the
 * moment it is decided, and its bytes are added as they move, so nothing is lost whenever this process is killed.
 */
#include "egress/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"

static void watch_end(struct end *e, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = e };
	int op = e->events ? (events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL) : EPOLL_CTL_ADD;

	if (e->fd < 0 || e->events == events)
		return;
	if (epoll_ctl(e->conn->server->epoll, op, e->fd, &ev) == 0)
		e->events = events;
}

/* Bytes of the client are of use.  Behind a forwarded request only the news that the client has gone is. */
static bool wants_client(const struct conn *c)
{
	if (c->state == CONN_HEAD || c->state == CONN_LINGER)
		return true;
	return c->state == CONN_RELAY && !c->up.ended && pipe_room(&c->up) > 0;
}

/* At the limit one look at the host is enough, when everything before has been delivered. */
static bool wants_host(const struct conn *c)
{
	if (c->state != CONN_RELAY || c->down.ended || pipe_room(&c->down) == 0)
		return false;
	return relay_bytes_left(c->server) > 0 || c->down.len == 0;
}

/* An end that nothing is wanted of leaves the set: epoll would report its errors over and over. */
void conn_watch(struct conn *c)
{
	uint32_t client = wants_client(c) ? EPOLLIN : 0, host = wants_host(c) ? EPOLLIN : 0;

	if (c->down.len > 0)
		client |= EPOLLOUT;
	if (c->state == CONN_CONNECT || (c->state == CONN_RELAY && c->sendable > 0))
		host |= EPOLLOUT;
	watch_end(&c->client, client);
	watch_end(&c->host, host);
}

void conn_close(struct conn *c)
{
	fd_closep(&c->client.fd);
	fd_closep(&c->host.fd);
	c->state = CONN_DEAD;
	c->deadline = 0;
}

/* Not before the round is over: later events of the same round may still point here. */
static void free_closed(struct server *s)
{
	for (size_t i = 0; i < OPEN_MAX_CONNS; i++)
		if (s->conn[i] && s->conn[i]->state == CONN_DEAD) {
			free(s->conn[i]);
			s->conn[i] = NULL;
			s->n_conns--;
		}
}

/* ---- new ones -------------------------------------------------------------------------------------- */

static void listen_if(struct server *s, bool want)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &s->doors };

	if (s->doors >= 0 && s->listening != want &&
	    epoll_ctl(s->epoll, want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->doors, &ev) == 0)
		s->listening = want;
}

static void adopt(struct server *s, int fd, bool direct)
{
	struct conn *c = conn_new(s, fd);
	size_t place = 0;
	int on = 1;

	if (!c) {
		(void)close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (s->conn[place])
		place++;
	s->conn[place] = c;
	s->n_conns++;
	if (direct)
		conn_begin(c);
	if (c->state != CONN_DEAD)
		conn_watch(c);
}

/* A program may try often, but not forever: this process' time is not on the cell's account. */
static void stop_listening(struct server *s)
{
	(void)table_note(s->table, "", 0, WHY_attempts, "");
	listen_if(s, false);
	fd_closep(&s->doors);
	for (size_t i = 0; i < s->n_listeners; i++)
		fd_closep(&s->listener[i]);
}

/* The first of the listeners is the proxy's own. */
static void accept_from(struct server *s, size_t i)
{
	while (s->n_conns < OPEN_MAX_CONNS && s->listener[i] >= 0) {
		int fd = accept4(s->listener[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (s->attempts++ >= s->connections_max * ATTEMPTS_PER_CONN) {
			(void)close(fd);
			stop_listening(s);
			return;
		}
		adopt(s, fd, i > 0);
	}
}

static void accept_some(struct server *s)
{
	struct epoll_event ready[64];
	int n = s->doors < 0 ? 0 : epoll_wait(s->doors, ready, ARRAY_LEN(ready), 0);

	for (int i = 0; i < n; i++)
		accept_from(s, (size_t)ready[i].data.u64);
}

/* ---- the round ------------------------------------------------------------------------------------- */

static void take_answers(struct server *s)
{
	struct answer a;
	uint64_t count;

	if (read(s->resolver ? resolver_fd(s->resolver) : -1, &count, sizeof(count)) < 0)
		return;
	while (resolver_take(s->resolver, &a))
		for (size_t i = 0; i < OPEN_MAX_CONNS; i++)
			if (s->conn[i] && s->conn[i]->state == CONN_LOOKUP && s->conn[i]->ticket == a.ticket)
				conn_on_answer(s->conn[i], &a);
}

/* The supervisor's word: the program is dead; what it has sent is still delivered, for a moment. */
static void begin_drain(struct server *s)
{
	if (s->draining)
		return;
	s->draining = true;
	s->drain_until = clock_now_ns() + DRAIN_NS;
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->channel, NULL);
	accept_some(s);
}

static void dispatch(struct server *s, const struct epoll_event *ev)
{
	struct end *e;

	if (ev->data.ptr == &s->doors) {
		accept_some(s);
	} else if (ev->data.ptr == &s->lookups) {
		lookups_serve(s);
	} else if (ev->data.ptr == &s->resolver) {
		take_answers(s);
	} else if (ev->data.ptr == &s->channel) {
		begin_drain(s);
	} else {
		e = ev->data.ptr;
		if (e->conn->state != CONN_DEAD)
			conn_on_event(e->conn, e);
	}
}

/* Milliseconds to the next deadline; -1: there is none. */
static int next_deadline(const struct server *s, uint64_t now)
{
	uint64_t next = s->draining ? s->drain_until : UINT64_MAX;

	for (size_t i = 0; i < OPEN_MAX_CONNS; i++)
		if (s->conn[i] && s->conn[i]->deadline)
			next = min_u64(next, s->conn[i]->deadline);
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / NS_PER_MS) + 1;
}

static void check_deadlines(struct server *s)
{
	uint64_t now = clock_now_ns();

	for (size_t i = 0; i < OPEN_MAX_CONNS; i++)
		if (s->conn[i] && s->conn[i]->deadline && s->conn[i]->deadline <= now)
			conn_on_deadline(s->conn[i]);
}

/* Whether a connection of a dead program still has something to deliver. */
static bool has_more_to_say(const struct conn *c)
{
	if (c->state == CONN_LINGER || c->state == CONN_DEAD)
		return false;
	return c->state != CONN_RELAY || !c->up.ended || c->sendable > 0;
}

static bool drained(const struct server *s)
{
	for (size_t i = 0; i < OPEN_MAX_CONNS; i++)
		if (s->conn[i] && has_more_to_say(s->conn[i]))
			return false;
	return true;
}

_Noreturn void server_run(struct server *s)
{
	struct epoll_event round[64];
	uint64_t now;
	int n;

	for (;;) {
		now = clock_now_ns();
		if (s->draining && (drained(s) || now >= s->drain_until))
			_exit(0);
		listen_if(s, s->n_conns < OPEN_MAX_CONNS);
		n = epoll_wait(s->epoll, round, ARRAY_LEN(round), next_deadline(s, now));
		if (n < 0 && errno != EINTR)
			_exit(1);
		for (int i = 0; i < n; i++)
			dispatch(s, &round[i]);
		check_deadlines(s);
		free_closed(s);
	}
}
