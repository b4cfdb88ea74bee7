/* SPDX-License-Identifier: Apache-2.0 */
/* session_asks.c - asks that an event of the session answers, and events that are for no run */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/asks.h"

/* ---- waits --------------------------------------------------------------------------------------------------- */

bool session_can_wait(struct service *s, const struct ask *ask, const struct server_session *x)
{
	if (x->n_waits < SESSION_WAITS_MAX)
		return true;
	answer_retry(s, ask, 503, 1, "the session %s has %d asks that it has not answered: try again in a moment",
		     x->id, SESSION_WAITS_MAX);
	return false;
}

struct session_wait *session_wait_for(struct service *s, const struct ask *ask, struct server_session *x,
				      uint64_t event)
{
	struct session_wait *w = calloc(1, sizeof(*w));

	if (!w) {
		answer_retry(s, ask, 503, 1, "there is no memory for the request");
		return NULL;
	}
	w->event = event;
	w->tag = ask->tag;
	w->route = ask->route;
	w->body = FD_NONE;
	(void)str_copy(w->request_id, sizeof(w->request_id), ask->request_id);
	(void)str_copy(w->who, sizeof(w->who), ask->token->name);
	TAILQ_INSERT_TAIL(&x->waits, w, in_session);
	x->n_waits++;
	return w;
}

void session_wait_free(struct server_session *x, struct session_wait *w)
{
	TAILQ_REMOVE(&x->waits, w, in_session);
	x->n_waits--;
	fd_closep(&w->body);
	json_decref(w->files);
	free(w);
}

void session_wait_refuse(struct server_session *x, struct session_wait *w, uint16_t status, const char *why)
{
	const struct ask ask = { .tag = w->tag, .request_id = w->request_id };

	answer_error(x->service, &ask, status, "%s", why);
	session_wait_free(x, w);
}

void session_trouble(struct service *s, const struct ask *ask, const struct brig_error *err)
{
	if (err->code == BRIG_E_REFUSED)
		answer_error(s, ask, 409, "%s", err->msg);
	else if (err->sys == ENOENT)
		answer_error(s, ask, 404, "%s", err->msg);
	else
		answer_trouble(s, ask, err);
}

/* ---- what is told ---------------------------------------------------------------------------------------------- */

static json_t *moment(uint64_t ns)
{
	char text[WHEN_TEXT_MAX];

	return ns ? json_string(when_utc(text, sizeof(text), ns)) : json_null();
}

static const char *state_of(const struct server_session *x)
{
	return x->state == SESSION_ENDED      ? "ended"
	       : x->is_stopping               ? "ending"
	       : x->state == SESSION_STARTING ? "starting"
	       : x->is_paused                 ? "paused"
					      : "ready";
}

static json_t *contexts_of(const struct server_session *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n_contexts; i++)
		(void)json_array_append_new(list, json_pack("{s:I, s:s}", "id", (json_int_t)x->context[i].tag,
							    "language", x->context[i].language));
	return list;
}

json_t *session_document(const struct server_session *x)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "id", x->id, "state", state_of(x), "token",
			 x->owner, "trust", x->trust, "created", moment(x->created_ns), "ended", moment(x->ended_ns),
			 "verdict", x->verdict[0] ? json_string(x->verdict) : json_null(), "reason",
			 x->reason[0] ? json_string(x->reason) : json_null(), "contexts", contexts_of(x));
}

/* ---- the session itself ------------------------------------------------------------------------------------------ */

/* Has an ask wait for what was begun with rc; the session is stepped. */
static void wait_or_say(struct service *s, struct ask *ask, struct server_session *x, int rc, uint64_t event,
			const struct brig_error *err)
{
	if (rc < 0)
		session_trouble(s, ask, err);
	else
		(void)session_wait_for(s, ask, x, event);
	session_go_on(s, x);
}

/* What needs nothing but the session. */
static void ask_plainly(struct service *s, struct ask *ask,
			int (*begin)(struct brig_session *session, uint64_t *ret_tag, struct brig_error *err))
{
	struct server_session *x = session_find(s, ask);
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	int rc;

	if (!x || !session_can_wait(s, ask, x))
		return;
	rc = begin(x->inside, &tag, &err);
	wait_or_say(s, ask, x, rc, tag, &err);
}

void ask_session_pause(struct service *s, struct ask *ask)
{
	ask_plainly(s, ask, brig_session_pause);
}

