/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - calls from request to answer. A call waits for a free slot (and, if it needs the project, for the client to
 * name one), runs one child after another, and is answered once. A cancelled call is not answered: its child gets
 * SIGTERM so that it removes its cell, and SIGKILL if that takes too long.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "mcp/server.h"
#include "mcp_shared/text.h"

/* longest interval between progress notifications: clients give up after 60 s of silence */
#define ALIVE_NS    (15 * NS_PER_SEC)
#define PATIENCE_NS (5 * NS_PER_SEC) /* between SIGTERM and SIGKILL */

/* ---- a call --------------------------------------------------------------------------------------- */

static void call_free(struct call *c)
{
	json_decref(c->id);
	json_decref(c->token);
	json_decref(c->args);
	json_decref(c->kept);
	json_decref(c->result);
	child_release(&c->child);
	progress_release(&c->progress);
	free(c);
}

static void call_remove(struct call *c)
{
	struct server *s = c->server;
	struct call **at = &s->calls;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	s->n_calls--;
	call_free(c);
}

static struct call *find_call(struct server *s, const json_t *id)
{
	struct call *c = s->calls;

	while (c && (c->state == CALL_CANCELLED || !json_equal(c->id, id)))
		c = c->next;
	return c;
}

void call_begin(struct server *s, const struct rpc_message *m, const struct job *job, json_t *args, bool modern,
		bool is_resource)
{
	const json_t *token = json_object_get(json_object_get(m->params, "_meta"), "progressToken");
	struct call *c, **at = &s->calls;

	if (find_call(s, m->id)) {
		server_put(s,
			   rpc_error(m->id, RPC_INVALID, "a call with this id is still running: use another one", NULL),
			   m->id);
		return;
	}
	c = s->n_calls < CALLS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		server_put(
			s,
			rpc_error(m->id, RPC_BUSY, "too many calls are waiting: try again when some have ended", NULL),
			m->id);
		return;
	}
	*c = (struct call){
		.server = s, .job = job, .child = CHILD_INIT, .modern = modern, .is_resource = is_resource
	};
	c->id = json_deep_copy(m->id);
	c->token = json_is_string(token) || json_is_integer(token) ? json_deep_copy(token) : NULL;
	c->args = args ? json_incref(args) : json_object();
	while (*at)
		at = &(*at)->next;
	*at = c;
	s->n_calls++;
}

void call_cancel(struct server *s, const json_t *id)
{
	struct call *c = find_call(s, id);

	if (!c)
		return; /* already answered */
	if (c->state == CALL_WAITING) {
		call_remove(c);
		return;
	}
	c->state = CALL_CANCELLED;
	c->kill_ns = clock_now_ns() + PATIENCE_NS;
	child_signal(&c->child, SIGTERM);
}

void server_stop(struct server *s, bool now)
{
	struct call *next;

	for (struct call *c = s->calls; c; c = next) {
		next = c->next;
		if (now)
			child_signal(&c->child, SIGKILL);
		else if (c->state != CALL_CANCELLED)
			call_cancel(s, c->id);
	}
}

/* ---- answers -------------------------------------------------------------------------------------- */

static json_t *error_message(const struct call *c, enum rpc_code code, const char *why)
{
	json_t *clean = text_json(why, strlen(why));
	json_t *message = rpc_error(c->id, code, clean ? json_string_value(clean) : "no memory", NULL);

	json_decref(clean);
	return message;
}

/* Answers and removes the call. */
static void call_answer(struct call *c, struct answer *a)
{
	if (!a->code && a->why.code && c->is_resource)
		a->code = RPC_INTERNAL;
	if (a->code) {
		server_put(c->server, error_message(c, a->code, a->why.msg), c->id);
	} else if (c->is_resource) {
		server_put(c->server,
			   rpc_result(c->id, era_dress(json_pack("{s:O}", "contents", a->content), c->modern, 0)),
			   c->id);
	} else {
		server_put(c->server, rpc_result(c->id, era_dress(answer_result(a), c->modern, -1)), c->id);
	}
	call_remove(c);
}

/* ---- progress ------------------------------------------------------------------------------------- */

static void tell_progress(struct call *c, uint64_t now)
{
	if (!c->token || c->state != CALL_RUNNING || c->server->crowded)
		return;
	if (now - c->progress.told_ns >= ALIVE_NS || progress_is_due(&c->progress, now))
		server_put(c->server, progress_tell(&c->progress, c->token, now), c->id);
}

/* ---- children ------------------------------------------------------------------------------------- */

static void on_event(void *user, const char *line, size_t len)
{
	json_t *doc = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	const char *event = text_member(doc, "event");
	const json_t *text = json_object_get(doc, str_eq(event, "notice") ? "text" : "data");
	struct call *c = user;

	if (str_eq(event, "result")) {
		json_decref(c->result);
		c->result = json_incref(json_object_get(doc, "result"));
	} else if (str_eq(event, "started")) {
		server_own(c->server, text_member(doc, "id"));
	} else if (c->token && json_is_string(text) && !json_object_get(doc, "encoding")) {
		progress_add(&c->progress, json_string_value(text), json_string_length(text));
		if (str_eq(event, "notice"))
			progress_add(&c->progress, "\n", 1);
	}
	json_decref(doc);
}

