/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_metadata.c - metadata that clients attach to files
 *
 * Extended attributes would be the natural place, but not every file system of a cell supports them.  So it is a table
 * by path in the session: it follows files moved, removed or rewritten through the service, but not changes made by
 * programs.  It is bounded: SESSION_METADATA_MAX files with at most BYTES_MAX each.
 */
#include <string.h>

#include "base/str.h"
#include "server/runner/requests.h"
#include "server/runner/sessions.h"

#define BYTES_MAX (4 * KiB) /* of one file: names and values */

int session_metadata_read(const struct server_session *x, const struct request *req, json_t **ret,
			  struct brig_error *err)
{
	json_t *values = json_object();
	const char *text;
	size_t at = 0, len, bytes = 0;

	*ret = NULL;
	while (values && (text = message_next(req->m, FIELD_file_metadata, &at, &len))) {
		const char *value = strchr(text, '=');
		AUTO_FREE char *name = value ? strndup(text, (size_t)(value - text)) : NULL;

		bytes += strlen(text);
		if (name)
			(void)json_object_set_new(values, name, json_string(value + 1));
	}
	if (json_object_size(values) == 0) {
		json_decref(values);
		return values ? 0 : err_nomem(err);
	}
	if (bytes > BYTES_MAX || json_object_size(x->metadata) >= SESSION_METADATA_MAX) {
		json_decref(values);
		return err_set(err, BRIG_E_REFUSED, ENOSPC,
			       "metadata has at most %d bytes, of at most %d files of a session", (int)BYTES_MAX,
			       SESSION_METADATA_MAX);
	}
	*ret = values;
	return 0;
}

void session_metadata_set(struct server_session *x, const char *path, json_t *values)
{
	if (!values) {
		(void)json_object_del(x->metadata, path);
		return;
	}
	if (!x->metadata)
		x->metadata = json_object();
	(void)json_object_set(x->metadata, path, values);
}

json_t *session_metadata_get(const struct server_session *x, const char *path)
{
	return json_object_get(x->metadata, path);
}

void session_metadata_move(struct server_session *x, const char *path, const char *to)
{
	size_t len = strlen(path);
	const char *own;
	json_t *values;
	void *next;

	if (!x->metadata || (to && str_eq(path, to)))
		return;
	if (to) /* the destination is replaced */
		session_metadata_move(x, to, NULL);
	/*
	 * An entry added during the walk may be visited again, but it is not below `path` any more: a directory cannot
	 * be moved into itself.
	 */
	json_object_foreach_safe(x->metadata, next, own, values)
	{
		AUTO_BUF moved = BUF_INIT(8 * KiB);
		bool is_below = strncmp(own, path, len) == 0 && (own[len] == '/' || own[len] == '\0');

		if (!is_below)
			continue;
		(void)buf_addf(&moved, "%s%s", to ? to : "", own + len);
		if (to && !moved.full)
			(void)json_object_set(x->metadata, buf_str(&moved), values);
		(void)json_object_del(x->metadata, own);
	}
}
