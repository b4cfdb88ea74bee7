/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gathering.c - lists of what all nodes of the queue have
 *
 * A front asks each node that may have something, as its own client would ask there, and answers when all have: with everything, the
 * youngest first, each once, and the names of those that did not answer in time.
 *
 *	sessions     nodes that have some
 *	executions   workers, which remember what they run and ran lately, whoever asked for it; and fronts, which know what waits
 *	batches      fronts
 *
 * So what a front that was killed had accepted is in the list as soon as a worker has begun it.  Of an execution that two nodes know,
 * a front knows more than the worker: when it was asked for, and through which door.
 */
#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

struct gathering {
	uint32_t tag; /* 0: who asked has gone */
	char name[TOKEN_NAME_MAX + 1], request_id[129];
	const struct list *list;
	json_t *items, *missing;
	json_t *places;       /* of each id: twice its place in items, and one more if only a worker has told of it */
	size_t n_open, limit; /* limit 0: none */
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

static bool is_good(struct service *s UNUSED, const struct request *req UNUSED)
{
	return true;
}

static const struct list {
	enum route route;
	const char *member;
	bool (*is_good)(struct service *s, const struct request *req);
	bool (*may_have)(const struct queue_node *node, const struct request *req);
	json_t *(*own)(const struct service *s, const struct request *req);
} lists[] = {
	{ ROUTE_sessions, "sessions", is_good, has_sessions, sessions_list },
	{ ROUTE_executions, "executions", executions_list_is_good, may_have_executions, executions_list },
	{ ROUTE_batches, "batches", is_good, may_have_batches, batches_list },
};

static const struct list *find(enum route route)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (lists[i].route == route)
			return &lists[i];
	return NULL;
}

bool gathering_is_possible(enum route route)
{
	return find(route) != NULL;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *item, const char *member)
{
	const char *text = json_string_value(json_object_get(item, member));

	return text ? text : "";
}

static int by_age(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	int order = strcmp(text_of(*y, "created"), text_of(*x, "created")); /* moments of one form */

	return order ? order : strcmp(text_of(*x, "id"), text_of(*y, "id"));
}

/* The youngest, at most so many. */
static json_t *in_order(const struct gathering *g)
{
	size_t n = json_array_size(g->items);
	AUTO_FREE json_t **item = calloc(n + 1, sizeof(json_t *));
	json_t *list = json_array();

	for (size_t i = 0; item && i < n; i++)
		item[i] = json_array_get(g->items, i);
	if (item && n > 0)
		qsort(item, n, sizeof(json_t *), by_age);
	for (size_t i = 0; item && i < n && (g->limit == 0 || i < g->limit); i++)
		(void)json_array_append(list, item[i]);
	return list;
}

void gathering_end_one(struct service *s, struct gathering *g)
{
	struct token token = { .admin = false };
	struct request req = { .tag = g->tag, .request_id = g->request_id, .token = &token };

	if (--g->n_open > 0)
		return;
	(void)str_copy(token.name, sizeof(token.name), g->name);
	if (g->tag)
		answer_json(s, &req, 200, json_pack("{s:o, s:O}", g->list->member, in_order(g), "missing", g->missing));
	json_decref(g->items);
	json_decref(g->missing);
	json_decref(g->places);
	free(g);
}

static void note_place(struct gathering *g, size_t at, bool by_worker)
{
	(void)json_object_set_new(g->places, text_of(json_array_get(g->items, at), "id"),
				  json_integer((json_int_t)(2 * at + by_worker)));
}

static struct gathering *gathering_new(const struct service *s, const struct request *req, const struct list *list)
{
	struct gathering *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->n_open = 1; /* ourselves */
	g->tag = req->tag;
	g->list = list;
	g->items = list->own(s, req);
	g->missing = json_array();
	g->places = json_object();
	for (size_t i = 0; i < json_array_size(g->items); i++)
		note_place(g, i, false);
	g->limit = list->route == ROUTE_sessions ? 0 : executions_list_limit(req);
	(void)str_copy(g->name, sizeof(g->name), req->token->name);
	(void)str_copy(g->request_id, sizeof(g->request_id), req->request_id);
	return g;
}

bool gathering_takes(struct service *s, const struct request *req)
{
	const struct list *list = find(req->route);
	const struct queue *q = &s->queue;
	struct gathering *g = NULL;

	if (!list)
		return false;
	if (!list->is_good(s, req))
		return true;
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
	if (!g)
		return false;
	gathering_end_one(s, g);
	return true;
}

/* ---- what nodes answer ------------------------------------------------------------------------------------------------------ */

/* Of what two nodes know a front knows more than a worker. */
static void add_item(struct gathering *g, json_t *item, bool is_front)
{
	const json_t *place = json_object_get(g->places, text_of(item, "id"));
	size_t at = place ? (size_t)json_integer_value(place) / 2 : json_array_size(g->items);

	if (!place)
		(void)json_array_append(g->items, item);
	else if (is_front && json_integer_value(place) % 2)
		(void)json_array_set(g->items, at, item);
	else
		return;
	note_place(g, at, !is_front);
}

void gathering_add(struct gathering *g, const struct message *m, const char *node_name, bool is_front)
{
	size_t len, i;
	const char *body = message_bytes(m, FIELD_body, &len);
	json_t *doc = body ? json_loadb(body, len, JSON_ALLOW_NUL, NULL) : NULL, *item;

	json_array_foreach(json_object_get(doc, g->list->member), i, item)
	{
		if (!is_front && g->list->route == ROUTE_executions)
			(void)json_object_set_new(item, "node", json_string(node_name)); /* to itself it is none */
		add_item(g, item, is_front);
	}
	if (!doc)
		gathering_miss(g, node_name);
	json_decref(doc);
}

void gathering_miss(struct gathering *g, const char *node_name)
{
	(void)json_array_append_new(g->missing, json_string(node_name));
}

bool gathering_is_of(const struct gathering *g, uint32_t tag)
{
	return g->tag == tag;
}

void gathering_all_gone(struct gathering *g)
{
	g->tag = 0;
}
