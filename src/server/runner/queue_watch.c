/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_watch.c - fronts that watch what runs here, besides the one that asked for it
 *
 *	"watch" of a front -> what has happened so far -> from then on each event as it happens -> that there is a result
 *
 * Every worker hears such words; the one that has the execution, or had it lately, answers, and the others do not even look at
 * the seal.  Each front has a count of its own: it takes an event once, whatever brokers do.  A front says it again while nothing
 * comes, with the same random number, by which it is one that watches already; with another one it begins anew, and what is on its way
 * to its last life there says so.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/service.h"

#define WATCHERS_MAX 16
#define SKEW_S       300 /* that clocks of two nodes may differ, and words may take */

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

/* What has happened before this front asked. */
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

/* The place of a front that is to be told all from the beginning; WATCHERS_MAX: it is told already, or too many are. */
static size_t add(struct execution *x, const char *front, uint64_t nonce)
{
	struct watchers *w = x->watchers ? x->watchers : calloc(1, sizeof(*w));
	size_t i = 0;

	x->watchers = w;
	if (!w)
		return WATCHERS_MAX;
	if (w->n == WATCHERS_MAX && x->state == EXECUTION_FINISHED)
		w->n = 0; /* there is nothing more to tell to those */
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
		queue_complain(s, "refused a word of %s that somebody watches: it is old, or of another execution",
			       said.by->name);
		return;
	}
	place = add(x, front, message_number(&said.m, FIELD_sequence, 0));
	if (place < WATCHERS_MAX)
		replay(x, place);
}
