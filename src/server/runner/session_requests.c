/* SPDX-License-Identifier: Apache-2.0 */
/* session_requests.c - requests that events of a session answer, and dispatch of events */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

/* ---- waits --------------------------------------------------------------------------------------------------- */

bool session_can_wait(struct service *s, const struct request *req, const struct server_session *x)
{
	if (x->n_waits < SESSION_WAITS_MAX)
		return true;
	answer_retry(s, req, 503, 1, "the session %s has %d asks that it has not answered: try again in a moment",
		     x->id, SESSION_WAITS_MAX);
	return false;
}

static struct session_wait *find_wait(const struct server_session *x, uint64_t event)
{
	struct session_wait *w;

	TAILQ_FOREACH(w, &x->waits, in_session)
	if (w->event == event)
		return w;
	return NULL;
}

struct session_wait *session_wait_for(struct service *s, const struct request *req, struct server_session *x,
				      uint64_t event)
{
	struct session_wait *w = calloc(1, sizeof(*w));

	if (!w) {
		answer_retry(s, req, 503, 1, "there is no memory for the request");
		return NULL;
	}
	w->event = event;
	w->tag = req->tag;
	w->route = req->route;
	w->door = access_door(req->m);
	w->body = FD_NONE;
	(void)str_copy(w->request_id, sizeof(w->request_id), req->request_id);
	(void)str_copy(w->who, sizeof(w->who), req->token->name);
	TAILQ_INSERT_TAIL(&x->waits, w, in_session);
	x->n_waits++;
	return w;
}

void session_wait_free(struct server_session *x, struct session_wait *w)
{
	TAILQ_REMOVE(&x->waits, w, in_session);
	x->n_waits--;
	session_transfer_free(&x->service->sessions, w->transfer);
	fd_closep(&w->body);
	if (w->snapshot[0])
		snapshot_drop(x->service, w->snapshot);
	json_decref(w->files);
	json_decref(w->metadata);
	free(w->path);
	free(w->to);
	free(w);
}

void session_wait_refuse(struct server_session *x, struct session_wait *w, uint16_t status, const char *why)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };

	answer_error(x->service, &req, status, "%s", why);
	session_wait_free(x, w);
}

void session_trouble(struct service *s, const struct request *req, const struct brig_error *err)
{
	if (err->sys == EAGAIN) /* a process does not read its input fast enough */
		answer_retry(s, req, 503, 1, "%s", err->msg);
	else if (err->code == BRIG_E_REFUSED)
		answer_errno(s, req, 409, err->sys, "%s", err->msg);
	else if (err->sys == ENOENT)
		answer_errno(s, req, 404, err->sys, "%s", err->msg);
	else
		answer_trouble(s, req, err);
}

/* ---- documents ------------------------------------------------------------------------------------------------- */

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

static json_t *context_document(const struct session_context *context)
{
	const char *cwd = context->cwd ? context->cwd : "/workspace";

	return json_pack("{s:I, s:s, s:s%, s:b}", "id", (json_int_t)context->tag, "language", context->language, "cwd",
			 cwd, str_utf8_prefix(cwd, strlen(cwd)), "default", context->is_default);
}

static json_t *contexts_of(const struct server_session *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n_contexts; i++)
		(void)json_array_append_new(list, context_document(&x->context[i]));
	return list;
}

/* When a live session will end or pause (wall clock); 0: it has ended, or is ending. */
static uint64_t ends_ns(const struct server_session *x)
{
	uint64_t left = 0, most;

	if (!x->inside || x->is_stopping)
		return 0;
	brig_session_times(x->inside, &left, &most);
	if (x->pauses && x->pause_at_ns > clock_now_ns() && !x->is_paused)
		left = min_u64(left, (x->pause_at_ns - clock_now_ns()) / NS_PER_MS);
	return clock_wall_ns() + left * NS_PER_MS;
}

#define SAMPLES_APART_MS 1000

void session_on_sample(void *user, const struct brig_sample *sample)
{
	struct server_session *x = user;

	if (sample->at_ms >= x->before.at_ms + 2 * SAMPLES_APART_MS)
		x->before = x->sample;
	x->sample = *sample;
}

/* In per cent of one CPU, over the last one or two seconds. */
static double cpu_used(const struct server_session *x)
{
	uint64_t ms = x->sample.at_ms - x->before.at_ms, cpu_ms = x->sample.cpu_ms - x->before.cpu_ms;

	return ms > 0 && x->sample.cpu_ms >= x->before.cpu_ms ? 100.0 * (double)cpu_ms / (double)ms : 0;
}

