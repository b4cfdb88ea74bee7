/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/executions.h"

#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/queue.h"
#include "server/runner/traces.h"

const char *const execution_state_name[] = {
	[EXECUTION_QUEUED] = "queued",
	[EXECUTION_RUNNING] = "running",
	[EXECUTION_FINISHED] = "finished",
};
static const char *const kind_name[] = {
	[BRIG_KIND_CODE] = "code",
	[BRIG_KIND_COMMAND] = "command",
	[BRIG_KIND_SHELL] = "shell",
	[BRIG_KIND_TESTS] = "tests",
};

/* ---- the table ---------------------------------------------------------------------------------------- */

void executions_init(struct executions *e)
{
	TAILQ_INIT(&e->all);
	TAILQ_INIT(&e->promised);
	TAILQ_INIT(&e->finished);
}

/* Ids are random, so any of their characters are a good hash. */
static size_t bucket_of(const char *id)
{
	size_t h = 0;

	for (size_t i = 0; i < 4 && id[i]; i++)
		h = h * 31 + (unsigned char)id[i];
	return h % EXECUTION_BUCKETS;
}

struct execution *executions_find(const struct executions *e, const char *id)
{
	struct execution *x;

	LIST_FOREACH(x, &e->bucket[bucket_of(id)], in_bucket)
	if (str_eq(x->id, id))
		return x;
	return NULL;
}

struct execution *execution_new(struct service *s, const struct token *owner, struct job *job)
{
	char id[EXECUTION_ID_LEN + 1];

	return id_random(id, EXECUTION_ID_LEN) < 0 ? NULL : execution_new_named(s, owner, job, id);
}

struct execution *execution_new_named(struct service *s, const struct token *owner, struct job *job, const char *id)
{
	struct execution *x = calloc(1, sizeof(*x));
	const struct brig_request *req = &job->req;

	if (!x)
		return NULL;
	(void)str_copy(x->id, sizeof(x->id), id);
	x->service = s;
	x->host = host_keep(s->host);
	x->job = job;
	x->kind = job->env.name ? "environment" : kind_name[req->kind];
	(void)str_copy(x->makes, sizeof(x->makes), job->env.name ? job->env.name : "");
	x->door = access_door(&job->m);
	x->created_ns = clock_wall_ns();
	x->priority = (uint32_t)min_u64(message_number(&job->m, FIELD_priority, ADMISSION_DEFAULT_PRIORITY),
					ADMISSION_PRIORITIES - 1);
	(void)str_copy(x->owner, sizeof(x->owner), owner->name);
	(void)str_copy(x->language, sizeof(x->language), req->language ? req->language : "");
	(void)str_copy(x->trust, sizeof(x->trust), req->trust ? req->trust : token_trust_name(s->host->default_trust));
	workspace_on_accept(s, x);
	s->held_bytes += job->held;
	TAILQ_INSERT_HEAD(&s->executions.all, x, in_age);
	LIST_INSERT_HEAD(&s->executions.bucket[bucket_of(x->id)], x, in_bucket);
	return x;
}

const char *execution_kind_name(uint64_t kind)
{
	return kind < ARRAY_LEN(kind_name) ? kind_name[kind] : "code";
}

struct execution *execution_new_elsewhere(struct service *s, const char *id, const char *owner)
{
	struct execution *x = calloc(1, sizeof(*x));

	if (x)
		x->remote = calloc(1, sizeof(*x->remote));
	if (!x || !x->remote) {
		free(x);
		return NULL;
	}
	(void)str_copy(x->id, sizeof(x->id), id);
	(void)str_copy(x->owner, sizeof(x->owner), owner);
	x->service = s;
	x->kept = FD_NONE;
	x->state = EXECUTION_RUNNING;
	x->is_async = true; /* no client of this node is its starter */
	x->kind = execution_kind_name(BRIG_KIND_CODE);
	x->priority = ADMISSION_DEFAULT_PRIORITY;
	s->executions.n_runs++;
	TAILQ_INSERT_HEAD(&s->executions.all, x, in_age);
	LIST_INSERT_HEAD(&s->executions.bucket[bucket_of(x->id)], x, in_bucket);
	return x;
}

/* Frees what only an unfinished execution needs. */
static void forget_job(struct service *s, struct execution *x)
{
	if (x->job)
		s->held_bytes -= x->job->held;
	job_free(x->job);
	x->job = NULL;
	host_leave(x->host);
	x->host = NULL;
}

