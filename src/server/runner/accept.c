/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept.c - submission of an execution
 *
 *	message -> job -> checks of token and policy -> known key? -> queue -> started or waiting
 *	                                                               |
 *	                                       asynchronous: ledger on disk, then 202
 *
 * All errors are reported before any state changes.  The promises of one turn of the loop are written to disk together.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/report.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

/* ---- repeated requests ------------------------------------------------------------------------------------- */

/* The 202 answer for an execution. */
struct accepted {
	const char *id, *state, *owner;
	const char *makes; /* the environment it creates; "": none */
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
				      .execution = a->id,
				      .body = text ? text : "{}",
				      .len = text ? strlen(text) : 2 });
}

static void answer_execution_accepted(struct service *s, const struct execution *x, uint32_t tag)
{
	answer_accepted(s, &(struct accepted){ x->id, execution_state_name[x->state], x->owner, x->makes }, tag);
}

void accept_answer(struct service *s, const struct request *req, const char *id, const char *state)
{
	answer_accepted(s, &(struct accepted){ id, state, req->token->name, "" }, req->tag);
}

/* Whether the execution is asynchronous.  For one that another front accepted, only the request tells. */
static bool is_promise(const struct request *req, const struct execution *x)
{
	return x->remote && x->remote->is_adopted ? message_number(req->m, FIELD_async, 0) != 0 : x->is_async;
}

void accept_join(struct service *s, const struct request *req, struct execution *x)
{
	bool watches = message_number(req->m, FIELD_stream, 0) != 0;
	bool is_over = x->state == EXECUTION_FINISHED;

	if (is_promise(req, x) && !watches)
		answer_execution_accepted(s, x, req->tag);
	else if (is_over && !watches)
		execution_answer_result(s, x, req->tag);
	else if (!is_over && !execution_listen(x, req->tag, watches ? WATCHES : WAITS_FOR_RESULT, false))
		answer_retry(s, req, 503, 1, "too many wait for the execution %s already", x->id);
	else if (watches)
		events_replay(x, req->tag);
}

/*
 * State of a promised execution that is no longer in memory; NULL: unknown, it never started.  For a promise of an
 * earlier process, a missing ledger line means that the process died before it answered the client, because the ledger
 * is written after the key.  But if the ledger was full, the line may have been dropped; then the execution is not
 * repeated.
 */
static const char *state_of_past(const struct service *s, const struct idempotency_entry *e)
{
	const struct ledger_past *p = ledger_find(&s->ledger, e->id);

	if (s->queue.is_on && !p)
		/* or later; a request for its id gets the actual state */
		return execution_state_name[EXECUTION_QUEUED];
	if (p && str_eq(p->verdict, LEDGER_LOST))
		return LEDGER_LOST;
	if (!p && e->is_past && s->ledger.n_past < LEDGER_PAST_MAX)
		return NULL;
	return execution_state_name[EXECUTION_FINISHED];
}

/*
 * Handles a request whose key is known.  True: it has been answered, or will be by the earlier execution.  at_hand:
 * only if that execution is in memory; otherwise other fronts may know more.
 */
