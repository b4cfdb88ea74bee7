/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_copies.c - sessions that begin with the files of another, or of a snapshot
 *
 *	fork      first: ready --- saves to a file without a name ---.          goes on
 *	          new:   begins meanwhile, and is asked for as ever  '- loads -> ready, and answered
 *	restore   new:   begins, loads the snapshot's file -> ready, and answered
 *
 * The new one is asked for with what the first was asked for with, as if its client had said so again: quotas and limits of the
 * token are looked at as of any.  It is nobody's to use before its files are there.  Who waits for a fork waits for the new one;
 * the first only knows for whom it saves.  Either may end meanwhile: by its id the other finds that it is no longer there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/asks.h"

#define COPIES_MAX 8 /* under way, each of which has a file of up to SNAPSHOT_BYTES_MAX */

/* ---- what may be, and what went wrong ---------------------------------------------------------------------------- */

static size_t copies_of(const struct server_session *x)
{
	const struct session_wait *w;
	size_t n = (x->fork.tag != 0) + (x->filling != 0);

	TAILQ_FOREACH(w, &x->waits, in_session)
	n += w->snapshot[0] != '\0';
	return n;
}

bool session_copy_is_allowed(struct service *s, const struct ask *ask, const struct server_session *x)
{
	const struct server_session *other;
	size_t n = 0;

	if (s->draining) {
		answer_retry(s, ask, 503, 5, "the service is being stopped and takes nothing new");
		return false;
	}
	if (ask->session) {
		answer_error(s, ask, 403, "the key of the session %s makes no others: show the token", x->id);
		return false;
	}
	if (copies_of(x) > 0) {
		answer_retry(s, ask, 503, 1, "the session %s is being copied already: try again in a moment", x->id);
		return false;
	}
	TAILQ_FOREACH(other, &s->sessions.all, in_all)
	n += copies_of(other);
	if (n < COPIES_MAX)
		return true;
	answer_retry(s, ask, 503, 1, "%d sessions are being copied: try again in a moment", COPIES_MAX);
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
	const struct ask ask = { .tag = tag, .request_id = request_id };
	uint16_t status;
	const char *words = words_of(error, &status);

	answer_error(x->service, &ask, status, "the files of the session %s could not be copied: %s", x->id, words);
}

/* ---- what a session was asked to be ------------------------------------------------------------------------------- */

/* The library's options of a job are cut at their "=", in the job's own copy of the message. */
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

/* Texts of a kind from one message, as they are. */
static void put_texts(struct buf *fields, enum field f, const struct message *from)
{
	const char *text;
	size_t at = 0, len;

	while ((text = message_next(from, f, &at, &len)))
		message_put_text(fields, f, text);
}

/* One that the ask has is the ask's; else the one that there was. */
static void put_either(struct buf *fields, enum field f, const struct message *ask, const char *was)
{
	const char *text = message_text(ask, f);

	message_put_text(fields, f, text ? text : was);
}

/* Whether the ask has its own wish for the setting of this one. */
static bool is_replaced(const struct message *ask, const char *option)
{
	size_t at = 0, len, key = strcspn(option, "=") + 1;
	const char *own;

	while ((own = message_next(ask, FIELD_option, &at, &len)))
		if (strncmp(own, option, key) == 0)
			return true;
	return false;
}

static void put_settings(struct buf *fields, const struct message *ask, const json_t *settings)
{
	const json_t *option;
	size_t i;

	put_either(fields, FIELD_trust, ask, json_string_value(json_object_get(settings, "trust")));
	put_either(fields, FIELD_environment, ask, json_string_value(json_object_get(settings, "environment")));
	json_array_foreach(json_object_get(settings, "options"), i,
			   option) if (json_is_string(option) && !is_replaced(ask, json_string_value(option)))
		message_put_text(fields, FIELD_option, json_string_value(option));
	put_texts(fields, FIELD_option, ask);
	put_texts(fields, FIELD_variable, ask);
	if (message_has(ask, FIELD_pauses))
		message_put_number(fields, FIELD_pauses, message_number(ask, FIELD_pauses, 0));
	if (message_has(ask, FIELD_door))
		message_put_number(fields, FIELD_door, message_number(ask, FIELD_door, 0));
}

/* Begins a session that is asked for with these fields instead; NULL: it has been answered. */
static struct server_session *make(struct service *s, struct ask *ask, const struct buf *fields, const char *from)
{
	struct message m;
	struct ask instead = *ask;
	struct server_session *x;
	const char *why;

	if (fields->no_memory || fields->full || !message_read(fields->data, fields->len, &m, &why)) {
		answer_retry(s, ask, 503, 1, "there is no memory for the request");
		return NULL;
	}
	instead.m = &m;
	x = session_make(s, &instead, true);
	if (x)
		(void)str_copy(x->from, sizeof(x->from), from);
	return x;
}

/* ---- files arrive --------------------------------------------------------------------------------------------------- */

