/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - filesystem.Filesystem: changes below a folder of a sandbox
 *
 * A stream ends with its connection; a watcher that is polled stays with the session until it is removed. Events lost
 * because the client did not keep up go unreported: the protocol has no message for that.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/e2b/connect.h"
#include "server/doors/e2b/filesystem.h"

static const char *type_of(const char *change)
{
	static const struct {
		const char *change, *type;
	} types[] = {
		{ "created", "EVENT_TYPE_CREATE" }, { "written", "EVENT_TYPE_WRITE" },
		{ "removed", "EVENT_TYPE_REMOVE" }, { "renamed", "EVENT_TYPE_RENAME" },
		{ "chmod", "EVENT_TYPE_CHMOD" },
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(types[i].change, change))
			return types[i].type;
	return NULL;
}

/* A runner event in the client's format; NULL: the protocol has no equivalent. */
static json_t *change_of(const json_t *event)
{
	const char *type = type_of(connect_text(event, "change"));
	json_t *change;

	if (!type || json_object_get(event, "encoding"))
		return NULL;
	change = json_pack("{s:s, s:s}", "name", connect_text(event, "name"), "type", type);
	if (json_object_get(event, "entry"))
		(void)json_object_set_new(change, "entry", filesystem_entry(json_object_get(event, "entry")));
	return change;
}

/* ---- streams --------------------------------------------------------------------------------------------------- */

static void on_event(struct client *c, enum event_kind kind, const char *text, size_t len)
{
	json_t *event, *change;

	if (kind == EVENT_started) {
		(void)connect_put(c, json_pack("{s:{}}", "start"));
		return;
	}
	if (kind != EVENT_changed)
		return;
	event = json_loadb(text, len, 0, NULL);
	change = change_of(event);
	json_decref(event);
	if (change)
		(void)connect_put(c, json_pack("{s:o}", "filesystem", change));
}

static void on_quiet(struct client *c)
{
	(void)connect_put(c, json_pack("{s:{}}", "keepalive"));
}

static void refuse(struct client *c, unsigned status, const struct message *m)
{
	uint64_t error = message_number(m, FIELD_error_number, 0);

	if (error == ENOENT)
		connect_fail(c, CONNECT_not_found, "path does not exist");
	else if (error == ENOTDIR)
		connect_fail(c, CONNECT_invalid_argument, "path is not a directory");
	else
		connect_refuse(c, status, m);
}

/* Member names may be in camel or snake case. */
static bool has_flag(const json_t *request, const char *name, const char *other)
{
	return json_is_true(json_object_get(request, name)) || json_is_true(json_object_get(request, other));
}

/* The folder of the request and the watch options; false: the request was refused. */
static bool put_watch(struct client *c, struct buf *fields, const json_t *request)
{
	char path[E2B_PATH_MAX + 1];

	if (!filesystem_path(connect_text(request, "path"), path)) {
		connect_fail(c, CONNECT_invalid_argument, "path is no path of this user");
		return false;
	}
	message_put_text(fields, FIELD_path, path);
	message_put_number(fields, FIELD_recursive, json_is_true(json_object_get(request, "recursive")));
	message_put_number(fields, FIELD_with_entry, has_flag(request, "includeEntry", "include_entry"));
	return true;
}

static void ask_watch(struct client *c, const json_t *request)
{
	struct buf *fields = door_fields(c);

	if (!put_watch(c, fields, request))
		return;
	c->req->call->on_event = on_event;
	c->req->call->on_quiet = on_quiet;
	message_put_number(fields, FIELD_stream, 1);
	door_ask(c, ROUTE_session_watch, FD_NONE, FD_NONE, refuse);
}

CONNECT_HANDLER(watch_dir, ask_watch)

/* ---- polled watchers ------------------------------------------------------------------------------------------- */

static void on_made(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc;
	char id[24];

	if (status != 201) {
		refuse(c, status, m);
		return;
	}
	doc = door_answer_json(m);
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)connect_number(doc, "watch"));
	json_decref(doc);
	connect_reply(c, json_pack("{s:s}", "watcherId", id));
}

static void ask_watcher(struct client *c, const json_t *request)
{
	struct buf *fields = door_fields(c);

	if (put_watch(c, fields, request))
		door_ask(c, ROUTE_session_watch_make, FD_NONE, FD_NONE, on_made);
}

static void refuse_watcher(struct client *c, unsigned status, const struct message *m)
{
	if (status == 404 && !e2b_is_gone(status, m))
		connect_fail(c, CONNECT_not_found, "there is no such watcher");
	else
		connect_refuse(c, status, m);
}

static void on_changes(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc, *list, *event;
	size_t i;

	if (status != 200) {
		refuse_watcher(c, status, m);
		return;
	}
	doc = door_answer_json(m);
	list = json_array();
	json_array_foreach(json_object_get(doc, "changes"), i, event)
	{
		json_t *change = change_of(event);

		if (change)
			(void)json_array_append_new(list, change);
	}
	json_decref(doc);
	connect_reply(c, json_pack("{s:o}", "events", list));
}

static void on_removed(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200)
		connect_reply(c, json_object());
	else
		refuse_watcher(c, status, m);
}

static uint64_t watcher_of(const json_t *request)
{
	uint64_t id = connect_number(request, "watcherId");

	return id ? id : connect_number(request, "watcher_id");
}

static void ask_changes(struct client *c, const json_t *request)
{
	message_put_number(door_fields(c), FIELD_item, watcher_of(request));
	door_ask(c, ROUTE_session_watch_changes, FD_NONE, FD_NONE, on_changes);
}

static void ask_removal(struct client *c, const json_t *request)
{
	message_put_number(door_fields(c), FIELD_item, watcher_of(request));
	door_ask(c, ROUTE_session_watch_delete, FD_NONE, FD_NONE, on_removed);
}

CONNECT_HANDLER(create_watcher, ask_watcher)
CONNECT_HANDLER(watcher_events, ask_changes)
CONNECT_HANDLER(remove_watcher, ask_removal)
