/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - the command line's own socket
 *
 * Commands speak records, like front and runner (server/channel.h), so that descriptors can be passed: the program's
 * input, an archive, a file for artifacts.  Their data is not trusted either: a record that violates the format ends
 * the connection, and messages are validated here, because the runner would take an invalid one for a fault of the
 * front.  A forwarded request gets a tag of the front and, as its last descriptor, the command's socket, from which the
 * runner learns the user from the kernel.  Answers are forwarded unchanged.
 *
 *	connected -> asked -> answered -> asked ...       one request at a time; a hang-up becomes RECORD_GONE for the runner
 *
 *   RULE L1  Each forwarded request has has_peer set and no credential: the kernel identifies the client.
 *   RULE L2  A connection without a request has a deadline; unsent data is bounded, per connection and in total
 *   (FRONT_PENDING_MAX).
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "server/front/front.h"

#define ACCEPTS_OF_ROUND 64
#define RECORDS_OF_TURN  16

struct relay {
	struct source source;
	struct front *front;
	TAILQ_ENTRY(relay) in_all; /* all live ones, or the dead ones */
	TAILQ_ENTRY(relay) in_idle;
	struct relay *next_of_tag;
	struct channel *channel;
	uint32_t uid;
	uint32_t tag, own_tag; /* the tag towards the runner, and that of the command; tag 0: no request */
	enum route route;
	uint64_t began_ns, idle_ns;
	bool is_idle, is_active /* counted in n_active */, is_cancelled, is_dead;
};

/* ---- the beginning and the end --------------------------------------------------------------------------- */

void relays_init(struct front *f)
{
	TAILQ_INIT(&f->relays);
	TAILQ_INIT(&f->idle_relays);
	TAILQ_INIT(&f->dead_relays);
}

static void set_idle(struct relay *r, bool idle)
{
	if (r->is_idle == idle)
		return;
	r->is_idle = idle;
	if (!idle) {
		TAILQ_REMOVE(&r->front->idle_relays, r, in_idle);
		return;
	}
	r->idle_ns = r->front->now_ns;
	TAILQ_INSERT_TAIL(&r->front->idle_relays, r, in_idle);
}

static void set_active(struct relay *r, bool active)
{
	if (r->is_active == active)
		return;
	r->is_active = active;
	r->front->n_active += active ? 1 : -1u;
}

static struct relay *by_tag(const struct front *f, uint32_t tag)
{
	struct relay *r = f->relay_by_tag[tag % TAG_BUCKETS];

	while (r && r->tag != tag)
		r = r->next_of_tag;
	return r;
}

bool relay_has_tag(const struct front *f, uint32_t tag)
{
	return by_tag(f, tag) != NULL;
}

static void add_tag(struct relay *r, uint32_t own_tag)
{
	struct relay **bucket;

	r->tag = front_new_tag(r->front);
	r->own_tag = own_tag;
	bucket = &r->front->relay_by_tag[r->tag % TAG_BUCKETS];
	r->next_of_tag = *bucket;
	*bucket = r;
}

static void drop_tag(struct relay *r)
{
	struct relay **at = &r->front->relay_by_tag[r->tag % TAG_BUCKETS];

	while (*at && *at != r)
		at = &(*at)->next_of_tag;
	if (*at)
		*at = r->next_of_tag;
	r->tag = 0;
}

/* Freed at the end of the round. */
static void hang_up(struct relay *r)
{
	struct front *f = r->front;

	if (r->is_dead)
		return;
	if (r->tag) {
		front_send(f, &(struct record){ .type = RECORD_GONE, .tag = r->tag });
		log_relay(f, route_rows[r->route].name, "", 499, r->began_ns);
		drop_tag(r);
	}
	set_active(r, false);
	set_idle(r, false);
	f->pending -= channel_waiting(r->channel);
	front_watch(f, &r->source, 0);
	TAILQ_REMOVE(&f->relays, r, in_all);
	TAILQ_INSERT_TAIL(&f->dead_relays, r, in_all);
	f->n_relays--;
	r->is_dead = true;
}

