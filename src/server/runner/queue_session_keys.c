/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_session_keys.c - sessions with an Idempotency-Key, created at any front (queue_keys.c)
 *
 * The id in the bucket is the id of the session, wherever it is created.
 *
 *	ours    created, here or on a worker
 *	repeated  here, or its address is known: answered as when it was created
 *	          ended: 409
 *	          nowhere: this front failed to create it: created now
 *	                   key put recently: another front may be creating it: 503, retry
 *	                   key put a while ago: its front has died: created now
 *
 * Two copies of a job do no harm, but two sessions would both exist; hence the wait if the key is recent.
 */
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/queue_keys.h"
#include "server/runner/requests.h"

#define FRESH_S 60 /* within this time a session being created gets its address */

struct keyed_session {
	struct keyed k;
	struct buf bytes; /* the request; the id is appended */
	int files;
	bool is_in_vain; /* created under this key by this process, but gone */
	uint64_t put_s;  /* when another process put the key */
};

static struct keyed_session *of(struct keyed *k)
{
	return (struct keyed_session *)k;
}

/* Without the message, which only make() parses. */
static struct request request(const struct keyed *k)
{
	return (struct request){ .tag = k->tag,
				 .route = ROUTE_session_make,
				 .request_id = k->request_id,
				 .token = &k->token,
				 .beside = JOB_DESCRIPTORS_NONE };
}

static void release(struct keyed *k)
{
	buf_release(&of(k)->bytes);
	fd_closep(&of(k)->files);
}

/* Handles the request now, under the key's id. */
static void make(struct service *s, struct keyed *k)
{
	struct buf *bytes = &of(k)->bytes;
	struct request req = request(k);
	struct message m;
	const char *why;

	req.m = &m;
	message_put_text(bytes, FIELD_session_id, k->id);
	req.beside.files = fd_move(&of(k)->files);
	if (bytes->full || bytes->no_memory || !message_read(bytes->data, bytes->len, &m, &why))
		answer_retry(s, &req, 503, 1, "there is no memory for the request");
	else if (!keyed_has_gone(s, k) && !forward_places(s, &req))
		handle_session_make(s, &req);
	fd_closep(&req.beside.files);
	keyed_free(s, k);
}

static bool is_here(const struct service *s, const char *id)
{
	const struct server_session *x;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (str_eq(x->id, id))
		return true;
	return false;
}

static bool is_live_session_of(const struct keyed *k, const struct message *m)
{
	const char *state = message_text(m, FIELD_state), *id = message_text(m, FIELD_id);

	return state && !str_eq(state, "ended") && keyed_is_own(k, m) && id && str_eq(id, k->id);
}

static void on_address(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct keyed *k = keyed_find(s, op->number);
	struct queue_sealed there;

	if (!k)
		return;
	if (a->how == QUEUE_NONE && (of(k)->is_in_vain || of(k)->put_s + FRESH_S < clock_wall_ns() / NS_PER_SEC)) {
		make(s, k);
	} else if (a->how == QUEUE_NONE) {
		keyed_refuse(s, k, 503,
			     "the session of this Idempotency-Key is about to be made: ask again in a moment");
	} else if (a->how != QUEUE_OK || !queue_unseal(s, a->m, "session", PEER_WORKER | PEER_FRONT, &there)) {
		keyed_refuse(s, k, 503, "no broker says where the session of this Idempotency-Key is");
	} else if (!is_live_session_of(k, &there.m)) {
		keyed_refuse(s, k, 409, "the session of this Idempotency-Key has ended: use a new key");
	} else {
		const struct request req = request(k);

		forward_made(s, &req, k->id, &there);
		keyed_free(s, k);
	}
}

static void follow(struct service *s, struct keyed *k, const struct queue_sealed *entry)
{
	const char *front = message_text(&entry->m, FIELD_reply_to);

	of(k)->put_s = message_number(&entry->m, FIELD_issued, 0);
	of(k)->is_in_vain = front && str_eq(front, s->queue.front_id);
	if (is_here(s, k->id))
		make(s, k); /* this front recognises the repetition itself */
	else
		keyed_go_on(s, k, queue_get(s, BUCKET_SESSIONS, k->id, on_address));
}

static const struct keyed_kind sessions_kind = {
	.other = "which made", .most = 64, .enter = make, .follow = follow, .request = request, .release = release
};

/* NULL: too many, or out of memory. */
static struct keyed *session_new(struct service *s, struct request *req)
{
	struct keyed *k = keyed_new(s, &sessions_kind, sizeof(struct keyed_session), req);

	if (!k)
		return NULL;
	of(k)->bytes = (struct buf)BUF_INIT(MESSAGE_MAX);
	of(k)->files = FD_NONE;
	if (!buf_add(&of(k)->bytes, req->m->bytes, req->m->len)) {
		keyed_free(s, k);
		return NULL;
	}
	of(k)->files = fd_move(&req->beside.files);
	return k;
}

bool session_keys_take(struct service *s, struct request *req)
{
	const char *key = message_text(req->m, FIELD_idempotency_key);
	uint8_t name[SHA256_LEN], body[SHA256_LEN];
	struct keyed *k;

	if (!key)
		return false;
	k = idempotency_hash(req->m, req->route, req->beside.files, body) < 0 ? NULL : session_new(s, req);
	if (!k) {
		answer_retry(s, req, 503, 1, "the service has too much to do: try again in a moment");
		return true;
	}
	idempotency_name(req->token->name, key, name);
	keyed_put(s, k, name, body);
	return true;
}
