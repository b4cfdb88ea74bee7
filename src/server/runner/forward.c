/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - requests of this front's clients for sessions on other nodes
 *
 *	received -> address in the bucket -> sent -> events ... -> answered
 *	                 |                     |  ^
 *	                 |                     |  `- silence: probe whether the node has it; if not, it was lost: send it again
 *	                 |                     `- no response, or the node has gone: 503, or 410 with the reason
 *	                 `- none, or of another token: 404; ended: 410
 *
 * A new session is placed according to the entries of workers: among those that accept commands of its trust level, or
 * have its environment, the one with the fewest sessions.
 */
#include "server/runner/forward.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define FIRST_PROBE_NS  (1 * NS_PER_SEC)
#define PROBE_NS        (2 * NS_PER_SEC)
#define PROBES_MAX      4                /* without a response */
#define LIST_PROBES_MAX 1                /* the same for a part of a list */
#define HEARD_NS        (5 * NS_PER_SEC) /* from a response to the next probe */

struct forward {
	TAILQ_ENTRY(forward) in_list;
	uint64_t serial;
	uint32_t tag;
	enum route route;
	bool admin, by_link, is_sent, is_repeated, is_made /* created earlier under the same Idempotency-Key */;
	char name[TOKEN_NAME_MAX + 1], request_id[129];
	char session[EXECUTION_ID_LEN + 1]; /* "": none */
	/* the node: its id, key and name, and whether it is a front */
	char node[EXECUTION_ID_LEN + 1], key[SEAL_KEY_HEX + 1], node_name[PEER_NAME_MAX + 1];
	bool node_serves;
	struct buf inner; /* the sealed request, until it is acknowledged */
	uint64_t probe_ns, events;
	unsigned probes;
	struct gathering *of; /* the list it is part of; NULL: a client's request */
};

static struct forward *find(const struct service *s, uint64_t serial)
{
	struct forward *f;

	TAILQ_FOREACH(f, &s->forwards.all, in_list)
	if (f->serial == serial)
		return f;
	return NULL;
}

static struct forward *find_tag(const struct service *s, uint32_t tag)
{
	struct forward *f;

	TAILQ_FOREACH(f, &s->forwards.all, in_list)
	if (!f->of && f->tag == tag)
		return f;
	return NULL;
}

static void drop_ask(struct service *s, struct forward *f)
{
	s->forwards.bytes -= f->inner.len;
	buf_release(&f->inner);
	f->inner = (struct buf)BUF_INIT(0);
}

/* To be called after it has been answered. */
static void end(struct service *s, struct forward *f)
{
	struct gathering *g = f->of;

	TAILQ_REMOVE(&s->forwards.all, f, in_list);
	s->forwards.n--;
	drop_ask(s, f);
	free(f);
	if (g)
		gathering_end_one(s, g);
}

static void refuse(struct service *s, struct forward *f, uint16_t status, const char *fmt, ...) PRINTF(4, 5);

static void refuse(struct service *s, struct forward *f, uint16_t status, const char *fmt, ...)
{
	const struct request req = { .tag = f->tag, .request_id = f->request_id };
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (f->of)
		gathering_miss(f->of, f->node_name);
	else
		answer_retry(s, &req, status, status == 503 ? 1 : 0, "%s", text);
	end(s, f);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void tell(struct service *s, const struct forward *f, const struct buf *inner)
{
	AUTO_BUF m = BUF_INIT(MESSAGE_MAX);
	char subject[64];

	(void)snprintf(subject, sizeof(subject), "%s%s", FORWARD_SUBJECT_NODE, f->node);
	message_put_text(&m, FIELD_subject, subject);
	if (queue_seal(s, inner, &m))
		queue_tell(s, LINK_TELL, &m);
}

static void tell_word(struct service *s, const struct forward *f, const char *word)
{
	AUTO_BUF inner = BUF_INIT(KiB);

	queue_begin(s, &inner, "word");
	message_put_text(&inner, FIELD_reply_to, s->queue.front_id);
	message_put_number(&inner, FIELD_serial, f->serial);
	message_put_text(&inner, FIELD_word, word);
	tell(s, f, &inner);
}

static void send_ask(struct service *s, struct forward *f)
{
	f->is_sent = true;
	f->probe_ns = clock_now_ns() + FIRST_PROBE_NS;
	tell(s, f, &f->inner);
}

/* ---- the message ----------------------------------------------------------------------------- */

/* Fields that concern only client, front and runner, including credentials other than a session's own. */
static bool stays_here(enum field f)
{
	switch (f) {
	case FIELD_has_files:
	case FIELD_has_input_fd:
	case FIELD_has_out_fd:
	case FIELD_has_project:
	case FIELD_has_left:
	case FIELD_has_peer:
	case FIELD_route:
	case FIELD_credential:
	case FIELD_port_domain:
	case FIELD_place:
	case FIELD_shared_id:
	case FIELD_node_name: /* that list is requested from this node only */
		return true;
	default:
		return forward_is_envelope(f);
	}
}

static void put_token(struct buf *inner, const struct token *token)
{
	message_put_text(inner, FIELD_who, token->name);
	if (token->admin)
		message_put_number(inner, FIELD_admin, 1);
	if (token->is_anonymous)
		message_put_number(inner, FIELD_anonymous, 1);
	message_put_number(inner, FIELD_quota_concurrent, token->quota.concurrent);
	message_put_number(inner, FIELD_quota_runs, token->quota.runs_per_minute);
	message_put_number(inner, FIELD_quota_cpu, token->quota.cpu_seconds_per_hour);
	message_put_number(inner, FIELD_quota_memory, token->quota.memory);
}

/* job: of a session to create; NULL: none. */
static bool put_ask(const struct service *s, const struct request *req, const struct job *job, uint64_t serial,
		    struct buf *inner)
{
	const char *bytes;
	size_t at = 0, len;
	enum field f;

	queue_begin(s, inner, "ask");
	message_put_text(inner, FIELD_reply_to, s->queue.front_id);
	message_put_number(inner, FIELD_serial, serial);
	message_put_number(inner, FIELD_issued, clock_wall_ns() / NS_PER_SEC);
	message_put_text(inner, FIELD_route_name, route_rows[req->route].name);
	if (req->route == ROUTE_session_link)
		message_put_text(inner, FIELD_port_domain, s->options->port_domain);
	put_token(inner, req->token);
	while ((bytes = message_walk(req->m, &at, &f, &len)))
		if (!stays_here(f) && !(job && (f == FIELD_trust || f == FIELD_option || f == FIELD_idempotency_key)))
			message_put_bytes(inner, f, bytes, len);
	if (job) /* as token and policy have left them */
		message_put_text(inner, FIELD_trust,
				 job->req.trust ? job->req.trust : token_trust_name(s->host->default_trust));
	return (!job || queue_put_options(job, inner)) && queue_put_file(req->beside.files, inner) && !inner->full &&
	       !inner->no_memory;
}

/* NULL: too many; a client's request has been answered. */
static struct forward *forward_new(struct service *s, const struct request *req, const struct job *job,
				   struct gathering *of)
{
	struct forwards *t = &s->forwards;
	struct forward *f = t->n < FORWARDS_MAX ? calloc(1, sizeof(*f)) : NULL;
	const char *id = message_text(req->m, FIELD_id);

	if (f) {
		f->serial = ++t->last_serial;
		f->inner = (struct buf)BUF_INIT(MESSAGE_MAX);
	}
	if (!f || !put_ask(s, req, job, f->serial, &f->inner) || t->bytes + f->inner.len > FORWARDS_BYTES_MAX) {
		if (f)
			buf_release(&f->inner);
		free(f);
		if (!of)
			answer_retry(s, req, 503, 1, "too much is on its way to other nodes already");
		return NULL;
	}
	f->tag = req->tag;
	f->route = req->route;
	f->admin = req->token->admin;
	f->by_link = req->by_link;
	f->of = of;
	(void)str_copy(f->name, sizeof(f->name), req->token->name);
	(void)str_copy(f->request_id, sizeof(f->request_id), req->request_id);
	(void)str_copy(f->session, sizeof(f->session), id ? id : "");
	f->probe_ns = UINT64_MAX;
	TAILQ_INSERT_TAIL(&t->all, f, in_list);
	t->n++;
	t->bytes += f->inner.len;
	return f;
}

/* ---- nodes --------------------------------------------------------------------------------------------------------------- */

enum where { NODE_LIVE, NODE_GONE, NODE_UNKNOWN };

/* Whether the node is alive and is still the process that had the session. */
static enum where where_is(const struct service *s, const struct forward *f)
{
	const struct queue *q = &s->queue;

	for (size_t i = 0; i < q->n_nodes; i++)
		if (str_eq(q->node[i].key, f->key) && q->node[i].is_front == f->node_serves)
			return node_is_live(&q->node[i]) && str_eq(q->node[i].ask_at, f->node) ? NODE_LIVE : NODE_GONE;
	return q->since_ns && clock_now_ns() - q->since_ns > 2 * QUEUE_LEASE_S * NS_PER_SEC ? NODE_GONE : NODE_UNKNOWN;
}

struct ending {
	const char *verdict, *reason, *owner, *trust;
	uint64_t created_s;
};

/* Answers with the description of an ended session, or with 410. */
static void answer_ended(struct service *s, struct forward *f, const struct ending *e)
{
	const struct request req = { .tag = f->tag, .request_id = f->request_id };
	char created[WHEN_TEXT_MAX];

	if (f->route != ROUTE_session && f->route != ROUTE_session_delete) {
		refuse(s, f, 410, "the session %s has ended: %s", f->session, e->reason);
		return;
	}
	answer_json(s, &req, 200,
		    json_pack("{s:s, s:s, s:s, s:s, s:s, s:n, s:n, s:s, s:s, s:[], s:s}", "id", f->session, "state",
			      "ended", "token", e->owner, "trust", e->trust, "created",
			      when_utc(created, sizeof(created), e->created_s * NS_PER_SEC), "ends", "ended", "verdict",
			      e->verdict, "reason", e->reason, "contexts", "node", f->node_name));
	end(s, f);
}

static void answer_node_gone(struct service *s, struct forward *f, const struct message *address)
{
	const char *owner = address ? message_text(address, FIELD_who) : NULL;
	const char *trust = address ? message_text(address, FIELD_trust) : NULL;
	char reason[200];
	struct ending e = { .verdict = "lost",
			    .reason = reason,
			    .owner = owner ? owner : f->name,
			    .trust = trust ? trust : "unknown",
			    .created_s = address ? message_number(address, FIELD_issued, 0) : 0 };

	(void)snprintf(reason, sizeof(reason), "the node %s, which had it, has gone or begun anew", f->node_name);
	if (f->session[0] && (address || (f->route != ROUTE_session && f->route != ROUTE_session_delete)))
		answer_ended(s, f, &e);
	else
		refuse(s, f, 503, "the node %s has gone: ask again", f->node_name);
}

/* ---- the address ----------------------------------------------------------------------------------------------------------- */

static void on_found(struct service *s, struct forward *f, const struct queue_sealed *entry)
{
	const char *state = message_text(&entry->m, FIELD_state), *reason = message_text(&entry->m, FIELD_reason);
	const char *verdict = message_text(&entry->m, FIELD_verdict), *at = message_text(&entry->m, FIELD_reply_to);
	const char *owner = message_text(&entry->m, FIELD_who), *trust = message_text(&entry->m, FIELD_trust);

	(void)str_copy(f->key, sizeof(f->key), entry->by->key);
	(void)str_copy(f->node_name, sizeof(f->node_name), entry->by->name);
	(void)str_copy(f->node, sizeof(f->node), at ? at : "");
	f->node_serves = message_number(&entry->m, FIELD_serves, 0) != 0;
	if (!state || str_eq(state, "ended"))
		answer_ended(s, f,
			     &(struct ending){ .verdict = verdict ? verdict : "failed",
					       .reason = reason ? reason : "it was asked to",
					       .owner = owner,
					       .trust = trust ? trust : "unknown",
					       .created_s = message_number(&entry->m, FIELD_issued, 0) });
	else if (where_is(s, f) == NODE_GONE)
		answer_node_gone(s, f, &entry->m);
	else
		send_ask(s, f);
}

static void on_address(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct forward *f = find(s, op->number);
	const struct quota none = { 0 };
	struct queue_sealed entry;
	const char *owner, *id;
	char why[256] = "";

	if (!f)
		return;
	if (a->how == QUEUE_FAILED) {
		refuse(s, f, 503, "no broker says where the session '%.20s' is", f->session);
		return;
	}
	if (a->how != QUEUE_OK || !queue_unseal(s, a->m, "session", PEER_WORKER | PEER_FRONT, &entry)) {
		refuse(s, f, 404, "there is no session '%.20s'%s", f->session, f->admin ? "" : " of this token");
		return;
	}
	owner = message_text(&entry.m, FIELD_who);
	id = message_text(&entry.m, FIELD_id);
	if (owner && f->by_link && !access_of_owner(s, owner, &none, why, sizeof(why)))
		refuse(s, f, 401, "%s", why);
	else if (!owner || !id || !str_eq(id, f->session) || (!f->admin && !f->by_link && !str_eq(owner, f->name)))
		refuse(s, f, 404, "there is no session '%.20s'%s", f->session, f->admin ? "" : " of this token");
	else
		on_found(s, f, &entry);
}

/* ---- requests that are forwarded ------------------------------------------------------------- */

static bool is_here(const struct service *s, const char *id)
{
	const struct server_session *x;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (str_eq(x->id, id))
		return true;
	return false;
}

static bool take_of_one(struct service *s, struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);
	struct forward *f;
	struct queue_op *op;

	if (!id || strlen(id) != EXECUTION_ID_LEN || strspn(id, ID_ALPHABET) != EXECUTION_ID_LEN || is_here(s, id))
		return false;
	f = forward_new(s, req, NULL, NULL);
	op = f ? queue_get(s, BUCKET_SESSIONS, id, on_address) : NULL;
	if (op)
		op->number = f->serial;
	else if (f)
		refuse(s, f, 503, "the service has too much to do: try again in a moment");
	return true;
}

static void aim(struct forward *f, const struct queue_node *node)
{
	(void)str_copy(f->node, sizeof(f->node), node->ask_at);
	(void)str_copy(f->key, sizeof(f->key), node->key);
	(void)str_copy(f->node_name, sizeof(f->node_name), node->name);
	f->node_serves = node->is_front;
}

bool forward_for_list(struct service *s, const struct request *req, const struct queue_node *node, struct gathering *of)
{
	struct forward *f = forward_new(s, req, NULL, of);

	if (!f)
		return false;
	aim(f, node);
	send_ask(s, f);
	return true;
}

void forward_to(struct service *s, const struct request *req, const struct job *job, struct queue_node *node)
{
	struct forward *f = forward_new(s, req, job, NULL);

	if (!f)
		return;
	f->session[0] = '\0';          /* the object outlives the node's process, unlike a session */
	node->sessions += job != NULL; /* until the node's next entry */
	aim(f, node);
	send_ask(s, f);
}

/* The worker with the fewest sessions that accepts commands of this trust level, or has the environment; NULL: none. */
static struct queue_node *choose(struct service *s, const struct job *job)
{
	struct queue *q = &s->queue;
	struct queue_node *best = NULL;
	const char *trust = job->req.trust ? job->req.trust : token_trust_name(s->host->default_trust);
	char what[80], class[160];

	(void)snprintf(what, sizeof(what), "env-%.60s", job->req.environment ? job->req.environment : "");
	queue_class(trust, queue_is_environment(job->req.environment) ? what : "kind-command", class, sizeof(class));
	for (size_t i = 0; i < q->n_nodes; i++) {
		struct queue_node *node = &q->node[(i + s->forwards.last_serial) % q->n_nodes];

		if (!node->is_front && node_is_live(node) && node->slots > 0 && node->ask_at[0] &&
		    placement_has(node->classes, class, strlen(class)) && (!best || node->sessions < best->sessions))
			best = node;
	}
	return best;
}

bool forward_places(struct service *s, struct request *req)
{
	const char *where = message_text(req->m, FIELD_place);
	struct brig_error err = BRIG_ERROR_INIT;
	struct queue_node *node = NULL;
	struct job *job = NULL;
	uint64_t memory = 0;

	if (message_has(req->m, FIELD_snapshot))
		return snapshot_asks_place(s, req);
	if (!where || str_eq(where, "here") || message_has(req->m, FIELD_shared_id))
		return false;
	if (s->draining)
		answer_retry(s, req, 503, 5, "the service is being stopped and takes nothing new");
	else if (session_check_wish(s, req, &job, &memory, &err) < 0)
		answer_trouble(s, req, &err);
	else if (!(node = choose(s, job)))
		answer_retry(s, req, 503, 5,
			     "no worker takes such a session now: see /v1/nodes, or leave out \"place\"");
	else if (!session_is_metered(s, req, NULL))
		forward_to(s, req, job, node);
	job_free(job);
	return true;
}

void forward_made(struct service *s, const struct request *req, const char *id, const struct queue_sealed *address)
{
	AUTO_BUF bytes = BUF_INIT(KiB);
	struct message m;
	const char *why;
	struct request look = { .tag = req->tag,
				.route = ROUTE_session,
				.m = &m,
				.request_id = req->request_id,
				.token = req->token,
				.beside = JOB_DESCRIPTORS_NONE };
	struct forward *f;

	message_put_text(&bytes, FIELD_id, id);
	if (bytes.full || bytes.no_memory || !message_read(bytes.data, bytes.len, &m, &why)) {
		answer_retry(s, req, 503, 1, "there is no memory for the request");
		return;
	}
	f = forward_new(s, &look, NULL, NULL);
	if (!f)
		return;
	f->is_made = true;
	on_found(s, f, address);
}

bool forward_lets_in(const struct service *s, struct request *req)
{
	static const struct token nobody = { .name = "link:" };

	req->by_link = s->queue.is_on && !s->queue.is_worker && message_has(req->m, FIELD_id);
	if (req->by_link)
		req->token = &nobody;
	return req->by_link;
}

bool forward_takes(struct service *s, struct request *req)
{
	static const char of_one[] = "/v1/sessions/{id}";

	if (!s->queue.is_on || s->queue.is_worker || req->session)
		return false;
	if (gathering_takes(s, req))
		return true;
	if (snapshot_asks_take(s, req))
		return true;
	if (req->route == ROUTE_session_make)
		return session_keys_take(s, req) || forward_places(s, req);
	return strncmp(route_rows[req->route].path, of_one, sizeof(of_one) - 1) == 0 && take_of_one(s, req);
}

/* ---- responses ------------------------------------------------------------------------------- */

/*
 * A connection to a server in the session: the client's front gets one end of a socket pair, and a tunnel carries the
 * bytes.
 */
static void answer_tunnel(struct service *s, const struct forward *f, struct answer *a)
{
	const struct request req = { .tag = f->tag, .request_id = f->request_id };
	char subject[64];
	const struct tunnel_name name = { s->queue.front_id, f->serial, subject, f->key };
	int ends[2] = { FD_NONE, FD_NONE };

	(void)snprintf(subject, sizeof(subject), "%s%s", FORWARD_SUBJECT_NODE, f->node);
	if (f->route != ROUTE_session_port || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ||
	    !tunnel_begin(s, &name, &ends[0])) {
		answer_retry(s, &req, 503, 1, "there are as many connections to sessions of other nodes as can be");
	} else {
		a->fd = &ends[1];
		answer_send(s, f->tag, a);
	}
	fd_closep(&ends[0]);
	fd_closep(&ends[1]);
}

static void on_answer(struct service *s, struct forward *f, const struct message *m)
{
	struct answer a = { .status = (uint16_t)min_u64(message_number(m, FIELD_status, 500), 599),
			    .content_type = message_text(m, FIELD_content_type),
			    .location = message_text(m, FIELD_location),
			    .who = message_text(m, FIELD_who),
			    .unlisted = message_text(m, FIELD_unlisted),
			    .retry_after = (uint32_t)min_u64(message_number(m, FIELD_retry_after, 0), UINT32_MAX),
			    .error = (int)min_u64(message_number(m, FIELD_error_number, 0), 4095),
			    .changed = message_number(m, FIELD_changed, 0) };

	a.body = message_bytes(m, FIELD_body, &a.len);
	if (f->is_made && a.status == 200)
		a.status = 201;
	if (f->of)
		gathering_add(f->of, m, f->node_name, f->node_serves);
	else if (message_number(m, FIELD_tunnel, 0))
		answer_tunnel(s, f, &a);
	else
		answer_send(s, f->tag, &a);
	end(s, f);
}

static void on_event(struct service *s, struct forward *f, const struct message *m)
{
	uint64_t kind = message_number(m, FIELD_event, EVENT_KINDS), serial = message_number(m, FIELD_sequence, 0);
	size_t len;
	const char *text = message_bytes(m, FIELD_text, &len);

	if (f->of || kind >= EVENT_KINDS || !text || serial <= f->events)
		return; /* a duplicate */
	f->events = serial;
	event_send(s, f->tag, (enum event_kind)kind, text, len);
}

/* A response that only reports the state of the request. */
static void on_state(struct service *s, struct forward *f, const char *state)
{
	if (str_eq(state, "open"))
		return;
	if (str_eq(state, "unknown") && !f->is_repeated && f->inner.len > 0) {
		f->is_repeated = true; /* the first one was lost */
		send_ask(s, f);
	} else if (str_eq(state, "over")) {
		refuse(s, f, 503, "the node %s has answered, and the answer was lost on its way: look at the session",
		       f->node_name);
	} else if (str_eq(state, "busy")) {
		refuse(s, f, 503, "the node %s has too much to do: ask again in a moment", f->node_name);
	} else if (str_eq(state, "unsent")) {
		refuse(s, f, 500, "the node %s cannot send its answer: it is too long, or no bytes", f->node_name);
	} else {
		refuse(s, f, 503, "the node %s does not take it: its version may be another one", f->node_name);
	}
}

void forward_on_told(struct service *s, const struct message *m)
{
	struct queue_sealed said;
	const char *state;
	struct forward *f;

	if (!queue_unseal(s, m, "answer", PEER_WORKER | PEER_FRONT, &said))
		return;
	state = message_text(&said.m, FIELD_state);
	f = find(s, message_number(&said.m, FIELD_serial, 0));
	if (!f || !f->is_sent || !state)
		return;
	if (!str_eq(said.by->key, f->key)) {
		queue_complain(s, "refused an answer of %s in the place of %s", said.by->name, f->node_name);
		return;
	}
	f->probes = 0;
	f->probe_ns = clock_now_ns() + HEARD_NS;
	if (!str_eq(state, "unknown"))
		drop_ask(s, f);
	if (str_eq(state, "event"))
		on_event(s, f, &said.m);
	else if (str_eq(state, "answer"))
		on_answer(s, f, &said.m);
	else
		on_state(s, f, state);
}

/* ---- timer, clients that disconnect ---------------------------------------------------------- */

static void probe(struct service *s, struct forward *f, uint64_t now)
{
	enum where where = where_is(s, f);

	if (where == NODE_GONE) {
		answer_node_gone(s, f, NULL);
	} else if (f->probes == (f->of ? LIST_PROBES_MAX : PROBES_MAX)) {
		refuse(s, f, 503, "the node %s, which has it, does not answer: ask again, or see /v1/nodes",
		       f->node_name);
	} else {
		f->probes++;
		f->probe_ns = now + PROBE_NS;
		tell_word(s, f, "probe");
	}
}

void forward_tick(struct service *s)
{
	uint64_t now = clock_now_ns();

	for (struct forward *f = TAILQ_FIRST(&s->forwards.all), *next; f; f = next) {
		next = TAILQ_NEXT(f, in_list);
		if (f->is_sent && f->probe_ns <= now)
			probe(s, f, now);
	}
}

bool forward_gone(struct service *s, uint32_t tag)
{
	struct forward *f = find_tag(s, tag);

	if (!f)
		return gathering_gone(s, tag) || snapshot_asks_gone(s, tag);
	if (f->is_sent)
		tell_word(s, f, "gone");
	refuse(s, f, 503, "who asked has gone");
	return true;
}

bool forward_cancel(struct service *s, uint32_t tag)
{
	const struct forward *f = find_tag(s, tag);

	if (f && f->is_sent)
		tell_word(s, f, "cancel");
	return f != NULL;
}

void forward_all_gone(struct service *s)
{
	struct forward *f;

	gatherings_all_gone(s);
	snapshot_asks_release(s);
	while ((f = TAILQ_FIRST(&s->forwards.all))) {
		if (f->is_sent)
			tell_word(s, f, "gone");
		end(s, f);
	}
}

void forward_release(struct service *s)
{
	forward_all_gone(s);
	gatherings_release(s); /* those waiting for this node's recorder */
}
