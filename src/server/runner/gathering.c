/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gathering.c - lists of what all nodes of the queue have
 *
 * A front asks each node that may have something, as its own client would ask there, and answers when all have: with everything, the
 * youngest first, each once, and the names of those that did not answer in time.
 *
 *	sessions     nodes that have some
 *	executions   workers, which remember what they run and ran lately, whoever asked for it; and fronts, which know what waits
 *	batches      fronts; and then, of those that none of them knows, the bucket (queue_batch_list.c)
 *	snapshots    all
 *	history      all: each records what it ran, and an execution that was begun twice is in two histories
 *
 * So what a front that was killed had accepted is in the list as soon as a worker has begun it.  Of an execution that two nodes know,
 * a front knows more than the worker: when it was asked for, and through which door.
 *
 * What this node itself has is at hand, but for its history, which the recorder tells later.  An entry of the history that is not here
 * is looked for in the same way: it is a list of one, or of none.
 */
#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

struct gathering {
	LIST_ENTRY(gathering) in_list;
	uint64_t serial;
	uint32_t tag; /* 0: who asked has gone, or was answered */
	char name[TOKEN_NAME_MAX + 1], request_id[129], id[EXECUTION_ID_LEN + 1]; /* id: of an entry */
	bool is_admin;
	const struct list *list;
	json_t *items, *missing, *warnings;
	json_t *places;       /* of each id: twice its place in items, and one more if only a worker has told of it */
	size_t n_open, limit; /* limit 0: none */
	uint64_t total;       /* of what there is, as the nodes say */
	bool has_rest;        /* what no node tells was asked for */
};

/* ---- what lists there are ----------------------------------------------------------------------------------------------- */

static bool has_sessions(const struct queue_node *node, const struct request *req UNUSED)
{
	return node->sessions > 0;
}

static bool may_have_executions(const struct queue_node *node, const struct request *req)
{
	const char *name = message_text(req->m, FIELD_node_name);

	return !name || (!node->is_front && str_eq(node->name, name));
}

static bool may_have_batches(const struct queue_node *node, const struct request *req UNUSED)
{
	return node->is_front;
}

static bool may_have_any(const struct queue_node *node UNUSED, const struct request *req UNUSED)
{
	return true;
}

static bool is_good(struct service *s UNUSED, const struct request *req UNUSED)
{
	return true;
}

static size_t no_limit(const struct request *req UNUSED)
{
	return 0;
}

static const struct list {
	enum route route;
	const char *member; /* NULL: it is one document */
	const char *age;    /* the member of an item that says when it was made */
	bool (*is_good)(struct service *s, const struct request *req);
	bool (*may_have)(const struct queue_node *node, const struct request *req);
	json_t *(*own)(const struct service *s,
		       const struct request *req); /* NULL: it comes later, or is known not to be */
	size_t (*limit)(const struct request *req);
	/* When all nodes are done with: what none of them tells; ends with gathering_end_one().  NULL: there is nothing. */
	void (*rest)(struct service *s, struct gathering *g, const struct token *token, size_t limit);
	bool is_recorded; /* by each node for itself: its items say where they are from, and none is another's */
} lists[] = {
	{ ROUTE_sessions, "sessions", "created", is_good, has_sessions, sessions_list, no_limit, NULL, false },
	{ ROUTE_executions, "executions", "created", executions_list_is_good, may_have_executions, executions_list,
	  executions_list_limit, NULL, false },
	{ ROUTE_batches, "batches", "created", is_good, may_have_batches, batches_list, executions_list_limit,
	  batch_listing_begin, false },
	{ ROUTE_snapshots, "snapshots", "created", is_good, may_have_any, snapshots_list, no_limit, NULL, false },
	{ ROUTE_history, "executions", "time", is_good, may_have_any, NULL, history_limit, NULL, true },
	{ ROUTE_history_entry, NULL, "time", is_good, may_have_any, NULL, no_limit, NULL, true },
};

static const struct list *find_list(enum route route)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (lists[i].route == route)
			return &lists[i];
	return NULL;
}

bool gathering_is_possible(enum route route)
{
	return find_list(route) != NULL;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *item, const char *member)
{
	const char *text = json_string_value(json_object_get(item, member));

	return text ? text : "";
}

static int by_age(const void *a, const void *b, void *arg)
{
	const json_t *const *x = a, *const *y = b;
	const char *const *member = arg;
	int order = strcmp(text_of(*y, *member), text_of(*x, *member)); /* moments of one form */

	return order ? order : strcmp(text_of(*x, "id"), text_of(*y, "id"));
}

/* The youngest, at most so many. */
static json_t *in_order(const struct gathering *g)
{
	size_t n = json_array_size(g->items);
	AUTO_FREE json_t **item = calloc(n + 1, sizeof(json_t *));
	const char *member = g->list->age;
	json_t *list = json_array();

	for (size_t i = 0; item && i < n; i++)
		item[i] = json_array_get(g->items, i);
	if (item && n > 0)
		qsort_r(item, n, sizeof(json_t *), by_age, &member);
	for (size_t i = 0; item && i < n && (g->limit == 0 || i < g->limit); i++)
		(void)json_array_append(list, item[i]);
	return list;
}