/* Members for doors, which show those that their protocols have. */
static json_t *more_for_doors(const struct server_session *x)
{
	return json_pack("{s:s, s:s?, s:s, s:I, s:I, s:f, s:I, s:I, s:I}", "key", x->key, "note", x->note, "network",
			 x->network, "memory", (json_int_t)x->memory, "memory_used", (json_int_t)x->sample.memory_bytes,
			 "cpu_used_percent", cpu_used(x), "cpu_percent", (json_int_t)x->cpu_percent, "disk",
			 (json_int_t)x->disk, "disk_used", (json_int_t)x->sample.disk_bytes);
}

json_t *session_document(const struct server_session *x)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s?, s:s?, s:o, s:s?}", "id", x->id, "state",
			 state_of(x), "token", x->owner, "trust", x->trust, "created", moment(x->created_ns), "ends",
			 moment(ends_ns(x)), "ended", moment(x->ended_ns), "verdict", x->verdict[0] ? x->verdict : NULL,
			 "reason", x->reason[0] ? x->reason : NULL, "contexts", contexts_of(x), "node",
			 session_node_name(x->service));
}

json_t *session_document_for(const struct server_session *x, enum door door)
{
	json_t *doc = session_document(x);

	if (doc && door != DOOR_api)
		(void)json_object_update_new(doc, more_for_doors(x));
	return doc;
}

/* ---- the session itself ------------------------------------------------------------------------------------------ */

/* Makes the request wait for an operation that was started with result rc, and steps the session. */
static void wait_or_say(struct service *s, struct request *req, struct server_session *x, int rc, uint64_t event,
			const struct brig_error *err)
{
	if (rc < 0)
		session_trouble(s, req, err);
	else
		(void)session_wait_for(s, req, x, event);
	session_go_on(s, x);
}

/* Operations without parameters. */
static void handle_plainly(struct service *s, struct request *req,
			   int (*begin)(struct brig_session *session, uint64_t *ret_tag, struct brig_error *err))
{
	struct server_session *x = session_find(s, req);
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	int rc;

	if (!x || !session_can_wait(s, req, x))
		return;
	rc = begin(x->inside, &tag, &err);
	wait_or_say(s, req, x, rc, tag, &err);
}

void handle_session_pause(struct service *s, struct request *req)
{
	handle_plainly(s, req, brig_session_pause);
}

void handle_session_resume(struct service *s, struct request *req)
{
	handle_plainly(s, req, brig_session_resume);
}

/* ---- contexts -------------------------------------------------------------------------------------------------- */

/* The name for contexts, history and inspection: sh and bash are one language, "shell", run by bash. */
const char *session_language(const struct server_session *x, const char *name)
{
	char lower[TOKEN_WORD_MAX + 1];
	const char *own;
	size_t n = 0;

	for (; n < sizeof(lower) - 1 && name[n]; n++)
		lower[n] = (char)tolower((unsigned char)name[n]);
	lower[n] = '\0';
	own = host_language(x->host, lower);
	return !own ? name : str_eq(own, "bash") ? "shell" : own;
}

/* A new context in the table; NULL: *err. */
static struct session_context *make_context(struct server_session *x, const char *language, const char *cwd,
					    struct brig_error *err)
{
	struct session_context made = { 0 };

	if (x->n_contexts == SESSION_CONTEXTS_MAX) {
		(void)err_set(err, BRIG_E_REFUSED, 0, "a session has at most %d contexts", SESSION_CONTEXTS_MAX);
		return NULL;
	}
	if (cwd && !(made.cwd = strdup(cwd))) {
		(void)err_nomem(err);
		return NULL;
	}
	if (brig_session_context(x->inside, language, cwd, &made.tag, err) < 0) {
		free(made.cwd);
		return NULL;
	}
	(void)str_copy(made.language, sizeof(made.language), session_language(x, language));
	x->context[x->n_contexts] = made;
	return &x->context[x->n_contexts++];
}

/* Keeps the order of the others, which is that of listings. */
static void drop_context(struct server_session *x, size_t i)
{
	free(x->context[i].cwd);
	memmove(&x->context[i], &x->context[i + 1], (--x->n_contexts - i) * sizeof(x->context[0]));
}

void session_contexts_release(struct server_session *x)
{
	while (x->n_contexts > 0)
		drop_context(x, x->n_contexts - 1);
}

static struct session_context *find_default(struct server_session *x, const char *language)
{
	for (size_t i = 0; i < x->n_contexts; i++)
		if (x->context[i].is_default && str_eq(x->context[i].language, session_language(x, language)))
			return &x->context[i];
	return NULL;
}

int session_context_default(struct server_session *x, const char *language, const char *cwd, uint64_t *ret,
			    struct brig_error *err)
{
	struct session_context *found = find_default(x, language);

