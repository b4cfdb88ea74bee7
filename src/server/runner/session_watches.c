/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_watches.c - watches of directories in a session
 *
 *	requested -> started (EVENT_started) -> EVENT_changed ... -> answered, and freed
 *
 * A streamed watch belongs to its client and ends when the client disconnects or the session ends.  It does not keep
 * the session alive, neither beyond its timeouts nor when the service stops.  A polled watch (ROUTE_session_watch_make)
 * has no client: up to WATCH_KEPT_MAX changes are kept until they are polled; it ends on request, with the session, or
 * with the front.
 *
 * With FIELD_with_entry, a change is reported together with the file's current state.  The cell answers stat requests
 * in order, so changes stay in order as well.
 *
 * A program can make changes faster than a client reads them.  Therefore the front's send queue is checked before each
 * event: if it is too long, changes are omitted, and an event "lost" is sent before the next change, or when the front
 * has caught up.  Since other clients may have filled the queue, each watch may still report a few changes.
 */
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define WATCH_BEHIND_MAX (4 * MiB) /* bytes queued for the front, above which changes are omitted */
#define WATCH_RESERVE    16        /* except for so many of each watch */

#define WATCH_KEPT_MAX  4096
#define WATCH_LOOKS_MAX 256

static const char *const change_name[] = {
	[BRIG_CHANGE_CREATE] = "created", [BRIG_CHANGE_WRITE] = "written", [BRIG_CHANGE_REMOVE] = "removed",
	[BRIG_CHANGE_RENAME] = "renamed", [BRIG_CHANGE_CHMOD] = "chmod",
};

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void look_free(struct session_watch *w, struct session_change *look)
{
	TAILQ_REMOVE(&w->looks, look, in_watch);
	w->n_looks--;
	json_decref(look->told);
	free(look);
}

void session_watch_free(struct server_session *x, struct session_watch *w)
{
	while (!TAILQ_EMPTY(&w->looks))
		look_free(w, TAILQ_FIRST(&w->looks));
	TAILQ_REMOVE(&x->watches, w, in_session);
	x->n_watches--;
	json_decref(w->kept);
	free(w->path);
	free(w);
}

struct session_watch *session_watch_find(const struct server_session *x, uint64_t event)
{
	struct session_watch *w;

	TAILQ_FOREACH(w, &x->watches, in_session)
	if (w->event == event)
		return w;
	return NULL;
}

static struct session_watch *watch_new(struct server_session *x, const struct request *req)
{
	const char *path = message_text(req->m, FIELD_path);
	struct session_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->tag = req->tag;
	(void)str_copy(w->request_id, sizeof(w->request_id), req->request_id);
	TAILQ_INIT(&w->looks);
	if (req->route == ROUTE_session_watch_make)
		w->kept = json_array();
	if (path && message_number(req->m, FIELD_with_entry, 0))
		w->path = strdup(path);
	TAILQ_INSERT_TAIL(&x->watches, w, in_session);
	x->n_watches++;
	return w;
}