static bool is_repeated(struct service *s, const struct request *req, const uint8_t name[SHA256_LEN],
			const uint8_t body[SHA256_LEN], bool at_hand)
{
	const struct idempotency_entry *e = idempotency_find(&s->idempotency, name, clock_wall_ns() / NS_PER_SEC);
	struct execution *x = e ? executions_find(&s->executions, e->id) : NULL;
	const char *past = e && !x && e->is_promised ? state_of_past(s, e) : NULL;

	if (!e || (at_hand && !x))
		return false;
	if (memcmp(e->body, body, SHA256_LEN) != 0)
		answer_error(s, req, 409,
			     "this Idempotency-Key stands for another request, whose execution is %s: use a new key",
			     e->id);
	else if (x)
		accept_join(s, req, x);
	else if (past)
		accept_answer(s, req, e->id, past);
	else if (e->is_promised)
		return false;
	else
		answer_error(
			s, req, 409,
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

/* ---- new requests --------------------------------------------------------------------------------------------- */

static void answer_refused(struct service *s, const struct request *req, enum admission_answer why,
			   uint32_t retry_after)
{
	uint16_t status = why == ADMISSION_FULL ? 503 : why == ADMISSION_TOO_LARGE ? 403 : 429;

	s->counts.refused++;
	answer_retry(s, req, status, status == 403 ? 0 : retry_after, "the token %s %s", req->token->name,
		     admission_why(why));
}

/* After admission: starts or queues the execution. */
static void begin(struct service *s, const struct request *req, struct execution *x, enum admission_answer how)
{
	bool watches = message_number(req->m, FIELD_stream, 0) != 0;

	s->counts.accepted++;
	x->is_async = (message_number(req->m, FIELD_async, 0) != 0 || x->makes[0]) && !watches;
	if (x->is_async) {
		x->promise_tag = req->tag;
		/* otherwise the stream keeps the promise, and any front can look it up */
		if (!remote_is_possible(s, x->job)) {
			ledger_accept(&s->ledger, x->id, x->owner);
			accept_promise(s, x);
		}
	} else if (!execution_listen(x, req->tag, watches ? WATCHES : WAITS_FOR_RESULT, true)) {
		idempotency_forget(&s->idempotency, x->id);
		answer_retry(s, req, 503, 1, "there is no memory for the execution");
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

void accept_enter(struct service *s, const struct request *req, struct job *job, const char *id, uint64_t memory,
		  const uint8_t *name, const uint8_t *body)
{
	struct execution *x = id ? execution_new_named(s, req->token, job, id) : execution_new(s, req->token, job);
	struct admission_ask entry = { .token = req->token->name, .quota = &req->token->quota, .memory = memory };
	enum admission_answer how;
	uint32_t retry_after = 1;

	if (!x) {
		job_free(job);
		answer_retry(s, req, 503, 1, "there is no memory for the execution");
		return;
	}
	entry.priority = x->priority;
	how = admission_enter(s->admission, &entry, clock_now_ns(), &x->ticket, &retry_after);
	if (how != ADMISSION_RUN && how != ADMISSION_WAIT) {
		answer_refused(s, req, how, retry_after);
		execution_drop(s, x);
		return;
	}
	x->has_key = name != NULL;
	if (name)
		memcpy(x->asked, body, SHA256_LEN);
	if (name && !idempotency_add(&s->idempotency, name, body, x->id, clock_wall_ns() / NS_PER_SEC)) {
		answer_retry(s, req, 503, 1, "there is no memory for the key of the execution");
		execution_drop(s, x);
		return;
	}
	begin(s, req, x, how);
}

/* Makes the job and validates it. */
static int make_job(struct service *s, struct request *req, struct job **ret, uint64_t *ret_memory,
		    struct brig_error *err)
{
	const struct serve_options *o = s->options;
	struct job *job = NULL;
	int rc = workspace_use(s, req->token, req->m, &req->beside, err);

	if (rc == 0)
		rc = job_new(req->m, req->route, &req->beside, o->settings, o->n_settings, &job, err);
	if (rc == 0)
		rc = access_check(s->host, req->token, &s->options->doors, job, ret_memory, err);
	if (rc == 0)
		rc = job->env.name ? brig_environment_check(job_environment(job), err)
				   : brig_request_check(&job->req, err);
	if (rc != 0) {
		job_free(job);
		return rc;
	}
	*ret = job;
	return 0;
}

void handle_execute(struct service *s, struct request *req)
{
	const char *key = message_text(req->m, FIELD_idempotency_key);
	uint8_t name[SHA256_LEN], body[SHA256_LEN];
	struct brig_error err = BRIG_ERROR_INIT;
	struct job *job = NULL;
	uint64_t memory = 0;

	if (key) {
		int rc = idempotency_hash(req->m, req->route, req->beside.files, body);

		idempotency_name(req->token->name, key, name);
		if (rc == -EFBIG) {
			answer_error(s, req, 422,
				     "an Idempotency-Key is for requests with files of at most %llu MB together: leave "
				     "it out",
				     (unsigned long long)(IDEMPOTENCY_FILES_MAX / MiB));
			return;
		}
		if (rc < 0) {
			answer_retry(s, req, 503, 1, "the request cannot be compared with earlier ones of its key");
			return;
		}
		if (is_repeated(s, req, name, body, /* at_hand= */ s->queue.is_on))
			return;
	}
	if (s->draining) {
		answer_retry(s, req, 503, 5, "the service is being stopped and takes nothing new");
		return;
	}
	if (environment_is_taken(s, req))
		return;
	if (make_job(s, req, &job, &memory, &err) != 0) {
		answer_trouble(s, req, &err);
		return;
	}
	if (service_has_room(s, job, &err) < 0) {
		job_free(job);
		answer_trouble(s, req, &err);
	} else if (key && remote_is_possible(s, job)) {
		execution_keys_take(s, req, job, memory, name, body);
	} else if (key && s->queue.is_on && is_repeated(s, req, name, body, /* at_hand= */ false)) {
		job_free(job);
	} else {
		accept_enter(s, req, job, NULL, memory, key ? name : NULL, body);
	}
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

static void break_promise(struct service *s, struct execution *x, const struct brig_error *why)
{
	const struct request req = { .tag = x->promise_tag, .request_id = execution_request_id(x) };

	idempotency_forget(&s->idempotency, x->id);
	answer_retry(s, &req, 503, 5, "the execution cannot be promised, and was cancelled: %s", why->msg);
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
		report("%s", err.msg);
	while ((x = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, x, in_promised);
		x->is_promised = false;
		if (is_written)
			answer_execution_accepted(s, x, x->promise_tag);
		else
			break_promise(s, x, &err);
	}
}