	if (!found && !(found = make_context(x, language, cwd, err)))
		return -err->code;
	found->is_default = true;
	*ret = found->tag;
	return 0;
}

void handle_context_make(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	const char *language = message_text(req->m, FIELD_language);
	const struct session_context *made;
	struct brig_error err = BRIG_ERROR_INIT;

	if (!x || !session_can_wait(s, req, x))
		return;
	made = make_context(x, language ? language : "python", message_text(req->m, FIELD_cwd), &err);
	wait_or_say(s, req, x, made ? 0 : -1, made ? made->tag : 0, &err);
}

/*
 * Creates the default contexts of doors whose sessions start with some.  languages: separated by blanks; only the first
 * must succeed.
 */
static int make_defaults(struct server_session *x, const char *languages, const char *cwd, struct brig_error *err)
{
	char text[TOKEN_WORD_MAX * 2], *rest = text, *language;
	uint64_t tag;
	int rc;

	(void)str_copy(text, sizeof(text), languages);
	language = strsep(&rest, " ");
	rc = session_context_default(x, language, cwd, &tag, err);
	while (rc == 0 && (language = strsep(&rest, " ")))
		(void)session_context_default(x, language, cwd, &tag, &(struct brig_error)BRIG_ERROR_INIT);
	return rc;
}

void handle_contexts(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	const char *languages = message_text(req->m, FIELD_language);
	struct brig_error err = BRIG_ERROR_INIT;

	if (!x)
		return;
	if (languages && make_defaults(x, languages, message_text(req->m, FIELD_cwd), &err) < 0)
		session_trouble(s, req, &err);
	else
		answer_json(s, req, 200, json_pack("{s:o}", "contexts", contexts_of(x)));
	session_go_on(s, x);
}

static size_t find_context(const struct server_session *x, uint64_t tag)
{
	size_t i = 0;

	while (i < x->n_contexts && x->context[i].tag != tag)
		i++;
	return i;
}

/* The library sends no events for a closed context. */
static void refuse_waits(struct server_session *x, uint64_t event, const char *why)
{
	struct session_wait *w;

	while ((w = find_wait(x, event)))
		session_wait_refuse(x, w, 404, why);
}

void handle_context_delete(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	uint64_t tag = message_number(req->m, FIELD_item, 0);
	struct brig_error err = BRIG_ERROR_INIT;
	size_t i;

	if (!x)
		return;
	i = find_context(x, tag);
	if (i == x->n_contexts) {
		answer_error(s, req, 404, "the session has no context %llu", (unsigned long long)tag);
		return;
	}
	if (brig_session_close_context(x->inside, tag, &err) < 0) {
		session_trouble(s, req, &err);
	} else {
		refuse_waits(x, tag, "the context was closed");
		drop_context(x, i);
		answer_json(s, req, 200, session_document(x));
	}
	session_go_on(s, x);
}

void handle_context_restart(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	uint64_t tag = message_number(req->m, FIELD_item, 0);
	struct brig_error err = BRIG_ERROR_INIT;
	int rc;

	if (!x || !session_can_wait(s, req, x))
		return;
	if (find_context(x, tag) == x->n_contexts) {
		answer_error(s, req, 404, "the session has no context %llu", (unsigned long long)tag);
		return;
	}
	rc = brig_session_restart(x->inside, tag, &err);
	wait_or_say(s, req, x, rc, tag, &err);
}

void handle_context_interrupt(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	uint64_t tag = message_number(req->m, FIELD_item, 0);
	struct brig_error err = BRIG_ERROR_INIT;

	if (!x)
		return;
	if (find_context(x, tag) == x->n_contexts)
		answer_error(s, req, 404, "the session has no context %llu", (unsigned long long)tag);
	else if (brig_session_interrupt(x->inside, tag, &err) < 0)
		session_trouble(s, req, &err);
	else
		answer_json(s, req, 200, session_document(x));
	session_go_on(s, x);
}

/* ---- running processes ----------------------------------------------------------------------- */

/* NULL: no such process runs, which has been answered. */
static struct session_piece *find_process(struct service *s, const struct request *req, struct server_session *x)
{
	struct session_piece *p = session_process_find(x, req);

	if (p && p->is_started && p->x.state != EXECUTION_FINISHED)
		return p;
	answer_errno(s, req, 404, ESRCH, "no process %llu runs in this session",
		     (unsigned long long)message_number(req->m, FIELD_item, message_number(req->m, FIELD_pid, 0)));
	return NULL;
}

