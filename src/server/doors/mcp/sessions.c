/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - sessions of the legacy era: id, owner and running calls.
 *
 * Limits: SESSIONS_OF_ONE per owner and SESSIONS_MAX in all. Beyond them the least recently used session without
 * running calls is dropped; sessions idle for IDLE_NS expire. The list is in order of last use.
 */
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "server/doors/mcp/mcp.h"

#define SESSIONS_MAX    1024
#define SESSIONS_OF_ONE 64
#define IDLE_NS         (3600 * NS_PER_SEC)

struct mcp_session {
	TAILQ_ENTRY(mcp_session) entry;
	char id[MCP_SESSION_ID_LEN + 1];
	char who[sizeof(((struct request *)0)->who)];
	uint64_t used_ns;
	TAILQ_HEAD(mcp_request_list, mcp_request) running;
};

struct mcp_sessions {
	TAILQ_HEAD(mcp_session_list, mcp_session) list;
	size_t n;
};

const char *mcp_session_id(const struct mcp_session *s)
{
	return s->id;
}

static void forget(struct front *f, struct mcp_session *s)
{
	TAILQ_REMOVE(&f->mcp->list, s, entry);
	f->mcp->n--;
	free(s);
}

static void forget_old(struct front *f)
{
	struct mcp_session *s = TAILQ_FIRST(&f->mcp->list), *next;

	for (; s && f->now_ns - s->used_ns > IDLE_NS; s = next) {
		next = TAILQ_NEXT(s, entry);
		if (TAILQ_EMPTY(&s->running))
			forget(f, s);
	}
}

/* Makes room for one more session of this owner; false: all candidates have running calls. */
static bool make_room(struct front *f, const char *who)
{
	struct mcp_session *s, *oldest = NULL, *own = NULL;
	size_t n_own = 0;

	TAILQ_FOREACH(s, &f->mcp->list, entry)
	{
		bool is_own = str_eq(s->who, who), is_idle = TAILQ_EMPTY(&s->running);

		n_own += is_own;
		if (is_idle && !oldest)
			oldest = s;
		if (is_idle && is_own && !own)
			own = s;
	}
	if (n_own < SESSIONS_OF_ONE && f->mcp->n < SESSIONS_MAX)
		return true;
	s = n_own >= SESSIONS_OF_ONE ? own : oldest;
	if (s)
		forget(f, s);
	return s != NULL;
}

static bool make_list(struct front *f)
{
	if (!f->mcp)
		f->mcp = calloc(1, sizeof(*f->mcp));
	if (f->mcp && !f->mcp->list.tqh_last)
		TAILQ_INIT(&f->mcp->list);
	return f->mcp != NULL;
}

struct mcp_session *mcp_session_new(struct client *c)
{
	struct front *f = c->front;
	struct mcp_session *s;

	if (!make_list(f))
		return NULL;
	forget_old(f);
	s = make_room(f, c->req->who) ? calloc(1, sizeof(*s)) : NULL;
	if (!s || id_random(s->id, MCP_SESSION_ID_LEN) < 0) {
		free(s);
		return NULL;
	}
	(void)str_copy(s->who, sizeof(s->who), c->req->who);
	s->used_ns = f->now_ns;
	TAILQ_INIT(&s->running);
	TAILQ_INSERT_TAIL(&f->mcp->list, s, entry);
	f->mcp->n++;
	return s;
}

struct mcp_session *mcp_session_find(struct client *c, const char *id)
{
	struct front *f = c->front;
	struct mcp_session *s;

	if (!f->mcp)
		return NULL;
	forget_old(f);
	TAILQ_FOREACH(s, &f->mcp->list, entry)
	if (str_eq(s->id, id) && str_eq(s->who, c->req->who))
		break;
	if (!s)
		return NULL;
	s->used_ns = f->now_ns;
	TAILQ_REMOVE(&f->mcp->list, s, entry);
	TAILQ_INSERT_TAIL(&f->mcp->list, s, entry);
	return s;
}

/* ---- running calls --------------------------------------------------------------------------------------------- */

void mcp_session_add(struct mcp_session *s, struct client *c)
{
	struct mcp_request *r = mcp_request_of(c);

	r->client = c;
	r->session = s;
	TAILQ_INSERT_TAIL(&s->running, r, running);
}

void mcp_session_drop(struct mcp_request *r)
{
	if (r->client)
		TAILQ_REMOVE(&r->session->running, r, running);
	r->client = NULL;
}

/* Ends the stream properly, but without an answer in it. */
static void cancel(struct mcp_request *r)
{
	struct client *c = r->client;

	mcp_session_drop(r);
	door_give_up(c);
	/* input after this call would never be parsed: close the connection afterwards */
	c->is_last |= c->in_at < c->in.len;
	if (c->req->was_streaming || door_stream_begin(c, "text/event-stream"))
		door_stream_end(c);
}

void mcp_session_cancel(struct mcp_session *s, const json_t *id)
{
	struct mcp_request *r;

	TAILQ_FOREACH(r, &s->running, running)
	if (json_equal(r->m.id, id))
		break;
	if (r)
		cancel(r);
}

void mcp_session_end(struct front *f, struct mcp_session *s)
{
	struct mcp_request *r;

	while ((r = TAILQ_FIRST(&s->running)) && r->client) /* always set for list members */
		cancel(r);
	forget(f, s);
}

void mcp_sessions_free(struct front *f)
{
	while (f->mcp && !TAILQ_EMPTY(&f->mcp->list))
		forget(f, TAILQ_FIRST(&f->mcp->list));
	free(f->mcp);
	f->mcp = NULL;
}
