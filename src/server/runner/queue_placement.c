/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_placement.c - which jobs a worker waits for, and which it leaves to other nodes for a while
 *
 * With a work-queue stream the publisher cannot choose the node: the broker delivers a job to whichever node waits for
 * its class first.  So the nodes choose.  Each announces in its entry the classes for which it keeps cells ready
 * (warm), and its free slots, and receives the entries of the others.  For each class it can run, a node
 *
 *	is warm                                       waits at the broker
 *	is cold, no other node is warm and free       waits at the broker
 *	is cold, another node is warm and free        does not wait, but polls now and then for jobs left over
 *	lacks the environment, and another node       does the same; if there is a job left over, it fetches the
 *	that has it is free                           environment (queue_environments.c)
 *
 * A broker keeps a job only if no node waits for its class: then the warm nodes are full or dead, and a polling node
 * takes the job and polls again at once.  Nothing is reserved or promised, so an outdated or false entry costs a delay
 * but never a job.
 *
 * All nodes with free slots together poll a class once per PAUSE_MS: the more nodes, the longer each one pauses, so the
 * load on the broker does not grow with their number.  No node polls more often than once per LOOK_MS over all classes.
 * The pause is a fraction of a cold start, so waiting for a warm slot in vain is cheap.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/runner/service.h"

#define PAUSE_MS 20
#define LOOK_MS  5

bool placement_has(const char *words, const char *word, size_t len)
{
	while (*words) {
		size_t n = strcspn(words, " ");

		if (n == len && memcmp(words, word, len) == 0)
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

/* Appends the words of `ready` that are neither in `own` nor in the list. */
static void add_words(const char *ready, const char *own, struct buf *list)
{
	while (*ready) {
		size_t n = strcspn(ready, " ");

		if (!placement_has(own, ready, n) && !placement_has(buf_str(list), ready, n))
			(void)buf_addf(list, "%s%.*s", list->len ? " " : "", (int)n, ready);
		ready += n + (ready[n] == ' ');
	}
}

/*
 * Lists the classes for which other nodes are warm and have free slots; returns how many nodes have free slots,
 * including this one.
 */
static size_t gather(const struct service *s, struct buf *list)
{
	const struct queue *q = &s->queue;
	size_t n_free = 1;

	for (size_t i = 0; i < q->n_nodes; i++) {
		const struct queue_node *node = &q->node[i];

		if (str_eq(node->key, q->key) || !node_is_live(node) || node->running >= node->places)
			continue;
		n_free++;
		add_words(node->ready, q->warm, list);
		environments_add_missing(s, node->classes, list);
	}
	return n_free;
}

void worker_place(struct service *s)
{
	struct queue *q = &s->queue;
	AUTO_BUF list = BUF_INIT(64 * KiB);
	AUTO_BUF m = BUF_INIT(256 * KiB);
	uint64_t n = 0, n_free = gather(s, &list);
	char class[160];

	for (const char *at = buf_str(&list); *at && n < message_max_count(FIELD_class); n++) {
		size_t len = strcspn(at, " ");

		(void)snprintf(class, sizeof(class), "%.*s", (int)len, at);
		message_put_text(&m, FIELD_class, class);
		at += len + (at[len] == ' ');
	}
	message_put_number(&m, FIELD_pause, max_u64(PAUSE_MS * n_free, LOOK_MS * n));
	if (m.full || m.no_memory || (m.len == q->later.len && memcmp(m.data, q->later.data, m.len) == 0))
		return;
	queue_tell(s, LINK_LATER, &m);
	buf_release(&q->later);
	q->later = m;
	m = (struct buf)BUF_INIT(0);
}