void handle_process_input(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	const struct session_piece *p = x ? find_process(s, req, x) : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	size_t len = 0;
	const char *data = message_bytes(req->m, FIELD_input, &len);
	int rc = 0;

	if (!p)
		return;
	if (data && len > 0)
		rc = brig_session_input(x->inside, p->tag, data, len, &err);
	if (rc == 0 && message_number(req->m, FIELD_close, 0))
		rc = brig_session_close_input(x->inside, p->tag, &err);
	if (rc < 0)
		session_trouble(s, req, &err);
	else
		answer_json(s, req, 200,
			    json_pack("{s:I, s:I}", "process", (json_int_t)p->tag, "taken", (json_int_t)len));
	session_go_on(s, x);
}

void handle_process_signal(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	const struct session_piece *p = x && session_can_wait(s, req, x) ? find_process(s, req, x) : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	int rc;

	if (!p)
		return;
	rc = brig_session_signal(x->inside, p->tag, (int)min_u64(message_number(req->m, FIELD_signal, 0), NSIG), &tag,
				 &err);
	wait_or_say(s, req, x, rc, tag, &err);
}

void handle_process_resize(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	const struct session_piece *p = x && session_can_wait(s, req, x) ? find_process(s, req, x) : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	int rc;

	if (!p)
		return;
	rc = brig_session_resize(x->inside, p->tag, (uint32_t)min_u64(message_number(req->m, FIELD_rows, 0), 65535),
				 (uint32_t)min_u64(message_number(req->m, FIELD_columns, 0), 65535), &tag, &err);
	wait_or_say(s, req, x, rc, tag, &err);
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

void session_answer_made(struct server_session *x, uint32_t tag, const char *who, enum door door)
{
	json_t *doc = session_document_for(x, door);
	AUTO_FREE char *text = NULL;
	char self[64];

	(void)snprintf(self, sizeof(self), "/v1/sessions/%s", x->id);
	session_tell_origin(x, doc);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	answer_send(x->service, tag,
		    &(struct answer){ .status = text ? 201 : 500,
				      .location = self,
				      .who = who,
				      .body = text,
				      .len = text ? strlen(text) : 0 });
}

void session_answer_ready(struct server_session *x)
{
	struct session_wait *w;

	if (x->is_addressing) { /* until its address is published, so that the client can use it at any front */
		x->is_ready_untold = true;
		return;
	}
	x->state = SESSION_READY;
	session_begin_time(x);
	while ((w = find_wait(x, 0))) { /* several, if it is shared or was requested repeatedly */
		session_answer_made(x, w->tag, w->who, w->door);
		session_wait_free(x, w);
	}
}

static void answer_done(struct server_session *x, struct session_wait *w, int error)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };
	size_t i = find_context(x, w->event);

	if (error) {
		if (w->route == ROUTE_context_make && i < x->n_contexts)
			drop_context(x, i);
		answer_errno(x->service, &req, error == ENOENT || error == ESRCH ? 404 : 422, error,
			     "the session says: %s", strerror(error));
	} else if (w->route == ROUTE_context_make) {
		answer_json(x->service, &req, 201, i < x->n_contexts ? context_document(&x->context[i]) : NULL);
	} else {
		if (w->route == ROUTE_session_pause || w->route == ROUTE_session_resume)
			x->is_paused = w->route == ROUTE_session_pause;
		answer_json(x->service, &req, 200, session_document(x));
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
	struct session_watch *watch = event->tag ? session_watch_find(x, event->tag) : NULL;
	struct session_watch *asker = event->tag && !watch ? session_watch_of_entry(x, event->tag) : NULL;
	int fd = event->fd;

	if (event->kind == BRIG_SESSION_READY) {
		if (!x->is_unfilled)
			session_answer_ready(x);
		else if (x->has_source)
			session_fork_begin(x);
	} else if (event->tag && event->tag == x->filling)
		session_filled(x, event);
	else if (event->tag && event->tag == x->fork.tag)
		session_saved(x, event);
	else if (event->kind == BRIG_SESSION_STOPPING)
		take_stop(x, event->name);
	else if (p)
		session_piece_event(p, event);
	else if (watch)
		session_watch_event(x, watch, event);
	else if (asker)
		session_watch_entry(x, asker, event);
	else if (event->kind == BRIG_SESSION_RAN)
		brig_result_free(event->result);
	else if (w && w->route == ROUTE_snapshot_make)
		snapshot_event(x, w, event);
	else if (w && is_of_files(w->route))
		session_file_event(x, w, event);
	else if (w && w->route == ROUTE_session_port)
		session_port_event(x, w, event);
	else if (event->kind == BRIG_SESSION_DONE)
		for (; w; w = find_wait(x, event->tag)) /* several requests may wait for one context */
			answer_done(x, w, event->error);
	fd_closep(&fd); /* not taken above */
}
