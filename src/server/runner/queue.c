/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/queue.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "server/report.h"
#include "server/runner/service.h"
#include "server/control.h"

#define AGAIN_NS        (300 * NS_PER_MS)
#define RECORDS_OF_TURN 128
#define TICK_NS         (200 * NS_PER_MS)

void queue_complain(struct service *s, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	s->queue.counts.refused++;
	report("queue: %s", text);
}

void queue_class(const char *trust, const char *what, char *dst, size_t size)
{
	(void)snprintf(dst, size, "%s.%s", trust, what);
	for (char *at = dst + min_u64(strlen(trust) + 1, strlen(dst)); *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *at))
			*at = '_';
}

bool queue_is_environment(const char *name)
{
	return name && !str_eq(name, "none");
}

/* Makes the class of an execution, such as "unknown.python". */
void queue_class_of(const struct service *s, const struct execution *x, char *dst, size_t size)
{
	const struct brig_request *req = &x->job->req;
	const char *language = req->language ? host_language(s->host, req->language) : NULL;
	char what[TOKEN_WORD_MAX + 8];

	if (queue_is_environment(req->environment))
		(void)snprintf(what, sizeof(what), "env-%.60s", req->environment);
	else if (req->kind != BRIG_KIND_CODE)
		(void)snprintf(what, sizeof(what), "kind-%.60s", x->kind);
	else
		(void)str_copy(what, sizeof(what), language ? language : "any");
	queue_class(x->trust, what, dst, size);
}

/* ---- the channel ------------------------------------------------------------------------------------------------ */

static void leave_link(struct service *s)
{
	struct queue *q = &s->queue;
	struct queue_op *op;

	if (!q->channel)
		return;
	service_watch_link(s, false);
	channel_free(MOVE_PTR(q->channel));
	q->channel_is_bad = q->is_up = false;
	TAILQ_FOREACH(op, &q->ops, in_list)
	op->again_ns = 0; /* to be sent through the next link */
}

static void send_record(struct service *s, uint32_t tag, enum link_op op, const void *data, size_t len)
{
	const struct record r = { .tag = tag, .type = RECORD_ASK, .status = (uint16_t)op, .data = data, .len = len };
	struct brig_error err = BRIG_ERROR_INIT;

	if (s->queue.channel && !s->queue.channel_is_bad && channel_send(s->queue.channel, &r, &err) < 0)
		s->queue.channel_is_bad = true;
}

void queue_tell(struct service *s, enum link_op op, const struct buf *m)
{
	if (!m->full && !m->no_memory)
		send_record(s, 0, op, m->data, m->len);
}

void queue_join(struct service *s, int *sock)
{
	struct queue *q = &s->queue;
	struct brig_error err = BRIG_ERROR_INIT;

	leave_link(s);
	if (channel_new(sock, &q->channel, &err) < 0 || !service_watch_link(s, true)) {
		report("cannot hear the link: %s", err.msg);
		channel_free(MOVE_PTR(q->channel));
		return;
	}
	q->taken = q->credit = 0;
	q->tick_ns = 0;
	forwarded_listen(s);
	if (q->is_worker)
		worker_begin(s);
	else
		front_begin(s);
}

/* ---- seals ----------------------------------------------------------------------------------- */

void queue_begin(const struct service *s, struct buf *inner, const char *as)
{
	message_put_text(inner, FIELD_sealed_as, as);
	message_put_text(inner, FIELD_node, s->queue.key);
}

bool queue_seal(const struct service *s, const struct buf *inner, struct buf *out)
{
	uint8_t sig[SIGN_LEN];
	struct message m;
	const char *why;

	if (inner->full || inner->no_memory || !message_read(inner->data, inner->len, &m, &why) ||
	    !seal_make(s->queue.seed, &m, sig))
		return false;
	message_put_bytes(out, FIELD_sealed, inner->data, inner->len);
	message_put_bytes(out, FIELD_seal, sig, sizeof(sig));
	return !out->full && !out->no_memory;
}

bool queue_is_sealed_as(const struct message *m, const char *as)
{
	size_t len;
	const char *bytes = message_bytes(m, FIELD_sealed, &len), *why, *kind;
	struct message inner;

	if (!bytes || !message_read(bytes, len, &inner, &why))
		return false;
	kind = message_text(&inner, FIELD_sealed_as);
	return kind && str_eq(kind, as);
}

