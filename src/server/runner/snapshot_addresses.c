/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_addresses.c - snapshots on other nodes of the queue
 *
 * A snapshot stays on the node of its session, and sessions created from it run there.  Its address (node, owner,
 * settings of its session) is sealed and put into the bucket of sessions before the client is told of it.  Unlike a
 * session it outlives its node's process: the address is the node's key, and the node's entry says where it is reached
 * now.
 *
 *	show, remove     address in the bucket -> forwarded to the node
 *	create session   address in the bucket -> request and settings are checked against the token -> forwarded to the node
 *
 * Nothing is put when a snapshot is removed: its node answers 404.
 */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define PUT_NS   (2 * NS_PER_SEC)
#define AGAIN_NS (6 * 3600 * NS_PER_SEC) /* entries expire after a day */
#define PUTS     16                      /* per tick */
#define ASKS_MAX 64

/* A request that waits for an address. */
struct snapshot_ask {
	LIST_ENTRY(snapshot_ask) in_list;
	uint64_t serial;
	uint32_t tag;
	bool has_gone;
	enum route route;
	struct token token;
	char request_id[129];
	struct buf bytes; /* the request's message */
};

/* ---- addresses of this node's snapshots ------------------------------------------------------ */

static struct snapshot *find_own(const struct service *s, const char *id)
{
	struct snapshot *x;

	TAILQ_FOREACH(x, &s->snapshots.all, in_age)
	if (str_eq(x->id, id))
		return x;
	return NULL;
}

/* The client is answered even if no broker responded: on this node the snapshot can be used. */
static void on_put(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct snapshot *x = find_own(s, op->id);

	if (!x)
		return;
	x->is_addressing = false;
	x->addressed_ns = a->how == QUEUE_OK ? clock_now_ns() : 0;
	snapshot_tell(s, x);
}

static void put_settings(struct buf *inner, const json_t *about)
{
	const json_t *option;
	size_t i;

	message_put_text(inner, FIELD_trust, json_string_value(json_object_get(about, "trust")));
	message_put_text(inner, FIELD_environment, json_string_value(json_object_get(about, "environment")));
	json_array_foreach(json_object_get(about, "options"), i, option)
		message_put_text(inner, FIELD_option, json_string_value(option));
}

bool snapshot_address_put(struct service *s, struct snapshot *x)
{
	AUTO_BUF inner = BUF_INIT(2 * SNAPSHOT_ABOUT_MAX);

	if (!s->queue.is_on || !s->queue.is_up)
		return false;
	queue_begin(s, &inner, "snapshot");
	message_put_text(&inner, FIELD_id, x->id);
	message_put_text(&inner, FIELD_who, x->owner);
	message_put_number(&inner, FIELD_serves, !s->queue.is_worker);
	put_settings(&inner, x->about);
	x->is_addressing = queue_put(s, BUCKET_SESSIONS, x->id, LINK_ANY, &inner, PUT_NS, on_put) != NULL;
	return x->is_addressing;
}

void snapshot_addresses_tick(struct service *s)
{
	uint64_t now = clock_now_ns();
	struct snapshot *x;
	size_t n = 0;

	if (!s->queue.is_up)
		return;
	TAILQ_FOREACH(x, &s->snapshots.all, in_age)
	if (n < PUTS && !x->is_addressing && (x->addressed_ns == 0 || now - x->addressed_ns > AGAIN_NS))
		n += snapshot_address_put(s, x);
}

/* ---- requests for snapshots of other nodes --------------------------------------------------- */

static struct snapshot_ask *find(const struct service *s, uint64_t serial)
{
	struct snapshot_ask *w;

	LIST_FOREACH(w, &s->forwards.snapshot_asks, in_list)
	if (w->serial == serial)
		return w;
	return NULL;
}

static void ask_free(struct service *s, struct snapshot_ask *w)
{
	LIST_REMOVE(w, in_list);
	s->forwards.n_snapshot_asks--;
	buf_release(&w->bytes);
	free(w);
}

/* NULL: too many, or out of memory. */
static struct snapshot_ask *ask_new(struct service *s, const struct request *req)
{
	struct snapshot_ask *w = s->forwards.n_snapshot_asks < ASKS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return NULL;
	w->serial = ++s->forwards.last_snapshot_ask;
	w->tag = req->tag;
	w->route = req->route;
	w->token = *req->token;
	w->bytes = (struct buf)BUF_INIT(MESSAGE_MAX);
	(void)str_copy(w->request_id, sizeof(w->request_id), req->request_id);
	LIST_INSERT_HEAD(&s->forwards.snapshot_asks, w, in_list);
	s->forwards.n_snapshot_asks++;
	if (buf_add(&w->bytes, req->m->bytes, req->m->len))
		return w;
	ask_free(s, w);
	return NULL;
}

/* Queries the address for a request about a snapshot that is not on this node. */
static void ask(struct service *s, const struct request *req, const char *id, queue_fn fn)
{
	struct snapshot_ask *w = ask_new(s, req);
	struct queue_op *op = w ? queue_get(s, BUCKET_SESSIONS, id, fn) : NULL;

	if (op) {
		op->number = w->serial;
		return;
	}
	if (w)
		ask_free(s, w);
	answer_retry(s, req, 503, 1, "the service has too much to do: try again in a moment");
}

static struct queue_node *node_of(const struct service *s, const struct queue_sealed *entry)
{
	bool is_front = message_number(&entry->m, FIELD_serves, 0) != 0;

	for (size_t i = 0; i < s->queue.n_nodes; i++) {
		struct queue_node *node = &s->queue.node[i];

		if (str_eq(node->key, entry->by->key) && node->is_front == is_front)
			return node_is_live(node) && node->ask_at[0] ? node : NULL;
	}
	return NULL;
}

