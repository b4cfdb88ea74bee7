/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - the control plane: snapshots and forks
 *
 * Both copy the files of a sandbox but none of its processes; a copy starts with new ones. A snapshot can be used as a
 * template by its id or by the name that it was given. Forks of one sandbox are created one at a time.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/e2b/control.h"

#define FORKS_MAX 16
#define PAGE_MAX  100

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* ---- snapshots ------------------------------------------------------------------------------------------------- */

static json_t *snapshot_of(const json_t *own)
{
	const char *name = text_of(own, "name");

	return *name ? json_pack("{s:s, s:[s]}", "snapshotID", text_of(own, "id"), "names", name)
		     : json_pack("{s:s, s:[]}", "snapshotID", text_of(own, "id"), "names");
}

static void on_snapshot(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 201 ? door_answer_json(m) : NULL;

	if (doc)
		door_reply(c, 201, snapshot_of(doc));
	else
		e2b_fail(c, status, m);
	json_decref(doc);
}

void e2b_snapshot(struct client *c)
{
	const json_t *doc = e2b_take_body(c), *name;
	struct buf *fields;

	if (!doc)
		return;
	name = json_object_get(doc, "name");
	if (name && !json_is_null(name) &&
	    (!json_is_string(name) || json_string_length(name) == 0 ||
	     json_string_length(name) > message_max_bytes(FIELD_name))) {
		e2b_reply_error(c, 400, "the name of a snapshot has 1 to 128 bytes");
		return;
	}
	fields = door_fields(c);
	message_put_text(fields, FIELD_id, c->req->call->id);
	message_put_text(fields, FIELD_name, json_string_value(name));
	door_ask(c, ROUTE_snapshot_make, FD_NONE, FD_NONE, on_snapshot);
}

json_t *e2b_find_snapshot(const json_t *doc, const char *name, const char *who)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(doc, "snapshots"), i, one)
	{
		bool is_named = str_eq(text_of(one, "id"), name) || str_eq(text_of(one, "name"), name);

		if (is_named && str_eq(text_of(one, "token"), who))
			return one;
	}
	return NULL;
}

struct page {
	char sandbox[65], name[129], after[65];
	uint64_t limit;
};

static bool is_of_page(const json_t *one, const struct page *p, const char *who)
{
	return str_eq(text_of(one, "token"), who) && (!p->sandbox[0] || str_eq(text_of(one, "session"), p->sandbox)) &&
	       (!p->name[0] || str_eq(text_of(one, "name"), p->name));
}

static void list_snapshots(struct client *c, const json_t *doc, const struct page *p)
{
	bool is_behind = !p->after[0];
	json_t *list = json_array(), *one;
	char next[65] = "", last[65] = "";
	size_t i;

	json_array_foreach(json_object_get(doc, "snapshots"), i, one)
	{
		if (is_behind && is_of_page(one, p, c->req->who)) {
			if (json_array_size(list) == p->limit) {
				(void)str_copy(next, sizeof(next), last);
				break;
			}
			(void)json_array_append_new(list, snapshot_of(one));
			(void)str_copy(last, sizeof(last), text_of(one, "id"));
		}
		is_behind |= str_eq(text_of(one, "id"), p->after);
	}
	e2b_reply_list(c, list, next);
}

static void on_snapshots(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;
	struct page p = { .limit = PAGE_MAX };
	char limit[24];
	bool is_bad;

	(void)door_query(c, "sandboxID", p.sandbox, sizeof(p.sandbox));
	(void)door_query(c, "name", p.name, sizeof(p.name));
	is_bad = !e2b_read_token(c, p.after, sizeof(p.after)) || (p.after[0] && !e2b_is_id(p.after));
	if (!doc)
		e2b_fail(c, status, m);
	else if (is_bad)
		e2b_reply_error(c, 400, E2B_BAD_TOKEN);
	else if (door_query(c, "limit", limit, sizeof(limit)) &&
		 (!str_to_u64(limit, &p.limit) || p.limit == 0 || p.limit > PAGE_MAX))
		e2b_reply_error(c, 400, "limit must be a number from 1 to 100");
	else
		list_snapshots(c, doc, &p);
	json_decref(doc);
}