void ask_session_resume(struct service *s, struct ask *ask)
{
	ask_plainly(s, ask, brig_session_resume);
}

/* ---- contexts -------------------------------------------------------------------------------------------------- */

/* As contexts, history and inspection call it: both shells are one, whose interpreter is bash. */
const char *session_language(const struct server_session *x, const char *name)
{
	const char *own = host_language(x->host, name);

	return !own ? name : str_eq(own, "bash") ? "shell" : own;
}

int session_context_make(struct server_session *x, const char *language, const char *cwd, uint64_t *ret,
			 struct brig_error *err)
{
	int rc;

	if (x->n_contexts == SESSION_CONTEXTS_MAX)
		return err_set(err, BRIG_E_REFUSED, 0, "a session has at most %d contexts", SESSION_CONTEXTS_MAX);
	rc = brig_session_context(x->inside, language, cwd, ret, err);
	if (rc < 0)
		return rc;
	x->context[x->n_contexts].tag = *ret;
	(void)str_copy(x->context[x->n_contexts].language, sizeof(x->context[0].language),
		       session_language(x, language));
	x->n_contexts++;
	return 0;
}

void ask_context_make(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	const char *language = message_text(ask->m, FIELD_language);
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	int rc;

	if (!x || !session_can_wait(s, ask, x))
		return;
	rc = session_context_make(x, language ? language : "python", message_text(ask->m, FIELD_cwd), &tag, &err);
	wait_or_say(s, ask, x, rc, tag, &err);
}

static size_t find_context(const struct server_session *x, uint64_t tag)
{
	size_t i = 0;

	while (i < x->n_contexts && x->context[i].tag != tag)
		i++;
	return i;
}

void ask_context_delete(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	uint64_t tag = message_number(ask->m, FIELD_item, 0);
	struct brig_error err = BRIG_ERROR_INIT;
	size_t i;

	if (!x)
		return;
	i = find_context(x, tag);
	if (i == x->n_contexts) {
		answer_error(s, ask, 404, "the session has no context %llu", (unsigned long long)tag);
		return;
	}
	if (brig_session_close_context(x->inside, tag, &err) < 0) {
		session_trouble(s, ask, &err);
	} else {
		x->context[i] = x->context[--x->n_contexts];
		answer_json(s, ask, 200, session_document(x));
	}
	session_go_on(s, x);
}

void ask_context_restart(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	uint64_t tag = message_number(ask->m, FIELD_item, 0);
	struct brig_error err = BRIG_ERROR_INIT;
	int rc;

	if (!x || !session_can_wait(s, ask, x))
		return;
	if (find_context(x, tag) == x->n_contexts) {
		answer_error(s, ask, 404, "the session has no context %llu", (unsigned long long)tag);
		return;
	}
	rc = brig_session_restart(x->inside, tag, &err);
	wait_or_say(s, ask, x, rc, tag, &err);
}

void ask_context_interrupt(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	uint64_t tag = message_number(ask->m, FIELD_item, 0);
	struct brig_error err = BRIG_ERROR_INIT;

	if (!x)
		return;
	if (find_context(x, tag) == x->n_contexts)
		answer_error(s, ask, 404, "the session has no context %llu", (unsigned long long)tag);
	else if (brig_session_interrupt(x->inside, tag, &err) < 0)
		session_trouble(s, ask, &err);
	else
		answer_json(s, ask, 200, session_document(x));
	session_go_on(s, x);
}

/* ---- processes that run ------------------------------------------------------------------------------------------ */

/* NULL: there is none that runs, and it has been answered. */
static struct session_piece *find_process(struct service *s, const struct ask *ask, struct server_session *x)
{
	uint64_t tag = message_number(ask->m, FIELD_item, 0);
	struct session_piece *p = session_piece_find(x, tag);

	if (p && p->context == 0 && p->is_started && p->x.state != EXECUTION_FINISHED)
		return p;
	answer_error(s, ask, 404, "no process %llu runs in this session", (unsigned long long)tag);
	return NULL;
}

void ask_process_input(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	const struct session_piece *p = x ? find_process(s, ask, x) : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	size_t len = 0;
	const char *data = message_bytes(ask->m, FIELD_input, &len);
	int rc = 0;

	if (!p)
		return;
	if (data && len > 0)
		rc = brig_session_input(x->inside, p->tag, data, len, &err);
	if (rc == 0 && message_number(ask->m, FIELD_close, 0))
		rc = brig_session_close_input(x->inside, p->tag, &err);
	if (rc < 0)
		session_trouble(s, ask, &err);
	else
		answer_json(s, ask, 200,
			    json_pack("{s:I, s:I}", "process", (json_int_t)p->tag, "taken", (json_int_t)len));
	session_go_on(s, x);
}

