/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_keep.c - keeping what a run has changed in a workspace
 *
 * The library's result lists the changed paths; the archive that it wrote has the files that were added or changed.  If
 * one of them is missing, or cannot be represented in an archive, nothing is kept.
 */
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/archive.h"
#include "server/runner/service.h"

void workspace_on_accept(struct service *s, struct execution *x)
{
	const char *id = message_text(&x->job->m, FIELD_workspace);
	struct workspace *w = id ? workspaces_find(&s->workspaces, id) : NULL;

	x->kept = FD_NONE;
	if (!w)
		return;
	memcpy(x->workspace, w->id, sizeof(x->workspace));
	memcpy(w->last, x->id, sizeof(w->last));
	x->workspace_version = w->version;
	x->keeps = message_number(&x->job->m, FIELD_keep, 0) != 0;
}

void workspace_on_start(struct execution *x)
{
	if (x->keeps)
		x->kept = memfd_create("brig-kept", MFD_CLOEXEC);
	if (x->kept >= 0)
		x->job->req.out_fd = x->kept;
}

/* ---- the list of changes ------------------------------------------------------------------------------------ */

static const char *member(const json_t *change, const char *name)
{
	const char *text = json_string_value(json_object_get(change, name));

	return text ? text : "";
}

static bool is_file(const json_t *change)
{
	return str_eq(member(change, "type"), "file") && !str_eq(member(change, "change"), "deleted");
}

/* NULL: all changes can be kept, and *ret_files files must be in the archive; otherwise the reason. */
static const char *check_changes(const json_t *doc, size_t *ret_files)
{
	const json_t *change;
	size_t i;

	*ret_files = 0;
	if (json_integer_value(json_object_get(json_object_get(doc, "workspace"), "dropped")) > 0)
		return "there were more changes than can be looked at";
	json_array_foreach(json_object_get(doc, "changes"), i, change)
	{
		if (str_eq(member(change, "path_encoding"), "base64"))
			return "the program left a name that is not UTF-8";
		if (is_file(change))
			++*ret_files;
		else if (!str_eq(member(change, "change"), "deleted") && !str_eq(member(change, "type"), "directory"))
			return "the program left something that is neither a file nor a folder, such as a link";
	}
	return NULL;
}

/* Whether an old file was deleted or replaced. */
static bool is_replaced(const json_t *doc, const char *path)
{
	const json_t *change;
	size_t i;

	json_array_foreach(json_object_get(doc, "changes"), i, change)
	{
		const char *at = member(change, "path");
		size_t len = strlen(at);
		/* A changed directory does not replace the files in it. */
		bool with_all_below = str_eq(member(change, "change"), "deleted") || is_file(change);

		if (strncmp(path, at, len) == 0 && (path[len] == '\0' || (path[len] == '/' && with_all_below)))
			return true;
	}
	return false;
}

/* ---- merging --------------------------------------------------------------------------------------------------- */

static int copy_old(struct buf *out, const struct buf *old, const json_t *doc, size_t *n, struct brig_error *err)
{
	struct archive a = { .bytes = old->data, .len = old->len };
	struct archive_file f;
	int rc;

	while ((rc = archive_next(&a, &f, err)) > 0)
		if (!is_replaced(doc, f.path)) {
			++*n;
			if (!archive_put(out, &f))
				return err_set(err, BRIG_E_USAGE, 0, "it is larger than an archive may be");
		}
	return rc;
}

static int copy_new(struct buf *out, const struct buf *fetched, size_t wanted, size_t *n, struct brig_error *err)
{
	struct archive a = { .bytes = fetched->data, .len = fetched->len };
	struct archive_file f;
	size_t came = 0;
	int rc;

	while ((rc = archive_next(&a, &f, err)) > 0) {
		came++;
		++*n;
		if (!archive_put(out, &f))
			return err_set(err, BRIG_E_USAGE, 0, "it is larger than an archive may be");
	}
	if (rc == 0 && came != wanted)
		return err_set(
			err, BRIG_E_USAGE, 0,
			"%zu files were changed and %zu could be fetched: see artifacts_limit and artifacts_size",
			wanted, came);
	return rc;
}

static int merge(struct service *s, struct workspace *w, int fetched_fd, const json_t *doc, size_t wanted,
		 struct brig_error *err)
{
	AUTO_BUF old = BUF_INIT(0);
	AUTO_BUF fetched = BUF_INIT(0);
	AUTO_BUF out = BUF_INIT(ARCHIVE_BYTES_MAX);
	AUTO_FD fd = workspace_archive(s, w, err);
	size_t n = 0;

	if (fd < 0)
		return fd;
	if (workspace_read_all(fd, ARCHIVE_BYTES_MAX, &old, err) < 0 ||
	    workspace_read_all(fetched_fd, 2 * ARCHIVE_BYTES_MAX, &fetched, err) < 0 ||
	    copy_old(&out, &old, doc, &n, err) < 0 || copy_new(&out, &fetched, wanted, &n, err) < 0)
		return -err->code;
	if (n > ARCHIVE_FILES_MAX || !ustar_add_end(&out))
		return err_set(err, BRIG_E_USAGE, 0, "it has more files or bytes than an archive may have");
	if (workspaces_room(s, w->owner, out.len > w->bytes ? out.len - w->bytes : 0, false, err) < 0)
		return -err->code;
	return workspace_write(s, w, out.data, out.len, err);
}

/* ---- the outcome ---------------------------------------------------------------------------------------------- */

/* NULL: kept; otherwise the reason why not. */
static const char *keep(struct service *s, struct execution *x, struct brig_error *err)
{
	struct workspace *w = workspaces_find(&s->workspaces, x->workspace);
	const char *why = NULL;
	size_t wanted = 0;
	json_t *doc;

	if (!str_eq(x->verdict, "ok"))
		return "the verdict is not ok";
	if (!w || !x->result || x->kept < 0)
		return "the workspace is gone, or there was no memory";
	if (w->version != x->workspace_version)
		return "another execution has changed the workspace meanwhile";
	doc = json_loads(x->result, JSON_ALLOW_NUL, NULL);
	why = doc ? check_changes(doc, &wanted) : "there was no memory";
	if (!why && merge(s, w, x->kept, doc, wanted, err) < 0)
		why = err->msg;
	json_decref(doc);
	return why;
}

/* Adds the outcome to the result as a member. */
static void tell(struct execution *x, const char *why)
{
	json_t *told = json_pack("{s:s, s:b, s:s?}", "workspace", x->workspace, "kept", why == NULL, "reason", why);
	AUTO_FREE char *text = told ? json_dumps(told, JSON_COMPACT) : NULL;
	AUTO_BUF with = BUF_INIT(MESSAGE_MAX);

	json_decref(told);
	if (!x->result || !text)
		return;
	buf_add(&with, x->result, x->result_len - 1);
	buf_addf(&with, ",\"kept\":%s}", text);
	if (with.full || with.no_memory)
		return;
	free(x->result);
	x->result_len = with.len;
	x->result = buf_take(&with);
	if (!x->result)
		x->result_len = 0;
}

void workspace_on_end(struct service *s, struct execution *x)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (x->keeps)
		tell(x, keep(s, x, &err));
	fd_closep(&x->kept);
}
