/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_worker.c - a job of the queue, from its delivery to its result
 *
 *	delivered -> known front, not expired? -> claim -> run -> result -> acknowledged
 *	                 |                          |       |        |
 *	                 |                          |       |        +- there is a result already: it counts, ours is late
 *	                 |                          |       +- this node is stopped: back to the stream, or lost
 *	                 |                          +- taken: the claiming node did not finish it in time.  Another attempt,
 *	                 |                             if permitted and there were not too many; otherwise "lost"
 *	                 +- no: reported, and terminated in the stream
 *
 * While a job is here, its lease at the stream is extended periodically (+WPI); without that the stream delivers it to
 * another node.  So two nodes may run the same job, if one cannot reach the brokers: claims are numbered, the result
 * has the number of its attempt, and the first of two results counts.  A job marked "never" is not started as a second
 * attempt.
 *
 * A claim also names the stream message that it is for: another message with the same job is a copy, whoever published
 * it; it is neither started nor taken as a sign that the claiming node has died.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/service.h"

#define BEAT_NS       (5 * NS_PER_SEC)
#define LEASE_S       QUEUE_LEASE_S
#define HINT_MAX      (40 * KiB) /* fits into a record */
#define PRESSURE_NS   NS_PER_SEC
#define WORD_ACK      "+ACK"
#define WORD_NAK      "-NAK {\"delay\": 200000000}"
#define WORD_NAK_NOW  "-NAK"
#define WORD_TERM     "+TERM"
#define WORD_PROGRESS "+WPI"

struct delivery {
	LIST_ENTRY(delivery) in_list;
	char id[EXECUTION_ID_LEN + 1];
	char ack[LINK_SUBJECT_MAX]; /* reply subject of the stream message */
	char *bytes;                /* copy of the sealed job */
	struct message m;
	uint8_t hash[SHA256_LEN];
	uint64_t sequence;       /* of the message in the stream */
	uint64_t attempt, nonce; /* nonce: distinguishes our own claim from one of an earlier process */
	bool is_begun, is_ended, has_events;
	uint64_t serial;
	struct execution *x; /* NULL: not running */
	struct buf result;   /* the message to put, when it has ended */
};

static struct delivery *find(const struct service *s, const char *id)
{
	struct delivery *d;

	LIST_FOREACH(d, &s->queue.deliveries, in_list)
	if (str_eq(d->id, id))
		return d;
	return NULL;
}

static void say(struct service *s, const char *ack, const char *word)
{
	AUTO_BUF m = BUF_INIT(KiB);

	message_put_text(&m, FIELD_subject, ack);
	message_put_text(&m, FIELD_word, word);
	queue_tell(s, LINK_WORD, &m);
}

/* Removes it from this node and tells the stream why. */
static void drop(struct service *s, struct delivery *d, const char *word)
{
	if (word)
		say(s, d->ack, word);
	if (d->x)
		d->x->delivery = NULL;
	LIST_REMOVE(d, in_list);
	s->queue.n_deliveries--;
	s->queue.tick_ns = 0; /* grant credit for another */
	buf_release(&d->result);
	free(d->bytes);
	free(d);
}

static void give_back(struct service *s, struct delivery *d)
{
	s->queue.counts.returned++;
	drop(s, d, WORD_NAK);
}

/* ---- results ------------------------------------------------------------------------------------------------------ */

static void store(struct service *s, struct delivery *d, uint64_t revision);

static void hint_to(struct service *s, const struct delivery *d, bool is_ours, const char *to)
{
	const struct queue_event done = { .to = to, .attempt = d->attempt, .serial = UINT64_MAX, .kind = EVENT_done };
	char subject[128];
	AUTO_BUF m = BUF_INIT(HINT_MAX + 4 * KiB);

	if (!is_ours || d->result.len > HINT_MAX) {
		worker_send_event(s, d->id, &done);
		return;
	}
	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_FRONT, to);
	message_put_text(&m, FIELD_subject, subject);
	if (queue_seal(s, &d->result, &m))
		queue_tell(s, LINK_TELL, &m);
}

