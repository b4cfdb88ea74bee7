/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - the event loop: each round handles events and deadlines, then frees what was closed */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "server/doors/door.h"
#include "server/front/port.h"
#include "server/front/websocket.h"
#include "server/control.h"
#include "sys/memory.h"

#define EVENTS_OF_ROUND  256
#define RECORDS_OF_ROUND 256
#define PAUSE_NS         (100 * NS_PER_MS)

/* ---- epoll ---------------------------------------------------------------------------------------- */

void front_watch(struct front *f, struct source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };
	int op = s->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

	if (s->fd < 0 || s->events == events)
		return;
	if (epoll_ctl(f->epoll, op, s->fd, &ev) == 0)
		s->events = events;
}

/* ---- deadlines ------------------------------------------------------------------------------------ */

static void unlist(struct client *c)
{
	struct deadline_list *list = &c->front->deadline[c->deadline_kind];

	*(c->before ? &c->before->after : &list->first) = c->after;
	*(c->after ? &c->after->before : &list->last) = c->before;
	c->before = c->after = NULL;
}

void deadline_set(struct client *c, enum deadline_kind kind)
{
	struct deadline_list *list = &c->front->deadline[kind];

	if (c->deadline_kind != DEADLINE_NONE)
		unlist(c);
	c->deadline_kind = kind;
	if (kind == DEADLINE_NONE)
		return;
	c->deadline_ns = c->front->now_ns + list->length_ns;
	c->before = list->last;
	*(list->last ? &list->last->after : &list->first) = c;
	list->last = c;
}

/* Milliseconds until the first deadline; -1: there is none. */
static int next_deadline(const struct front *f)
{
	uint64_t first = UINT64_MAX, now = clock_now_ns();

	for (size_t i = 0; i < DEADLINE_KINDS; i++)
		if (f->deadline[i].first)
			first = min_u64(first, f->deadline[i].first->deadline_ns);
	if (f->is_paused)
		first = min_u64(first, f->resume_ns);
	if (f->was_busy && f->n_active == 0)
		first = min_u64(first, f->rest_ns);
	first = min_u64(first, relays_deadline(f));
	if (first == UINT64_MAX)
		return -1;
	return first <= now ? 0 : (int)min_u64((first - now) / NS_PER_MS + 1, 60000);
}

static void run_deadlines(struct front *f)
{
	for (size_t i = 0; i < DEADLINE_KINDS; i++) {
		struct deadline_list *list = &f->deadline[i];

		while (list->first && list->first->deadline_ns <= f->now_ns) {
			struct client *c = list->first;

			deadline_set(c, DEADLINE_NONE);
			client_on_deadline(c);
		}
	}
}

/* ---- tags ------------------------------------------------------------------------------------------- */

struct client *front_by_tag(const struct front *f, uint32_t tag)
{
	struct client *c = f->by_tag[tag % TAG_BUCKETS];

	while (c && c->req->tag != tag)
		c = c->next_of_tag;
	return c;
}

uint32_t front_new_tag(struct front *f)
{
	do
		f->last_tag = (f->last_tag + 1) & CHANNEL_TAG_MAX;
	while (f->last_tag == 0 || front_by_tag(f, f->last_tag) || relay_has_tag(f, f->last_tag));
	return f->last_tag;
}

void front_add_tag(struct front *f, struct client *c)
{
	struct client **bucket;

	c->req->tag = front_new_tag(f);
	bucket = &f->by_tag[f->last_tag % TAG_BUCKETS];
	c->next_of_tag = *bucket;
	*bucket = c;
}

void front_drop_tag(struct front *f, struct client *c)
{
	struct client **at = &f->by_tag[c->req->tag % TAG_BUCKETS];

	while (*at && *at != c)
		at = &(*at)->next_of_tag;
	if (*at)
		*at = c->next_of_tag;
	c->req->tag = 0;
}

/* ---- the runner -------------------------------------------------------------------------------------- */

/* Only marks the channel as failed; handled at the end of the round, since the sender may be in any state. */
static void channel_broke(struct front *f, const struct brig_error *err)
{
	f->lost_runner = true;
	if (err->sys == EPIPE || err->sys == ECONNRESET || f->draining)
		return; /* an exit of the runner is not an error of the front */
	log_trouble(f, err->msg);
	f->failed = f->over = true;
}

