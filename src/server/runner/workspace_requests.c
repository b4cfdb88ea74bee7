/* SPDX-License-Identifier: Apache-2.0 */
/* workspace_requests.c - creation, queries, download and removal of workspaces */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/ustar.h"
#include "base/when.h"
#include "server/archive.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

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

/* NULL: not found or not visible to the token; 404 was answered. */
static struct workspace *find(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);
	struct workspace *w;

	workspaces_sweep(s);
	w = id ? workspaces_find(&s->workspaces, id) : NULL;
	if (w && access_owns(req->token, w->owner))
		return w;
	answer_error(s, req, 404, "there is no workspace '%.20s'%s", id ? id : "",
		     req->token->admin ? "" : " of this token");
	return NULL;
}

/* ---- creation and removal ------------------------------------------------------------------------------------ */

/*
 * Verifies that the archive is in the normalised form the front should have written, because others will have to read
 * it.
 */
static int check_archive(const struct buf *bytes, struct brig_error *err)
{
	struct archive a = { .bytes = bytes->data, .len = bytes->len };
	struct archive_file f;
	size_t n = 0;
	int rc;

	while ((rc = archive_next(&a, &f, err)) > 0)
		if (++n > ARCHIVE_FILES_MAX)
			return err_set(err, BRIG_E_USAGE, 0, "the archive has more than %d files", ARCHIVE_FILES_MAX);
	return rc;
}

void handle_workspace_put(struct service *s, struct request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF bytes = BUF_INIT(0);
	bool is_store = access_door(req->m) != DOOR_api;
	struct workspace *w = NULL;

	workspaces_sweep(s);
	if (req->beside.files < 0)
		(void)err_set(&err, BRIG_E_USAGE, 0, "the archive did not arrive");
	else if (workspace_read_all(req->beside.files, ARCHIVE_BYTES_MAX, &bytes, &err) == 0 &&
		 check_archive(&bytes, &err) == 0) {
		if (is_store)
			workspaces_make_room(s, req->token->name, bytes.len);
		if (workspaces_room(s, req->token->name, bytes.len, !is_store, &err) == 0)
			w = workspace_make(s, req->token->name, is_store, buf_str(&bytes), bytes.len, &err);
	}
	if (!w) {
		answer_trouble(s, req, &err);
		return;
	}
	answer_json(s, req, 201, summary(w));
}

/*
 * Removes the path and what is below it; the whole workspace if nothing else remains.  1: removed; 0: no such file;
 * -code.
 */
static int remove_path(struct service *s, struct workspace *w, const char *path, struct brig_error *err)
{
	AUTO_BUF old = BUF_INIT(0);
	AUTO_BUF out = BUF_INIT(ARCHIVE_BYTES_MAX);
	AUTO_FD fd = workspace_archive(s, w, err);
	size_t len = strlen(path), left = 0, gone = 0;
	struct archive a;
	struct archive_file f;
	int rc;

	if (fd < 0 || workspace_read_all(fd, ARCHIVE_BYTES_MAX, &old, err) < 0)
		return -err->code;
	a = (struct archive){ .bytes = old.data, .len = old.len };
	while ((rc = archive_next(&a, &f, err)) > 0) {
		bool is_it = strncmp(f.path, path, len) == 0 && (f.path[len] == '\0' || f.path[len] == '/');

		gone += is_it;
		left += !is_it;
		if (!is_it && !archive_put(&out, &f))
			return err_nomem(err);
	}
	if (rc < 0 || gone == 0)
		return rc;
	if (left == 0)
		workspace_remove(s, w);
	else if (!ustar_add_end(&out))
		return err_nomem(err);
	else if (workspace_write(s, w, out.data, out.len, err) < 0)
		return -err->code;
	return 1;
}

/* Removes the workspace, or, through a door, one path in it. */
void handle_workspace_delete(struct service *s, struct request *req)
{
	struct workspace *w = find(s, req);
	const char *path = message_text(req->m, FIELD_path);
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc;
	int rc = 1;

	if (!w)
		return;
	doc = summary(w);
	if (path)
		rc = remove_path(s, w, path, &err);
	else
		workspace_remove(s, w);
	if (rc > 0) {
		answer_json(s, req, 200, doc);
		return;
	}
	json_decref(doc);
	if (rc < 0)
		answer_trouble(s, req, &err);
	else
		answer_error(s, req, 404, "there is no file '%.100s' in this workspace", path);
}