static void answer_list(struct service *s, const struct request *req, const struct gathering *g)
{
	json_t *doc = json_pack("{s:o, s:O}", g->list->member, in_order(g), "missing", g->missing);

	if (g->list->is_recorded) {
		(void)json_object_set_new(doc, "total", json_integer((json_int_t)g->total));
		(void)json_object_set(doc, "history_warnings", g->warnings);
	}
	answer_json(s, req, 200, doc);
}

/* Of an execution that was begun twice the last one counts. */
static void answer_one(struct service *s, const struct request *req, const struct gathering *g)
{
	json_t *found = in_order(g);

	if (json_array_size(found) > 0)
		answer_json(s, req, 200, json_incref(json_array_get(found, 0)));
	else if (json_array_size(g->missing) > 0)
		answer_retry(
			s, req, 503, 1,
			"%zu nodes did not answer, the node %s among them, and no other has the execution %s in its "
			"history: ask again",
			json_array_size(g->missing), json_string_value(json_array_get(g->missing, 0)), g->id);
	else
		history_answer_none(s, req, g->id);
	json_decref(found);
}

static void gathering_free(struct gathering *g)
{
	LIST_REMOVE(g, in_list);
	json_decref(g->items);
	json_decref(g->missing);
	json_decref(g->warnings);
	json_decref(g->places);
	free(g);
}

void gathering_end_one(struct service *s, struct gathering *g)
{
	struct token token = { .admin = g->is_admin };
	struct request req = { .tag = g->tag, .request_id = g->request_id, .token = &token };

	if (--g->n_open > 0)
		return;
	(void)str_copy(token.name, sizeof(token.name), g->name);
	if (g->tag && g->list->rest && !g->has_rest) {
		g->has_rest = true;
		g->n_open = 1;
		g->list->rest(s, g, &token, g->limit);
		return;
	}
	if (g->tag && g->list->member)
		answer_list(s, &req, g);
	else if (g->tag)
		answer_one(s, &req, g);
	gathering_free(g);
}

static void note_place(struct gathering *g, size_t at, bool by_worker)
{
	(void)json_object_set_new(g->places, text_of(json_array_get(g->items, at), "id"),
				  json_integer((json_int_t)(2 * at + by_worker)));
}

/* Of what two nodes know a front knows more than a worker. */
static void add_item(struct gathering *g, json_t *item, bool is_front)
{
	const json_t *place = g->list->is_recorded ? NULL : json_object_get(g->places, text_of(item, "id"));
	size_t at = place ? (size_t)json_integer_value(place) / 2 : json_array_size(g->items);

	if (!place)
		(void)json_array_append(g->items, item);
	else if (is_front && json_integer_value(place) % 2)
		(void)json_array_set(g->items, at, item);
	else
		return;
	note_place(g, at, !is_front);
}

/* ---- what the nodes answer -------------------------------------------------------------------------------------------------- */

/* A node's own name for itself is none, where one could be said. */
static void add_one(struct gathering *g, json_t *item, const char *node_name, bool is_front)
{
	if (g->list->is_recorded || (!is_front && g->list->route == ROUTE_executions))
		(void)json_object_set_new(item, "node", json_string(node_name));
	add_item(g, item, is_front);
}

static void add_document(struct gathering *g, json_t *doc, const char *node_name, bool is_front)
{
	json_t *item;
	size_t i;

	if (!g->list->member) {
		add_one(g, doc, node_name, is_front);
		return;
	}
	json_array_foreach(json_object_get(doc, g->list->member), i, item) add_one(g, item, node_name, is_front);
	json_array_foreach(json_object_get(doc, "history_warnings"), i, item)(void)
		json_array_append_new(g->warnings, json_sprintf("%s: %s", node_name, json_string_value(item)));
	g->total += (uint64_t)json_integer_value(json_object_get(doc, "total"));
}

void gathering_add(struct gathering *g, const struct message *m, const char *node_name, bool is_front)
{
	uint64_t status = message_number(m, FIELD_status, 500);
	size_t len;
	const char *body = message_bytes(m, FIELD_body, &len);
	json_t *doc = body && status == 200 ? json_loadb(body, len, JSON_ALLOW_NUL, NULL) : NULL;

	if (doc)
		add_document(g, doc, node_name, is_front);
	else if (g->list->member || status != 404)
		gathering_miss(g, node_name);
	json_decref(doc);
}

void gathering_miss(struct gathering *g, const char *node_name)
{
	(void)json_array_append_new(g->missing, json_string(node_name));
}

void gathering_put(struct gathering *g, json_t *item)
{
	if (item)
		add_item(g, item, true);
	json_decref(item);
}

