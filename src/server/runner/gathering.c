/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gathering.c - lists across all nodes of the queue
 *
 * A front sends the request to each node that may have items, and answers when all have responded: all items, youngest
 * first, without duplicates, and the names of nodes that did not respond in time.
 *
 *	sessions     nodes that have some
 *	executions   workers, which have what they run and ran lately, whoever submitted it; and fronts, which have what waits
 *	batches      fronts; then, for those none of them has, the bucket (queue_batch_list.c)
 *	snapshots    all nodes
 *	history      all nodes: each records what it ran; an execution started twice is in two histories
 *
 * So what a front accepted before it died is in the list as soon as a worker has started it.  Of an execution known to
 * two nodes, the front's version is used, since it has the time of submission and the door.
 *
 * This node's own items are available at once, except its history, which the recorder returns later.  A history entry
 * that is not on this node is looked up in the same way, as a list of at most one item.
 */
#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

struct gathering {
	LIST_ENTRY(gathering) in_list;
	uint64_t serial;
	uint32_t tag; /* 0: the client has gone, or was answered */
	char name[TOKEN_NAME_MAX + 1], request_id[129], id[EXECUTION_ID_LEN + 1]; /* id: of a history entry */
	bool is_admin;
	const struct list *list;
	json_t *items, *missing, *warnings;
	json_t *places;       /* for each id: twice its index in items, plus 1 if only a worker has returned it */
	size_t n_open, limit; /* limit 0: none */
	uint64_t total;       /* number of matches, as reported by the nodes */
	bool has_rest;        /* the part that no node returns was requested */
};

/* ---- the lists ------------------------------------------------------------------------------- */

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
	const char *member; /* NULL: a single document */
	const char *age;    /* member of an item with its time */
	bool (*is_good)(struct service *s, const struct request *req);
	bool (*may_have)(const struct queue_node *node, const struct request *req);
	json_t *(*own)(const struct service *s,
		       const struct request *req); /* NULL: returned later, or known to be missing on this node */
	size_t (*limit)(const struct request *req);
	/*
	 * Called when all nodes are done, for items that none of them has; must call gathering_end_one().  NULL: there
	 * are none.
	 */
	void (*rest)(struct service *s, struct gathering *g, const struct token *token, size_t limit);
	bool is_recorded; /* recorded by each node for itself: items get the node's name, and duplicates are kept */
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

/* ---- the answer ------------------------------------------------------------------------------ */

static const char *text_of(const json_t *item, const char *member)
{
	const char *text = json_string_value(json_object_get(item, member));

	return text ? text : "";
}

static int by_age(const void *a, const void *b, void *arg)
{
	const json_t *const *x = a, *const *y = b;
	const char *const *member = arg;
	int order = strcmp(text_of(*y, *member), text_of(*x, *member)); /* timestamps have a fixed format */

	return order ? order : strcmp(text_of(*x, "id"), text_of(*y, "id"));
}

/* The youngest items, up to the limit. */
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

/* If an execution was started twice, the later record is used. */
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

/* For duplicates, a front's version replaces a worker's. */
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

/* ---- responses of nodes ---------------------------------------------------------------------- */

/* A node does not name itself, so the name is added where it is useful. */
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

/* ---- requests -------------------------------------------------------------------------------- */

static struct gathering *gathering_new(struct service *s, const struct request *req, const struct list *list)
{
	struct gathering *g = calloc(1, sizeof(*g));
	const char *id = message_text(req->m, FIELD_id);

	if (!g)
		return NULL;
	g->serial = ++s->forwards.last_gathering;
	g->n_open = 1; /* this node */
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

/* NULL: no other node may have items, or out of memory. */
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
	own.gathering = g->serial; /* the handler's answer becomes part of the list */
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

/* ---- clients that disconnect ----------------------------------------------------------------- */

bool gathering_gone(const struct service *s, uint32_t tag)
{
	const struct gathering *g;

	LIST_FOREACH(g, &s->forwards.gatherings, in_list)
	if (g->tag == tag)
		return true; /* it ends soon by itself */
	return false;
}

bool gathering_is_of(const struct gathering *g, uint32_t tag)
{
	return g->tag == tag;
}

void gathering_all_gone(struct gathering *g)
{
	g->tag = 0; /* the next front starts with new tags */
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