/* ---- creating a session from it -------------------------------------------------------------- */

static json_t *settings_of(const struct message *m)
{
	json_t *options = json_array();
	const char *option;
	size_t at = 0, len;

	while ((option = message_next(m, FIELD_option, &at, &len)))
		(void)json_array_append_new(options, json_string(option));
	return json_pack("{s:s?, s:s?, s:o}", "trust", message_text(m, FIELD_trust), "environment",
			 message_text(m, FIELD_environment), "options", options);
}

/* Combines the request with the session's settings; false: out of memory. */
static bool put_wish(struct buf *fields, const struct request *req, const struct message *entry)
{
	json_t *settings = settings_of(entry);

	if (!settings)
		return false;
	session_put_restored(fields, req->m, settings);
	json_decref(settings);
	message_put_text(fields, FIELD_snapshot, message_text(req->m, FIELD_snapshot));
	message_put_text(fields, FIELD_request_id, req->request_id[0] ? req->request_id : NULL);
	return !fields->full && !fields->no_memory;
}

/* True: the request names a place where the snapshot is not; it has been answered. */
static bool is_elsewhere(struct service *s, const struct request *req, const char *node_name, bool is_here,
			 bool is_front)
{
	const char *where = message_text(req->m, FIELD_place);

	if (!where || (str_eq(where, "here") ? is_here : !is_front))
		return false;
	answer_error(s, req, 422,
		     "a session of a snapshot begins where the snapshot is, and this one is on the node %s: leave out "
		     "\"place\"",
		     node_name);
	return true;
}

static void restore(struct service *s, const struct request *req, const struct queue_sealed *entry,
		    struct queue_node *node)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	struct request instead = *req;
	struct job *job = NULL;
	uint64_t memory = 0;
	struct message m;
	const char *why;

	if (is_elsewhere(s, req, node->name, false, node->is_front))
		return;
	if (!put_wish(&fields, req, &entry->m) || !message_read(fields.data, fields.len, &m, &why)) {
		answer_retry(s, req, 503, 1, "there is no memory for the request");
		return;
	}
	instead.m = &m;
	if (session_check_wish(s, &instead, &job, &memory, &err) < 0)
		answer_trouble(s, req, &err);
	else if (!session_is_metered(s, req, NULL))
		forward_to(s, &instead, job, node);
	job_free(job);
}

/* ---- addresses of other nodes ---------------------------------------------------------------- */

static void go_on(struct service *s, const struct request *req, const struct queue_sealed *entry)
{
	struct queue_node *node = node_of(s, entry);

	if (!node)
		answer_retry(
			s, req, 503, 5,
			"the snapshot is on the node %s, which is not there now: see /v1/nodes, and ask again when "
			"it is",
			entry->by->name);
	else if (req->route == ROUTE_session_make)
		restore(s, req, entry, node);
	else
		forward_to(s, req, NULL, node);
}

static bool is_address_of(const struct snapshot_ask *w, const char *id, const struct message *m)
{
	const char *owner = message_text(m, FIELD_who), *own = message_text(m, FIELD_id);

	return owner && own && str_eq(own, id) && access_owns(&w->token, owner);
}

static void on_address(struct service *s, const struct queue_op *op, const struct queue_answer *a)
{
	struct snapshot_ask *w = find(s, op->number);
	struct request req = { .beside = JOB_DESCRIPTORS_NONE };
	struct queue_sealed entry;
	struct message m;
	const char *why;

	if (!w)
		return;
	req.tag = w->tag;
	req.route = w->route;
	req.request_id = w->request_id;
	req.token = &w->token;
	req.m = &m;
	if (w->has_gone || !message_read(w->bytes.data, w->bytes.len, &m, &why))
		answer_retry(s, &req, 503, 1, "who asked has gone");
	else if (a->how == QUEUE_FAILED)
		answer_retry(s, &req, 503, 1, "no broker says where the snapshot '%.20s' is", op->id);
	else if (a->how != QUEUE_OK || !queue_unseal(s, a->m, "snapshot", PEER_WORKER | PEER_FRONT, &entry) ||
		 !is_address_of(w, op->id, &entry.m))
		snapshot_answer_none(s, &req, op->id);
	else
		go_on(s, &req, &entry);
	ask_free(s, w);
}

static bool is_elsewhere_by_id(const struct service *s, const char *id)
{
	return id && strlen(id) == EXECUTION_ID_LEN && strspn(id, ID_ALPHABET) == EXECUTION_ID_LEN && !find_own(s, id);
}

bool snapshot_asks_take(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);

	if ((req->route != ROUTE_snapshot && req->route != ROUTE_snapshot_delete) || !is_elsewhere_by_id(s, id))
		return false;
	ask(s, req, id, on_address);
	return true;
}

bool snapshot_asks_place(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_snapshot);

	if (!is_elsewhere_by_id(s, id))
		return is_elsewhere(s, req, s->options->node_name, true, true);
	if (s->draining)
		answer_retry(s, req, 503, 5, "the service is being stopped and takes nothing new");
	else
		ask(s, req, id, on_address);
	return true;
}

/* ---- clients that disconnect ----------------------------------------------------------------- */

bool snapshot_asks_gone(struct service *s, uint32_t tag)
{
	struct snapshot_ask *w;

	LIST_FOREACH(w, &s->forwards.snapshot_asks, in_list)
	if (w->tag == tag) {
		w->has_gone = true;
		return true;
	}
	return false;
}

void snapshot_asks_release(struct service *s)
{
	while (!LIST_EMPTY(&s->forwards.snapshot_asks))
		ask_free(s, LIST_FIRST(&s->forwards.snapshot_asks));
}