/* The new session has what is to be in its workspace. */
static void fill(struct server_session *x, int file)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (x->is_stopping || brig_session_load(x->inside, file, &x->filling, &err) == 0)
		return;
	x->failed_status = 500;
	server_session_stop(x, err.msg);
}

void session_filled(struct server_session *x, const struct brig_session_event *event)
{
	char why[SESSION_REASON_MAX];

	x->filling = 0;
	if (event->error) {
		(void)snprintf(why, sizeof(why), "its files could not be copied: %s",
			       words_of(event->error, &x->failed_status));
		server_session_stop(x, why);
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

void ask_session_restore(struct service *s, struct ask *ask)
{
	const char *id = message_text(ask->m, FIELD_snapshot);
	struct snapshot *snapshot = snapshot_find(s, ask, id);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	struct server_session *x;
	AUTO_FD file = FD_NONE;

	if (!snapshot)
		return;
	file = snapshot_read(s, snapshot, &err);
	if (file < 0) {
		answer_trouble(s, ask, &err);
		return;
	}
	put_settings(&fields, ask->m, snapshot->about);
	message_put_text(&fields, FIELD_note, message_text(ask->m, FIELD_note));
	if (message_has(ask->m, FIELD_timeout_ms))
		message_put_number(&fields, FIELD_timeout_ms, message_number(ask->m, FIELD_timeout_ms, 0));
	x = make(s, ask, &fields, snapshot->id);
	if (!x)
		return;
	session_remember(s, ask, x);
	x->left_out = (uint64_t)json_integer_value(json_object_get(snapshot->about, "left_out"));
	x->metadata = json_deep_copy(snapshot_file_metadata(snapshot));
	fill(x, file);
	session_go_on(s, x);
}

/* ---- forks ---------------------------------------------------------------------------------------------------------- */

static struct server_session *find_new(const struct server_session *x)
{
	struct server_session *y;

	TAILQ_FOREACH(y, &x->service->sessions.all, in_all)
	if (str_eq(y->id, x->fork.to) && y->inside)
		return y;
	return NULL;
}

static void fork_is_over(struct server_session *x)
{
	x->fork.tag = 0;
	fd_closep(&x->fork.file);
}

/* Called while the first is stepped: the new one is not, and goes on by itself. */
void session_saved(struct server_session *x, const struct brig_session_event *event)
{
	struct server_session *y = find_new(x);
	char why[SESSION_REASON_MAX];

	if (y && event->error) {
		(void)snprintf(why, sizeof(why), "the files of %s could not be copied: %s", x->id,
			       words_of(event->error, &y->failed_status));
		server_session_stop(y, why);
	} else if (y) {
		y->left_out = event->left_out;
		if (x->metadata && !y->metadata)
			y->metadata = json_deep_copy(x->metadata);
		fill(y, x->fork.file);
	}
	fork_is_over(x);
}

void session_fork_lost(struct server_session *x)
{
	struct server_session *y = x->fork.tag ? find_new(x) : NULL;

	if (y) {
		y->failed_status = 410;
		server_session_stop(y, "the session that it was to be a copy of has ended");
	}
	fork_is_over(x);
}

/* What the first was asked for with. */
static bool put_first(struct buf *fields, const struct ask *ask, const struct server_session *x)
{
	const struct message *was = &x->job->m;
	json_t *settings = session_settings(x, json_object());
	uint64_t timeout_ms = message_number(ask->m, FIELD_timeout_ms, message_number(was, FIELD_timeout_ms, 0));

	if (!settings)
		return false;
	put_settings(fields, ask->m, settings);
	json_decref(settings);
	put_texts(fields, FIELD_variable, was);
	put_either(fields, FIELD_note, ask->m, x->note);
	if (timeout_ms)
		message_put_number(fields, FIELD_timeout_ms, timeout_ms);
	return true;
}

void ask_session_fork(struct service *s, struct ask *ask)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	struct server_session *x, *y;
	AUTO_FD file = FD_NONE;

	if (session_is_repeated(s, ask)) /* even if the first has ended since */
		return;
	x = session_find(s, ask);
	if (!x || !session_copy_is_allowed(s, ask, x))
		return;
	file = snapshots_temporary(s, &err);
	if (file < 0) {
		answer_trouble(s, ask, &err);
		return;
	}
	y = put_first(&fields, ask, x) ? make(s, ask, &fields, x->id) : NULL;
	if (!y)
		return;
	session_remember(s, ask, y);
	if (brig_session_save(x->inside, file, SNAPSHOT_BYTES_MAX, &x->fork.tag, &err) < 0) {
		x->fork.tag = 0;
		y->failed_status = 409;
		server_session_stop(y, err.msg);
	} else {
		(void)str_copy(x->fork.to, sizeof(x->fork.to), y->id);
		x->fork.file = fd_move(&file);
	}
	session_go_on(s, y);
	session_go_on(s, x);
}