static const char *article(const char *noun)
{
	return strchr("aeio", noun[0]) ? "an" : "a";
}

bool queue_unseal(struct service *s, const struct message *m, const char *as, unsigned roles, struct queue_sealed *ret)
{
	size_t len, sig_len;
	const char *bytes = message_bytes(m, FIELD_sealed, &len), *why = NULL, *kind, *key;
	const char *sig = message_bytes(m, FIELD_seal, &sig_len);

	if (!bytes || !sig || sig_len != SIGN_LEN || !message_read(bytes, len, &ret->m, &why)) {
		queue_complain(s, "the link sent what is not sealed (%s)", why ? why : "no seal");
		return false;
	}
	kind = message_text(&ret->m, FIELD_sealed_as);
	key = message_text(&ret->m, FIELD_node);
	ret->by = NULL;
	for (unsigned role = PEER_FRONT; key && role <= PEER_WORKER && !ret->by; role <<= 1)
		if (roles & role)
			ret->by = peers_find(&s->queue.peers, key, (enum peer_role)role);
	ret->sig = (const uint8_t *)sig;
	if (!kind || !str_eq(kind, as))
		queue_complain(s, "refused %s %.16s where %s %s has to be", article(kind ? kind : "thing"),
			       kind ? kind : "thing without a name", article(as), as);
	else if (!ret->by)
		queue_complain(s, "refused %s %s sealed by %.16s..., which is no known node that may", article(as), as,
			       key ? key : "nobody");
	else if (!seal_fits(ret->by->pub, &ret->m, ret->sig))
		queue_complain(s, "refused %s %s whose seal is not that of %s: it was altered, or is forged",
			       article(as), as, ret->by->name);
	else
		return true;
	return false;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void op_free(struct queue *q, struct queue_op *op)
{
	TAILQ_REMOVE(&q->ops, op, in_list);
	q->n_ops--;
	buf_release(&op->message);
	free(op->arg);
	free(op);
}

static void op_send(struct service *s, struct queue_op *op)
{
	if (!s->queue.channel || s->queue.channel_is_bad)
		return;
	op->again_ns = UINT64_MAX;
	send_record(s, op->tag, op->op, op->message.data, op->message.len);
}

struct queue_op *queue_ask(struct service *s, enum link_op what, struct buf *m, uint64_t patience_ns, queue_fn fn,
			   const char *id)
{
	struct queue *q = &s->queue;
	struct queue_op *op = q->n_ops < QUEUE_OPS_MAX && !m->full && !m->no_memory ? calloc(1, sizeof(*op)) : NULL;

	if (!op)
		return NULL;
	op->tag = ++q->last_tag ? q->last_tag : ++q->last_tag;
	op->op = what;
	op->message = *m;
	*m = (struct buf)BUF_INIT(0);
	op->deadline_ns = clock_now_ns() + patience_ns;
	op->fn = fn;
	(void)str_copy(op->id, sizeof(op->id), id);
	TAILQ_INSERT_TAIL(&q->ops, op, in_list);
	q->n_ops++;
	op_send(s, op);
	return op;
}

struct queue_op *queue_get(struct service *s, enum link_bucket bucket, const char *id, queue_fn fn)
{
	AUTO_BUF m = BUF_INIT(KiB);

	message_put_number(&m, FIELD_bucket, bucket);
	message_put_text(&m, FIELD_key, id);
	return queue_ask(s, LINK_GET, &m, QUEUE_ASK_NS, fn, id);
}

struct queue_op *queue_put(struct service *s, enum link_bucket bucket, const char *id, uint64_t revision,
			   const struct buf *inner, uint64_t patience_ns, queue_fn fn)
{
	AUTO_BUF m = BUF_INIT(MESSAGE_MAX);

	message_put_number(&m, FIELD_bucket, bucket);
	message_put_text(&m, FIELD_key, id);
	message_put_number(&m, FIELD_revision, revision);
	return queue_seal(s, inner, &m) ? queue_ask(s, LINK_PUT, &m, patience_ns, fn, id) : NULL;
}

static void op_end(struct service *s, struct queue_op *op, const struct queue_answer *a)
{
	struct queue_op own = *op;

	/* Unlinked first: fn may start an operation in its place. */
	TAILQ_REMOVE(&s->queue.ops, op, in_list);
	s->queue.n_ops--;
	free(op);
	if (own.fn)
		own.fn(s, &own, a);
	buf_release(&own.message);
	free(own.arg);
}

static void on_done(struct service *s, uint32_t tag, const struct message *m)
{
	static const struct {
		const char *state;
		enum queue_how how;
	} states[] = { { "ok", QUEUE_OK }, { "taken", QUEUE_TAKEN }, { "none", QUEUE_NONE } };
	struct queue_answer a = { .how = QUEUE_FAILED,
				  .revision = message_number(m, FIELD_revision, 0),
				  .m = m,
				  .trouble = message_text(m, FIELD_trouble) };
	const char *state = message_text(m, FIELD_state);
	struct queue_op *op;

	TAILQ_FOREACH(op, &s->queue.ops, in_list)
	if (op->tag == tag)
		break;
	if (!op)
		return;
	for (size_t i = 0; state && i < ARRAY_LEN(states); i++)
		if (str_eq(states[i].state, state))
			a.how = states[i].how;
	if (a.how == QUEUE_FAILED && clock_now_ns() < op->deadline_ns) {
		op->again_ns = clock_now_ns() + AGAIN_NS;
		return;
	}
	if (!a.trouble)
		a.trouble = "no broker answers";
	op_end(s, op, &a);
}

static void ops_tick(struct service *s, uint64_t now)
{
	const struct queue_answer late = { .how = QUEUE_FAILED, .trouble = "no broker has answered in time" };

	for (struct queue_op *op = TAILQ_FIRST(&s->queue.ops), *next; op; op = next) {
		next = TAILQ_NEXT(op, in_list);
		if (now >= op->deadline_ns) {
			op_end(s, op, &late);
			next = TAILQ_FIRST(&s->queue.ops); /* fn may have changed the list */
		} else if (now >= op->again_ns) {
			op_send(s, op);
		}
	}
}

/* ---- messages from the link ------------------------------------------------------------------ */

static void on_up(struct service *s, const struct message *m)
{
	bool is_up = message_number(m, FIELD_credit, 0) != 0;

	if (is_up != s->queue.is_up)
		report("queue: %s", is_up ? "the brokers are there" : "no broker is there: what was taken goes on");
	s->queue.is_up = is_up;
	s->queue.since_ns = is_up ? clock_now_ns() : 0;
	s->queue.tick_ns = 0;
}

static bool is_for_node(const struct message *m)
{
	const char *subject = message_text(m, FIELD_subject);

	return subject && strncmp(subject, FORWARD_SUBJECT_NODE, strlen(FORWARD_SUBJECT_NODE)) == 0;
}

static bool take_record(struct service *s, const struct record *r)
{
	struct message m;
	const char *why, *trouble;

	if (r->type != RECORD_ASK || !message_read(r->data, r->len, &m, &why))
		return false;
	switch (r->status) {
	case LINK_DONE:
		on_done(s, r->tag, &m);
		return true;
	case LINK_JOB:
		if (s->queue.is_worker)
			worker_on_job(s, &m);
		return s->queue.is_worker;
	case LINK_TOLD:
		if (queue_is_sealed_as(&m, "bytes"))
			tunnel_on_told(s, &m);
		else if (is_for_node(&m))
			forwarded_on_told(s, &m);
		else if (s->queue.is_worker)
			worker_on_told(s, &m);
		else
			front_on_told(s, &m);
		return true;
	case LINK_UP:
		on_up(s, &m);
		return true;
	case LINK_STATS:
		s->queue.depth = message_number(&m, FIELD_stream_depth, 0);
		s->queue.oldest_s = message_number(&m, FIELD_oldest, 0);
		return true;
	case LINK_TROUBLE:
		trouble = message_text(&m, FIELD_trouble);
		queue_complain(s, "refused what a broker sent: %s", trouble ? trouble : "-");
		return true;
	default:
		return false;
	}
}

void queue_hear(struct service *s)
{
	struct queue *q = &s->queue;
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;
	int got = q->channel ? channel_flush(q->channel, &err) : -1;

	for (int i = 0; got >= 0 && i < RECORDS_OF_TURN && q->channel && !q->channel_is_bad; i++) {
		got = channel_receive(q->channel, &r, &err);
		if (got <= 0)
			break;
		for (size_t k = 0; k < r.n_fds; k++)
			fd_closep(&r.fds[k]);
		if (!take_record(s, &r)) {
			report("the link does not speak its language");
			got = -1;
		}
	}
	if (got < 0)
		q->channel_is_bad = true;
}

int queue_tick(struct service *s, int wait_ms)
{
	struct queue *q = &s->queue;
	uint64_t now = clock_now_ns();

	if (!q->is_on)
		return wait_ms;
	if (q->channel_is_bad)
		leave_link(s); /* it is about to exit, and the master sends a channel to the next one */
	if (now >= q->tick_ns) {
		q->tick_ns = now + TICK_NS;
		ops_tick(s, now);
		if (q->is_worker)
			worker_tick(s);
		else
			front_tick(s);
		batch_asks_tick(s);
		forward_tick(s);
		forwarded_tick(s);
		tunnels_tick(s);
		session_addresses_tick(s);
		snapshot_addresses_tick(s);
	}
	if (q->channel)
		service_watch_link(s, true);
	wait_ms = wait_ms < 0 || wait_ms > (int)(TICK_NS / NS_PER_MS) ? (int)(TICK_NS / NS_PER_MS) : wait_ms;
	return exchange_step(s, wait_ms);
}

bool queue_is_idle(const struct service *s)
{
	return s->queue.n_deliveries == 0 && s->queue.n_ops == 0 && s->forwards.n == 0 &&
	       (!s->queue.channel || channel_waiting(s->queue.channel) == 0);
}

/* ---- start and end ------------------------------------------------------------------------------------------------------ */

int queue_open(struct service *s, int *sock, struct brig_error *err)
{
	struct queue *q = &s->queue;
	const struct serve_options *o = s->options;

	TAILQ_INIT(&q->ops);
	TAILQ_INIT(&s->forwards.all);
	if (!o->queue_url)
		return 0;
	q->is_worker = o->is_worker;
	q->patience_ns = (o->queue_patience_ms ? o->queue_patience_ms : QUEUE_PATIENCE_MS) * NS_PER_MS;
	if (node_key_open(o->state, q->seed, q->key, err) < 0 || peers_read(o->nodes_file, &q->peers, err) < 0)
		return -err->code;
	if (!peers_find(&q->peers, q->key, q->is_worker ? PEER_WORKER : PEER_FRONT))
		return err_set(err, BRIG_E_USAGE, 0,
			       "this node is not in the list of nodes, %.200s, so other nodes would refuse what it "
			       "seals: add the line "
			       "'%s NAME %s' to the list of each node",
			       o->nodes_file, q->is_worker ? "worker" : "front", q->key);
	if (id_random(q->front_id, EXECUTION_ID_LEN) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a name for this front");
	q->is_on = true;
	queue_join(s, sock);
	return 0;
}

void queue_reload(struct service *s)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct peers fresh;

	if (!s->queue.is_on)
		return;
	if (peers_read(s->options->nodes_file, &fresh, &err) < 0) {
		report("the list of nodes stays as it was: %s", err.msg);
		return;
	}
	peers_release(&s->queue.peers);
	s->queue.peers = fresh;
	s->queue.host_ns = 0; /* the new policy may require other protections */
	if (s->queue.is_worker && s->queue.channel)
		worker_tell_classes(s);
	if (s->queue.channel)
		exchange_begin(s); /* with the new handle */
}

void queue_close(struct service *s)
{
	struct queue *q = &s->queue;

	if (!q->is_on)
		return;
	worker_release(s);
	keys_release(s);
	batch_asks_release(s);
	shared_batches_release(s);
	forward_release(s);
	forwarded_release(s);
	exchange_release(s);
	while (!TAILQ_EMPTY(&q->ops))
		op_free(q, TAILQ_FIRST(&q->ops));
	channel_free(MOVE_PTR(q->channel));
	peers_release(&q->peers);
	free(q->node);
	buf_release(&q->later);
	buf_release(&q->classes);
	buf_release(&q->told);
	crypto_wipe(q->seed, sizeof(q->seed));
}