/* Notifies the submitting and the watching fronts of the result; if it is ours and short, it is included. */
static void hint(struct service *s, const struct delivery *d, bool is_ours)
{
	const char *to = message_text(&d->m, FIELD_reply_to);
	const struct execution *x = executions_find(&s->executions, d->id);

	if (to)
		hint_to(s, d, is_ours, to);
	for (size_t i = 0; x && (to = watchers_next(x, i)); i++)
		hint_to(s, d, is_ours, to);
}

static void on_there(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct delivery *d = find(s, op->id);
	struct queue_sealed there;

	if (!d || !d->is_ended)
		return;
	if (a->how == QUEUE_NONE) {
		store(s, d, 0);
		return;
	}
	if (a->how != QUEUE_OK) {
		give_back(s, d);
		return;
	}
	if (!queue_unseal(s, a->m, "result", PEER_WORKER, &there) || !message_text(&there.m, FIELD_id) ||
	    !str_eq(message_text(&there.m, FIELD_id), d->id)) {
		store(s, d, a->revision); /* a forged result must not suppress the real one */
		return;
	}
	if (!str_eq(there.by->key, s->queue.key) || message_number(&there.m, FIELD_attempt, 0) != d->attempt) {
		s->queue.counts.late++;
		queue_complain(s, "the result of %s comes late: that of %s, of attempt %llu, is recorded", d->id,
			       there.by->name, (unsigned long long)message_number(&there.m, FIELD_attempt, 0));
	}
	hint(s, d, false);
	drop(s, d, WORD_ACK);
}

static void on_stored(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct delivery *d = find(s, op->id);

	if (!d || !d->is_ended)
		return;
	if (a->how == QUEUE_OK) {
		s->queue.counts.stored++;
		hint(s, d, true);
		drop(s, d, WORD_ACK);
	} else if (a->how != QUEUE_TAKEN || !queue_get(s, BUCKET_RESULTS, d->id, on_there)) {
		queue_complain(s, "the result of %s could not be recorded: %s", d->id, a->trouble ? a->trouble : "-");
		give_back(s, d);
	}
}

static void store(struct service *s, struct delivery *d, uint64_t revision)
{
	if (!queue_put(s, BUCKET_RESULTS, d->id, revision, &d->result, QUEUE_STORE_NS, on_stored))
		give_back(s, d);
}

static void begin_result(struct service *s, struct delivery *d, const char *verdict)
{
	const char *asked;
	size_t len;

	d->is_ended = true;
	buf_release(&d->result);
	d->result = (struct buf)BUF_INIT(MESSAGE_MAX);
	queue_begin(s, &d->result, "result");
	message_put_text(&d->result, FIELD_id, d->id);
	message_put_bytes(&d->result, FIELD_job_hash, d->hash, sizeof(d->hash));
	message_put_number(&d->result, FIELD_attempt, d->attempt);
	message_put_number(&d->result, FIELD_issued, clock_wall_ns() / NS_PER_SEC);
	message_put_text(&d->result, FIELD_who, message_text(&d->m, FIELD_who));
	asked = message_bytes(&d->m, FIELD_asked_hash, &len);
	if (asked)
		message_put_bytes(&d->result, FIELD_asked_hash, asked, len);
	message_put_text(&d->result, FIELD_verdict, verdict);
}

/* Records that it will not be started any more. */
static void lose(struct service *s, struct delivery *d, const char *why)
{
	s->queue.counts.lost++;
	begin_result(s, d, QUEUE_LOST);
	message_put_text(&d->result, FIELD_reason, why);
	store(s, d, 0);
}

void worker_on_end(struct service *s, struct execution *x, uint64_t cpu_ns)
{
	struct delivery *d = x->delivery;

	d->x = NULL;
	x->delivery = NULL;
	if (s->stopping && str_eq(x->verdict, "cancelled")) {
		if (message_number(&d->m, FIELD_retry_never, 0))
			lose(s, d, "the node that ran it was stopped, and it is not to be begun twice");
		else
			give_back(s, d);
		return;
	}
	if (str_eq(x->verdict, "ok"))
		sets_note(s, &d->m);
	begin_result(s, d, x->verdict);
	message_put_number(&d->result, FIELD_cpu_ns, cpu_ns);
	message_put_text(&d->result, FIELD_language, x->language[0] ? x->language : NULL);
	message_put_text(&d->result, FIELD_trust, x->trust);
	message_put_text(&d->result, FIELD_unlisted, x->unlisted);
	if (x->result)
		message_put_bytes(&d->result, FIELD_body, x->result, x->result_len);
	if (d->result.full || d->result.no_memory)
		lose(s, d, "its result has more bytes than can be sent");
	else
		store(s, d, 0);
}