void handle_session_watch(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	const char *path = message_text(req->m, FIELD_path);
	struct brig_error err = BRIG_ERROR_INIT;
	struct session_watch *w;

	if (!x)
		return;
	if (x->n_watches == SESSION_WATCHES_MAX) {
		answer_error(s, req, 409, "the session %s has %d watches already: end one of them", x->id,
			     SESSION_WATCHES_MAX);
		return;
	}
	w = watch_new(x, req);
	if (!w) {
		answer_retry(s, req, 503, 1, "there is no memory for the watch");
	} else if (brig_session_watch(x->inside, path ? path : ".", message_number(req->m, FIELD_recursive, 0) != 0,
				      &w->event, &err) < 0) {
		session_watch_free(x, w);
		session_trouble(s, req, &err);
	}
	session_go_on(s, x);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void tell(const struct server_session *x, const struct session_watch *w, enum event_kind kind, json_t *event)
{
	AUTO_FREE char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	json_decref(event);
	if (text)
		event_send(x->service, w->tag, kind, text, strlen(text));
}

/* Takes ownership of the event. */
static void tell_change(const struct server_session *x, struct session_watch *w, json_t *event)
{
	if (!w->kept)
		tell(x, w, EVENT_changed, event);
	else if (json_array_size(w->kept) < WATCH_KEPT_MAX)
		(void)json_array_append_new(w->kept, event);
	else
		json_decref(event);
}

static json_t *changed(const char *change, const char *name)
{
	size_t len = strlen(name);
	AUTO_FREE char *coded = NULL;

	if (str_is_utf8(name, len))
		return json_pack("{s:s, s:s, s:s}", "event", "changed", "change", change, "name", name);
	coded = malloc(base64_len(len) + 1);
	if (!coded)
		return NULL;
	base64_put(coded, name, len);
	return json_pack("{s:s, s:s, s:s%, s:s}", "event", "changed", "change", change, "name", coded, base64_len(len),
			 "encoding", "base64");
}

/*
 * Requests the file's state; takes the event, which is reported with it.  False: not requested, and the event stays the
 * caller's.
 */
static bool look_at(struct server_session *x, struct session_watch *w, const char *name, json_t *event)
{
	struct session_change *look = w->path && event ? calloc(1, sizeof(*look)) : NULL;
	AUTO_BUF path = BUF_INIT(2 * 4096);

	if (!look)
		return false;
	(void)buf_addf(&path, "%s/%s", w->path, name);
	if (brig_session_stat(x->inside, buf_str(&path), &look->event, NULL) < 0) {
		free(look);
		return false;
	}
	look->told = event;
	TAILQ_INSERT_TAIL(&w->looks, look, in_watch);
	w->n_looks++;
	return true;
}

static bool front_is_behind(const struct service *s)
{
	return s->channel && channel_waiting(s->channel) > WATCH_BEHIND_MAX;
}

/* Whether the receiver of the changes does not keep up. */
static bool is_behind(const struct server_session *x, const struct session_watch *w)
{
	if (w->n_looks >= WATCH_LOOKS_MAX)
		return true;
	return w->kept ? json_array_size(w->kept) >= WATCH_KEPT_MAX - 2
		       : w->n_behind >= WATCH_RESERVE && front_is_behind(x->service);
}

static void tell_lost(const struct server_session *x, struct session_watch *w)
{
	if (w->has_lost)
		tell_change(x, w, changed("lost", ""));
	w->has_lost = false;
}

void session_watches_catch_up(struct service *s)
{
	struct server_session *x;
	struct session_watch *w;

	if (!s->sessions.has_lost)
		return;
	s->sessions.has_lost = false;
	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	TAILQ_FOREACH(w, &x->watches, in_session)
	{
		if (w->has_lost && !is_behind(x, w))
			tell_lost(x, w);
		s->sessions.has_lost |= w->has_lost;
	}
}

static void take_change(struct server_session *x, struct session_watch *w, const struct brig_session_event *event)
{
	json_t *doc;

	if (event->change >= ARRAY_LEN(change_name) || !change_name[event->change])
		return;
	if (is_behind(x, w)) {
		w->has_lost = true;
		x->service->sessions.has_lost = true;
		return;
	}
	w->n_behind = front_is_behind(x->service) ? w->n_behind + 1 : 0;
	tell_lost(x, w);
	doc = changed(change_name[event->change], event->name);
	if (!look_at(x, w, event->name, doc))
		tell_change(x, w, doc);
}

struct session_watch *session_watch_of_entry(const struct server_session *x, uint64_t event)
{
	struct session_watch *w;

	TAILQ_FOREACH(w, &x->watches, in_session)
	if (!TAILQ_EMPTY(&w->looks) && TAILQ_FIRST(&w->looks)->event == event)
		return w;
	return NULL;
}

void session_watch_entry(struct server_session *x, struct session_watch *w, const struct brig_session_event *event)
{
	struct session_change *look = TAILQ_FIRST(&w->looks);

	if (event->kind == BRIG_SESSION_ENTRY) {
		json_t *row = session_entry_row(x, event->entry);

		if (row)
			(void)json_object_set_new(look->told, "entry", row);
	} else if (event->kind == BRIG_SESSION_DONE) {
		tell_change(x, w, MOVE_PTR(look->told));
		look_free(w, look);
	}
}

/* The watch has started: sends the event, or answers a polled one with its number. */
static void take_start(struct server_session *x, struct session_watch *w)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };

	w->is_begun = true;
	if (w->kept) {
		answer_json(x->service, &req, 201, json_pack("{s:I}", "watch", (json_int_t)w->event));
		w->tag = 0;
	} else {
		tell(x, w, EVENT_started, json_pack("{s:s, s:I}", "event", "started", "watch", (json_int_t)w->event));
	}
}

