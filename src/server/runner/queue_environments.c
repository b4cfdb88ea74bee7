/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_environments.c - jobs that need an environment which only another node has
 *
 * An environment is created on one node: a worker or a front.  Nodes that give list theirs in their entries ("offers").
 * A worker that lacks an environment accepts its class nevertheless, as long as some node would give it:
 *
 *	a node that has it has a free slot    poll for such jobs now and then, for those left over (queue_placement.c)
 *	none has, or a front has it           wait for them at the broker
 *
 * A job received this way goes back to the stream, and the environment is fetched (queue_exchange.c).  When it has
 * arrived, its class is one of this node's own and the next such job is started; meanwhile another node may have taken
 * the job.  If fetching fails, the class is not accepted for a minute.  No job is claimed before the environment is
 * there, so none fails because of it.
 *
 * A node's entry lists only classes that it can run itself: otherwise nodes could keep a class alive among themselves
 * after the environment is gone.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/runner/service.h"

#define PREFIX "env-"

void environment_word(const char *name, char *dst, size_t size)
{
	char what[80], class[160];

	(void)snprintf(what, sizeof(what), PREFIX "%.60s", name);
	queue_class("", what, class, sizeof(class));
	(void)str_copy(dst, size, class + 1);
}

static bool may_give(const struct service *s)
{
	const struct queue *q = &s->queue;
	const struct peer *p = peers_find(&q->peers, q->key, q->is_worker ? PEER_WORKER : PEER_FRONT);

	return p && p->gives && q->exchange;
}

bool environments_put(const struct service *s, struct buf *m)
{
	char *text = NULL, word[84];
	size_t i, n = 0;
	const json_t *row;
	json_t *doc;

	if (!may_give(s) || brig_environments_json(s->host->b, &text, NULL) < 0)
		return false;
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	json_array_foreach(json_object_get(doc, "environments"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));

		if (!name || json_object_get(row, "problem") || n == message_max_count(FIELD_offers))
			continue;
		environment_word(name, word, sizeof(word));
		message_put_text(m, FIELD_offers, word);
		n++;
	}
	json_decref(doc);
	return n > 0;
}

static bool has_class(const struct buf *classes, const char *class)
{
	size_t at = 0, len;
	struct message m;
	const char *why, *word;

	if (classes->len == 0 || !message_read(classes->data, classes->len, &m, &why))
		return false;
	while ((word = message_next(&m, FIELD_class, &at, &len)))
		if (str_eq(word, class))
			return true;
	return false;
}

static bool is_giver(const struct queue *q, const struct queue_node *node)
{
	const struct peer *p = peers_find(&q->peers, node->key, node->is_front ? PEER_FRONT : PEER_WORKER);

	return p && p->gives && !str_eq(node->key, q->key) && node_is_live(node);
}

void environments_borrow(const struct service *s, const char *trust, struct buf *m)
{
	const struct queue *q = &s->queue;
	char word[84], class[160];

	for (size_t i = 0; i < q->n_nodes; i++) {
		const char *at = is_giver(q, &q->node[i]) ? q->node[i].offers : "";

		while (*at) {
			size_t len = strcspn(at, " ");

			(void)snprintf(word, sizeof(word), "%.*s", (int)len, at);
			at += len + (at[len] == ' ');
			queue_class(trust, word, class, sizeof(class));
			if (!exchange_is_vain(s, word) && !has_class(m, class))
				message_put_text(m, FIELD_class, class);
		}
	}
}

void environments_add_missing(const struct service *s, const char *classes, struct buf *list)
{
	char class[160];

	while (*classes) {
		size_t len = strcspn(classes, " ");

		(void)snprintf(class, sizeof(class), "%.*s", (int)len, classes);
		classes += len + (classes[len] == ' ');
		if (strstr(class, "." PREFIX) && !has_class(&s->queue.classes, class) &&
		    !placement_has(buf_str(list), class, strlen(class)))
			(void)buf_addf(list, "%s%s", list->len ? " " : "", class);
	}
}

bool environments_hold_back(struct service *s, const struct message *job)
{
	const char *name = message_text(job, FIELD_environment), *trust = message_text(job, FIELD_trust);
	char word[84], class[160];

	if (!queue_is_environment(name) || !trust || !s->queue.exchange)
		return false;
	environment_word(name, word, sizeof(word));
	queue_class(trust, word, class, sizeof(class));
	if (has_class(&s->queue.classes, class))
		return false;
	exchange_get_environment(s, name, word);
	return true;
}
