/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_nodes.c - the entries of nodes
 *
 * Each node puts a sealed entry with an expiry time into the bucket of nodes every few seconds; the others receive it
 * as it is put.  The table has at most one entry per role for each key in the operator's list, and an older entry never
 * replaces a younger one: so nobody can invent nodes or revive one.
 */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

static struct queue_node *find_or_add(struct service *s, const char *key, bool is_front)
{
	struct queue *q = &s->queue;
	struct queue_node *list;

	for (size_t i = 0; i < q->n_nodes; i++)
		if (str_eq(q->node[i].key, key) && q->node[i].is_front == is_front)
			return &q->node[i];
	list = reallocarray(q->node, q->n_nodes + 1, sizeof(*list));
	if (!list)
		return NULL;
	q->node = list;
	list[q->n_nodes] = (struct queue_node){ .is_front = is_front };
	(void)str_copy(list[q->n_nodes].key, sizeof(list[0].key), key);
	return &list[q->n_nodes++];
}

static void read_words(const struct message *m, enum field f, const char *between, char *dst, size_t size)
{
	AUTO_BUF text = BUF_INIT(size - 1);
	size_t at = 0, len;
	const char *word;

	while ((word = message_next(m, f, &at, &len)))
		(void)buf_addf(&text, "%s%s", text.len ? between : "", word);
	(void)str_copy(dst, size, buf_str(&text));
}

static void read_host(const struct message *m, struct queue_node *node)
{
	node->places = message_number(m, FIELD_places, node->slots);
	node->pressure_cpu = message_number(m, FIELD_pressure_cpu, UINT64_MAX);
	node->pressure_memory = message_number(m, FIELD_pressure_memory, UINT64_MAX);
	read_words(m, FIELD_class, " ", node->classes, sizeof(node->classes));
	read_words(m, FIELD_ready, " ", node->ready, sizeof(node->ready));
	read_words(m, FIELD_protection, " ", node->protections, sizeof(node->protections));
	read_words(m, FIELD_lacks, " ", node->lacks, sizeof(node->lacks));
	read_words(m, FIELD_backend, " ", node->backends, sizeof(node->backends));
	read_words(m, FIELD_cannot, "\n", node->cannot, sizeof(node->cannot));
	read_words(m, FIELD_has, " ", node->has, sizeof(node->has));
	read_words(m, FIELD_offers, " ", node->offers, sizeof(node->offers));
	read_words(m, FIELD_set, " ", node->sets, sizeof(node->sets));
}

/* A front's entry, which is about its sessions, has a key with the prefix "front-". */
static bool is_place_of(const char *key, const struct peer *by, bool is_front)
{
	if (!(by->roles & (is_front ? PEER_FRONT : PEER_WORKER)))
		return false;
	if (is_front && strncmp(key, "front-", 6) != 0)
		return false;
	return str_eq(is_front ? key + 6 : key, by->key);
}

void nodes_on_told(struct service *s, const struct message *m)
{
	const char *subject = message_text(m, FIELD_subject);
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC, issued, expires;
	struct queue_sealed said;
	struct queue_node *node;
	bool is_front;

	if (!queue_unseal(s, m, "node", PEER_WORKER | PEER_FRONT, &said))
		return;
	is_front = message_number(&said.m, FIELD_serves, 0) != 0;
	issued = message_number(&said.m, FIELD_issued, 0);
	expires = message_number(&said.m, FIELD_expires, 0);
	if (!is_place_of(subject + strlen(QUEUE_SUBJECT_NODES), said.by, is_front) || expires + QUEUE_LEASE_S < now_s ||
	    expires > issued + 3600) {
		queue_complain(s, "refused an entry of %s that is old, or in the place of another node", said.by->name);
		return;
	}
	node = find_or_add(s, said.by->key, is_front);
	if (!node || issued < node->issued_s)
		return;
	if (!node_is_live(node) && !str_eq(node->key, s->queue.key))
		s->queue.beat_ns = 0; /* a node that was not alive before does not know this one either */
	(void)str_copy(node->name, sizeof(node->name), said.by->name); /* the name in the operator's list */
	node->issued_s = issued;
	node->expires_s = expires;
	node->running = message_number(&said.m, FIELD_running, 0);
	node->slots = message_number(&said.m, FIELD_slots, 0);
	node->hears = message_number(&said.m, FIELD_hears, 0);
	node->begun = message_number(&said.m, FIELD_begun, 0);
	node->begun_again = message_number(&said.m, FIELD_begun_again, 0);
	node->begun_warm = message_number(&said.m, FIELD_begun_warm, 0);
	node->sessions = message_number(&said.m, FIELD_sessions, 0);
	(void)str_copy(node->ask_at, sizeof(node->ask_at),
		       message_has(&said.m, FIELD_reply_to) ? message_text(&said.m, FIELD_reply_to) : "");
	read_host(&said.m, node);
}