/* ---- running ---------------------------------------------------------------------------------------------------------- */

/* Records an error as the result, as if the job had been submitted here. */
static void refuse(struct service *s, struct delivery *d, const struct brig_error *why)
{
	struct brig_result *r = NULL;
	char *text = NULL;

	if (brig_result_from_error(why, &r, NULL) < 0 || brig_result_json(r, &text, NULL) < 0) {
		brig_result_free(r);
		lose(s, d, "there was no memory for its result");
		return;
	}
	begin_result(s, d, brig_result_verdict(r));
	message_put_bytes(&d->result, FIELD_body, text, strlen(text));
	brig_free(text);
	brig_result_free(r);
	store(s, d, 0);
}

static int make_job(struct service *s, struct delivery *d, const struct token *token, struct job **ret,
		    struct brig_error *err)
{
	const struct serve_options *o = s->options;
	struct job_descriptors beside = JOB_DESCRIPTORS_NONE;
	static const struct door_set none;
	uint64_t memory;
	size_t len;
	const char *archive = message_bytes(&d->m, FIELD_archive, &len);
	int rc;

	if (archive) {
		beside.files = sealed_make("brig-job", archive, len);
		if (beside.files < 0)
			return err_set(err, BRIG_E_SYSTEM, -beside.files, "there is no room for the files of a job");
	}
	rc = job_check_descriptors(&beside, err);
	if (rc == 0)
		rc = job_new(&d->m, ROUTE_execute, &beside, o->settings, o->n_settings, ret, err);
	if (rc == 0)
		rc = access_check(s->host, token, &none, *ret, &memory, err);
	if (rc == 0)
		rc = brig_request_check(&(*ret)->req, err);
	fd_closep(&beside.files);
	return rc;
}

/* The front has checked the token; on this node the policy is the limit. */
static void begin(struct service *s, struct delivery *d, bool is_cancelled)
{
	const char *who = message_text(&d->m, FIELD_who);
	struct token token = { .max_trust = TOKEN_TRUSTED, .admin = true, .is_for_all = true };
	struct brig_error err = BRIG_ERROR_INIT;
	struct job *job = NULL;
	struct execution *x;
	char class[160];

	if (d->is_begun)
		return;
	d->is_begun = true;
	s->queue.counts.begun++;
	(void)str_copy(token.name, sizeof(token.name), who ? who : "queue");
	if (make_job(s, d, &token, &job, &err) < 0) {
		job_free(job);
		refuse(s, d, &err);
		return;
	}
	x = execution_new_named(s, &token, job, d->id);
	if (!x) {
		job_free(job);
		give_back(s, d);
		return;
	}
	d->x = x;
	x->delivery = d;
	x->is_async = true; /* no client of this node waits for it */
	x->is_cancelled = is_cancelled;
	queue_class_of(s, x, class, sizeof(class));
	s->queue.counts.warm += placement_has(s->queue.warm, class, strlen(class));
	s->counts.accepted++;
	execution_start(s, x);
}

/* ---- claims ------------------------------------------------------------------------------------------------------------ */

static void claim(struct service *s, struct delivery *d, uint64_t revision);

