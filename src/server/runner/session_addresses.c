/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_addresses.c - addresses of sessions
 *
 * The bucket of sessions has an entry for each session: its owner and its node, sealed by that node.  It is put before
 * the client is told of the session, so that the client can use it at any front, and again with the reason when the
 * session ends.  Whether the node is alive follows from its own entry (queue_nodes.c); fronts have entries, too.
 */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/service.h"

#define PUT_NS   (2 * NS_PER_SEC)
#define END_NS   (10 * NS_PER_SEC)
#define AGAIN_NS (6 * 3600 * NS_PER_SEC) /* entries expire after a day */
#define BEAT_NS  (5 * NS_PER_SEC)

const char *session_node_name(const struct service *s)
{
	return s->queue.is_on ? s->options->node_name : NULL;
}

static struct server_session *find(const struct service *s, const char *id)
{
	struct server_session *x;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (str_eq(x->id, id))
		return x;
	return NULL;
}

/* The client is answered even if no broker responded: on this node the session can be used. */
static void on_put(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct server_session *x = find(s, op->id);

	if (!x)
		return;
	x->is_addressing = false;
	x->addressed_ns = a->how == QUEUE_OK ? clock_now_ns() : 0;
	if (x->inside && x->is_ready_untold) {
		x->is_ready_untold = false;
		session_answer_ready(x);
		session_go_on(s, x);
	}
}

static bool put(struct server_session *x, const char *state, uint64_t patience_ns, queue_fn fn)
{
	struct service *s = x->service;
	AUTO_BUF inner = BUF_INIT(4 * KiB);

	queue_begin(s, &inner, "session");
	message_put_text(&inner, FIELD_id, x->id);
	message_put_text(&inner, FIELD_who, x->owner);
	message_put_text(&inner, FIELD_trust, x->trust);
	message_put_text(&inner, FIELD_reply_to, s->queue.front_id);
	message_put_number(&inner, FIELD_serves, !s->queue.is_worker);
	message_put_number(&inner, FIELD_issued, x->created_ns / NS_PER_SEC);
	message_put_text(&inner, FIELD_state, state);
	message_put_text(&inner, FIELD_verdict, x->verdict[0] ? x->verdict : NULL);
	message_put_text(&inner, FIELD_reason, x->reason[0] ? x->reason : NULL);
	return queue_put(s, BUCKET_SESSIONS, x->id, LINK_ANY, &inner, patience_ns, fn) != NULL;
}

bool session_address_put(struct server_session *x)
{
	struct queue *q = &x->service->queue;

	if (!q->is_on || !q->is_up)
		return false;
	x->is_addressing = put(x, "ready", PUT_NS, on_put);
	q->beat_ns = q->is_worker ? q->beat_ns : 0;
	q->tick_ns = 0;
	return x->is_addressing;
}

void session_address_end(struct server_session *x)
{
	if (x->service->queue.is_on)
		(void)put(x, "ended", END_NS, NULL);
}

void session_addresses_tick(struct service *s)
{
	uint64_t now = clock_now_ns();
	struct server_session *x;

	if (!s->queue.is_up)
		return;
	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (x->inside && !x->is_addressing && (x->addressed_ns == 0 || now - x->addressed_ns > AGAIN_NS))
		(void)session_address_put(x);
}

void front_beat(struct service *s)
{
	struct queue *q = &s->queue;
	uint64_t now = clock_now_ns(), now_s = clock_wall_ns() / NS_PER_SEC;
	bool is_last = s->draining && s->sessions.n_live == 0;
	AUTO_BUF inner = BUF_INIT(32 * KiB);
	char key[SEAL_KEY_HEX + 8];

	if (!q->is_up || q->has_left || (!is_last && now - q->beat_ns < BEAT_NS))
		return;
	q->beat_ns = now;
	q->has_left = is_last;
	queue_begin(s, &inner, "node");
	message_put_text(&inner, FIELD_node_name, s->options->node_name);
	message_put_text(&inner, FIELD_reply_to, q->front_id);
	message_put_number(&inner, FIELD_serves, 1);
	message_put_number(&inner, FIELD_sessions, s->sessions.n_live);
	message_put_number(&inner, FIELD_issued, now_s);
	message_put_number(&inner, FIELD_expires, now_s + (is_last ? 0 : QUEUE_LEASE_S));
	(void)environments_put(s, &inner);
	(void)snprintf(key, sizeof(key), "front-%s", q->key);
	(void)queue_put(s, BUCKET_NODES, key, LINK_ANY, &inner, BEAT_NS, NULL);
}
