/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forwarded.c - requests of other fronts for sessions on this node
 *
 * Each request gets a tag that no client of our own front can have.  Handlers work as usual: whatever they send to such
 * a tag is sealed and goes to the requesting front instead of the channel (answer.c).
 *
 *	received -> handler -> events ... -> answer; its number is remembered, so that it is not executed twice
 *	                         `- its front has stopped probing, or reports that the client has gone: treated as a disconnect
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

#define REMEMBER_NS (3 * FORWARD_ISSUED_S * NS_PER_SEC)
#define SILENCE_NS  (40 * NS_PER_SEC)
#define OPEN_MAX    4096
#define FRONTS_MAX  1024
#define WINDOW      4096 /* requests of one front that may arrive out of order */

/*
 * Which requests of a front were received.  The front numbers them in sequence: those more than WINDOW below the
 * highest count as received, for the others there is a bitmap.  After REMEMBER_NS they are refused because of their age
 * alone.
 */
struct asking_front {
	LIST_ENTRY(asking_front) in_list;
	char id[EXECUTION_ID_LEN + 1];
	uint64_t highest, heard_ns;
	uint64_t bits[WINDOW / 64];
};

struct forwarded {
	LIST_ENTRY(forwarded) in_list;
	uint32_t tag;
	char front[EXECUTION_ID_LEN + 1], key[SEAL_KEY_HEX + 1]; /* key: the front's */
	uint64_t serial;                                         /* numbered by the front */
	uint64_t heard_ns;
	uint64_t events;
};

bool forward_is_envelope(enum field f)
{
	switch (f) {
	case FIELD_sealed_as:
	case FIELD_node:
	case FIELD_serial:
	case FIELD_reply_to:
	case FIELD_issued:
	case FIELD_who:
	case FIELD_admin:
	case FIELD_anonymous:
	case FIELD_route_name:
	case FIELD_quota_concurrent:
	case FIELD_quota_runs:
	case FIELD_quota_cpu:
	case FIELD_quota_memory:
	case FIELD_archive:
		return true;
	default:
		return false;
	}
}

bool forward_is_possible(enum route route)
{
	static const char of_one[] = "/v1/sessions/{id}";

	if (route == ROUTE_session_make || route == ROUTE_snapshot || route == ROUTE_snapshot_delete ||
	    gathering_is_possible(route))
		return true;
	return strncmp(route_rows[route].path, of_one, sizeof(of_one) - 1) == 0;
}

/* ---- the table -------------------------------------------------------------------------------------------------------- */

static struct forwarded *find(const struct service *s, const char *front, uint64_t serial)
{
	struct forwarded *f;

	LIST_FOREACH(f, &s->forwards.forwarded, in_list)
	if (f->serial == serial && str_eq(f->front, front))
		return f;
	return NULL;
}

static struct forwarded *find_tag(const struct service *s, uint32_t tag)
{
	struct forwarded *f;

	LIST_FOREACH(f, &s->forwards.forwarded, in_list)
	if (f->tag == tag)
		return f;
	return NULL;
}

static struct forwarded *add(struct service *s, const char *front, uint64_t serial)
{
	struct forwards *t = &s->forwards;
	struct forwarded *f = t->n_forwarded < OPEN_MAX ? calloc(1, sizeof(*f)) : NULL;

	if (!f || !str_copy(f->front, sizeof(f->front), front)) {
		free(f);
		return NULL;
	}
	do
		t->last_tag = (t->last_tag + 1) | (CHANNEL_TAG_MAX + 1);
	while (find_tag(s, t->last_tag));
	f->tag = t->last_tag;
	f->serial = serial;
	f->heard_ns = clock_now_ns();
	LIST_INSERT_HEAD(&t->forwarded, f, in_list);
	t->n_forwarded++;
	return f;
}

static void forget(struct service *s, struct forwarded *f)
{
	LIST_REMOVE(f, in_list);
	s->forwards.n_forwarded--;
	free(f);
}

/* ---- duplicates ------------------------------------------------------------------------------ */

static struct asking_front *find_front(const struct service *s, const char *id)
{
	struct asking_front *k;

	LIST_FOREACH(k, &s->forwards.fronts, in_list)
	if (str_eq(k->id, id))
		return k;
	return NULL;
}

static struct asking_front *add_front(struct service *s, const char *id)
{
	struct asking_front *k = s->forwards.n_fronts < FRONTS_MAX ? calloc(1, sizeof(*k)) : NULL;

	if (!k)
		return NULL;
	(void)str_copy(k->id, sizeof(k->id), id);
	k->heard_ns = clock_now_ns();
	LIST_INSERT_HEAD(&s->forwards.fronts, k, in_list);
	s->forwards.n_fronts++;
	return k;
}

static void forget_front(struct service *s, struct asking_front *k)
{
	LIST_REMOVE(k, in_list);
	s->forwards.n_fronts--;
	free(k);
}

static uint64_t *word_of(struct asking_front *k, uint64_t serial)
{
	return &k->bits[serial % WINDOW / 64];
}

static bool was_heard(struct asking_front *k, uint64_t serial)
{
	if (serial > k->highest)
		return false;
	return k->highest - serial >= WINDOW || (*word_of(k, serial) >> (serial % 64) & 1);
}

/* Records a number that was not received before. */
static void hear(struct asking_front *k, uint64_t serial)
{
	for (uint64_t n = k->highest + 1, i = 0; n <= serial && i < WINDOW; n++, i++)
		*word_of(k, n) &= ~(UINT64_C(1) << (n % 64));
	k->highest = max_u64(k->highest, serial);
	*word_of(k, serial) |= UINT64_C(1) << (serial % 64);
	k->heard_ns = clock_now_ns();
}

bool forwarded_is_tag(uint32_t tag)
{
	return tag > CHANNEL_TAG_MAX;
}

void forwarded_tick(struct service *s)
{
	uint64_t now = clock_now_ns();

	for (struct forwarded *f = LIST_FIRST(&s->forwards.forwarded), *next; f; f = next) {
		next = LIST_NEXT(f, in_list);
		if (now - f->heard_ns > SILENCE_NS) {
			f->heard_ns = now;
			(void)sessions_gone(s, f->tag); /* its front has gone, and so has the client */
		}
	}
	for (struct asking_front *k = LIST_FIRST(&s->forwards.fronts), *next; k; k = next) {
		next = LIST_NEXT(k, in_list);
		if (now - k->heard_ns > REMEMBER_NS)
			forget_front(s, k);
	}
}

void forwarded_release(struct service *s)
{
	while (!LIST_EMPTY(&s->forwards.forwarded))
		forget(s, LIST_FIRST(&s->forwards.forwarded));
	while (!LIST_EMPTY(&s->forwards.fronts))
		forget_front(s, LIST_FIRST(&s->forwards.fronts));
}

/* ---- responses ------------------------------------------------------------------------------- */

static void tell(struct service *s, const char *front, const struct buf *inner)
{
	AUTO_BUF m = BUF_INIT(MESSAGE_MAX);
	char subject[128];

	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_FRONT, front);
	message_put_text(&m, FIELD_subject, subject);
	if (queue_seal(s, inner, &m))
		queue_tell(s, LINK_TELL, &m);
}

static void begin_answer(const struct service *s, struct buf *inner, uint64_t serial, const char *state)
{
	queue_begin(s, inner, "answer");
	message_put_number(inner, FIELD_serial, serial);
	message_put_text(inner, FIELD_state, state);
}

static void tell_state(struct service *s, const char *front, uint64_t serial, const char *state)
{
	AUTO_BUF inner = BUF_INIT(KiB);

	begin_answer(s, &inner, serial, state);
	tell(s, front, &inner);
}

/* Copies the fields of an answer to a client (answer.c). */
static bool put_answer(struct buf *inner, const struct record *r)
{
	struct message m;
	const char *bytes, *why;
	size_t at = 0, len;
	enum field f;

	message_put_number(inner, FIELD_status, r->status);
	if (r->len == 0)
		return true;
	if (!message_read(r->data, r->len, &m, &why))
		return false;
	while ((bytes = message_walk(&m, &at, &f, &len)))
		message_put_bytes(inner, f, bytes, len);
	return !inner->full && !inner->no_memory;
}

/* Opens a tunnel for the connection that came with the answer. */
static bool open_tunnel(struct service *s, const struct forwarded *f, const struct record *r, struct buf *inner)
{
	char subject[64];
	const struct tunnel_name name = { f->front, f->serial, subject, f->key };
	AUTO_FD fd = fcntl(r->fds[0], F_DUPFD_CLOEXEC, 3);

	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_FRONT, f->front);
	message_put_number(inner, FIELD_tunnel, 1);
	return fd >= 0 && tunnel_begin(s, &name, &fd);
}

void forwarded_send(struct service *s, const struct record *r)
{
	struct forwarded *f = find_tag(s, r->tag);
	AUTO_BUF inner = BUF_INIT(MESSAGE_MAX);

	if (!f)
		return;
	begin_answer(s, &inner, f->serial, r->type == RECORD_EVENT ? "event" : "answer");
	if (r->type == RECORD_EVENT) {
		message_put_number(&inner, FIELD_event, r->status);
		message_put_number(&inner, FIELD_sequence, ++f->events);
		message_put_bytes(&inner, FIELD_text, r->data, r->len);
	} else {
		if (!put_answer(&inner, r) || (r->n_fds > 0 && !open_tunnel(s, f, r, &inner))) {
			buf_release(&inner);
			inner = (struct buf)BUF_INIT(KiB);
			begin_answer(s, &inner, f->serial, "unsent");
		}
	}
	tell(s, f->front, &inner);
	if (r->type != RECORD_EVENT)
		forget(s, f);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool route_named(const char *name, enum route *ret)
{
	for (enum route r = 0; name && r < ROUTE_COUNT; r++)
		if (str_eq(route_rows[r].name, name)) {
			*ret = r;
			return true;
		}
	return false;
}

/* The client's request without the fields added by the front. */
static bool strip(const struct message *m, struct buf *plain, struct message *ret)
{
	const char *bytes, *why;
	size_t at = 0, len;
	enum field f;

	while ((bytes = message_walk(m, &at, &f, &len)))
		if (!forward_is_envelope(f))
			message_put_bytes(plain, f, bytes, len);
	return !plain->full && !plain->no_memory && message_read(plain->data, plain->len, ret, &why);
}

/*
 * The token as stated by the front.  For the creation of a session, the front has already checked the request against
 * the token.
 */
static struct token token_of(const struct message *m, enum route route)
{
	const char *who = message_text(m, FIELD_who);
	struct token token = { .max_trust = TOKEN_TRUSTED,
			       .is_for_all = true,
			       .admin = route == ROUTE_session_make || message_number(m, FIELD_admin, 0),
			       .is_anonymous = message_number(m, FIELD_anonymous, 0) };

	(void)str_copy(token.name, sizeof(token.name), who ? who : "");
	token.quota.concurrent = (uint32_t)min_u64(message_number(m, FIELD_quota_concurrent, 0), QUOTA_CONCURRENT_MAX);
	token.quota.runs_per_minute = (uint32_t)min_u64(message_number(m, FIELD_quota_runs, 0), QUOTA_RUNS_MAX);
	token.quota.cpu_seconds_per_hour = min_u64(message_number(m, FIELD_quota_cpu, 0), QUOTA_CPU_SECONDS_MAX);
	token.quota.memory = min_u64(message_number(m, FIELD_quota_memory, 0), QUOTA_MEMORY_MAX);
	return token;
}

static void do_ask(struct service *s, const struct forwarded *f, const struct message *m, enum route route)
{
	struct token token = token_of(m, route);
	AUTO_BUF plain = BUF_INIT(MESSAGE_MAX);
	struct message own;
	struct request req = {
		.tag = f->tag, .route = route, .m = &own, .request_id = "", .beside = JOB_DESCRIPTORS_NONE
	};
	struct brig_error err = BRIG_ERROR_INIT;
	size_t len;
	const char *archive = message_bytes(m, FIELD_archive, &len);

	req.token = &token;
	if (!strip(m, &plain, &own)) {
		answer_retry(s, &req, 503, 1, "there is no memory for the request");
		return;
	}
	if (session_has_key(&own) && !session_let_in(s, &req))
		return;
	if (message_text(&own, FIELD_request_id))
		req.request_id = message_text(&own, FIELD_request_id);
	if (archive) {
		req.beside.files = sealed_make("brig-body", archive, len);
		if (req.beside.files < 0) {
			answer_retry(s, &req, 503, 1, "there is no room for the bytes of the request");
			return;
		}
	}
	if (job_check_descriptors(&req.beside, &err) < 0)
		answer_trouble(s, &req, &err);
	else
		requests_handle(s, &req);
	fd_closep(&req.beside.files);
}

static void on_ask(struct service *s, const struct queue_sealed *said, const char *front, uint64_t serial)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC, issued = message_number(&said->m, FIELD_issued, 0);
	const char *who = message_text(&said->m, FIELD_who);
	struct asking_front *k = find_front(s, front);
	struct forwarded *f;
	enum route route;

	if (issued + FORWARD_ISSUED_S < now_s || issued > now_s + FORWARD_ISSUED_S || (k && was_heard(k, serial))) {
		queue_complain(s, "refused a request of %s that is old, or was heard before: see that clocks agree",
			       said->by->name);
		return;
	}
	if (!who || !*who || !route_named(message_text(&said->m, FIELD_route_name), &route) ||
	    !forward_is_possible(route)) {
		tell_state(s, front, serial, "refused");
		return;
	}
	k = k ? k : add_front(s, front);
	f = k ? add(s, front, serial) : NULL;
	if (!f) {
		tell_state(s, front, serial, "busy");
		return;
	}
	hear(k, serial);
	(void)str_copy(f->key, sizeof(f->key), said->by->key);
	do_ask(s, f, &said->m, route); /* f may have been freed */
}

static void on_word(struct service *s, const struct queue_sealed *said, const char *front, uint64_t serial)
{
	const char *word = message_text(&said->m, FIELD_word);
	struct asking_front *k = find_front(s, front);
	struct forwarded *f = find(s, front, serial);

	if (!word)
		return;
	if (f)
		f->heard_ns = clock_now_ns();
	if (str_eq(word, "probe"))
		tell_state(s, front, serial, f ? "open" : k && was_heard(k, serial) ? "over" : "unknown");
	else if (f && str_eq(word, "gone"))
		(void)sessions_gone(s, f->tag);
	else if (f && str_eq(word, "cancel"))
		(void)sessions_cancel(s, f->tag);
}

void forwarded_on_told(struct service *s, const struct message *m)
{
	bool is_ask = queue_is_sealed_as(m, "ask");
	struct queue_sealed said;
	const char *front;
	uint64_t serial;

	if (!queue_unseal(s, m, is_ask ? "ask" : "word", PEER_FRONT, &said))
		return;
	front = message_text(&said.m, FIELD_reply_to);
	serial = message_number(&said.m, FIELD_serial, 0);
	if (!front || strlen(front) != EXECUTION_ID_LEN || strspn(front, ID_ALPHABET) != EXECUTION_ID_LEN)
		return;
	if (is_ask)
		on_ask(s, &said, front, serial);
	else
		on_word(s, &said, front, serial);
}

void forwarded_listen(struct service *s)
{
	AUTO_BUF m = BUF_INIT(KiB);
	char subject[64];

	(void)snprintf(subject, sizeof(subject), "%s%s", FORWARD_SUBJECT_NODE, s->queue.front_id);
	message_put_text(&m, FIELD_subject, subject);
	queue_tell(s, LINK_LISTEN, &m);
}