void session_watch_event(struct server_session *x, struct session_watch *w, const struct brig_session_event *event)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };
	int error = event->error;

	if (event->kind == BRIG_SESSION_CHANGED) {
		take_change(x, w, event);
		return;
	}
	if (event->kind != BRIG_SESSION_DONE)
		return;
	if (!error) {
		take_start(x, w);
		return;
	}
	(void)brig_session_unwatch(x->inside, w->event, NULL, NULL); /* frees the library's entry */
	answer_errno(x->service, &req,
		     error == ENOENT || error == ENOTDIR ? 404
		     : error == EACCES                   ? 403
							 : 422,
		     error, "the session says: %s", strerror(error));
	session_watch_free(x, w);
}

/* ---- polled watches -------------------------------------------------------------------------- */

static struct session_watch *find_kept(struct service *s, const struct request *req, const struct server_session *x)
{
	struct session_watch *w = session_watch_find(x, message_number(req->m, FIELD_item, 0));

	if (w && w->kept && w->is_begun)
		return w;
	answer_errno(s, req, 404, ENOENT, "the session has no watch %llu that could be asked",
		     (unsigned long long)message_number(req->m, FIELD_item, 0));
	return NULL;
}

void handle_session_watch_changes(struct service *s, struct request *req)
{
	const struct server_session *x = session_find(s, req);
	struct session_watch *w = x ? find_kept(s, req, x) : NULL;
	json_t *kept;

	if (!w)
		return;
	kept = w->kept;
	w->kept = json_array();
	answer_json(s, req, 200, json_pack("{s:o}", "changes", kept));
}

void handle_session_watch_delete(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	struct session_watch *w = x ? find_kept(s, req, x) : NULL;

	if (!w)
		return;
	(void)brig_session_unwatch(x->inside, w->event, NULL, NULL);
	session_watch_free(x, w);
	answer_json(s, req, 200, json_object());
	session_go_on(s, x);
}

/* ---- the end ------------------------------------------------------------------------------------------------------ */

bool session_watch_gone(struct server_session *x, uint32_t tag)
{
	struct session_watch *w;

	TAILQ_FOREACH(w, &x->watches, in_session)
	if (w->tag == tag) {
		if (x->inside)
			(void)brig_session_unwatch(x->inside, w->event, NULL, NULL);
		answer_send(x->service, tag, &(struct answer){ .status = 503, .who = x->owner });
		session_watch_free(x, w);
		return true;
	}
	return false;
}

void session_watches_all_gone(struct server_session *x)
{
	struct session_watch *w;

	while ((w = TAILQ_FIRST(&x->watches))) {
		if (x->inside)
			(void)brig_session_unwatch(x->inside, w->event, NULL, NULL);
		session_watch_free(x, w);
	}
}

void session_watches_end(struct server_session *x)
{
	struct session_watch *w;

	while ((w = TAILQ_FIRST(&x->watches))) {
		const struct request req = { .tag = w->tag, .request_id = w->request_id };

		if (w->is_begun && w->tag)
			tell(x, w, EVENT_notice,
			     json_pack("{s:s, s:s}", "event", "notice", "text", "the session has ended"));
		if (w->tag)
			answer_error(x->service, &req, 410, "the session has ended");
		session_watch_free(x, w);
	}
}