static uint64_t kept_bytes(const struct execution *x)
{
	return sizeof(*x) + x->result_len + x->log_bytes + x->room_logged * sizeof(*x->log);
}

void execution_drop(struct service *s, struct execution *x)
{
	struct executions *e = &s->executions;

	admission_leave(s->admission, &x->ticket, 0, clock_now_ns());
	if (x->batch)
		batch_on_drop(s, x);
	if (x->state == EXECUTION_FINISHED) {
		TAILQ_REMOVE(&e->finished, x, in_finished);
		e->n_finished--;
		e->finished_bytes -= kept_bytes(x);
	}
	if (x->is_promised)
		TAILQ_REMOVE(&e->promised, x, in_promised);
	TAILQ_REMOVE(&e->all, x, in_age);
	LIST_REMOVE(x, in_bucket);
	forget_job(s, x);
	fd_closep(&x->kept);
	events_release(x);
	traces_release(x);
	watchers_release(x);
	free(x->listener);
	free(x->result);
	if (x->remote && x->state == EXECUTION_RUNNING)
		e->n_runs--;
	free(x->remote);
	brig_free(x->unlisted);
	free(x);
}

/* Drops the oldest finished ones, except those whose 202 has not been sent. */
static void drop_oldest(struct service *s)
{
	struct executions *e = &s->executions;
	struct execution *x = TAILQ_FIRST(&e->finished);

	while (x && (e->n_finished > FINISHED_MAX || e->finished_bytes > FINISHED_BYTES_MAX)) {
		struct execution *next = TAILQ_NEXT(x, in_finished);

		if (!x->is_promised)
			execution_drop(s, x);
		x = next;
	}
}

void executions_release(struct service *s)
{
	struct execution *x;

	TAILQ_FOREACH(x, &s->executions.all, in_age)
	if (x->run)
		(void)brig_run_cancel(x->run);
	while ((x = TAILQ_FIRST(&s->executions.all))) {
		if (x->run)
			(void)brig_run_end(MOVE_PTR(x->run), NULL, NULL);
		execution_drop(s, x);
	}
}

/* ---- listeners ----------------------------------------------------------------------------------------------- */

bool execution_listen(struct execution *x, uint32_t tag, enum listener_kind kind, bool is_starter)
{
	if (x->n_listeners == LISTENERS_OF_ONE_MAX)
		return false;
	if (x->n_listeners == x->room_listeners) {
		size_t room = x->room_listeners ? 2 * x->room_listeners : 1;
		struct waiting_ask *list = reallocarray(x->listener, room, sizeof(*list));

		if (!list)
			return false;
		x->listener = list;
		x->room_listeners = room;
	}
	x->listener[x->n_listeners++] = (struct waiting_ask){ tag, kind, is_starter };
	return true;
}

void execution_answer_result(struct service *s, const struct execution *x, uint32_t tag)
{
	static const char none[] = "{\"error\":{\"code\":\"internal\",\"message\":\"there was no memory for the "
				   "result\",\"request_id\":\"-\"}}";

	answer_send(s, tag,
		    &(struct answer){ .status = x->result ? 200 : 500,
				      .who = x->owner,
				      .execution = x->id,
				      .verdict = x->verdict,
				      .body = x->result ? x->result : none,
				      .len = x->result ? x->result_len : sizeof(none) - 1 });
}

/* Index of the listener with this tag; x->n_listeners: none. */
static size_t find_listener(const struct execution *x, uint32_t tag)
{
	size_t i = 0;

	while (i < x->n_listeners && x->listener[i].tag != tag)
		i++;
	return i;
}

/* The client for which it ran has disconnected. */
static void end_unwanted(struct service *s, struct execution *x)
{
	if (x->is_async)
		return;
	if (x->has_key)
		idempotency_forget(&s->idempotency, x->id);
	if (x->state == EXECUTION_QUEUED && x->n_listeners == 0)
		execution_drop(s, x);
	else
		execution_cancel(s, x);
}

static void leave(struct service *s, struct execution *x, size_t i)
{
	bool was_starter = x->listener[i].is_starter;

	answer_send(s, x->listener[i].tag, &(struct answer){ .status = 503, .who = x->owner });
	x->listener[i] = x->listener[--x->n_listeners];
	if (!was_starter || x->is_async)
		return;
	for (i = 0; i < x->n_listeners && x->listener[i].kind != WAITS_FOR_RESULT; i++)
		;
	if (i < x->n_listeners) {
		/* a client that repeated the request with its Idempotency-Key takes over */
		x->listener[i].is_starter = true;
		return;
	}
	end_unwanted(s, x);
}