bool gathering_has(const struct gathering *g, const char *id)
{
	return json_object_get(g->places, id) != NULL;
}

static struct gathering *find(const struct service *s, uint64_t serial)
{
	struct gathering *g;

	LIST_FOREACH(g, &s->forwards.gatherings, in_list)
	if (g->serial == serial)
		return g;
	return NULL;
}

void gathering_recorded(struct service *s, const struct request *req, int rc, char *text, const struct brig_error *err)
{
	struct gathering *g = find(s, req->gathering);
	json_t *doc = rc < 0 ? NULL : json_loads(text, JSON_ALLOW_NUL, NULL);

	if (rc >= 0)
		brig_free(text);
	if (g && doc) {
		add_document(g, doc, s->options->node_name, true);
	} else if (g && g->tag) {
		recorded_trouble(s, req, err);
		g->tag = 0;
	}
	json_decref(doc);
	if (g)
		gathering_end_one(s, g);
}

/* ---- asking ------------------------------------------------------------------------------------------------------------------ */

static struct gathering *gathering_new(struct service *s, const struct request *req, const struct list *list)
{
	struct gathering *g = calloc(1, sizeof(*g));
	const char *id = message_text(req->m, FIELD_id);

	if (!g)
		return NULL;
	g->serial = ++s->forwards.last_gathering;
	g->n_open = 1; /* ourselves */
	g->tag = req->tag;
	g->list = list;
	g->items = list->own ? list->own(s, req) : json_array();
	g->missing = json_array();
	g->warnings = json_array();
	g->places = json_object();
	for (size_t i = 0; i < json_array_size(g->items); i++)
		note_place(g, i, false);
	g->limit = list->limit(req);
	g->is_admin = req->token->admin;
	(void)str_copy(g->name, sizeof(g->name), req->token->name);
	(void)str_copy(g->request_id, sizeof(g->request_id), req->request_id);
	(void)str_copy(g->id, sizeof(g->id), id ? id : "");
	LIST_INSERT_HEAD(&s->forwards.gatherings, g, in_list);
	return g;
}

/* NULL: there is no other node that may have something. */
static struct gathering *ask_nodes(struct service *s, const struct request *req, const struct list *list)
{
	const struct queue *q = &s->queue;
	struct gathering *g = NULL;

	for (size_t i = 0; i < q->n_nodes; i++) {
		const struct queue_node *node = &q->node[i];

		if (!node_is_live(node) || !node->ask_at[0] || str_eq(node->ask_at, q->front_id) ||
		    !list->may_have(node, req))
			continue;
		g = g ? g : gathering_new(s, req, list);
		if (g && forward_for_list(s, req, node, g))
			g->n_open++;
		else if (g)
			gathering_miss(g, node->name);
	}
	return g;
}

bool gathering_takes(struct service *s, const struct request *req)
{
	const struct list *list = find_list(req->route);
	struct request own = *req;
	struct gathering *g;

	if (!list || !list->member)
		return false;
	if (!list->is_good(s, req))
		return true;
	g = ask_nodes(s, req, list);
	if (!g && list->rest)
		g = gathering_new(s, req, list);
	if (!g)
		return false;
	if (list->own) {
		gathering_end_one(s, g);
		return true;
	}
	own.gathering = g->serial; /* the handler's answer is a part of it */
	requests_handle(s, &own);
	return true;
}

bool gathering_looks(struct service *s, const struct request *req, const char *id)
{
	AUTO_BUF bytes = BUF_INIT(KiB);
	struct message m;
	struct request look = *req;
	struct gathering *g;
	const char *why;

	if (!s->queue.is_on || s->queue.is_worker || forwarded_is_tag(req->tag))
		return false;
	message_put_text(&bytes, FIELD_id, id);
	if (bytes.full || bytes.no_memory || !message_read(bytes.data, bytes.len, &m, &why))
		return false;
	look.m = &m;
	look.route = ROUTE_history_entry;
	g = ask_nodes(s, &look, find_list(ROUTE_history_entry));
	if (g)
		gathering_end_one(s, g);
	return g != NULL;
}

/* ---- clients that go ----------------------------------------------------------------------------------------------------- */

bool gathering_gone(const struct service *s, uint32_t tag)
{
	const struct gathering *g;

	LIST_FOREACH(g, &s->forwards.gatherings, in_list)
	if (g->tag == tag)
		return true; /* it is answered soon */
	return false;
}

bool gathering_is_of(const struct gathering *g, uint32_t tag)
{
	return g->tag == tag;
}

void gathering_all_gone(struct gathering *g)
{
	g->tag = 0; /* the next front has tags of its own */
}

void gatherings_all_gone(struct service *s)
{
	struct gathering *g;

	LIST_FOREACH(g, &s->forwards.gatherings, in_list)
	gathering_all_gone(g);
}

void gatherings_release(struct service *s)
{
	while (!LIST_EMPTY(&s->forwards.gatherings))
		gathering_free(LIST_FIRST(&s->forwards.gatherings));
}