void e2b_snapshots(struct client *c)
{
	(void)door_fields(c);
	door_ask(c, ROUTE_snapshots, FD_NONE, FD_NONE, on_snapshots);
}

static void on_removed(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200 || status == 204)
		door_reply_bytes(c, 204, NULL, "", 0);
	else if (status == 404)
		e2b_reply_error(c, 404, "there is no template of this name that could be removed");
	else
		e2b_fail(c, status, m);
}

static void on_removing(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;
	json_t *one = e2b_find_snapshot(doc, c->req->call->id, c->req->who);

	if (!doc) {
		e2b_fail(c, status, m);
	} else if (!one) {
		e2b_reply_error(c, 404, "there is no template of this name that could be removed");
	} else {
		message_put_text(door_fields(c), FIELD_id, text_of(one, "id"));
		door_ask(c, ROUTE_snapshot_delete, FD_NONE, FD_NONE, on_removed);
	}
	json_decref(doc);
}

/* Only snapshots can be removed: the other templates are environments, which belong to the operator. */
void e2b_remove_template(struct client *c)
{
	(void)door_fields(c);
	door_ask(c, ROUTE_snapshots, FD_NONE, FD_NONE, on_removing);
}

/* ---- forks ----------------------------------------------------------------------------------------------------- */

struct forks {
	uint64_t count, timeout_ms;
	json_t *made;
};

static void forks_free(void *p)
{
	struct forks *f = p;

	json_decref(f->made);
	free(f);
}

static void on_fork(struct client *c, unsigned status, const struct message *m);

static void fork_next(struct client *c)
{
	const struct forks *f = c->req->call->state;
	struct buf *fields;

	if (json_array_size(f->made) == f->count) {
		door_reply(c, 201, json_incref(f->made));
		return;
	}
	fields = door_fields(c);
	message_put_text(fields, FIELD_id, c->req->call->id);
	message_put_number(fields, FIELD_timeout_ms, f->timeout_ms);
	door_ask(c, ROUTE_session_fork, FD_NONE, FD_NONE, on_fork);
}

/*
 * A failed fork appears in the list with its error, unless the first one fails because there is no sandbox to copy or
 * the key is bad: then the request fails as a whole.
 */
static void on_fork(struct client *c, unsigned status, const struct message *m)
{
	const struct forks *f = c->req->call->state;
	json_t *doc = door_answer_json(m);

	if (status != 201 && json_array_size(f->made) == 0 && (status == 401 || e2b_is_gone(status, m))) {
		e2b_fail(c, status, m);
	} else {
		(void)json_array_append_new(f->made, status == 201
							     ? json_pack("{s:o}", "sandbox", e2b_sandbox(c, doc))
							     : json_pack("{s:{s:i, s:s}}", "error", "code", (int)status,
									 "message", door_answer_message(doc)));
		fork_next(c);
	}
	json_decref(doc);
}

void e2b_fork(struct client *c)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = c->req->body.len > 0 ? door_json(c, &err) : json_object();
	const json_t *count = json_object_get(doc, "count");
	struct forks *f = calloc(1, sizeof(*f));
	uint64_t seconds = 0;
	bool is_good = false;

	if (!json_is_object(doc) || !f)
		e2b_reply_error(c, f ? 400 : 503, f ? "the body is no object" : "there is no memory for the request");
	else if (count && !json_is_null(count) &&
		 (!json_is_integer(count) || json_integer_value(count) < 1 || json_integer_value(count) > FORKS_MAX))
		e2b_reply_error(c, 400, "count must be a number from 1 to 16");
	else
		is_good = e2b_take_seconds(c, doc, "timeout", E2B_TIMEOUT, &seconds);
	if (is_good) {
		f->count = json_is_integer(count) ? (uint64_t)json_integer_value(count) : 1;
		f->timeout_ms = (seconds ? seconds : 1) * 1000;
		f->made = json_array();
		c->req->call->state = f;
		c->req->call->release = forks_free;
		fork_next(c);
	} else {
		free(f);
	}
	json_decref(doc);
}