static void on_claim_there(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct delivery *d = find(s, op->id);
	struct queue_sealed there;
	uint64_t attempt;
	char why[200];

	if (!d || d->is_begun)
		return;
	if (a->how == QUEUE_FAILED) {
		give_back(s, d);
		return;
	}
	if (a->how == QUEUE_NONE || !queue_unseal(s, a->m, "claim", PEER_WORKER | PEER_FRONT, &there) ||
	    !message_text(&there.m, FIELD_id) || !str_eq(message_text(&there.m, FIELD_id), d->id)) {
		d->attempt = 1;
		if (a->how == QUEUE_OK && message_number(&d->m, FIELD_retry_never, 0))
			lose(s, d, "its claim was overwritten, so it is unknown whether it was begun");
		else
			claim(s, d, a->revision);
		return;
	}
	attempt = message_number(&there.m, FIELD_attempt, 0);
	if (attempt > 0 && message_number(&there.m, FIELD_sequence, 0) != d->sequence) {
		queue_complain(s, "refused a copy of job %s, which %s has begun", d->id, there.by->name);
		drop(s, d, WORD_TERM);
		return;
	}
	(void)snprintf(why, sizeof(why), "%s has begun it, as attempt %llu, and did not end it in time", there.by->name,
		       (unsigned long long)attempt);
	if (attempt == 0) {
		begin(s, d, true);
	} else if (str_eq(there.by->key, s->queue.key) && message_number(&there.m, FIELD_serial, 0) == d->nonce) {
		begin(s, d, false); /* our own claim, whose acknowledgement was lost */
	} else if (message_number(&d->m, FIELD_retry_never, 0) || attempt >= QUEUE_ATTEMPTS_MAX) {
		d->attempt = attempt;
		lose(s, d, why);
	} else {
		s->queue.counts.redelivered++;
		d->attempt = attempt + 1;
		claim(s, d, a->revision);
	}
}

/* There is a claim.  The job may have ended, with only its acknowledgement lost. */
static void on_result_there(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct delivery *d = find(s, op->id);
	struct queue_sealed there;

	if (!d || d->is_begun)
		return;
	if (a->how == QUEUE_OK && queue_unseal(s, a->m, "result", PEER_WORKER, &there) &&
	    message_text(&there.m, FIELD_id) && str_eq(message_text(&there.m, FIELD_id), d->id)) {
		drop(s, d, WORD_ACK);
		return;
	}
	if (a->how == QUEUE_FAILED || !queue_get(s, BUCKET_CLAIMS, d->id, on_claim_there))
		give_back(s, d);
}

static void on_claimed(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct delivery *d = find(s, op->id);

	if (!d || d->is_begun)
		return;
	if (a->how == QUEUE_OK)
		begin(s, d, false);
	else if (a->how != QUEUE_TAKEN || !queue_get(s, BUCKET_RESULTS, d->id, on_result_there))
		give_back(s, d);
}

static void claim(struct service *s, struct delivery *d, uint64_t revision)
{
	AUTO_BUF inner = BUF_INIT(4 * KiB);

	queue_begin(s, &inner, "claim");
	message_put_text(&inner, FIELD_id, d->id);
	message_put_bytes(&inner, FIELD_job_hash, d->hash, sizeof(d->hash));
	message_put_number(&inner, FIELD_attempt, d->attempt);
	message_put_number(&inner, FIELD_serial, d->nonce);
	message_put_number(&inner, FIELD_sequence, d->sequence);
	message_put_number(&inner, FIELD_issued, clock_wall_ns() / NS_PER_SEC);
	if (!queue_put(s, BUCKET_CLAIMS, d->id, revision, &inner, QUEUE_CLAIM_NS, on_claimed))
		give_back(s, d);
}

/* ---- deliveries ---------------------------------------------------------------------------------------------------------- */

/*
 * A number in the reply subject, which is $JS.ACK.STREAM.CONSUMER.TIMES.NUMBER..., with two more tokens after ACK from
 * brokers that include domain and account.  0: not present.
 */
uint64_t queue_ack_number(const char *ack, enum ack_number which)
{
	size_t n_words = 1, wanted = which;
	uint64_t n = 0;
	char word[24];

	for (const char *at = ack; *at; at++)
		n_words += *at == '.';
	for (wanted += n_words >= 11 ? 2 : 0; wanted > 0 && ack; wanted--) {
		ack = strchr(ack, '.');
		ack = ack ? ack + 1 : NULL;
	}
	if (ack)
		(void)snprintf(word, sizeof(word), "%.*s", (int)min_u64(strcspn(ack, "."), sizeof(word) - 1), ack);
	return ack && str_to_u64(word, &n) ? n : 0;
}

/* Copies the sealed job, whose message is only valid during the call. */
static struct delivery *keep(struct service *s, const struct queue_sealed *job, const char *id, const char *ack)
{
	struct delivery *d = calloc(1, sizeof(*d));
	const char *why;

