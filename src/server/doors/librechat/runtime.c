/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - stateful sessions of LibreChat: /mnt/data keeps its contents from call to call
 *
 * The protocol promises no more than that: each call is a new process in a cell of its own, with a /tmp of its own. So
 * a session is a workspace of the runner, identified by the client's hint. The mapping is kept in the front's memory
 * and may be lost, as the state of a machine may; the next call then starts with only the files sent with it. Files
 * named in a call override those of the session: the client has seen them since.
 *
 *	hint -> authenticate -> fetch the session's workspace -> run with its files -> store the files left as the session's
 *	next workspace -> answer
 */
#include <string.h>
#include <sys/queue.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/doors/librechat/librechat.h"

#define RUNTIMES_MAX    1024
#define RUNTIMES_OF_ONE 128
#define IDLE_NS         (24 * 3600 * NS_PER_SEC) /* the lifetime of the workspace */

struct runtime {
	TAILQ_ENTRY(runtime) entry;                        /* in order of last use */
	char id[LIBRECHAT_RUNTIME_LEN + 1], workspace[65]; /* workspace "": the session has no files */
	char who[sizeof(((struct request *)0)->who)], hint[LIBRECHAT_HINT_MAX + 1];
	uint64_t used_ns;
};

struct librechat_runtimes {
	TAILQ_HEAD(runtime_list, runtime) list;
	size_t n;
};

/* ---- list of sessions ------------------------------------------------------------------------------------------ */

static void forget(struct front *f, struct runtime *r)
{
	TAILQ_REMOVE(&f->librechat->list, r, entry);
	f->librechat->n--;
	free(r);
}

void librechat_runtimes_free(struct front *f)
{
	while (f->librechat && f->librechat->n > 0)
		forget(f, TAILQ_FIRST(&f->librechat->list));
	free(f->librechat);
	f->librechat = NULL;
}

static bool make_list(struct front *f)
{
	if (f->librechat)
		return true;
	f->librechat = calloc(1, sizeof(*f->librechat));
	if (f->librechat)
		TAILQ_INIT(&f->librechat->list);
	return f->librechat != NULL;
}

static struct runtime *find(struct client *c, const char *hint)
{
	struct front *f = c->front;
	struct runtime *r;

	while (f->librechat && (r = TAILQ_FIRST(&f->librechat->list)) && f->now_ns - r->used_ns > IDLE_NS)
		forget(f, r);
	if (!f->librechat)
		return NULL;
	TAILQ_FOREACH(r, &f->librechat->list, entry)
	if (str_eq(r->hint, hint) && str_eq(r->who, c->req->who)) {
		TAILQ_REMOVE(&f->librechat->list, r, entry);
		TAILQ_INSERT_TAIL(&f->librechat->list, r, entry);
		r->used_ns = f->now_ns;
		return r;
	}
	return NULL;
}

/* If this owner has too many sessions, its oldest is dropped; else if there are too many in all, the oldest of all. */
static void make_room(struct client *c)
{
	struct front *f = c->front;
	struct runtime *r, *own = NULL;
	size_t n_own = 0;

	TAILQ_FOREACH(r, &f->librechat->list, entry)
	{
		bool is_own = str_eq(r->who, c->req->who);

		n_own += is_own;
		if (is_own && !own)
			own = r;
	}
	if (n_own >= RUNTIMES_OF_ONE)
		forget(f, own);
	else if (f->librechat->n >= RUNTIMES_MAX)
		forget(f, TAILQ_FIRST(&f->librechat->list));
}

/* If memory is short, the session is lost and the next call starts anew. */
static void remember(struct client *c, const struct librechat_exec *e, const char *workspace)
{
	struct runtime *r = find(c, e->hint);

	if (!r && make_list(c->front)) {
		make_room(c);
		r = calloc(1, sizeof(*r));
		if (!r)
			return;
		(void)str_copy(r->who, sizeof(r->who), c->req->who);
		(void)str_copy(r->hint, sizeof(r->hint), e->hint);
		TAILQ_INSERT_TAIL(&c->front->librechat->list, r, entry);
		c->front->librechat->n++;
	}
	if (!r)
		return;
	r->used_ns = c->front->now_ns;
	(void)str_copy(r->id, sizeof(r->id), e->runtime);
	(void)str_copy(r->workspace, sizeof(r->workspace), workspace);
}

/* ---- before the run -------------------------------------------------------------------------------------------- */

static struct librechat_exec *exec_of(struct client *c)
{
	return c->req->call->state;
}

static bool begin_anew(struct librechat_exec *e)
{
	e->is_reused = false;
	e->workspace[0] = '\0';
	return id_random(e->runtime, LIBRECHAT_RUNTIME_LEN) == 0;
}

static void on_workspace(struct client *c, unsigned status, const struct message *m)
{
	struct librechat_exec *e = exec_of(c);
	size_t len = 0;
	const char *bytes = status == 200 ? message_bytes(m, FIELD_body, &len) : NULL;

	if (bytes)
		(void)buf_add(&e->kept, bytes, len);
	if (!bytes || e->kept.full || e->kept.no_memory)
		(void)begin_anew(e); /* the workspace was removed meanwhile, or does not fit */
	e->then(c);
}

