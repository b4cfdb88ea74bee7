/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_timeouts.c - what happens when the time of a session is over
 *
 * By default it ends: the library keeps that clock.  A session made with `pauses` is paused instead.  For the library it
 * lasts as long as any may; its timeout is a timer of its own here, armed when it begins, set anew by requests, and off
 * while it is paused.  A connection to one of its ports may resume it (`resumes`).
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/sessions.h"

#define RESUMED_MS 300000 /* how long a session lasts after a connection has resumed it */

static void pause_in(struct server_session *x, uint64_t ms)
{
	struct itimerspec when = { .it_value = { 0 } };

	x->pause_at_ns = clock_now_ns() + ms * NS_PER_MS;
	when.it_value.tv_sec = (time_t)(x->pause_at_ns / NS_PER_SEC);
	when.it_value.tv_nsec = (long)(x->pause_at_ns % NS_PER_SEC);
	(void)timerfd_settime(x->pause_timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void session_begin_time(struct server_session *x)
{
	if (x->pauses)
		pause_in(x, x->timeout_ms);
}

/*
 * Resumes the session for the request that follows.  It gets RESUMED_MS more: its timeout has passed, and a pause has no
 * end of its own.
 */
int session_wake(struct server_session *x, struct brig_error *err)
{
	uint64_t tag, left, most;
	int rc = brig_session_resume(x->inside, &tag, err);

	if (rc < 0)
		return rc;
	x->is_paused = false;
	brig_session_times(x->inside, &left, &most);
	if (x->pauses)
		pause_in(x, min_u64(RESUMED_MS, most));
	else
		rc = brig_session_set_timeout(x->inside, RESUMED_MS < most ? RESUMED_MS : UINT64_MAX, err);
	return rc;
}

/* Does not wait for the pause; the library executes later requests in order. */
void session_pause_if_due(struct server_session *x)
{
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t times, tag;

	if (!x->pause_at_ns || clock_now_ns() < x->pause_at_ns)
		return;
	(void)!read(x->pause_timer, &times, sizeof(times));
	x->pause_at_ns = 0;
	if (x->is_paused || x->is_stopping)
		return;
	if (brig_session_pause(x->inside, &tag, &err) == 0) {
		x->is_paused = true;
	} else {
		server_session_stop(x, "its time is over, and it cannot be paused");
		x->end = SESSION_END_expired;
	}
}

/* Created before the session, so that setting it later cannot fail. */
int session_make_timer(struct service *s, struct server_session *x, struct brig_error *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = x } };

	x->pause_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (x->pause_timer < 0 || epoll_ctl(s->sessions.epoll, EPOLL_CTL_ADD, x->pause_timer, &ev) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for a session");
	return 0;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* Replaces the session's note by the request's, if there is one.  False: out of memory, which has been answered. */
static bool keep_note(struct service *s, const struct request *req, struct server_session *x)
{
	const char *note = message_text(req->m, FIELD_note);
	char *copy = note ? strdup(note) : NULL;

	if (note && !copy) {
		answer_retry(s, req, 503, 1, "there is no memory for the request");
		return false;
	}
	if (copy) {
		free(x->note);
		x->note = copy;
	}
	return true;
}

static void time_pause(struct service *s, struct request *req, struct server_session *x, uint64_t wanted, uint64_t most)
{
	uint64_t at = clock_now_ns() + min_u64(wanted, most) * NS_PER_MS;

	if (message_has(req->m, FIELD_timeout_ms) &&
	    (!message_number(req->m, FIELD_at_least, 0) || at > x->pause_at_ns))
		pause_in(x, min_u64(wanted, most));
	answer_json(s, req, 200, session_document_for(x, access_door(req->m)));
	session_go_on(s, x);
}

void handle_session_timeout(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	uint64_t wanted = message_number(req->m, FIELD_timeout_ms, 0), left, most;
	struct brig_error err = BRIG_ERROR_INIT;
	bool is_kept;

	if (!x)
		return;
	if (!keep_note(s, req, x))
		return;
	brig_session_times(x->inside, &left, &most);
	if (x->pauses) {
		time_pause(s, req, x, wanted, most);
		return;
	}
	if (access_door(req->m) != DOOR_api && wanted >= most)
		wanted = UINT64_MAX;
	is_kept =
		!message_has(req->m, FIELD_timeout_ms) || (message_number(req->m, FIELD_at_least, 0) && wanted <= left);
	if (!is_kept && brig_session_set_timeout(x->inside, wanted, &err) < 0)
		session_trouble(s, req, &err);
	else
		answer_json(s, req, 200, session_document_for(x, access_door(req->m)));
	session_go_on(s, x);
}
