/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_accept.c - submission of a batch
 *
 * All jobs are validated before any is kept: a batch is accepted as a whole or not at all.  The promise is on disk
 * before the client is answered and before the first job starts.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

void batch_answer_accepted(struct service *s, uint32_t tag, const char *id, size_t n, const char *state,
			   const char *owner)
{
	char self[64], results[80];
	json_t *doc;
	AUTO_FREE char *text = NULL;

	(void)snprintf(self, sizeof(self), "/v1/batches/%s", id);
	(void)snprintf(results, sizeof(results), "%s/results", self);
	doc = json_pack("{s:s, s:I, s:s, s:{s:s, s:s}}", "id", id, "total", (json_int_t)n, "state", state, "links",
			"self", self, "results", results);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	answer_send(s, tag,
		    &(struct answer){ .status = 202,
				      .location = self,
				      .who = owner,
				      .body = text ? text : "{}",
				      .len = text ? strlen(text) : 2 });
}

static void answer_batch(struct service *s, const struct request *req, const struct batch *b)
{
	batch_answer_accepted(s, req->tag, b->id, b->n, batch_is_over(b) ? "finished" : "running", b->owner);
}

/* True: the key is known, and the request has been answered. */
static bool is_repeated(struct service *s, const struct request *req, const uint8_t name[SHA256_LEN],
			const uint8_t body[SHA256_LEN])
{
	const struct idempotency_entry *e = idempotency_find(&s->idempotency, name, clock_wall_ns() / NS_PER_SEC);
	const struct batch *b = e ? batches_find(&s->batches, e->id) : NULL;

	if (!e)
		return false;
	if (memcmp(e->body, body, SHA256_LEN) != 0)
		answer_error(s, req, 409, "this Idempotency-Key stands for another request, which is %s: use a new key",
			     e->id);
	else if (b)
		answer_batch(s, req, b);
	else
		answer_error(s, req, 409, "the batch %s of this Idempotency-Key is no longer known: use a new key",
			     e->id);
	return true;
}

/* ---- jobs -------------------------------------------------------------------------------------------------- */

/* Puts a job's files into a sealed file, as the library expects. */
static int open_archive(const struct message *m, int *ret, struct brig_error *err)
{
	size_t len;
	const char *bytes = message_bytes(m, FIELD_archive, &len);
	AUTO_FD fd = FD_NONE;

	if (!bytes)
		return 0;
	fd = sealed_make("brig-job", bytes, len);
	if (fd < 0)
		return err_set(err, BRIG_E_SYSTEM, -fd, "there is no room for the files of a job");
	*ret = fd_move(&fd);
	return 0;
}

static int make_job(struct service *s, const struct request *req, const struct message *m, struct job **ret,
		    uint64_t *ret_memory, struct brig_error *err)
{
	const struct serve_options *o = s->options;
	const struct quota *quota = &req->token->quota;
	struct job *job = NULL;
	struct job_descriptors beside = JOB_DESCRIPTORS_NONE;
	int rc = open_archive(m, &beside.files, err);

	if (rc == 0)
		rc = workspace_use(s, req->token, m, &beside, err);
	if (rc == 0)
		rc = job_new(m, ROUTE_execute, &beside, o->settings, o->n_settings, &job, err);
	if (rc == 0)
		rc = access_check(s->host, req->token, &s->options->doors, job, ret_memory, err);
	if (rc == 0)
		rc = brig_request_check(&job->req, err);
	if (rc == 0 && quota->memory && *ret_memory > quota->memory)
		rc = err_set(err, BRIG_E_REFUSED, 0, "the token %s %s", req->token->name,
			     admission_why(ADMISSION_TOO_LARGE));
	fd_closep(&beside.files);
	if (rc < 0) {
		job_free(job);
		return rc;
	}
	*ret = job;
	return 0;
}

static int add_job(struct service *s, const struct request *req, struct batch *b, const char *bytes, size_t len,
		   struct brig_error *err)
{
	struct batch_job *j = &b->job[b->n];
	struct job *job = NULL;
	struct execution *x;
	struct message m;
	const char *why;

	if (!message_read(bytes, len, &m, &why) || !message_has(&m, FIELD_job_id))
		return err_set(err, BRIG_E_INTERNAL, 0, "the front sent a job that cannot be read");
	if (make_job(s, req, &m, &job, &j->memory, err) < 0 || !job)
		return -err->code;
	if (service_has_room(s, job, err) < 0) {
		job_free(job);
		return -err->code;
	}
	j->name = strdup(message_text(&m, FIELD_job_id));
	x = j->name ? execution_new(s, req->token, job) : NULL;
	if (!x) {
		free(MOVE_PTR(j->name));
		job_free(job);
		return err_nomem(err);
	}
	memcpy(j->id, x->id, sizeof(j->id));
	x->is_async = true;
	b->n++;
	return 0;
}

