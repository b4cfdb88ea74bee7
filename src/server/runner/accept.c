/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept.c - an execution is asked for
 *
 *	the message as a request -> what token and policy allow -> key seen before? -> queue -> started or waiting
 *	                                                                                  |
 *	                                       asynchronous: the ledger, and only then 202
 *
 * Whatever is wrong is said before anything is kept.  Promises of one turn of the loop go to the disk together.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/asks.h"

/* ---- what was asked before ------------------------------------------------------------------------------- */

/* What a client is told of an execution that it need not wait for. */
struct accepted {
	const char *id, *state, *owner;
	const char *makes; /* the environment; "": none */
};

static void answer_accepted(struct service *s, const struct accepted *a, uint32_t tag)
{
	char self[64], events[80], environment[32 + TOKEN_WORD_MAX];
	AUTO_FREE char *text = NULL;
	json_t *doc;

	(void)snprintf(self, sizeof(self), "/v1/executions/%s", a->id);
	(void)snprintf(events, sizeof(events), "%s/events", self);
	(void)snprintf(environment, sizeof(environment), "/v1/environments/%s", a->makes);
	doc = json_pack("{s:s, s:s, s:{s:s, s:s, s:s*}}", "id", a->id, "state", a->state, "links", "self", self,
			"events", events, "environment", a->makes[0] ? environment : NULL);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	answer_send(s, tag,
		    &(struct answer){ .status = 202,
				      .location = self,
				      .who = a->owner,
				      .body = text ? text : "{}",
				      .len = text ? strlen(text) : 2 });
}

static void answer_execution_accepted(struct service *s, const struct execution *x, uint32_t tag)
{
	answer_accepted(s, &(struct accepted){ x->id, execution_state_name[x->state], x->owner, x->makes }, tag);
}

/* Joins who waits for an execution, as the ask wants it. */
static void join(struct service *s, const struct ask *ask, struct execution *x)
{
	bool watches = message_number(ask->m, FIELD_stream, 0) != 0;
	bool is_over = x->state == EXECUTION_FINISHED;

	if (x->is_async && !watches)
		answer_execution_accepted(s, x, ask->tag);
	else if (is_over && !watches)
		execution_answer_result(s, x, ask->tag);
	else if (!is_over && !execution_listen(x, ask->tag, watches ? WATCHES : WAITS_FOR_RESULT, false))
		answer_retry(s, ask, 503, 1, "too many wait for the execution %s already", x->id);
	else if (watches)
		events_replay(x, ask->tag);
}

/*
 * What became of a promise whose execution is no longer at hand; NULL: nothing is known of it.  Of an earlier process that
 * means that it ended before it had told the client, for the ledger is written after the key; unless the ledger was full, and
 * may have forgotten: then it is not run twice.
 */
static const char *state_of_past(const struct service *s, const struct idempotency_entry *e)
{
	const struct ledger_past *p = ledger_find(&s->ledger, e->id);

	if (s->queue.is_on && !p)
		return execution_state_name[EXECUTION_QUEUED]; /* or beyond: who asks for it by its id is told */
	if (p && str_eq(p->verdict, LEDGER_LOST))
		return LEDGER_LOST;
	if (!p && e->is_past && s->ledger.n_past < LEDGER_PAST_MAX)
		return NULL;
	return execution_state_name[EXECUTION_FINISHED];
}