	if (d)
		d->bytes = malloc(job->m.len + 1);
	if (!d || !d->bytes) {
		free(d);
		return NULL;
	}
	memcpy(d->bytes, job->m.bytes, job->m.len);
	d->result = (struct buf)BUF_INIT(0);
	if (!message_read(d->bytes, job->m.len, &d->m, &why) || !seal_hash(&d->m, d->hash) ||
	    crypto_random(&d->nonce, sizeof(d->nonce)) < 0) {
		free(d->bytes);
		free(d);
		return NULL;
	}
	(void)str_copy(d->id, sizeof(d->id), id);
	(void)str_copy(d->ack, sizeof(d->ack), ack);
	d->sequence = queue_ack_number(ack, ACK_SEQUENCE);
	d->attempt = 1;
	d->has_events = message_number(&d->m, FIELD_stream, 0) != 0;
	LIST_INSERT_HEAD(&s->queue.deliveries, d, in_list);
	s->queue.n_deliveries++;
	return d;
}

static bool is_id(const char *id)
{
	return id && strlen(id) == EXECUTION_ID_LEN && strspn(id, ID_ALPHABET) == EXECUTION_ID_LEN;
}

/* Drops an execution that ended here: only the bucket knows whether its result is recorded. */
static void forget_ended(struct service *s, const char *id)
{
	struct execution *x = executions_find(&s->executions, id);

	if (x && x->state == EXECUTION_FINISHED && !x->delivery)
		execution_drop(s, x);
}

void worker_on_job(struct service *s, const struct message *m)
{
	const char *ack = message_text(m, FIELD_subject), *id;
	struct queue_sealed job;
	struct delivery *d;

	s->queue.taken++;
	s->queue.counts.taken++;
	if (!ack)
		return;
	if (!queue_unseal(s, m, "job", PEER_FRONT, &job) || !is_id(id = message_text(&job.m, FIELD_id))) {
		say(s, ack, WORD_TERM); /* it will never be valid; a front that waits for it reports it lost */
		return;
	}
	d = find(s, id);
	if (d && d->sequence == queue_ack_number(
					/* redelivered, because our messages were lost; it is still here */
					ack, ACK_SEQUENCE)) {
		(void)str_copy(d->ack, sizeof(d->ack), ack);
		say(s, ack, WORD_PROGRESS);
		return;
	}
	if (d) {
		queue_complain(s, "refused a copy of job %s, which is here", id);
		say(s, ack, WORD_TERM);
		return;
	}
	forget_ended(s, id);
	if (sets_are_elsewhere(s, &job.m, ack)) {
		s->queue.counts.returned++;
		s->queue.tick_ns = 0;
		say(s, ack, WORD_NAK_NOW);
		return;
	}
	if (!s->draining && environments_hold_back(s, &job.m)) {
		s->queue.counts.returned++;
		say(s, ack, WORD_NAK);
		return;
	}
	if (s->draining || s->queue.n_deliveries >= (size_t)s->jobs * 2 || executions_find(&s->executions, id) ||
	    !(d = keep(s, &job, id, ack))) {
		say(s, ack, WORD_NAK);
		return;
	}
	if (message_number(&d->m, FIELD_expires, 0) <= clock_wall_ns() / NS_PER_SEC)
		lose(s, d, "it was not begun before its time was over");
	else
		claim(s, d, 0);
}

void worker_on_told(struct service *s, const struct message *m)
{
	const char *id, *subject = message_text(m, FIELD_subject);
	struct queue_sealed said;
	const struct delivery *d;

	if (subject && strncmp(subject, QUEUE_SUBJECT_NODES, strlen(QUEUE_SUBJECT_NODES)) == 0) {
		nodes_on_told(s, m);
		s->queue.tick_ns = 0; /* the choice of classes may change */
		return;
	}
	if (subject && strncmp(subject, QUEUE_SUBJECT_WATCH, strlen(QUEUE_SUBJECT_WATCH)) == 0) {
		watchers_on_told(s, m, subject + strlen(QUEUE_SUBJECT_WATCH));
		return;
	}
	if (subject && exchange_on_told(s, subject, m))
		return;
	if (!queue_unseal(s, m, "cancel", PEER_FRONT, &said))
		return;
	id = message_text(&said.m, FIELD_id);
	d = id ? find(s, id) : NULL;
	if (d && d->x)
		execution_cancel(s, d->x);
}