void executions_gone(struct service *s, uint32_t tag)
{
	struct execution *x;

	TAILQ_FOREACH(x, &s->executions.all, in_age)
	{
		size_t i = find_listener(x, tag);

		if (i < x->n_listeners) {
			leave(s, x, i);
			return;
		}
	}
}

/*
 * The next unfinished one, the only ones with listeners.  A finished one must not be held as `next`, since it may be
 * dropped whenever another finishes.
 */
static struct execution *next_unfinished(struct execution *x)
{
	while (x && x->state == EXECUTION_FINISHED)
		x = TAILQ_NEXT(x, in_age);
	return x;
}

void executions_all_gone(struct service *s)
{
	struct execution *x = next_unfinished(TAILQ_FIRST(&s->executions.all)), *next;

	for (; x; x = next) {
		bool has_starter = false;

		next = next_unfinished(TAILQ_NEXT(x, in_age));
		for (size_t i = 0; i < x->n_listeners; i++)
			has_starter = has_starter || x->listener[i].is_starter;
		x->n_listeners = 0;
		if (has_starter)
			end_unwanted(s, x);
	}
}

void executions_cancel(struct service *s, uint32_t tag)
{
	struct execution *x;

	TAILQ_FOREACH(x, &s->executions.all, in_age)
	{
		size_t i = find_listener(x, tag);

		if (i == x->n_listeners)
			continue;
		if (x->listener[i].is_starter)
			execution_cancel(s, x);
		return;
	}
}