void ask_process_signal(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	const struct session_piece *p = x && session_can_wait(s, ask, x) ? find_process(s, ask, x) : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	int rc;

	if (!p)
		return;
	rc = brig_session_signal(x->inside, p->tag, (int)min_u64(message_number(ask->m, FIELD_signal, 0), NSIG), &tag,
				 &err);
	wait_or_say(s, ask, x, rc, tag, &err);
}

void ask_process_resize(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	const struct session_piece *p = x && session_can_wait(s, ask, x) ? find_process(s, ask, x) : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	int rc;

	if (!p)
		return;
	rc = brig_session_resize(x->inside, p->tag, (uint32_t)min_u64(message_number(ask->m, FIELD_rows, 0), 65535),
				 (uint32_t)min_u64(message_number(ask->m, FIELD_columns, 0), 65535), &tag, &err);
	wait_or_say(s, ask, x, rc, tag, &err);
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

static struct session_wait *find_wait(const struct server_session *x, uint64_t event)
{
	struct session_wait *w;

	TAILQ_FOREACH(w, &x->waits, in_session)
	if (w->event == event)
		return w;
	return NULL;
}

static void answer_ready(struct server_session *x)
{
	struct session_wait *w = find_wait(x, 0);
	char self[64];
	AUTO_FREE char *text = NULL;
	json_t *doc;

	x->state = SESSION_READY;
	if (!w)
		return;
	(void)snprintf(self, sizeof(self), "/v1/sessions/%s", x->id);
	doc = session_document(x);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	answer_send(x->service, w->tag,
		    &(struct answer){ .status = text ? 201 : 500,
				      .location = self,
				      .who = w->who,
				      .body = text,
				      .len = text ? strlen(text) : 0 });
	session_wait_free(x, w);
}

static void answer_done(struct server_session *x, struct session_wait *w, int error)
{
	const struct ask ask = { .tag = w->tag, .request_id = w->request_id };
	size_t i = find_context(x, w->event);

	if (error) {
		if (w->route == ROUTE_context_make && i < x->n_contexts)
			x->context[i] = x->context[--x->n_contexts];
		answer_error(x->service, &ask, error == ENOENT || error == ESRCH ? 404 : 422, "the session says: %s",
			     strerror(error));
	} else if (w->route == ROUTE_context_make) {
		answer_json(x->service, &ask, 201,
			    json_pack("{s:I, s:s}", "id", (json_int_t)w->event, "language",
				      i < x->n_contexts ? x->context[i].language : ""));
	} else {
		if (w->route == ROUTE_session_pause || w->route == ROUTE_session_resume)
			x->is_paused = w->route == ROUTE_session_pause;
		answer_json(x->service, &ask, 200, session_document(x));
	}
	session_wait_free(x, w);
}

static bool is_of_files(enum route route)
{
	return route == ROUTE_session_files || route == ROUTE_session_file || route == ROUTE_session_file_put ||
	       route == ROUTE_session_file_delete || route == ROUTE_session_folder || route == ROUTE_session_move;
}

static void take_stop(struct server_session *x, const char *reason)
{
	x->is_stopping = true;
	if (!x->reason[0])
		(void)str_copy(x->reason, sizeof(x->reason), reason ? reason : "");
}

void session_on_event(void *user, const struct brig_session_event *event)
{
	struct server_session *x = user;
	struct session_piece *p = session_piece_find(x, event->tag);
	struct session_wait *w = event->tag ? find_wait(x, event->tag) : NULL;
	int fd = event->fd;

	if (event->kind == BRIG_SESSION_READY)
		answer_ready(x);
	else if (event->kind == BRIG_SESSION_STOPPING)
		take_stop(x, event->name);
	else if (p)
		session_piece_event(p, event);
	else if (event->kind == BRIG_SESSION_RAN)
		brig_result_free(event->result);
	else if (w && is_of_files(w->route))
		session_file_event(x, w, event);
	else if (w && event->kind == BRIG_SESSION_DONE)
		answer_done(x, w, event->error);
	fd_closep(&fd); /* which nobody else has taken */
}