/* ---- queries -------------------------------------------------------------------------------------------------- */

void handle_workspaces(struct service *s, struct request *req)
{
	json_t *list = json_array();
	const struct workspace *w;

	workspaces_sweep(s);
	TAILQ_FOREACH_REVERSE(w, &s->workspaces.all, workspace_list, in_age)
	if (access_owns(req->token, w->owner))
		(void)json_array_append_new(list, summary(w));
	answer_json(s, req, 200, json_pack("{s:o}", "workspaces", list));
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

void handle_workspace(struct service *s, struct request *req)
{
	const struct workspace *w = find(s, req);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF bytes = BUF_INIT(0);
	json_t *doc, *list;

	if (!w)
		return;
	list = json_array();
	if (read_archive(s, w, &bytes, &err) < 0 || list_files(&bytes, list, &err) < 0) {
		json_decref(list);
		answer_trouble(s, req, &err);
		return;
	}
	doc = summary(w);
	(void)json_object_set_new(doc, "files", list);
	answer_json(s, req, 200, doc);
}

void handle_workspace_archive(struct service *s, struct request *req)
{
	const struct workspace *w = find(s, req);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF bytes = BUF_INIT(0);

	if (!w)
		return;
	if (read_archive(s, w, &bytes, &err) < 0) {
		answer_trouble(s, req, &err);
		return;
	}
	answer_send(s, req->tag,
		    &(struct answer){ .status = 200,
				      .content_type = "application/x-tar",
				      .who = req->token->name,
				      .body = buf_str(&bytes),
				      .len = bytes.len });
}

/* The diff of the result as text, in the format of diff(1). */
static void answer_unified(struct service *s, const struct request *req, const json_t *diff)
{
	const json_t *text = json_object_get(diff, "text");
	const char *encoding = json_string_value(json_object_get(diff, "encoding"));
	size_t len = json_string_length(text);
	AUTO_FREE char *bytes = malloc(len + 1);
	AUTO_BUF out = BUF_INIT(MESSAGE_MAX);
	ssize_t n = -1;

	if (bytes && encoding && str_eq(encoding, "base64"))
		n = base64_get(bytes, json_string_value(text), len);
	if (n >= 0)
		buf_add(&out, bytes, (size_t)n);
	else if (len > 0)
		buf_add(&out, json_string_value(text), len);
	if (json_is_true(json_object_get(diff, "truncated")))
		buf_adds(&out, "# and more: the differences have more bytes than are shown\n");
	answer_send(s, req->tag,
		    &(struct answer){ .status = out.no_memory ? 503 : 200,
				      .content_type = "text/x-diff; charset=utf-8",
				      .who = req->token->name,
				      .body = buf_str(&out),
				      .len = out.len });
}

static bool wants_unified(const struct request *req)
{
	const char *format = message_text(req->m, FIELD_format);

	return format ? str_eq(format, "unified") : message_number(req->m, FIELD_diff, 0) != 0;
}

/* The changes of an execution with this workspace, from its result. */
void handle_workspace_diff(struct service *s, struct request *req)
{
	const struct workspace *w = find(s, req);
	const char *id = message_text(req->m, FIELD_execution);
	const struct execution *x;
	json_t *doc;

	if (!w)
		return;
	x = executions_find(&s->executions, id ? id : w->last);
	if (!x || !str_eq(x->workspace, w->id) || !access_owns(req->token, x->owner) || !x->result) {
		answer_error(s, req, 404,
			     "there is no execution on this workspace that has ended lately%s%.20s: /v1/history has "
			     "older ones",
			     id ? " and is called " : "", id ? id : "");
		return;
	}
	doc = json_loads(x->result, JSON_ALLOW_NUL, NULL);
	if (wants_unified(req))
		answer_unified(s, req, json_object_get(doc, "diff"));
	else
		answer_json(s, req, 200,
			    json_pack("{s:s, s:s, s:O?, s:O?, s:O?}", "execution", x->id, "verdict", x->verdict,
				      "changes", json_object_get(doc, "changes"), "diff", json_object_get(doc, "diff"),
				      "kept", json_object_get(doc, "kept")));
	json_decref(doc);
}
