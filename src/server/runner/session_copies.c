/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_copies.c - sessions created with the files of another session, or of a snapshot
 *
 *	fork      new:    starts as usual ---.        .--> loads --> both have reported: ready, answered
 *	          source: continues           '- saves '--> continues
 *	restore   new:    starts, loads the snapshot's file -> ready, answered
 *
 * The source is stopped only while its files are copied, through a pipe without a temporary file: the new session is
 * ready before the copy is requested.  If a copy fails, both sides report errors; the source's is the cause, unless it
 * is EPIPE.
 *
 * A fork is requested with the settings of the source, as if its client had sent them again, so the token's quotas and
 * limits apply as usual.  It cannot be used before its files are there.  The client waits for the new session; the
 * source only knows for which session it saves.  Either may end meanwhile; the other notices because it looks the peer
 * up by id.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define COPIES_MAX 8 /* concurrent ones, each with a file of up to SNAPSHOT_BYTES_MAX */

/* ---- admission and errors --------------------------------------------------------------------------------------- */

static size_t copies_of(const struct server_session *x)
{
	const struct session_wait *w;
	size_t n = x->fork.is_on + (x->filling != 0);

	TAILQ_FOREACH(w, &x->waits, in_session)
	n += w->snapshot[0] != '\0';
	return n;
}

bool session_copy_is_allowed(struct service *s, const struct request *req, const struct server_session *x)
{
	const struct server_session *other;
	size_t n = 0;

	if (s->draining) {
		answer_retry(s, req, 503, 5, "the service is being stopped and takes nothing new");
		return false;
	}
	if (req->session) {
		answer_error(s, req, 403, "the key of the session %s makes no others: show the token", x->id);
		return false;
	}
	if (copies_of(x) > 0) {
		answer_retry(s, req, 503, 1, "the session %s is being copied already: try again in a moment", x->id);
		return false;
	}
	TAILQ_FOREACH(other, &s->sessions.all, in_all)
	n += copies_of(other);
	if (n < COPIES_MAX)
		return true;
	answer_retry(s, req, 503, 1, "%d sessions are being copied: try again in a moment", COPIES_MAX);
	return false;
}

static const struct {
	int error;
	uint16_t status;
	const char *words;
} troubles[] = {
	{ EFBIG, 413,
	  "the files have more bytes than can be copied, or than the new session may have: see disk_limit" },
	{ E2BIG, 413, "there are more files than can be copied, or more bytes in them" },
	{ ENOSPC, 413, "the files do not fit: raise the new session's disk_limit and inodes_limit, or remove some" },
	{ EDQUOT, 413, "the files do not fit: raise the new session's disk_limit and inodes_limit, or remove some" },
	{ ENAMETOOLONG, 422,
	  "a folder lies more than 128 folders deep, or its path has more than 4095 bytes: move it" },
	{ EAGAIN, 409, "its processes start others faster than they can be stopped: end some of them" },
	{ EPROTO, 422, "they are not as they were written" },
	{ ETIMEDOUT, 503, "it took too long" },
};

static const char *words_of(int error, uint16_t *ret_status)
{
	for (size_t i = 0; i < ARRAY_LEN(troubles); i++)
		if (troubles[i].error == error) {
			*ret_status = troubles[i].status;
			return troubles[i].words;
		}
	*ret_status = 422;
	return strerror(error);
}

void session_copy_refuse(struct server_session *x, uint32_t tag, const char *request_id, int error)
{
	const struct request req = { .tag = tag, .request_id = request_id };
	uint16_t status;
	const char *words = words_of(error, &status);

	answer_error(x->service, &req, status, "the files of the session %s could not be copied: %s", x->id, words);
}

/* ---- settings of a session ------------------------------------------------------------------- */

/* The options in the job's copy of the message have been split at "=" (job.c). */
static void add_option(struct buf *text, const char *option)
{
	(void)buf_addf(text, "%s=%s", option, option + strlen(option) + 1);
}

json_t *session_settings(const struct server_session *x, json_t *doc)
{
	const struct message *m = &x->job->m;
	const char *environment = message_text(m, FIELD_environment), *option;
	json_t *options = json_array();
	size_t at = 0, len;

	while ((option = message_next(m, FIELD_option, &at, &len))) {
		AUTO_BUF text = BUF_INIT(message_max_bytes(FIELD_option));

		add_option(&text, option);
		(void)json_array_append_new(options, json_string(buf_str(&text)));
	}
	(void)json_object_set_new(doc, "trust", json_string(x->trust));
	(void)json_object_set_new(doc, "environment", environment ? json_string(environment) : json_null());
	(void)json_object_set_new(doc, "options", options);
	return doc;
}

/* Copies all texts of a field. */
static void put_texts(struct buf *fields, enum field f, const struct message *from)
{
	const char *text;
	size_t at = 0, len;

	while ((text = message_next(from, f, &at, &len)))
		message_put_text(fields, f, text);
}

