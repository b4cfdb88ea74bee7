/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_repeats.c - repeated requests for sessions, runs and processes (Idempotency-Key)
 *
 * A key maps to the session it created (idempotency.h); a repetition gets that session, or waits for it together with
 * the first client.  The key is dropped if the session does not start, and is not written to the file, since no session
 * survives the process.
 *
 * Keys of runs and processes belong to the session and are valid as long as it has the run, which is kept with its
 * result like an asynchronous process.
 */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/sessions.h"

static struct server_session *find_made(struct service *s, const char *id)
{
	struct server_session *x;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (str_eq(x->id, id))
		return x;
	return NULL;
}

/* 0, or -errno: it has been answered. */
static int hash_of(struct service *s, const struct request *req, uint8_t name[SHA256_LEN], uint8_t body[SHA256_LEN])
{
	int rc = idempotency_hash(req->m, req->route, req->beside.files, body);

	if (rc < 0)
		answer_retry(s, req, 503, 1, "the request cannot be compared with earlier ones of its key");
	idempotency_name(req->token->name, message_text(req->m, FIELD_idempotency_key), name);
	return rc;
}

bool session_is_repeated(struct service *s, const struct request *req)
{
	uint8_t name[SHA256_LEN], body[SHA256_LEN];
	const struct idempotency_entry *e;
	struct server_session *x;

	if (!message_has(req->m, FIELD_idempotency_key))
		return false;
	if (hash_of(s, req, name, body) < 0)
		return true;
	e = idempotency_find(&s->idempotency, name, clock_wall_ns() / NS_PER_SEC);
	if (!e)
		return false;
	x = find_made(s, e->id);
	if (memcmp(e->body, body, SHA256_LEN) != 0)
		answer_error(s, req, 409,
			     "this Idempotency-Key stands for another request, which made %s: use a new key", e->id);
	else if (x && x->state == SESSION_STARTING && x->is_stopping)
		answer_retry(s, req, 503, 1,
			     "the session of this Idempotency-Key could not begin: try again in a moment");
	else if (!x || !x->inside || x->is_stopping)
		answer_error(s, req, 409, "the session %s of this Idempotency-Key has ended: use a new key", e->id);
	else if (x->state == SESSION_READY)
		session_answer_made(x, req->tag, req->token->name, DOOR_api);
	else if (session_can_wait(s, req, x))
		(void)session_wait_for(s, req, x, 0);
	return true;
}

void session_remember(struct service *s, const struct request *req, struct server_session *x)
{
	uint8_t name[SHA256_LEN], body[SHA256_LEN];

	if (!message_has(req->m, FIELD_idempotency_key))
		return;
	idempotency_name(req->token->name, message_text(req->m, FIELD_idempotency_key), name);
	if (idempotency_hash(req->m, req->route, req->beside.files, body) < 0 ||
	    !idempotency_add(&s->idempotency, name, body, x->id, clock_wall_ns() / NS_PER_SEC)) {
		x->failed_status = 503;
		server_session_stop(x, "there was no memory for its Idempotency-Key");
	}
}

/* ---- runs and processes ------------------------------------------------------------------------------------------ */

static struct session_piece *find_piece(const struct server_session *x, const uint8_t key[SHA256_LEN])
{
	struct session_piece *p;

	TAILQ_FOREACH(p, &x->pieces, in_session)
	if (p->has_key && memcmp(p->key, key, SHA256_LEN) == 0)
		return p;
	return NULL;
}

/* Answers in the same way as the first request. */
static void join(struct service *s, const struct request *req, struct session_piece *p)
{
	bool watches = message_number(req->m, FIELD_stream, 0) != 0;
	bool is_over = p->x.state == EXECUTION_FINISHED;

	if (message_number(req->m, FIELD_async, 0) && !watches && p->context == 0) {
		if (p->is_started)
			session_piece_answer_promise(p, req->tag);
		else
			answer_retry(s, req, 503, 1, "the process of this Idempotency-Key has not begun yet");
		return;
	}
	if (is_over && !watches)
		execution_answer_result(s, &p->x, req->tag);
	else if (!is_over && !execution_listen(&p->x, req->tag, watches ? WATCHES : WAITS_FOR_RESULT, false))
		answer_retry(s, req, 503, 1, "too many wait for this already");
	else if (watches)
		events_replay(&p->x, req->tag);
}

bool session_piece_is_repeated(struct service *s, const struct request *req, struct server_session *x)
{
	uint8_t name[SHA256_LEN], body[SHA256_LEN];
	struct session_piece *p;

	if (!message_has(req->m, FIELD_idempotency_key))
		return false;
	if (hash_of(s, req, name, body) < 0)
		return true;
	p = find_piece(x, name);
	if (p && memcmp(p->asked, body, SHA256_LEN) != 0)
		answer_error(s, req, 409,
			     "this Idempotency-Key stands for another request in this session: use a new key");
	else if (p)
		join(s, req, p);
	return p != NULL;
}

bool session_piece_remember(struct service *s, const struct request *req, struct session_piece *p)
{
	p->has_key = message_has(req->m, FIELD_idempotency_key);
	return !p->has_key || hash_of(s, req, p->key, p->asked) == 0;
}