/* The first line of the complaint, without the program's name. */
static const char *complaint_of(struct child *child)
{
	const char *text = buf_str(&child->complaint);
	char *newline = child->complaint.data ? strchr(child->complaint.data, '\n') : NULL;

	if (newline)
		*newline = '\0';
	return strncmp(text, "brig: ", 6) == 0 ? text + 6 : text;
}

static int no_result(struct answer *a, int status, const char *complaint)
{
	(void)err_set(&a->why, BRIG_E_INTERNAL, 0, "brig ended without a result (status %d): %.300s", status,
		      complaint);
	return RPC_INTERNAL;
}

static enum job_next call_finish(struct call *c, int status, struct answer *a)
{
	struct outcome o = { .text = buf_str(&c->child.text), .len = c->child.text.len, .status = status };
	enum job_next next = JOB_DONE;

	o.complaint = complaint_of(&c->child);
	o.doc = c->child.events ? json_incref(c->result) : json_loadb(o.text, o.len, JSON_ALLOW_NUL, NULL);
	if (c->child.text.full || c->child.text.no_memory)
		(void)err_set(&a->why, BRIG_E_REFUSED, 0,
			      "there is more output than can be handled: let the program write less");
	else if (c->child.events && !json_is_object(o.doc))
		a->code = no_result(a, status, o.complaint);
	else
		next = c->job->finish(c, &o, a);
	json_decref(o.doc);
	return next;
}

static void call_step(struct call *c)
{
	struct answer a = { .content = json_array() };
	AUTO_INVOCATION line = INVOCATION_INIT;
	int rc = c->job->prepare(c, &line, &a.why);

	if (rc == 0 && line.failed)
		rc = err_set(&a.why, BRIG_E_SYSTEM, 0, "no memory for this call: ask for less at once");
	if (rc == 0)
		rc = c->server->start(&c->child, &line, &a.why);
	if (rc < 0)
		call_answer(c, &a);
	else if (c->state == CALL_WAITING) {
		c->state = CALL_RUNNING;
		progress_begin(&c->progress, clock_now_ns());
	}
	answer_release(&a);
}

/* The child has ended: starts the next step or answers. */
static void call_ended(struct call *c, int status)
{
	struct answer a = { .content = json_array() };

	child_read(&c->child, on_event, c); /* the rest in the pipes */
	if (c->state == CALL_CANCELLED) {
		call_remove(c);
	} else if (call_finish(c, status, &a) == JOB_AGAIN) {
		child_release(&c->child);
		c->step++;
		call_step(c);
	} else {
		if (c->progress.fresh.len > 0)
			tell_progress(c, c->progress.told_ns + PROGRESS_EVERY_NS);
		call_answer(c, &a);
	}
	answer_release(&a);
}

static void call_work(struct call *c, uint64_t now)
{
	int status;

	if (c->state == CALL_CANCELLED && now >= c->kill_ns) {
		child_signal(&c->child, SIGKILL);
		c->kill_ns = UINT64_MAX;
	}
	if (!c->server->crowded || c->state == CALL_CANCELLED)
		child_read(&c->child, on_event, c);
	if (c->child.text.full)
		child_signal(&c->child, SIGTERM);
	if (c->server->crowded && c->state != CALL_CANCELLED)
		return; /* no room for its answer */
	if (child_ended(&c->child, &status))
		call_ended(c, status);
	else
		tell_progress(c, now);
}

/* ---- all calls ------------------------------------------------------------------------------------- */

static size_t running(const struct server *s)
{
	size_t n = 0;

	for (const struct call *c = s->calls; c; c = c->next)
		n += c->state != CALL_WAITING;
	return n;
}

static bool must_wait(const struct call *c, uint64_t now)
{
	return c->job->needs_root && c->server->roots_asked && now < c->server->roots_until_ns;
}

void server_work(struct server *s)
{
	uint64_t now = clock_now_ns();
	struct call *next;

	for (struct call *c = s->calls; c; c = next) {
		next = c->next;
		if (c->state != CALL_WAITING)
			call_work(c, now);
	}
	for (struct call *c = s->calls; c; c = next) {
		next = c->next;
		if (c->state == CALL_WAITING && running(s) < CALLS_RUNNING_MAX && !must_wait(c, now))
			call_step(c);
	}
}

static uint64_t next_moment(const struct call *c, uint64_t now)
{
	if (c->state == CALL_CANCELLED)
		return c->kill_ns;
	if (c->state == CALL_WAITING)
		return must_wait(c, now) ? c->server->roots_until_ns : UINT64_MAX;
	if (!c->token || c->server->crowded)
		return UINT64_MAX;
	return c->progress.told_ns + (c->progress.fresh.len > 0 ? PROGRESS_EVERY_NS : ALIVE_NS);
}

size_t server_poll(const struct server *s, struct pollfd *fds, int *ret_ms)
{
	uint64_t until = UINT64_MAX, now = clock_now_ns();
	size_t n = 0;

	for (const struct call *c = s->calls; c; c = c->next) {
		until = min_u64(until, next_moment(c, now));
		if (c->state != CALL_WAITING && (!s->crowded || c->state == CALL_CANCELLED)) {
			child_poll(&c->child, fds + n);
			n += CHILD_FDS;
		}
	}
	*ret_ms = until == UINT64_MAX ? -1 : until <= now ? 0 : (int)min_u64((until - now) / NS_PER_MS + 1, 60000);
	return n;
}