/* The request's value, or else the default. */
static void put_either(struct buf *fields, enum field f, const struct message *req, const char *was)
{
	const char *text = message_text(req, f);

	message_put_text(fields, f, text ? text : was);
}

/* Whether the request sets the same option. */
static bool is_replaced(const struct message *req, const char *option)
{
	size_t at = 0, len, key = strcspn(option, "=") + 1;
	const char *own;

	while ((own = message_next(req, FIELD_option, &at, &len)))
		if (strncmp(own, option, key) == 0)
			return true;
	return false;
}

static void put_settings(struct buf *fields, const struct message *req, const json_t *settings)
{
	const json_t *option;
	size_t i;

	put_either(fields, FIELD_trust, req, json_string_value(json_object_get(settings, "trust")));
	put_either(fields, FIELD_environment, req, json_string_value(json_object_get(settings, "environment")));
	json_array_foreach(json_object_get(settings, "options"), i,
			   option) if (json_is_string(option) && !is_replaced(req, json_string_value(option)))
		message_put_text(fields, FIELD_option, json_string_value(option));
	put_texts(fields, FIELD_option, req);
	put_texts(fields, FIELD_variable, req);
	if (message_has(req, FIELD_pauses))
		message_put_number(fields, FIELD_pauses, message_number(req, FIELD_pauses, 0));
	if (message_has(req, FIELD_resumes))
		message_put_number(fields, FIELD_resumes, message_number(req, FIELD_resumes, 0));
	if (message_has(req, FIELD_needs_key))
		message_put_number(fields, FIELD_needs_key, message_number(req, FIELD_needs_key, 0));
	if (message_has(req, FIELD_door))
		message_put_number(fields, FIELD_door, message_number(req, FIELD_door, 0));
}

void session_put_restored(struct buf *fields, const struct message *req, const json_t *settings)
{
	put_settings(fields, req, settings);
	message_put_text(fields, FIELD_note, message_text(req, FIELD_note));
	message_put_text(fields, FIELD_session_id, message_text(req, FIELD_session_id));
	if (message_has(req, FIELD_timeout_ms))
		message_put_number(fields, FIELD_timeout_ms, message_number(req, FIELD_timeout_ms, 0));
}

/* Creates a session with these fields instead of the request's; NULL: it has been answered. */
static struct server_session *make(struct service *s, struct request *req, const struct buf *fields, const char *from)
{
	struct message m;
	struct request instead = *req;
	struct server_session *x;
	const char *why;

	if (fields->no_memory || fields->full || !message_read(fields->data, fields->len, &m, &why)) {
		answer_retry(s, req, 503, 1, "there is no memory for the request");
		return NULL;
	}
	instead.m = &m;
	x = session_make(s, &instead, true);
	if (x)
		(void)str_copy(x->from, sizeof(x->from), from);
	return x;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Starts filling the workspace of the new session. */
static void fill(struct server_session *x, int file)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (x->is_stopping || brig_session_load(x->inside, file, &x->filling, &err) == 0)
		return;
	x->failed_status = 500;
	server_session_stop(x, err.msg);
}

static void settle(struct server_session *y);

static void stop_unfilled(struct server_session *x, int error)
{
	char why[SESSION_REASON_MAX];

	(void)snprintf(why, sizeof(why), "its files could not be copied: %s", words_of(error, &x->failed_status));
	server_session_stop(x, why);
}

void session_filled(struct server_session *x, const struct brig_session_event *event)
{
	x->filling = 0;
	if (x->has_source) {
		x->copied.is_filled = true;
		x->copied.fill_error = event->error;
		settle(x);
		return;
	}
	if (event->error) {
		stop_unfilled(x, event->error);
		return;
	}
	x->is_unfilled = false;
	x->left_out += event->left_out;
	session_answer_ready(x);
}

void session_tell_origin(const struct server_session *x, json_t *doc)
{
	if (!x->from[0] || !doc)
		return;
	(void)json_object_set_new(doc, "from", json_string(x->from));
	(void)json_object_set_new(doc, "processes", json_string("not copied"));
	(void)json_object_set_new(doc, "left_out", json_integer((json_int_t)x->left_out));
}

void handle_session_restore(struct service *s, struct request *req)
{
	const char *id = message_text(req->m, FIELD_snapshot);
	struct snapshot *snapshot = snapshot_find(s, req, id);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	struct server_session *x;
	AUTO_FD file = FD_NONE;

	if (!snapshot)
		return;
	file = snapshot_read(s, snapshot, &err);
	if (file < 0) {
		answer_trouble(s, req, &err);
		return;
	}
	session_put_restored(&fields, req->m, snapshot->about);
	x = make(s, req, &fields, snapshot->id);
	if (!x)
		return;
	session_remember(s, req, x);
	x->left_out = (uint64_t)json_integer_value(json_object_get(snapshot->about, "left_out"));
	x->metadata = json_deep_copy(snapshot_file_metadata(snapshot));
	fill(x, file);
	session_go_on(s, x);
}