/* "draining": stopping, but still running jobs. */
static const char *state_of(const struct queue_node *node)
{
	return !node_is_live(node) ? "gone" : node->slots == 0 && !node->is_front ? "draining" : "live";
}

bool node_is_live(const struct queue_node *node)
{
	return node->expires_s > clock_wall_ns() / NS_PER_SEC;
}

size_t nodes_live(const struct service *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->queue.n_nodes; i++)
		n += node_is_live(&s->queue.node[i]) && !s->queue.node[i].is_front;
	return n;
}

uint64_t queue_oldest_age(const struct service *s)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;

	return s->queue.depth > 0 && s->queue.oldest_s > 0 && now_s > s->queue.oldest_s ? now_s - s->queue.oldest_s : 0;
}

/* Node names need no escaping in labels (runner/peers.c). */
#define ADD_EACH(function, member)                                                                   \
	void function(const struct service *s, const char *name, struct buf *out)                    \
	{                                                                                            \
		for (size_t i = 0; i < s->queue.n_nodes; i++)                                        \
			if (node_is_live(&s->queue.node[i]) && !s->queue.node[i].is_front)           \
				buf_addf(out, "%s{node=\"%s\"} %llu\n", name, s->queue.node[i].name, \
					 (unsigned long long)s->queue.node[i].member);               \
	}
ADD_EACH(nodes_add_running, running)
ADD_EACH(nodes_add_slots, slots)
ADD_EACH(nodes_add_places, places)
ADD_EACH(nodes_add_begun, begun)
ADD_EACH(nodes_add_again, begun_again)
ADD_EACH(nodes_add_warm, begun_warm)
#undef ADD_EACH

/* Invalid UTF-8 is omitted; brig's nodes send none. */
static json_t *word_list(const char *words, const char *between)
{
	json_t *list = json_array();

	while (*words) {
		size_t len = strcspn(words, between);

		(void)json_array_append_new(list, json_stringn(words, len));
		words += len + (words[len] != '\0');
	}
	return list;
}

/* In per cent. */
static json_t *pressure(uint64_t hundredths)
{
	return hundredths <= 10000 ? json_real((double)hundredths / 100) : json_null();
}

static json_t *node_document(const struct queue_node *n)
{
	char seen[WHEN_TEXT_MAX], until[WHEN_TEXT_MAX];
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "name", n->name, "key", n->key,
				"state", state_of(n), "seen", when_utc(seen, sizeof(seen), n->issued_s * NS_PER_SEC),
				"until", when_utc(until, sizeof(until), n->expires_s * NS_PER_SEC), "running",
				(json_int_t)n->running, "slots", (json_int_t)n->slots, "places", (json_int_t)n->places,
				"begun", (json_int_t)n->begun, "begun_again", (json_int_t)n->begun_again);

	(void)json_object_set_new(doc, "role", json_string(n->is_front ? "front" : "worker"));
	(void)json_object_set_new(doc, "sessions", json_integer((json_int_t)n->sessions));
	(void)json_object_set_new(doc, "begun_warm", json_integer((json_int_t)n->begun_warm));
	(void)json_object_set_new(doc, "hears", json_integer((json_int_t)n->hears));
	(void)json_object_set_new(doc, "pressure_cpu", pressure(n->pressure_cpu));
	(void)json_object_set_new(doc, "pressure_memory", pressure(n->pressure_memory));
	(void)json_object_set_new(doc, "classes", word_list(n->classes, " "));
	(void)json_object_set_new(doc, "ready", word_list(n->ready, " "));
	(void)json_object_set_new(doc, "protections", word_list(n->protections, " "));
	(void)json_object_set_new(doc, "lacks", word_list(n->lacks, " "));
	(void)json_object_set_new(doc, "backends", word_list(n->backends, " "));
	(void)json_object_set_new(doc, "cannot", word_list(n->cannot, "\n"));
	return doc;
}

void handle_nodes(struct service *s, struct request *req)
{
	const struct queue *q = &s->queue;
	const struct queue_counts *c = &q->counts;
	uint64_t again = 0;
	json_t *list;

	if (!q->is_on) {
		answer_error(s, req, 404,
			     "this service has no queue, and no nodes: start it with --queue nats://HOST:PORT");
		return;
	}
	list = json_array();
	for (unsigned fronts = 0; fronts <= 1; fronts++) /* list workers first */
		for (size_t i = 0; i < q->n_nodes; i++)
			if (q->node[i].is_front == (fronts != 0)) {
				(void)json_array_append_new(list, node_document(&q->node[i]));
				again += q->node[i].begun_again;
			}
	answer_json(s, req, 200,
		    json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "brokers", q->is_up, "depth",
			      (json_int_t)q->depth, "oldest_seconds", (json_int_t)queue_oldest_age(s), "begun_again",
			      (json_int_t)again, "published", (json_int_t)c->published, "lost", (json_int_t)c->lost,
			      "refused", (json_int_t)c->refused, "nodes", list));
}