void worker_event(struct execution *x, enum event_kind kind, const char *text, size_t len)
{
	struct service *s = x->service;
	struct delivery *d = x->delivery;
	struct queue_event e = {
		.to = message_text(&d->m, FIELD_reply_to), .attempt = d->attempt, .kind = kind, .text = text, .len = len
	};

	watchers_event(x, &e);
	e.serial = ++d->serial;
	if (d->has_events && e.to)
		worker_send_event(s, d->id, &e);
}

uint64_t worker_attempt(const struct execution *x)
{
	return x->delivery ? x->delivery->attempt : 0;
}

/* ---- accepted classes ------------------------------------------------------------------------ */

static void put_class(struct buf *m, const char *trust, const char *what)
{
	char class[160];

	queue_class(trust, what, class, sizeof(class));
	message_put_text(m, FIELD_class, class);
}

/* Adds the classes of environments on this node. */
static void put_environments(const struct service *s, const char *trust, struct buf *m)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL, what[80];
	const json_t *environment;
	json_t *doc;
	size_t i;

	if (brig_environments_json(s->host->b, &text, &err) < 0)
		return;
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	json_array_foreach(json_object_get(doc, "environments"), i, environment)
	{
		const char *name = json_string_value(json_object_get(environment, "name"));

		if (name) {
			(void)snprintf(what, sizeof(what), "env-%.60s", name);
			put_class(m, trust, what);
		}
	}
	json_decref(doc);
}

/*
 * For each trust level that the policy permits and the host can enforce: installed languages, and kinds that need none.
 */
static void put_classes(const struct service *s, struct buf *m)
{
	static const char *const others[] = { "any", "kind-command", "kind-shell", "kind-tests" };
	const json_t *language;
	size_t i;

	for (enum token_trust t = 0; t < TOKEN_TRUST_COUNT; t++) {
		if (!s->host->level[t].is_known || !s->queue.is_able[t])
			continue;
		for (i = 0; i < ARRAY_LEN(others); i++)
			put_class(m, token_trust_name(t), others[i]);
		json_array_foreach(s->host->languages, i, language)
		{
			const char *name = json_string_value(json_object_get(language, "name"));

			if (name && json_is_true(json_object_get(language, "installed")))
				put_class(m, token_trust_name(t), name);
		}
		put_environments(s, token_trust_name(t), m);
	}
}

static void replace(struct buf *old, struct buf *fresh)
{
	buf_release(old);
	*old = *fresh;
	*fresh = (struct buf)BUF_INIT(0);
}

/*
 * Tells the link the classes to request: those of this node first, then those with environments that others would give.
 * The order matters: the link addresses classes by position.
 */
static void tell_link(struct service *s, bool is_new_link)
{
	struct queue *q = &s->queue;
	AUTO_BUF told = BUF_INIT(256 * KiB);

	(void)buf_add(&told, q->classes.data, q->classes.len);
	for (enum token_trust t = 0; t < TOKEN_TRUST_COUNT; t++)
		if (s->host->level[t].is_known && q->is_able[t])
			environments_borrow(s, token_trust_name(t), &told);
	if (!is_new_link && told.len == q->told.len &&
	    (told.len == 0 || memcmp(told.data, q->told.data, told.len) == 0))
		return;
	queue_tell(s, LINK_CLASSES, &told);
	buf_release(&q->later); /* it must be sent again for the new list */
	replace(&q->told, &told);
}

/* Environments are created and removed at run time. */
void worker_look_at_classes(struct service *s)
{
	AUTO_BUF classes = BUF_INIT(256 * KiB);

	put_classes(s, &classes);
	replace(&s->queue.classes, &classes);
	tell_link(s, /* is_new_link= */ false);
}

void worker_tell_classes(struct service *s)
{
	(void)worker_look_at_policy(s);
	worker_look_at_classes(s);
	tell_link(s, /* is_new_link= */ true);
	s->queue.beat_ns = 0;
}

void worker_begin(struct service *s)
{
	AUTO_BUF listen = BUF_INIT(KiB);
	AUTO_BUF watch = BUF_INIT(KiB);
	AUTO_BUF nodes = BUF_INIT(KiB);

	worker_tell_classes(s);
	message_put_text(&listen, FIELD_subject, QUEUE_SUBJECT_STOP "*");
	queue_tell(s, LINK_LISTEN, &listen);
	message_put_text(&watch, FIELD_subject, QUEUE_SUBJECT_WATCH "*");
	queue_tell(s, LINK_LISTEN, &watch);
	message_put_text(&nodes, FIELD_subject, QUEUE_SUBJECT_NODES "*");
	queue_tell(s, LINK_LISTEN, &nodes);
	exchange_begin(s);
	s->queue.progress_ns = s->queue.beat_ns = 0;
}