static void let_in(struct client *c)
{
	struct librechat_exec *e = exec_of(c);
	const struct runtime *r = find(c, e->hint);

	if (!r) {
		if (begin_anew(e))
			e->then(c);
		else
			door_error(c, 503, "there is no random number for a session's id");
		return;
	}
	e->is_reused = true;
	(void)str_copy(e->runtime, sizeof(e->runtime), r->id);
	(void)str_copy(e->workspace, sizeof(e->workspace), r->workspace);
	if (!*e->workspace) {
		e->then(c);
		return;
	}
	message_put_text(door_fields(c), FIELD_id, e->workspace);
	door_ask(c, ROUTE_workspace_archive, FD_NONE, FD_NONE, on_workspace);
}

void librechat_with_runtime(struct client *c, void (*then)(struct client *c))
{
	exec_of(c)->then = then;
	door_when_let_in(c, let_in);
}

static bool is_covered(const struct librechat_exec *e, const char *path)
{
	for (size_t i = 0; i < e->n_refs; i++)
		if (e->ref[i].is_there && str_eq(e->ref[i].name, path))
			return true;
	return false;
}

bool librechat_add_kept(struct librechat_exec *e)
{
	struct archive a = { .bytes = buf_str(&e->kept), .len = e->kept.len };
	struct archive_file f;
	bool is_good = true;

	while (is_good && e->kept.len > 0 && archive_next(&a, &f, NULL) > 0)
		if (!is_covered(e, f.path))
			is_good = archive_put(&e->tar, &f);
	return is_good;
}

/* ---- after the run --------------------------------------------------------------------------------------------- */

static bool is_changed(const json_t *result, const char *path)
{
	const json_t *artifact;
	size_t i;

	json_array_foreach(json_object_get(result, "artifacts"), i, artifact)
	{
		const char *own = json_string_value(json_object_get(artifact, "path"));

		if (own && str_eq(own, path))
			return true;
	}
	return false;
}

static bool is_held(struct librechat_exec *e, const char *path)
{
	const struct librechat_ref *ref = librechat_ref_of(e, path);

	return ref && librechat_is_read_only(ref->id);
}

/* Adds the input files that the run left unchanged. */
static bool add_unchanged(struct librechat_exec *e, const json_t *result, struct buf *tar, bool *ret_differs)
{
	struct archive a = { .bytes = buf_str(&e->before), .len = e->before.len };
	struct archive_file f;

	while (e->before.len > 0 && archive_next(&a, &f, NULL) > 0) {
		bool is_gone =
			!is_held(e, f.path) && (is_changed(result, f.path) || librechat_is_deleted(result, f.path));

		*ret_differs |= is_gone || is_covered(e, f.path);
		if (!is_gone && !archive_put(tar, &f))
			return false;
	}
	return true;
}

static bool add_new(struct librechat_exec *e, const json_t *result, struct buf *tar, bool *ret_differs)
{
	const json_t *artifact;
	size_t i;

	json_array_foreach(json_object_get(result, "artifacts"), i, artifact)
	{
		const char *path = json_string_value(json_object_get(artifact, "path"));
		AUTO_FREE char *raw = NULL;
		struct bytes bytes = librechat_content(artifact, &raw);

		if (!bytes.data || !path || !librechat_is_name(path) || is_held(e, path))
			continue;
		*ret_differs = true;
		if (!librechat_add_artifact(tar, path, artifact, &bytes))
			return false;
	}
	return true;
}

static void on_removed(struct client *c, unsigned status UNUSED, const struct message *m UNUSED)
{
	exec_of(c)->then(c);
}

/* Records the new workspace and removes the previous one. */
static void replace(struct client *c, const char *workspace)
{
	struct librechat_exec *e = exec_of(c);

	remember(c, e, workspace);
	if (!*e->workspace || str_eq(e->workspace, workspace)) {
		e->then(c);
		return;
	}
	message_put_text(door_fields(c), FIELD_id, e->workspace);
	door_ask(c, ROUTE_workspace_delete, FD_NONE, FD_NONE, on_removed);
}

static void on_kept(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 201 ? door_answer_json(m) : NULL;
	const char *id = json_string_value(json_object_get(doc, "id"));

	if (id)
		replace(c, id);
	else /* no room: the session keeps its previous files */
		exec_of(c)->then(c);
	json_decref(doc);
}

void librechat_keep_runtime(struct client *c, const json_t *result, void (*then)(struct client *c))
{
	struct librechat_exec *e = exec_of(c);
	AUTO_BUF tar = BUF_INIT(ARCHIVE_BYTES_MAX);
	bool differs = false;
	AUTO_FD files = FD_NONE;

	e->then = then;
	if (!add_unchanged(e, result, &tar, &differs) || !add_new(e, result, &tar, &differs)) {
		then(c); /* no room: the session keeps its previous files */
		return;
	}
	if (!differs || tar.len == 0) {
		replace(c, tar.len == 0 ? "" : e->workspace);
		return;
	}
	files = ustar_to_file(&tar);
	(void)door_fields(c);
	if (files < 0)
		then(c);
	else
		door_ask(c, ROUTE_workspace_put, files, FD_NONE, on_kept);
}
