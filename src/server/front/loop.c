/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - one round after the other: events, deadlines, and the burial of connections that ended in it */
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "server/front/front.h"

#define EVENTS_OF_ROUND  256
#define RECORDS_OF_ROUND 256
#define CROWD            32 /* requests at once */
#define TRIM_NS          NS_PER_SEC
#define DOORS_SHUT_NS    (100 * NS_PER_MS)

/* ---- what is watched ------------------------------------------------------------------------------ */

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

/* Milliseconds until the first one is over; -1: there is none. */
static int next_deadline(const struct front *f)
{
	uint64_t first = UINT64_MAX, now = clock_now_ns();

	for (size_t i = 0; i < DEADLINE_KINDS; i++)
		if (f->deadline[i].first)
			first = min_u64(first, f->deadline[i].first->deadline_ns);
	if (f->doors_shut)
		first = min_u64(first, f->open_doors_ns);
	if (f->was_busy && f->n_active == 0)
		first = min_u64(first, f->trim_ns);
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
		f->last_tag++;
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

static void channel_broke(struct front *f, const struct brig_error *err)
{
	if (!f->failed && !f->draining && err->sys != EPIPE) /* the runner's end is its own matter */
		log_trouble(f, err->msg);
	f->failed = f->over = true;
}

void front_send(struct front *f, const struct record *r)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (!f->over && channel_send(f->channel, r, &err) < 0)
		channel_broke(f, &err);
}

static void on_record(struct front *f, const struct record *r)
{
	struct client *c = front_by_tag(f, r->tag);

	if (r->tag == 0 || relay_on_record(f, r))
		return;
	if (!c) /* its client has gone meanwhile */
		return;
	if (r->type == RECORD_EVENT)
		stream_event(c, r);
	else if (r->type == RECORD_ANSWER)
		request_on_answer(c, r);
	client_advance(c);
}

static void on_channel(struct front *f)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;
	int rc = channel_flush(f->channel, &err);

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

static void drain(struct front *f)
{
	if (f->draining)
		return;
	f->draining = true;
	for (size_t i = 0; i < f->n_doors; i++) {
		front_watch(f, &f->door[i].source, 0);
		fd_closep(&f->door[i].source.fd);
	}
	front_send(f, &(struct record){ .type = RECORD_DRAIN });
}

static void on_master(struct front *f)
{
	char word = 0;
	ssize_t n = recv(f->master_source.fd, &word, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || word == WORD_NOW)
		f->over = true;
	else if (word == WORD_DRAIN)
		drain(f);
}

/* ---- listeners ------------------------------------------------------------------------------------------- */

/* There is no descriptor left, or no memory: listening again at once would only fail again. */
void front_shut_doors(struct front *f)
{
	for (size_t i = 0; i < f->n_doors; i++)
		front_watch(f, &f->door[i].source, 0);
	f->doors_shut = true;
	f->open_doors_ns = f->now_ns + DOORS_SHUT_NS;
}

static void open_doors(struct front *f)
{
	if (!f->doors_shut || f->now_ns < f->open_doors_ns)
		return;
	for (size_t i = 0; i < f->n_doors; i++)
		front_watch(f, &f->door[i].source, EPOLLIN);
	f->doors_shut = false;
}

/* ---- rounds ---------------------------------------------------------------------------------------------- */

static void dispatch(struct front *f, struct source *s, uint32_t events)
{
	switch (s->kind) {
	case SOURCE_LISTENER:
		if (((struct door *)s)->listener->is_records)
			relay_accept(f, (struct door *)s);
		else
			client_accept(f, (struct door *)s);
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

static void bury(struct front *f)
{
	while (f->dead) {
		struct client *c = f->dead;

		f->dead = c->next_dead;
		free(c);
	}
	relays_bury(f);
}

/* After a crowd the memory that it needed is given back, but not between two crowds that follow each other. */
static void trim(struct front *f)
{
	if (f->n_active >= CROWD) {
		f->was_busy = true;
		f->trim_ns = f->now_ns + TRIM_NS;
	}
	if (!f->was_busy || f->n_active > 0 || f->now_ns < f->trim_ns)
		return;
	(void)malloc_trim(0);
	f->was_busy = false;
}

int front_run(struct front *f)
{
	struct epoll_event events[EVENTS_OF_ROUND];

	while (!f->over && !(f->draining && f->n_active == 0 && channel_waiting(f->channel) == 0)) {
		int n = epoll_wait(f->epoll, events, ARRAY_LEN(events), next_deadline(f));

		if (n < 0 && errno != EINTR)
			return BRIG_E_SYSTEM;
		f->now_ns = clock_now_ns();
		for (int i = 0; i < n; i++)
			dispatch(f, events[i].data.ptr, events[i].events);
		run_deadlines(f);
		open_doors(f);
		relays_on_time(f);
		front_watch(f, &f->channel_source, (uint32_t)channel_events(f->channel));
		bury(f);
		trim(f);
	}
	return f->failed && !f->draining ? BRIG_E_SYSTEM : 0;
}
