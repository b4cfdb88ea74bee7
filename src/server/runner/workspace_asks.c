/* SPDX-License-Identifier: Apache-2.0 */
/* workspace_asks.c - workspaces are made, looked at, fetched and removed */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"
#include "server/archive.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/asks.h"

static json_t *moment(uint64_t seconds)
{
	char text[WHEN_TEXT_MAX];

	return json_string(when_utc(text, sizeof(text), seconds * NS_PER_SEC));
}

static json_t *summary(const struct workspace *w)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:o}", "id", w->id, "token", w->owner, "created",
			 moment(w->created_s), "used", moment(w->used_s), "expires",
			 moment(w->used_s + WORKSPACE_UNUSED_S), "bytes", (json_int_t)w->bytes, "last_execution",
			 w->last[0] ? json_string(w->last) : json_null());
}

/* NULL: there is none that the token may see, and it has been answered so. */
static struct workspace *find(struct service *s, const struct ask *ask)
{
	const char *id = message_text(ask->m, FIELD_id);
	struct workspace *w;

	workspaces_sweep(s);
	w = id ? workspaces_find(&s->workspaces, id) : NULL;
	if (w && access_owns(ask->token, w->owner))
		return w;
	answer_error(s, ask, 404, "there is no workspace '%.20s'%s", id ? id : "",
		     ask->token->admin ? "" : " of this token");
	return NULL;
}

/* ---- coming and going ---------------------------------------------------------------------------------------- */

void ask_workspace_put(struct service *s, struct ask *ask)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF bytes = BUF_INIT(0);
	struct workspace *w = NULL;

	workspaces_sweep(s);
	if (ask->beside.files < 0)
		(void)err_set(&err, BRIG_E_USAGE, 0, "the archive did not arrive");
	else if (workspace_read_all(ask->beside.files, ARCHIVE_BYTES_MAX, &bytes, &err) == 0 &&
		 workspaces_room(s, ask->token->name, bytes.len, true, &err) == 0)
		w = workspace_make(s, ask->token->name, buf_str(&bytes), bytes.len, &err);
	if (!w) {
		answer_trouble(s, ask, &err);
		return;
	}
	answer_json(s, ask, 201, summary(w));
}

void ask_workspace_delete(struct service *s, struct ask *ask)
{
	struct workspace *w = find(s, ask);
	json_t *doc;

	if (!w)
		return;
	doc = summary(w);
	workspace_remove(s, w);
	answer_json(s, ask, 200, doc);
}

/* ---- looking --------------------------------------------------------------------------------------------------- */

void ask_workspaces(struct service *s, struct ask *ask)
{
	json_t *list = json_array();
	const struct workspace *w;

	workspaces_sweep(s);
	TAILQ_FOREACH_REVERSE(w, &s->workspaces.all, workspace_list, in_age)
	if (access_owns(ask->token, w->owner))
		(void)json_array_append_new(list, summary(w));
	answer_json(s, ask, 200, json_pack("{s:o}", "workspaces", list));
}

static int list_files(const struct buf *bytes, json_t *list, struct brig_error *err)
{
	struct archive a = { .bytes = bytes->data, .len = bytes->len };
	struct archive_file f;
	int rc;

	while ((rc = archive_next(&a, &f, err)) > 0)
		(void)json_array_append_new(list, json_pack("{s:s, s:I, s:b}", "path", f.path, "size",
							    (json_int_t)f.len, "executable", f.may_execute));
	return rc;
}

static int read_archive(const struct service *s, const struct workspace *w, struct buf *out, struct brig_error *err)
{
	AUTO_FD fd = workspace_archive(s, w, err);

	return fd < 0 ? fd : workspace_read_all(fd, ARCHIVE_BYTES_MAX, out, err);
}

void ask_workspace(struct service *s, struct ask *ask)
{
	const struct workspace *w = find(s, ask);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF bytes = BUF_INIT(0);
	json_t *doc, *list;

	if (!w)
		return;
	list = json_array();
	if (read_archive(s, w, &bytes, &err) < 0 || list_files(&bytes, list, &err) < 0) {
		json_decref(list);
		answer_trouble(s, ask, &err);
		return;
	}
	doc = summary(w);
	(void)json_object_set_new(doc, "files", list);
	answer_json(s, ask, 200, doc);
}

void ask_workspace_archive(struct service *s, struct ask *ask)
{
	const struct workspace *w = find(s, ask);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF bytes = BUF_INIT(0);

	if (!w)
		return;
	if (read_archive(s, w, &bytes, &err) < 0) {
		answer_trouble(s, ask, &err);
		return;
	}
	answer_send(s, ask->tag,
		    &(struct answer){ .status = 200,
				      .content_type = "application/x-tar",
				      .who = ask->token->name,
				      .body = buf_str(&bytes),
				      .len = bytes.len });
}

/* What an execution on it changed, as its result says. */
void ask_workspace_diff(struct service *s, struct ask *ask)
{
	const struct workspace *w = find(s, ask);
	const char *id = message_text(ask->m, FIELD_execution);
	const struct execution *x;
	json_t *doc;

	if (!w)
		return;
	x = executions_find(&s->executions, id ? id : w->last);
	if (!x || !str_eq(x->workspace, w->id) || !access_owns(ask->token, x->owner) || !x->result) {
		answer_error(s, ask, 404,
			     "there is no execution on this workspace that has ended lately%s%.20s: /v1/history has "
			     "older ones",
			     id ? " and is called " : "", id ? id : "");
		return;
	}
	doc = json_loads(x->result, 0, NULL);
	answer_json(s, ask, 200,
		    json_pack("{s:s, s:s, s:O?, s:O?}", "execution", x->id, "verdict", x->verdict, "changes",
			      json_object_get(doc, "changes"), "kept", json_object_get(doc, "kept")));
	json_decref(doc);
}