/* Signals that end a program which cannot receive signals (yet). */
static bool asks_for_end(int signal)
{
	return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

void executions_signal(struct service *s, uint32_t tag, int signal)
{
	struct execution *x;

	TAILQ_FOREACH(x, &s->executions.all, in_age)
	{
		size_t i = find_listener(x, tag);

		if (i == x->n_listeners)
			continue;
		if (x->listener[i].is_starter && x->run && brig_run_signal(x->run, signal) == -BRIG_E_REFUSED &&
		    asks_for_end(signal))
			execution_cancel(s, x);
		return;
	}
}

/* ---- life cycle ---------------------------------------------------------------------------------------------- */

/*
 * Receipts are pretty-printed, but a result must be one line in a batch's results.  JSON strings contain no newlines,
 * so they can be removed.
 */
static void add_in_one_line(struct buf *out, const char *json)
{
	while (*json) {
		size_t len = strcspn(json, "\n");

		buf_add(out, json, len);
		json += len;
		json += strspn(json, "\n ");
	}
}

/* Keeps the result's document, with the receipt, if requested, as an additional member. */
static void keep_result(struct execution *x, const struct brig_result *r)
{
	const char *receipt = brig_result_receipt(r);
	AUTO_BUF with = BUF_INIT(MESSAGE_MAX);
	char *text = NULL;

	if (brig_result_json(r, &text, NULL) < 0)
		return;
	(void)brig_result_unlisted_json(r, &x->unlisted, NULL);
	if (receipt) {
		buf_add(&with, text, strlen(text) - 1);
		buf_adds(&with, ",\"receipt\":");
		add_in_one_line(&with, receipt);
		buf_adds(&with, "}");
	}
	if (receipt && !with.full && !with.no_memory) {
		brig_free(text);
		x->result_len = with.len;
		x->result = buf_take(&with);
	} else {
		x->result_len = strlen(text);
		x->result = text; /* allocated with malloc(); brig_free() is free() */
	}
	if (!x->result)
		x->result_len = 0;
}

static void take_result(struct execution *x, const struct brig_result *r, uint64_t *ret_cpu_ns)
{
	struct brig_usage usage = { 0 };

	brig_result_usage(r, &usage);
	*ret_cpu_ns = usage.cpu_ms * NS_PER_MS;
	(void)str_copy(x->verdict, sizeof(x->verdict), brig_result_verdict(r));
	if (*brig_result_language(r))
		(void)str_copy(x->language, sizeof(x->language), brig_result_language(r));
	keep_result(x, r);
}

/* Common end of executions, local or remote: the verdict is set. */
static void conclude(struct service *s, struct execution *x, uint64_t cpu_ns)
{
	struct executions *e = &s->executions;

	x->state = EXECUTION_FINISHED;
	x->ended_ns = clock_wall_ns();
	admission_leave(s->admission, &x->ticket, cpu_ns, clock_now_ns());
	traces_finish(x);
	forget_job(s, x);
	if (!x->remote || !x->remote->is_adopted) { /* the front that accepted it counts it */
		s->counts.finished++;
		s->counts.cancelled += str_eq(x->verdict, "cancelled");
	}
	if (x->delivery)
		worker_on_end(s, x, cpu_ns);
	else if (x->is_async && !x->remote)
		ledger_end(&s->ledger, x->id, x->verdict);
	else if (x->has_key)
		idempotency_keep(&s->idempotency, x->id, x->is_async);
	events_finish(x);
	if (x->batch)
		batch_on_end(s, x);
	TAILQ_INSERT_TAIL(&e->finished, x, in_finished);
	e->n_finished++;
	e->finished_bytes += kept_bytes(x);
	drop_oldest(s);
}

/* Takes ownership of the result; NULL: out of memory. */
static void finish(struct service *s, struct execution *x, struct brig_result *r)
{
	uint64_t cpu_ns = 0;

	(void)str_copy(x->verdict, sizeof(x->verdict), "failed");
	if (r)
		take_result(x, r, &cpu_ns);
	workspace_on_end(s, x);
	brig_result_free(r);
	conclude(s, x, cpu_ns);
}

void execution_conclude(struct service *s, struct execution *x, char *result, char *unlisted, uint64_t cpu_ns)
{
	x->result = result;
	x->result_len = result ? strlen(result) : 0;
	x->unlisted = unlisted;
	s->executions.n_runs--;
	conclude(s, x, cpu_ns);
}

void execution_step(struct service *s, struct execution *x)
{
	struct brig_error stuck = BRIG_ERROR_INIT, err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	int rc = brig_run_step(x->run, &stuck);

	if (rc > 0 && (x->is_watched || service_watch(s, x) == 0))
		return;
	if (x->is_watched)
		service_unwatch(s, x);
	x->is_watched = false;
	s->executions.n_runs--;
	if (brig_run_end(MOVE_PTR(x->run), &r, &err) < 0)
		(void)brig_result_from_error(rc < 0 ? &stuck : &err, &r, NULL);
	finish(s, x, r);
}

static int begin_run(struct execution *x, struct brig_error *err)
{
	if (x->job->env.name)
		return brig_environment_begin(x->host->b, job_environment(x->job), &x->run, err);
	return brig_run_begin(x->host->b, &x->job->req, &x->run, err);
}

void execution_start(struct service *s, struct execution *x)
{
	struct brig_request *req = &x->job->req;
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;

	x->state = EXECUTION_RUNNING;
	x->started_ns = clock_wall_ns();
	if (remote_is_possible(s, x->job)) {
		s->executions.n_runs++;
		remote_start(s, x);
		return;
	}
	req->id = x->id;
	req->who = x->owner;
	req->door = x->door == DOOR_api ? NULL : door_rows[x->door].name;
	events_attach(x, req);
	traces_attach(x, req);
	workspace_on_start(x);
	if (begin_run(x, &err) < 0) {
		(void)brig_result_from_error(&err, &r, NULL);
		finish(s, x, r);
		return;
	}
	s->executions.n_runs++;
	if (x->is_cancelled)
		(void)brig_run_cancel(x->run);
	execution_step(s, x);
}

void execution_cancel(struct service *s, struct execution *x)
{
	if (x->is_cancelled || x->state == EXECUTION_FINISHED)
		return;
	x->is_cancelled = true;
	if (x->remote) {
		remote_cancel(s, x);
		return;
	}
	if (x->run) {
		(void)brig_run_cancel(x->run);
		return;
	}
	/* A waiting execution is started in cancelled state, so that it gets a result and a record like any other. */
	admission_leave(s->admission, &x->ticket, 0, clock_now_ns());
	execution_start(s, x);
}

const char *execution_request_id(const struct execution *x)
{
	const char *id = x->job ? message_text(&x->job->m, FIELD_request_id) : NULL;

	return id ? id : "-";
}

void execution_turn_away(struct service *s, struct execution *x)
{
	for (size_t i = 0; i < x->n_listeners; i++) {
		const struct request req = { .tag = x->listener[i].tag, .request_id = execution_request_id(x) };

		answer_retry(s, &req, 503, 5, "the service is being stopped, and the execution %s did not begin",
			     x->id);
	}
	x->n_listeners = 0;
	execution_drop(s, x);
}
