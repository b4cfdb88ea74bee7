/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_watch.c - fronts that watch executions on this node, besides the one that submitted the job
 *
 *	"watch" from a front -> events so far -> each event as it happens -> notification of the result
 *
 * Every worker receives these requests; the one that has the execution, or had it lately, responds, the others do not
 * even verify the seal.  Events are numbered per front, so that a front processes each once, whatever brokers do.  A
 * front repeats the request while no events arrive, with the same random number, which identifies a watch that exists
 * already; with another number it is a new watch and starts from the beginning, and events still under way to the old
 * one are recognised by the old number.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/service.h"

#define WATCHERS_MAX 16
#define SKEW_S       300 /* tolerated clock difference plus transit time */

struct watchers {
	size_t n;
	struct {
		char front[EXECUTION_ID_LEN + 1];
		uint64_t nonce, serial;
	} item[WATCHERS_MAX];
};

static const char cut[] =
	"{\"event\":\"notice\",\"text\":\"there were more events than are kept: the result has the whole "
	"output\"}";

void worker_send_event(struct service *s, const char *id, const struct queue_event *e)
{
	char subject[128];
	AUTO_BUF inner = BUF_INIT(LINK_WHOLE_MAX);
	AUTO_BUF m = BUF_INIT(MiB);

	queue_begin(s, &inner, "event");
	message_put_text(&inner, FIELD_id, id);
	message_put_number(&inner, FIELD_event, e->kind);
	message_put_number(&inner, FIELD_serial, e->serial);
	if (e->nonce)
		message_put_number(&inner, FIELD_sequence, e->nonce);
	if (e->attempt)
		message_put_number(&inner, FIELD_attempt, e->attempt);
	if (e->text)
		message_put_bytes(&inner, FIELD_text, e->text, e->len);
	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_FRONT, e->to);
	message_put_text(&m, FIELD_subject, subject);
	if (queue_seal(s, &inner, &m))
		queue_tell(s, LINK_TELL, &m);
}

void watchers_release(struct execution *x)
{
	free(x->watchers);
	x->watchers = NULL;
}

const char *watchers_next(const struct execution *x, size_t i)
{
	return x->watchers && i < x->watchers->n ? x->watchers->item[i].front : NULL;
}

static void send_to(struct execution *x, size_t i, struct queue_event e)
{
	e.to = x->watchers->item[i].front;
	e.nonce = x->watchers->item[i].nonce;
	e.serial = e.kind == EVENT_done ? UINT64_MAX : ++x->watchers->item[i].serial;
	worker_send_event(x->service, x->id, &e);
}

void watchers_event(struct execution *x, const struct queue_event *e)
{
	for (size_t i = 0; x->watchers && i < x->watchers->n; i++)
		send_to(x, i, *e);
}

/* Sends all events so far. */
static void replay(struct execution *x, size_t i)
{
	struct queue_event e = { .attempt = worker_attempt(x) };

	for (size_t k = 0; k < x->n_logged; k++) {
		e.kind = x->log[k].kind;
		e.text = x->log[k].text;
		e.len = x->log[k].len;
		send_to(x, i, e);
	}
	if (x->log_is_cut)
		send_to(x, i,
			(struct queue_event){
				.attempt = e.attempt, .kind = EVENT_notice, .text = cut, .len = sizeof(cut) - 1 });
	if (x->state == EXECUTION_FINISHED)
		send_to(x, i, (struct queue_event){ .attempt = e.attempt, .kind = EVENT_done });
}

/*
 * Index of a front that is to get all events from the beginning; WATCHERS_MAX: it watches already, or there are too
 * many.
 */
static size_t add(struct execution *x, const char *front, uint64_t nonce)
{
	struct watchers *w = x->watchers ? x->watchers : calloc(1, sizeof(*w));
	size_t i = 0;

	x->watchers = w;
	if (!w)
		return WATCHERS_MAX;
	if (w->n == WATCHERS_MAX && x->state == EXECUTION_FINISHED)
		w->n = 0; /* they have received everything */
	while (i < w->n && !str_eq(w->item[i].front, front))
		i++;
	if (i == WATCHERS_MAX || (i < w->n && w->item[i].nonce == nonce) ||
	    !str_copy(w->item[i].front, sizeof(w->item[i].front), front))
		return WATCHERS_MAX;
	w->n = i == w->n ? w->n + 1 : w->n;
	w->item[i].nonce = nonce;
	w->item[i].serial = 0;
	return i;
}

void watchers_on_told(struct service *s, const struct message *m, const char *id)
{
	struct execution *x = executions_find(&s->executions, id);
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC, issued;
	struct queue_sealed said;
	const char *named, *front;
	size_t place;

	if (!x || !queue_unseal(s, m, "watch", PEER_FRONT, &said))
		return;
	named = message_text(&said.m, FIELD_id);
	front = message_text(&said.m, FIELD_reply_to);
	issued = message_number(&said.m, FIELD_issued, 0);
	if (!named || !str_eq(named, id) || !front || issued + SKEW_S < now_s || issued > now_s + SKEW_S) {
		queue_complain(s, "refused a message of %s about watching: it is old, or of another execution",
			       said.by->name);
		return;
	}
	place = add(x, front, message_number(&said.m, FIELD_sequence, 0));
	if (place < WATCHERS_MAX)
		replay(x, place);
}