void front_send(struct front *f, const struct record *r)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (f->channel && !f->lost_runner && channel_send(f->channel, r, &err) < 0)
		channel_broke(f, &err);
}

bool front_can_ask(const struct front *f)
{
	return f->channel && !f->lost_runner && channel_waiting(f->channel) <= FRONT_QUEUE_MAX;
}

/* Answers 503 to all clients that wait for the runner; streams and WebSockets that have begun can only be closed. */
static void answer_for_runner(struct front *f)
{
	for (size_t i = 0; i < TAG_BUCKETS; i++) {
		struct client *c;

		while ((c = f->by_tag[i])) {
			front_drop_tag(f, c);
			if (c->req->was_streaming || c->state == CLIENT_SOCKET) {
				client_close(c, true);
				continue;
			}
			reply_error(c, 503, "the process that runs programs has ended, and is started anew: ask again");
			client_advance(c);
		}
	}
	relays_without_runner(f);
}

static void stop_listening(struct front *f, struct watched_listener *l)
{
	front_watch(f, &l->source, 0);
	fd_closep(&l->source.fd);
}

/*
 * The runner has exited; the master will send a channel to the next one, unless the service is stopping, in which case
 * the runner exits first.
 */
static void leave_runner(struct front *f)
{
	for (size_t i = 0; f->draining && i < f->n_listeners; i++)
		stop_listening(f, &f->listener[i]);
	f->lost_runner = false;
	if (!f->channel)
		return;
	front_watch(f, &f->channel_source, 0); /* RULE F1 */
	f->channel_source.fd = FD_NONE;
	channel_free(MOVE_PTR(f->channel));
	answer_for_runner(f);
}

static void on_channel(struct front *f);

/* Takes ownership of the socket. */
static void join_runner(struct front *f, int *sock)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (f->channel && !f->lost_runner)
		on_channel(f); /* reads its last messages */
	leave_runner(f);
	if (channel_new(sock, &f->channel, &err) < 0) {
		channel_broke(f, &err);
		return;
	}
	f->channel_source = (struct source){ .kind = SOURCE_CHANNEL, .fd = channel_fd(f->channel) };
	front_watch(f, &f->channel_source, EPOLLIN);
}

static void on_door_event(struct client *c, const struct record *r)
{
	if (r->status < EVENT_KINDS && c->req->call->on_event)
		c->req->call->on_event(c, (enum event_kind)r->status, r->data, r->len);
}

static void on_record(struct front *f, struct record *r)
{
	struct client *c = front_by_tag(f, r->tag);

	if (r->tag == 0 || relay_on_record(f, r))
		return;
	if (!c) /* the client has disconnected */
		return;
	if (r->type == RECORD_EVENT && c->req->call)
		on_door_event(c, r);
	else if (r->type == RECORD_EVENT)
		stream_event(c, r);
	else if (r->type == RECORD_ANSWER)
		request_on_answer(c, r);
	client_advance(c);
}

static void on_channel(struct front *f)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;
	int rc;

	if (!f->channel || f->lost_runner)
		return;
	rc = channel_flush(f->channel, &err);
	for (int i = 0; rc == 0 && i < RECORDS_OF_ROUND && !f->over; i++) {
		int got = channel_receive(f->channel, &r, &err);

		if (got == 0)
			return;
		rc = got < 0 ? got : 0;
		if (rc < 0)
			break;
		on_record(f, &r);
		for (size_t k = 0; k < r.n_fds; k++)
			fd_closep(&r.fds[k]);
	}
	if (rc < 0)
		channel_broke(f, &err);
}

/* ---- the master ---------------------------------------------------------------------------------------- */

/*
 * Clients on TCP can still query running executions, while the runner refuses new ones.  Listeners passed by systemd
 * are closed, so that new connections wait for the next service, and so are unix sockets, whose paths the master has
 * removed.
 */
static void drain(struct front *f)
{
	if (f->draining)
		return;
	f->draining = true;
	for (size_t i = 0; i < f->n_listeners; i++)
		if (!f->channel || f->listener[i].listener->is_unix || f->listener[i].listener->is_given)
			stop_listening(f, &f->listener[i]);
}

int front_use_certificate(struct front *f, const struct certificate *files, struct brig_error *err)
{
	const struct tls_names names = { f->options->tls_cert, f->options->tls_key };

	return tls_use(f->tls, files, &names, err);
}