static void send_credit(struct service *s)
{
	struct queue *q = &s->queue;
	uint64_t places = s->draining ? 0 : min_u64(s->jobs, q->places), credit;
	AUTO_BUF m = BUF_INIT(KiB);

	credit = q->taken + (q->n_deliveries < places ? places - q->n_deliveries : 0);
	if (credit == q->credit)
		return;
	q->credit = credit;
	message_put_number(&m, FIELD_credit, credit);
	queue_tell(s, LINK_CREDIT, &m);
}

/* Publishes this node's entry, valid for the lease.  With 0 slots it takes no new jobs. */
static void beat(struct service *s, uint64_t lease_s)
{
	AUTO_BUF inner = BUF_INIT(256 * KiB);
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;

	queue_begin(s, &inner, "node");
	message_put_text(&inner, FIELD_node_name, s->options->node_name);
	message_put_number(&inner, FIELD_issued, now_s);
	message_put_number(&inner, FIELD_expires, now_s + lease_s);
	message_put_number(&inner, FIELD_running, s->queue.n_deliveries);
	message_put_number(&inner, FIELD_slots, s->draining ? 0 : s->jobs);
	message_put_number(&inner, FIELD_sessions, s->sessions.n_live);
	message_put_text(&inner, FIELD_reply_to, s->queue.front_id);
	message_put_number(&inner, FIELD_hears, nodes_live(s));
	message_put_number(&inner, FIELD_begun, s->queue.counts.begun);
	message_put_number(&inner, FIELD_begun_again, s->queue.counts.redelivered);
	message_put_number(&inner, FIELD_begun_warm, s->queue.counts.warm);
	message_put_number(&inner, FIELD_places, s->draining ? 0 : min_u64(s->jobs, s->queue.places));
	worker_look_at_classes(s);
	(void)buf_add(&inner, s->queue.classes.data, s->queue.classes.len);
	worker_put_host(s, &inner);
	exchange_put(s, &inner);
	(void)environments_put(s, &inner);
	/* not retried: the next one follows soon */
	(void)queue_put(s, BUCKET_NODES, s->queue.key, LINK_ANY, &inner, BEAT_NS, NULL);
}

/*
 * Entries are published at once when this node starts to stop, and when its last job has ended, with an expired lease.
 */
static void beat_if_due(struct service *s, uint64_t now)
{
	struct queue *q = &s->queue;
	bool is_last = s->draining && q->n_deliveries == 0 && s->sessions.n_live == 0;

	if (q->has_left)
		return;
	if (s->draining && !q->is_leaving) {
		q->is_leaving = true;
		q->beat_ns = 0;
	}
	if (!is_last && now - q->beat_ns < BEAT_NS)
		return;
	q->beat_ns = now;
	q->has_left = is_last;
	beat(s, is_last ? 0 : LEASE_S);
}

void worker_tick(struct service *s)
{
	struct queue *q = &s->queue;
	uint64_t now = clock_now_ns();
	const struct delivery *d;

	if (now - q->pressure_ns >= PRESSURE_NS) {
		q->pressure_ns = now;
		worker_look_at_pressure(s);
		if (worker_look_at_pools(s))
			q->beat_ns = 0; /* announce it to nodes that are cold */
	}
	worker_look_at_host(s);
	if (worker_look_at_policy(s))
		worker_tell_classes(s);
	else if (q->channel)
		tell_link(s, /* is_new_link= */ false); /* other nodes come and go */
	worker_place(s);
	send_credit(s);
	if (!q->is_up)
		return;
	if (now - q->progress_ns >= q->patience_ns / 4) {
		q->progress_ns = now;
		LIST_FOREACH(d, &q->deliveries, in_list)
		say(s, d->ack, WORD_PROGRESS);
	}
	beat_if_due(s, now);
}

void worker_release(struct service *s)
{
	while (!LIST_EMPTY(&s->queue.deliveries))
		drop(s, LIST_FIRST(&s->queue.deliveries), NULL);
}
