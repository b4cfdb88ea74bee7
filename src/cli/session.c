/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/pick.h"
#include "cli/report.h"
#include "server/runner/executions.h"

#define EXIT_NOT_FOUND 127 /* as shells use for a command that cannot be started */

/* ---- requests ------------------------------------------------------------------------------------------------- */

void cli_session_ask_begin(struct service_ask *a, enum route route, const char *id)
{
	*a = (struct service_ask)SERVICE_ASK_INIT;
	message_put_number(&a->message, FIELD_has_peer, 1);
	message_put_number(&a->message, FIELD_route, route);
	if (id)
		message_put_text(&a->message, FIELD_id, id);
}

int cli_session_refusal(const struct service_answer *a, struct brig_error *err)
{
	json_t *doc = json_loadb(buf_str(&a->text), a->text.len, 0, NULL);
	const char *text = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));
	enum brig_code code = a->status == 400 || a->status == 422  ? BRIG_E_USAGE
			      : a->status >= 400 && a->status < 500 ? BRIG_E_REFUSED
								    : BRIG_E_SYSTEM;
	int rc = err_set(err, code, 0, "%s", text ? text : "the service did not say why it does not do it");

	json_decref(doc);
	return rc;
}

/* The service would reject a malformed message as unauthenticated: reports the error here. */
static int check(const struct buf *m, struct brig_error *err)
{
	struct message read;
	const char *why;

	if (m->no_memory)
		return err_nomem(err);
	if (m->full || !message_read(m->data, m->len, &read, &why))
		return err_set(err, BRIG_E_USAGE, 0, "there is %s, which a service does not take",
			       m->full ? "too much of it" : why);
	return 0;
}

static int reach(const struct service_place *place, int *ret, struct brig_error *err)
{
	int rc = service_reach(place, ret, err);

	if (rc <= 0)
		return rc;
	return err_set(
		err, BRIG_E_SYSTEM, 0,
		"no service of root's or your own answers at %.120s, and sessions are a service's: start one with "
		"'brig serve'",
		place->path);
}

int cli_session_call(const struct session_work *w, const struct service_ask *a, struct service_answer *ret,
		     struct service_call **ret_call, struct brig_error *err)
{
	AUTO_FD sock = FD_NONE;
	int rc = check(&a->message, err);

	if (rc == 0)
		rc = reach(&w->place, &sock, err);
	return rc < 0 ? rc : service_call_new(&sock, a, NULL, ret, ret_call, err);
}

int cli_session_ask(const struct session_work *w, struct service_ask *a, json_t **ret, struct buf *bytes,
		    struct brig_error *err)
{
	struct service_answer answer = { .text = BUF_INIT(0) };
	AUTO_FD sock = FD_NONE;
	int rc = check(&a->message, err);

	*ret = NULL;
	if (rc == 0)
		rc = reach(&w->place, &sock, err);
	if (rc == 0) {
		rc = service_wait(&sock, a, NULL, &answer, err);
		if (rc < 0)
			(void)err_wrap(err, "the service at %.100s", w->place.path);
	}
	if (rc == 0 && answer.status / 100 != 2)
		rc = cli_session_refusal(&answer, err);
	if (rc == 0 && bytes) {
		buf_release(bytes);
		*bytes = answer.text;
		answer.text = (struct buf)BUF_INIT(0);
	} else if (rc == 0) {
		*ret = json_loadb(buf_str(&answer.text), answer.text.len, JSON_ALLOW_NUL, NULL);
		if (!*ret)
			rc = err_set(err, BRIG_E_SYSTEM, 0, "the service answers with what is no document");
	}
	buf_release(&answer.text);
	service_ask_release(a);
	return rc;
}

/* ---- values ------------------------------------------------------------------------------------------------ */

int cli_session_put_time(struct service_ask *a, const char *text, struct brig_error *err)
{
	uint64_t ms;

	if (!text)
		return 0;
	if (!str_to_millis(text, 1000, &ms) || ms == 0)
		return err_set(err, BRIG_E_USAGE, 0, "'%.60s' is no time: give one such as 30, 1.5s, 200ms or 10m",
			       text);
	message_put_number(&a->message, FIELD_timeout_ms, ms);
	return 0;
}

void cli_session_put_env(struct service_ask *a, const struct words *env)
{
	for (size_t i = 0; i < env->n; i++)
		message_put_text(&a->message, FIELD_variable, env->item[i]);
}

int cli_session_number(const char *text, const char *option, uint64_t *ret, struct brig_error *err)
{
	*ret = 0;
	if (text && (!str_to_u64(text, ret) || *ret == 0))
		return err_set(err, BRIG_E_USAGE, 0, "%s '%.40s' is no number from 1 on", option, text);
	return 0;
}

/* ---- output --------------------------------------------------------------------------------------------------- */