/* True: the ask has been answered, or will be, by what was asked before. */
static bool is_repeated(struct service *s, const struct ask *ask, const uint8_t name[SHA256_LEN],
			const uint8_t body[SHA256_LEN])
{
	const struct idempotency_entry *e = idempotency_find(&s->idempotency, name, clock_wall_ns() / NS_PER_SEC);
	struct execution *x = e ? executions_find(&s->executions, e->id) : NULL;
	const char *past = e && !x && e->is_promised ? state_of_past(s, e) : NULL;

	if (!e)
		return false;
	if (memcmp(e->body, body, SHA256_LEN) != 0)
		answer_error(s, ask, 409,
			     "this Idempotency-Key stands for another request, whose execution is %s: use a new key",
			     e->id);
	else if (x)
		join(s, ask, x);
	else if (past)
		answer_accepted(s, &(struct accepted){ e->id, past, ask->token->name, "" }, ask->tag);
	else if (e->is_promised)
		return false;
	else
		answer_error(
			s, ask, 409,
			"the execution %s of this Idempotency-Key is over, and its result is no longer at hand: see "
			"/v1/history/%s",
			e->id, e->id);
	return true;
}

int service_has_room(const struct service *s, const struct job *job, struct brig_error *err)
{
	if (s->held_bytes + job->held > HELD_BYTES_MAX)
		return err_set(err, BRIG_E_NOMEM, 0, "what waits and runs already has %llu MB of code, input and files",
			       (unsigned long long)(s->held_bytes / MiB));
	if (job_highest_fd(job) >= (int)min_u64(s->fds_max, INT_MAX))
		return err_set(err, BRIG_E_NOMEM, 0, "what waits and runs already has as many files as can be open");
	return 0;
}

/* ---- what is new -------------------------------------------------------------------------------------------- */

static void answer_refused(struct service *s, const struct ask *ask, enum admission_answer why, uint32_t retry_after)
{
	uint16_t status = why == ADMISSION_FULL ? 503 : why == ADMISSION_TOO_LARGE ? 403 : 429;

	s->counts.refused++;
	answer_retry(s, ask, status, status == 403 ? 0 : retry_after, "the token %s %s", ask->token->name,
		     admission_why(why));
}

/* It is accepted: started, or in the queue. */
static void begin(struct service *s, const struct ask *ask, struct execution *x, enum admission_answer how)
{
	bool watches = message_number(ask->m, FIELD_stream, 0) != 0;

	s->counts.accepted++;
	x->is_async = (message_number(ask->m, FIELD_async, 0) != 0 || x->makes[0]) && !watches;
	if (x->is_async) {
		x->promise_tag = ask->tag;
		if (!remote_is_possible(s, x)) { /* else it is promised by the stream, which any front can ask */
			ledger_accept(&s->ledger, x->id, x->owner);
			accept_promise(s, x);
		}
	} else if (!execution_listen(x, ask->tag, watches ? WATCHES : WAITS_FOR_RESULT, true)) {
		idempotency_forget(&s->idempotency, x->id);
		answer_retry(s, ask, 503, 1, "there is no memory for the execution");
		execution_drop(s, x);
		return;
	}
	if (how == ADMISSION_WAIT)
		events_queued(x, admission_position(s->admission, &x->ticket));
	else
		execution_start(s, x);
}

void accept_promise(struct service *s, struct execution *x)
{
	if (x->has_key)
		idempotency_keep(&s->idempotency, x->id, true);
	x->is_promised = true;
	TAILQ_INSERT_TAIL(&s->executions.promised, x, in_promised);
}

static void enter(struct service *s, const struct ask *ask, struct job *job, uint64_t memory, const uint8_t *name,
		  const uint8_t *body)
{
	struct execution *x = execution_new(s, ask->token, job);
	struct admission_ask entry = { .token = ask->token->name, .quota = &ask->token->quota, .memory = memory };
	enum admission_answer how;
	uint32_t retry_after = 1;

	if (!x) {
		job_free(job);
		answer_retry(s, ask, 503, 1, "there is no memory for the execution");
		return;
	}
	entry.priority = x->priority;
	how = admission_enter(s->admission, &entry, clock_now_ns(), &x->ticket, &retry_after);
	if (how != ADMISSION_RUN && how != ADMISSION_WAIT) {
		answer_refused(s, ask, how, retry_after);
		execution_drop(s, x);
		return;
	}
	x->has_key = name != NULL;
	if (name && !idempotency_add(&s->idempotency, name, body, x->id, clock_wall_ns() / NS_PER_SEC)) {
		answer_retry(s, ask, 503, 1, "there is no memory for the key of the execution");
		execution_drop(s, x);
		return;
	}
	begin(s, ask, x, how);
}