void relays_free_closed(struct front *f)
{
	struct relay *r;

	while ((r = TAILQ_FIRST(&f->dead_relays))) {
		TAILQ_REMOVE(&f->dead_relays, r, in_all);
		channel_free(r->channel);
		free(r);
	}
}

/* ---- to the command ------------------------------------------------------------------------------------------ */

/* Unsent data counts towards the total of the front. */
static void put(struct relay *r, const struct record *rec)
{
	struct front *f = r->front;
	size_t before = channel_waiting(r->channel), now;
	struct record copy = {
		.tag = r->own_tag, .type = rec->type, .status = rec->status, .data = rec->data, .len = rec->len
	};

	if (r->is_dead)
		return;
	if (channel_send(r->channel, &copy, NULL) < 0) {
		hang_up(r);
		return;
	}
	now = channel_waiting(r->channel);
	f->pending += now - before;
	if (now > RELAY_QUEUE_MAX || (now > before && f->pending > FRONT_PENDING_MAX))
		hang_up(r);
	else
		front_watch(f, &r->source, (uint32_t)channel_events(r->channel) | EPOLLRDHUP);
}

/* Answers a request without the runner. */
static void refuse(struct relay *r, uint32_t own_tag, uint16_t status, const char *code, const char *text)
{
	AUTO_BUF doc = BUF_INIT(KiB);
	AUTO_BUF m = BUF_INIT(2 * KiB);

	(void)buf_addf(&doc, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"request_id\":\"\"}}", code, text);
	message_put_bytes(&m, FIELD_body, buf_str(&doc), doc.len);
	r->own_tag = own_tag;
	put(r, &(struct record){ .type = RECORD_ANSWER, .status = status, .data = buf_str(&m), .len = m.len });
}

static void flush(struct relay *r)
{
	size_t before = channel_waiting(r->channel);

	if (channel_flush(r->channel, NULL) < 0) {
		hang_up(r);
		return;
	}
	r->front->pending -= before - channel_waiting(r->channel);
	front_watch(r->front, &r->source, (uint32_t)channel_events(r->channel) | EPOLLRDHUP);
	if (r->tag == 0 && channel_waiting(r->channel) == 0)
		set_active(r, false);
}

static void on_answer(struct relay *r, const struct record *rec)
{
	const char *why, *who = NULL;
	struct message m;

	if (message_read(rec->data, rec->len, &m, &why))
		who = message_text(&m, FIELD_who);
	log_relay(r->front, route_rows[r->route].name, who ? who : "", rec->status, r->began_ns);
	put(r, rec);
	if (r->is_dead)
		return;
	drop_tag(r);
	set_idle(r, true);
	if (channel_waiting(r->channel) == 0)
		set_active(r, false);
}

bool relay_on_record(struct front *f, const struct record *rec)
{
	struct relay *r = by_tag(f, rec->tag);

	if (!r)
		return false;
	if (rec->type == RECORD_ANSWER)
		on_answer(r, rec);
	else if (rec->type == RECORD_EVENT &&
		 (rec->status != EVENT_sample || channel_waiting(r->channel) <= FRONT_STREAM_FULL))
		put(r, rec);
	return true;
}

/* ---- from the command ---------------------------------------------------------------------------------------- */

/* NULL: the message can be forwarded; otherwise the reason why not. */
static const char *wrong_with(const struct record *rec, enum route *ret_route)
{
	int at[BESIDE_COUNT];
	struct message m;
	const char *why;
	uint64_t route;
	size_t n;

	if (!message_read(rec->data, rec->len, &m, &why))
		return why;
	route = message_number(&m, FIELD_route, ROUTE_COUNT);
	if (route >= ROUTE_COUNT || route_rows[route].answers != ANSWERS_RUNNER)
		return "no such route";
	message_beside(&m, at, &n);
	if (at[BESIDE_PEER] < 0 || message_has(&m, FIELD_credential) || message_has(&m, FIELD_door))
		return "another way to say who asks"; /* RULE L1 */
	if (n != rec->n_fds + 1)
		return "other descriptors than it announces";
	*ret_route = (enum route)route;
	return NULL;
}

