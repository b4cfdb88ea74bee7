/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_nodes.c - which workers there are, and how they are
 *
 * Each puts an entry into the bucket of nodes every few seconds, sealed, with a time until which it counts; fronts hear of it as it is
 * put.  There is room for one entry of each key in the operator's list, and an older one never replaces a younger: so nobody
 * can make nodes up, or bring one back.
 */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/answer.h"
#include "server/runner/asks.h"
#include "server/runner/service.h"

static struct queue_node *find_or_add(struct service *s, const char *key)
{
	struct queue *q = &s->queue;
	struct queue_node *list;

	for (size_t i = 0; i < q->n_nodes; i++)
		if (str_eq(q->node[i].key, key))
			return &q->node[i];
	list = reallocarray(q->node, q->n_nodes + 1, sizeof(*list));
	if (!list)
		return NULL;
	q->node = list;
	list[q->n_nodes] = (struct queue_node){ .issued_s = 0 };
	(void)str_copy(list[q->n_nodes].key, sizeof(list[0].key), key);
	return &list[q->n_nodes++];
}

static void read_classes(const struct message *m, struct queue_node *node)
{
	AUTO_BUF text = BUF_INIT(sizeof(node->classes) - 1);
	size_t at = 0, len;
	const char *class;

	while ((class = message_next(m, FIELD_class, &at, &len)))
		(void)buf_addf(&text, "%s%s", text.len ? " " : "", class);
	(void)str_copy(node->classes, sizeof(node->classes), buf_str(&text));
}

void nodes_on_told(struct service *s, const struct message *m)
{
	const char *subject = message_text(m, FIELD_subject);
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC, issued, expires;
	struct queue_sealed said;
	struct queue_node *node;

	if (!queue_unseal(s, m, "node", PEER_WORKER, &said))
		return;
	issued = message_number(&said.m, FIELD_issued, 0);
	expires = message_number(&said.m, FIELD_expires, 0);
	if (!str_eq(subject + strlen(QUEUE_SUBJECT_NODES), said.by->key) || expires < now_s ||
	    expires > issued + 3600) {
		queue_complain(s, "refused an entry of %s that is old, or in the place of another node", said.by->name);
		return;
	}
	node = find_or_add(s, said.by->key);
	if (!node || issued < node->issued_s)
		return;
	(void)str_copy(node->name, sizeof(node->name), said.by->name); /* as the operator calls it */
	node->issued_s = issued;
	node->expires_s = expires;
	node->running = message_number(&said.m, FIELD_running, 0);
	node->slots = message_number(&said.m, FIELD_slots, 0);
	node->begun = message_number(&said.m, FIELD_begun, 0);
	node->begun_again = message_number(&said.m, FIELD_begun_again, 0);
	read_classes(&said.m, node);
}

static bool is_live(const struct queue_node *node)
{
	return node->expires_s >= clock_wall_ns() / NS_PER_SEC;
}

size_t nodes_live(const struct service *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->queue.n_nodes; i++)
		n += is_live(&s->queue.node[i]);
	return n;
}

uint64_t queue_oldest_age(const struct service *s)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;

	return s->queue.depth > 0 && s->queue.oldest_s > 0 && now_s > s->queue.oldest_s ? now_s - s->queue.oldest_s : 0;
}

/* Names have no character that a label could not (runner/peers.c). */
#define ADD_EACH(function, member)                                                                   \
	void function(const struct service *s, const char *name, struct buf *out)                    \
	{                                                                                            \
		for (size_t i = 0; i < s->queue.n_nodes; i++)                                        \
			if (is_live(&s->queue.node[i]))                                              \
				buf_addf(out, "%s{node=\"%s\"} %llu\n", name, s->queue.node[i].name, \
					 (unsigned long long)s->queue.node[i].member);               \
	}
ADD_EACH(nodes_add_running, running)
ADD_EACH(nodes_add_slots, slots)
ADD_EACH(nodes_add_begun, begun)
ADD_EACH(nodes_add_again, begun_again)
#undef ADD_EACH

static json_t *class_list(const char *classes)
{
	json_t *list = json_array();

	while (*classes) {
		size_t len = strcspn(classes, " ");

		(void)json_array_append_new(list, json_stringn(classes, len));
		classes += len + (classes[len] == ' ');
	}
	return list;
}

void ask_nodes(struct service *s, struct ask *ask)
{
	const struct queue *q = &s->queue;
	json_t *list = json_array();

	if (!q->is_on) {
		json_decref(list);
		answer_error(s, ask, 404,
			     "this service has no queue, and no nodes: start it with --queue nats://HOST:PORT");
		return;
	}
	for (size_t i = 0; i < q->n_nodes; i++) {
		const struct queue_node *n = &q->node[i];
		char seen[WHEN_TEXT_MAX];

		(void)json_array_append_new(list,
					    json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "name", n->name,
						      "key", n->key, "state", is_live(n) ? "live" : "gone", "seen",
						      when_utc(seen, sizeof(seen), n->issued_s * NS_PER_SEC), "running",
						      (json_int_t)n->running, "slots", (json_int_t)n->slots, "begun",
						      (json_int_t)n->begun, "begun_again", (json_int_t)n->begun_again,
						      "classes", class_list(n->classes)));
	}
	answer_json(s, ask, 200,
		    json_pack("{s:b, s:I, s:I, s:o}", "brokers", q->is_up, "depth", (json_int_t)q->depth,
			      "oldest_seconds", (json_int_t)queue_oldest_age(s), "nodes", list));
}