/* Everything that can be wrong with it by itself. */
static int make_job(struct service *s, struct ask *ask, struct job **ret, uint64_t *ret_memory, struct brig_error *err)
{
	const struct serve_options *o = s->options;
	struct job *job = NULL;
	int rc = workspace_use(s, ask->token, ask->m, &ask->beside, err);

	if (rc == 0)
		rc = job_new(ask->m, ask->route, &ask->beside, o->settings, o->n_settings, &job, err);
	if (rc == 0)
		rc = access_check(s->host, ask->token, &s->options->doors, job, ret_memory, err);
	if (rc == 0)
		rc = job->env.name ? brig_environment_check(job_environment(job), err)
				   : brig_request_check(&job->req, err);
	if (rc < 0) {
		job_free(job);
		return rc;
	}
	*ret = job;
	return 0;
}

void ask_execute(struct service *s, struct ask *ask)
{
	const char *key = message_text(ask->m, FIELD_idempotency_key);
	uint8_t name[SHA256_LEN], body[SHA256_LEN];
	struct brig_error err = BRIG_ERROR_INIT;
	struct job *job = NULL;
	uint64_t memory = 0;

	if (key) {
		int rc = idempotency_hash(ask->m, ask->route, ask->beside.files, body);

		idempotency_name(ask->token->name, key, name);
		if (rc == -EFBIG) {
			answer_error(s, ask, 422,
				     "an Idempotency-Key is for requests with files of at most %llu MB together: leave "
				     "it out",
				     (unsigned long long)(IDEMPOTENCY_FILES_MAX / MiB));
			return;
		}
		if (rc < 0) {
			answer_retry(s, ask, 503, 1, "the request cannot be compared with earlier ones of its key");
			return;
		}
		if (is_repeated(s, ask, name, body))
			return;
	}
	if (s->draining) {
		answer_retry(s, ask, 503, 5, "the service is being stopped and takes nothing new");
		return;
	}
	if (environment_is_taken(s, ask))
		return;
	if (make_job(s, ask, &job, &memory, &err) < 0) {
		answer_trouble(s, ask, &err);
		return;
	}
	if (service_has_room(s, job, &err) < 0) {
		job_free(job);
		answer_trouble(s, ask, &err);
		return;
	}
	enter(s, ask, job, memory, key ? name : NULL, body);
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

static void break_promise(struct service *s, struct execution *x, const struct brig_error *why)
{
	const struct ask ask = { .tag = x->promise_tag, .request_id = execution_request_id(x) };

	idempotency_forget(&s->idempotency, x->id);
	answer_retry(s, &ask, 503, 5, "the execution cannot be promised, and was cancelled: %s", why->msg);
	execution_cancel(s, x);
}

void accept_commit(struct service *s)
{
	struct execution_list *list = &s->executions.promised;
	struct brig_error err = BRIG_ERROR_INIT;
	bool is_written;
	struct execution *x;

	if (TAILQ_EMPTY(list) && s->ledger.journal.pending.len == 0 && s->idempotency.journal.pending.len == 0)
		return;
	is_written = idempotency_commit(&s->idempotency, !TAILQ_EMPTY(list), &err) == 0 &&
		     ledger_commit(&s->ledger, !TAILQ_EMPTY(list), &err) == 0;
	if (!is_written)
		(void)fprintf(stderr, "brig serve: runner: %s\n", err.msg);
	while ((x = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, x, in_promised);
		x->is_promised = false;
		if (is_written)
			answer_execution_accepted(s, x, x->promise_tag);
		else
			break_promise(s, x, &err);
	}
}