/* ---- the batch ----------------------------------------------------------------------------------------------- */

void batch_drop_all(struct service *s, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct execution *x = executions_find(&s->executions, b->job[i].id);

		if (x)
			execution_drop(s, x);
	}
	batch_free(b);
}

static int add_jobs(struct service *s, const struct request *req, struct batch *b, struct brig_error *err)
{
	size_t at = 0, len;
	const char *bytes;

	while ((bytes = message_next(req->m, FIELD_job, &at, &len)))
		if (add_job(s, req, b, bytes, len, err) < 0) {
			struct brig_error why = *err;

			return err_set(err, why.code, 0, "job %zu of the batch: %.900s", b->n + 1, why.msg);
		}
	return 0;
}

/* Writes to disk: the key, a ledger line for each execution, and the batch. */
static int promise(struct service *s, struct batch *b, const uint8_t *name, const uint8_t *body, struct brig_error *err)
{
	int rc;

	if (name && !idempotency_add(&s->idempotency, name, body, b->id, clock_wall_ns() / NS_PER_SEC))
		return err_nomem(err);
	idempotency_keep(&s->idempotency, b->id, true);
	rc = idempotency_commit(&s->idempotency, true, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < b->n; i++)
		ledger_accept(&s->ledger, b->job[i].id, b->owner);
	rc = ledger_commit(&s->ledger, true, err);
	return rc < 0 ? rc : batch_write(&s->batches, b, err);
}

void batch_begin(struct service *s, const struct token *token, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct execution *x = executions_find(&s->executions, b->job[i].id);

		x->batch = b;
		x->batch_job = i;
	}
	b->quota = token->quota;
	b->n_held = b->n;
	s->counts.accepted += b->n;
	batches_add(s, b);
}

/* Whether all jobs can run on other nodes; then the promise is kept where all fronts can read it. */
static bool is_for_queue(const struct service *s, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct execution *x = executions_find(&s->executions, b->job[i].id);

		if (!x || !remote_is_possible(s, x->job))
			return false;
	}
	return true;
}

/* False: there is no room, which has been answered. */
static bool has_room(struct service *s, const struct request *req, size_t n)
{
	size_t own = n;
	const struct batch *b;

	TAILQ_FOREACH(b, &s->batches.all, in_age)
	if (str_eq(b->owner, req->token->name))
		own += b->n_held;
	if (n == 0)
		answer_error(s, req, 422, "a batch without a job");
	else if (own > BATCH_HELD_OF_TOKEN)
		answer_retry(s, req, 429, BATCH_RETRY_S,
			     "the token %s would have %zu jobs of batches that wait, and may have %d: wait for some",
			     req->token->name, own, BATCH_HELD_OF_TOKEN);
	else if (s->batches.n_held + n > BATCH_HELD_MAX || !batches_make_room(s))
		answer_retry(s, req, 503, BATCH_RETRY_S,
			     "too many batches are not done yet: wait for one, or cancel one");
	else
		return true;
	return false;
}

static void enter(struct service *s, const struct request *req, const uint8_t *name, const uint8_t *body)
{
	size_t n = message_count(req->m, FIELD_job);
	struct brig_error err = BRIG_ERROR_INIT;
	struct batch *b;

	if (!has_room(s, req, n))
		return;
	b = batch_new(n, req->token->name);
	if (!b) {
		answer_retry(s, req, 503, 1, "there is no memory for the batch");
		return;
	}
	if (add_jobs(s, req, b, &err) == 0 && is_for_queue(s, b)) {
		batch_share(s, req, b, name, body);
		return;
	}
	if (err.code || promise(s, b, name, body, &err) < 0) {
		idempotency_forget(&s->idempotency, b->id);
		batch_drop_all(s, b);
		answer_trouble(s, req, &err);
		return;
	}
	batch_begin(s, req->token, b);
	answer_batch(s, req, b);
}

void handle_batch(struct service *s, struct request *req)
{
	const char *key = message_text(req->m, FIELD_idempotency_key);
	uint8_t name[SHA256_LEN], body[SHA256_LEN];

	if (key) {
		idempotency_name(req->token->name, key, name);
		if (idempotency_hash(req->m, req->route, req->beside.files, body) < 0) {
			answer_retry(s, req, 503, 1, "the request cannot be compared with earlier ones of its key");
			return;
		}
		if (is_repeated(s, req, name, body))
			return;
	}
	if (s->draining)
		answer_retry(s, req, 503, 5, "the service is being stopped and takes nothing new");
	else
		enter(s, req, key ? name : NULL, body);
}