/* The master has reread the certificate files. */
static void change_certificate(struct front *f, const struct control_message *w)
{
	const struct certificate files = { { w->fds[0], w->fds[1] } };
	struct brig_error err = BRIG_ERROR_INIT;
	struct control_message answer = { .kind = CONTROL_TAKEN, .number = w->number };

	if (front_use_certificate(f, &files, &err) < 0) {
		log_trouble(f, err.msg);
		answer.kind = CONTROL_REFUSED;
	}
	(void)control_send(f->master_source.fd, &answer);
}

static void on_master(struct front *f)
{
	struct control_message w;
	int rc = control_receive(f->master_source.fd, &w);

	if (rc < 0 || (rc > 0 && w.kind == CONTROL_NOW))
		f->over = true;
	else if (rc > 0 && w.kind == CONTROL_DRAIN)
		drain(f);
	else if (rc > 0 && w.kind == CONTROL_CHANNEL && w.n_fds == 1)
		join_runner(f, &w.fds[0]);
	else if (rc > 0 && w.kind == CONTROL_CERTIFICATE && w.n_fds == CERTIFICATE_FILES && f->tls)
		change_certificate(f, &w);
	control_close(&w);
}

/* ---- listeners ------------------------------------------------------------------------------------------- */

/* Descriptors or memory are exhausted: accepting at once would fail again. */
void front_pause_listeners(struct front *f)
{
	for (size_t i = 0; i < f->n_listeners; i++)
		front_watch(f, &f->listener[i].source, 0);
	f->is_paused = true;
	f->resume_ns = f->now_ns + PAUSE_NS;
}

static void resume_listeners(struct front *f)
{
	if (!f->is_paused || f->now_ns < f->resume_ns)
		return;
	for (size_t i = 0; i < f->n_listeners; i++)
		front_watch(f, &f->listener[i].source, EPOLLIN);
	f->is_paused = false;
}

/* ---- rounds ---------------------------------------------------------------------------------------------- */

static void dispatch(struct front *f, struct source *s, uint32_t events)
{
	switch (s->kind) {
	case SOURCE_LISTENER:
		if (((struct watched_listener *)s)->listener->is_records)
			relay_accept(f, (struct watched_listener *)s);
		else
			client_accept(f, (struct watched_listener *)s);
		return;
	case SOURCE_INPUT:
		input_on_event((struct input *)s);
		return;
	case SOURCE_PORT:
		port_on_event((struct port *)s, events);
		return;
	case SOURCE_RELAY:
		relay_on_event((struct relay *)s, events);
		return;
	case SOURCE_CHANNEL:
		on_channel(f);
		return;
	case SOURCE_MASTER:
		on_master(f);
		return;
	case SOURCE_CLIENT:
		client_on_event((struct client *)s, events);
		return;
	}
}

static void free_closed(struct front *f)
{
	while (f->dead) {
		struct client *c = f->dead;

		f->dead = c->next_dead;
		websocket_free(c->websocket);
		input_free(c->input);
		free(c);
	}
	ports_free_closed(f);
	relays_free_closed(f);
}

/* Returns free memory to the kernel after a period without requests. */
static void rest(struct front *f, bool busy)
{
	if (busy) {
		f->was_busy = true;
		f->rest_ns = f->now_ns + MEMORY_REST_NS;
	}
	if (!f->was_busy || f->n_active > 0 || f->now_ns < f->rest_ns)
		return;
	memory_rest();
	f->was_busy = false;
}

static bool is_done(const struct front *f)
{
	return f->draining && f->n_active == 0 && !f->channel;
}

int front_run(struct front *f)
{
	struct epoll_event events[EVENTS_OF_ROUND];

	while (!f->over && !is_done(f)) {
		int n = epoll_wait(f->epoll, events, ARRAY_LEN(events), next_deadline(f));

		if (n < 0 && errno != EINTR)
			return BRIG_E_SYSTEM;
		f->now_ns = clock_now_ns();
		for (int i = 0; i < n; i++)
			dispatch(f, events[i].data.ptr, events[i].events);
		run_deadlines(f);
		resume_listeners(f);
		relays_on_time(f);
		if (f->lost_runner)
			leave_runner(f);
		if (f->channel)
			front_watch(f, &f->channel_source, (uint32_t)channel_events(f->channel));
		free_closed(f);
		rest(f, n > 0);
	}
	return f->failed && !f->draining ? BRIG_E_SYSTEM : 0;
}