int cli_session_tell(const struct session_work *w, json_t *doc, const char *fmt, ...)
{
	AUTO_BUF line = BUF_INIT(UI_TEXT_MAX);
	AUTO_FREE char *text = w->v.json ? json_dumps(doc, JSON_COMPACT) : NULL;
	va_list ap;

	va_start(ap, fmt);
	(void)buf_vaddf(&line, fmt, ap); /* its arguments may point into the document */
	va_end(ap);
	json_decref(doc);
	if (text)
		return document_print(text, EXIT_SUCCESS);
	return ui_finish(&line, EXIT_SUCCESS);
}

void cli_session_print_event(const json_t *event)
{
	AUTO_FREE char *text = json_dumps(event, JSON_COMPACT);

	if (text)
		(void)document_print(text, EXIT_SUCCESS);
}

/* Members that every result has: a session's result has more, which the library's reader does not know. */
static json_t *plain_members(struct brig_error *err)
{
	const struct brig_error any = { .code = BRIG_E_REFUSED };
	struct brig_result *r = NULL;
	AUTO_TEXT text = NULL;
	json_t *doc = NULL;

	if (brig_result_from_error(&any, &r, err) == 0 && brig_result_json(r, &text, err) == 0)
		doc = json_loads(text, 0, NULL);
	brig_result_free(r);
	return doc;
}

static int read_result(const struct buf *text, struct brig_result **ret, struct brig_error *err)
{
	json_t *doc = json_loadb(buf_str(text), text->len, JSON_ALLOW_NUL, NULL), *plain = plain_members(err), *value;
	AUTO_FREE char *rest = NULL;
	const char *name;
	void *next;
	int rc = -1;

	json_object_foreach_safe(doc, next, name, value)
	{
		if (!json_object_get(plain, name))
			(void)json_object_del(doc, name);
	}
	rest = doc && plain ? json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	rc = rest ? brig_result_from_json(rest, strlen(rest), ret, err)
		  : err_set(err, BRIG_E_SYSTEM, 0, "the service's result cannot be read");
	json_decref(doc);
	json_decref(plain);
	return rc;
}

int cli_session_end(const struct session_work *w, const struct service_answer *answer, const char *name,
		    struct brig_error *err)
{
	struct brig_result *r = NULL;
	int status;

	if (answer->status != 200)
		return cli_session_refusal(answer, err);
	if (read_result(&answer->text, &r, err) < 0)
		return -err->code;
	status = brig_result_status(r);
	if (str_eq(brig_result_verdict(r), "error") && brig_result_exit_code(r) < 0) {
		status = EXIT_NOT_FOUND;
		if (!w->v.json && !w->v.events)
			ui_say("%s: %s", name ? name : "code", brig_result_reason(r));
	}
	if (w->v.json && !w->v.events)
		status = document_print(buf_str(&answer->text), status);
	else if (!w->v.events && w->v.quiet)
		report_fatal(r, name);
	else if (!w->v.events)
		report_remarks(r, name);
	brig_result_free(r);
	return status;
}

/* ---- every command ---------------------------------------------------------------------------------------------- */

/* Finds a session by its id or a unique prefix. */
static int find_session(struct session_work *w, const char *word, struct brig_error *err)
{
	struct service_ask ask;
	const json_t *row;
	json_t *doc = NULL;
	int rc;

	if (strlen(word) == EXECUTION_ID_LEN)
		return str_copy(w->id, sizeof(w->id), word) ? 0 : -1;
	cli_session_ask_begin(&ask, ROUTE_sessions, NULL);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	if (rc < 0)
		return rc;
	row = pick_row(json_object_get(doc, "sessions"), word, "session", "brig session list", err);
	if (row)
		(void)document_text(row, "id", w->id, sizeof(w->id));
	json_decref(doc);
	return row ? 0 : -err->code;
}

static int find_all(struct session_work *w, const struct session_shape *shape, struct brig_error *err)
{
	int rc = service_find(false, &w->place, err);

	if (rc == 0)
		return err_set(
			err, BRIG_E_SYSTEM, 0,
			"there is no service, and sessions are a service's: start one with 'brig serve', or name "
			"one with BRIG_HOST=unix:PATH");
	if (rc < 0 || shape->id_at == SESSION_NO_ID)
		return rc < 0 ? rc : 0;
	return find_session(w, w->ops.words.item[shape->id_at], err);
}

static bool has_shape(const struct session_work *w, const struct session_shape *shape, struct brig_error *err)
{
	if (w->ops.words.n >= shape->min && w->ops.words.n <= shape->max && (w->ops.rest.n == 0 || shape->has_rest))
		return true;
	(void)err_set(err, BRIG_E_USAGE, 0, "%s", shape->wants);
	return false;
}

int cli_session_main(const struct command *self, int argc, char **argv)
{
	const struct session_command *command = self->own;
	struct session_work w = { .self = self };
	struct brig_error err = BRIG_ERROR_INIT;
	int status, rc;

	if (command_begin(self, argc, argv, &w.v, &w.ops, &status)) {
		if (!has_shape(&w, command->shape, &err)) {
			status = ui_usage(self->name, &err);
		} else {
			rc = find_all(&w, command->shape, &err);
			status = rc < 0 ? rc : command->run(&w, &err);
			status = status < 0 ? ui_fail(&err) : status;
		}
	}
	options_release(self, &w.v, &w.ops);
	return status;
}