/* ---- forks ---------------------------------------------------------------------------------------------------------- */

static struct server_session *find_live(struct service *s, const char *id)
{
	struct server_session *y;

	TAILQ_FOREACH(y, &s->sessions.all, in_all)
	if (str_eq(y->id, id) && y->inside)
		return y;
	return NULL;
}

static struct server_session *find_new(const struct server_session *x)
{
	return x->fork.is_on ? find_live(x->service, x->fork.to) : NULL;
}

/* The source of a fork, if it is still saving for it. */
static struct server_session *find_first(const struct server_session *y)
{
	struct server_session *x = y->has_source ? find_live(y->service, y->from) : NULL;

	return x && x->fork.is_on && str_eq(x->fork.to, y->id) ? x : NULL;
}

static void fork_is_over(struct server_session *x)
{
	x->fork.is_on = false;
	x->fork.tag = 0;
}

/* When both sides have reported: the fork is ready, or ends. */
static void settle(struct server_session *y)
{
	int error = y->copied.save_error;

	if (!y->copied.is_saved || !y->copied.is_filled)
		return;
	if (error == 0 || error == EPIPE)
		error = y->copied.fill_error ? y->copied.fill_error : error;
	if (error) {
		stop_unfilled(y, error);
		return;
	}
	y->is_unfilled = false;
	session_answer_ready(y);
}

/* Called while the source is stepped; the fork is not stepped here. */
void session_saved(struct server_session *x, const struct brig_session_event *event)
{
	struct server_session *y = find_new(x);

	fork_is_over(x);
	if (!y)
		return;
	y->copied.is_saved = true;
	y->copied.save_error = event->error;
	y->left_out = event->left_out;
	if (x->metadata && !y->metadata)
		y->metadata = json_deep_copy(x->metadata);
	settle(y);
}

/* Connects the two cells with a pipe; closes this process's ends. */
static int begin_copy(struct server_session *x, struct server_session *y, struct brig_error *err)
{
	AUTO_FD from = FD_NONE;
	AUTO_FD to = FD_NONE;
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the files");
	from = ends[0];
	to = ends[1];
	rc = brig_session_load(y->inside, from, &y->filling, err);
	return rc < 0 ? rc : brig_session_save(x->inside, to, SNAPSHOT_BYTES_MAX, &x->fork.tag, err);
}

void session_fork_begin(struct server_session *y)
{
	struct server_session *x = find_first(y);
	struct brig_error err = BRIG_ERROR_INIT;

	if (!x || y->is_stopping)
		return;
	if (x->is_stopping) {
		session_fork_lost(x);
		return;
	}
	if (begin_copy(x, y, &err) == 0)
		return;
	fork_is_over(x);
	y->failed_status = 409;
	server_session_stop(y, err.msg);
}

void session_fork_lost(struct server_session *x)
{
	struct server_session *y = find_new(x), *first = find_first(x);

	if (y) {
		y->failed_status = 410;
		server_session_stop(y, "the session that it was to be a copy of has ended");
	}
	if (first && first->fork.tag == 0) /* otherwise the source will report EPIPE itself */
		fork_is_over(first);
	fork_is_over(x);
}

/* Fields of a request like the source's. */
static bool put_first(struct buf *fields, const struct request *req, const struct server_session *x)
{
	const struct message *was = &x->job->m;
	json_t *settings = session_settings(x, json_object());
	uint64_t timeout_ms = message_number(req->m, FIELD_timeout_ms, message_number(was, FIELD_timeout_ms, 0));

	if (!settings)
		return false;
	put_settings(fields, req->m, settings);
	json_decref(settings);
	if (x->pauses && !message_has(req->m, FIELD_pauses))
		message_put_number(fields, FIELD_pauses, 1);
	if (x->resumes && !message_has(req->m, FIELD_resumes))
		message_put_number(fields, FIELD_resumes, 1);
	if (x->needs_key && !message_has(req->m, FIELD_needs_key))
		message_put_number(fields, FIELD_needs_key, 1);
	put_texts(fields, FIELD_variable, was);
	put_either(fields, FIELD_note, req->m, x->note);
	if (timeout_ms)
		message_put_number(fields, FIELD_timeout_ms, timeout_ms);
	return true;
}

void handle_session_fork(struct service *s, struct request *req)
{
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	struct server_session *x, *y;

	if (session_is_repeated(s, req)) /* also if the source has ended since */
		return;
	x = session_find(s, req);
	if (!x || !session_copy_is_allowed(s, req, x))
		return;
	y = put_first(&fields, req, x) ? make(s, req, &fields, x->id) : NULL;
	if (!y)
		return;
	session_remember(s, req, y);
	y->has_source = true;
	x->fork.is_on = true;
	(void)str_copy(x->fork.to, sizeof(x->fork.to), y->id);
	session_go_on(s, y);
}