static void take_ask(struct relay *r, const struct record *rec)
{
	struct record ask = { .type = RECORD_ASK, .data = rec->data, .len = rec->len, .n_fds = rec->n_fds };
	struct front *f = r->front;
	const char *why;

	if (rec->status != message_protocol()) {
		refuse(r, rec->tag, 426, "version", "the service is of another version of brig");
		return;
	}
	why = wrong_with(rec, &r->route);
	if (why) {
		refuse(r, rec->tag, 400, "bad_request", why);
		return;
	}
	if (!front_can_ask(f)) {
		refuse(r, rec->tag, 503, "unavailable", "the service has too much to do: try again in a moment");
		return;
	}
	memcpy(ask.fds, rec->fds, rec->n_fds * sizeof(ask.fds[0]));
	ask.fds[ask.n_fds++] = r->source.fd;
	add_tag(r, rec->tag);
	set_idle(r, false);
	set_active(r, true);
	r->is_cancelled = false;
	r->began_ns = f->now_ns;
	ask.tag = r->tag;
	front_send(f, &ask);
}

static void take_record(struct relay *r, const struct record *rec)
{
	if (rec->type == RECORD_ASK && r->tag == 0) {
		take_ask(r, rec);
	} else if (rec->type == RECORD_CANCEL && !r->is_cancelled) {
		r->is_cancelled = true;
		if (r->tag)
			front_send(r->front, &(struct record){ .type = RECORD_CANCEL, .tag = r->tag });
	} else {
		hang_up(r);
	}
}

void relay_on_event(struct relay *r, uint32_t events)
{
	struct record rec;
	int got = 1;

	if (r->is_dead)
		return;
	if (events & EPOLLOUT)
		flush(r);
	for (int i = 0; i < RECORDS_OF_TURN && !r->is_dead && !r->front->over; i++) {
		got = channel_receive(r->channel, &rec, NULL);
		if (got <= 0)
			break;
		take_record(r, &rec);
		for (size_t k = 0; k < rec.n_fds; k++)
			fd_closep(&rec.fds[k]);
	}
	if (got < 0)
		hang_up(r);
}

/* ---- connections ----------------------------------------------------------------------------------------------- */

static uint32_t relays_of(const struct front *f, uint32_t uid)
{
	const struct relay *r;
	uint32_t n = 0;

	TAILQ_FOREACH(r, &f->relays, in_all)
	n += r->uid == uid;
	return n;
}

static void begin(struct front *f, int *fd)
{
	struct relay *r = calloc(1, sizeof(*r));
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (!r || getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || channel_new(fd, &r->channel, NULL) < 0) {
		free(r);
		return;
	}
	r->front = f;
	r->uid = cred.uid;
	r->source = (struct source){ .kind = SOURCE_RELAY, .fd = channel_fd(r->channel) };
	TAILQ_INSERT_TAIL(&f->relays, r, in_all);
	f->n_relays++;
	if (f->n_relays > RELAYS_MAX || (r->uid != 0 && relays_of(f, r->uid) > RELAYS_OF_USER)) {
		refuse(r, 0, 503, "unavailable", "too many commands use the service: try again in a moment");
		hang_up(r);
		return;
	}
	set_idle(r, true);
	front_watch(f, &r->source, EPOLLIN | EPOLLRDHUP);
}

void relay_accept(struct front *f, const struct watched_listener *at)
{
	for (int i = 0; i < ACCEPTS_OF_ROUND && at->source.fd >= 0; i++) {
		AUTO_FD fd = accept4(at->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		begin(f, &fd);
	}
}

uint64_t relays_deadline(const struct front *f)
{
	const struct relay *r = TAILQ_FIRST(&f->idle_relays);

	return r ? r->idle_ns + f->deadline[DEADLINE_IDLE].length_ns : UINT64_MAX;
}

void relays_on_time(struct front *f)
{
	while (relays_deadline(f) <= f->now_ns)
		hang_up(TAILQ_FIRST(&f->idle_relays));
}

void relays_without_runner(struct front *f)
{
	struct relay *r, *next;

	for (r = TAILQ_FIRST(&f->relays); r; r = next) {
		next = TAILQ_NEXT(r, in_all);
		if (r->tag)
			hang_up(r);
	}
}
