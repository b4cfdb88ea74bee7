/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_placement.c - which jobs a worker waits for, and which it leaves to others for a while
 *
 * Who publishes a job to a stream for work cannot say who is to get it: the broker gives it to whichever node waits for its
 * class first.  So nodes choose.  Each says in its entry which classes it is warm in, that is, keeps cells ready for, and how
 * many places are free; each hears the entries of the others.  For every class of its own a node
 *
 *	is warm in it                               waits at the broker
 *	is cold, nobody else is warm and free       waits at the broker
 *	is cold, somebody else is warm and free     does not wait; looks now and then whether a job is left over
 *	lacks its environment, somebody else who    likewise; with a job that is left over it asks for the environment
 *	has it is free                              (queue_environments.c)
 *
 * A broker keeps a job only if nobody waits for its class: then those who are warm are full, or have gone without a word, and
 * the node that looks takes it, and looks again at once.  Nothing is reserved and nothing promised, so an entry that is old or
 * wrong costs a pause and never a job.
 *
 * All nodes with free places together look once in PAUSE_MS for a class: each pauses so much longer as they are more, so the
 * broker has as many looks with a thousand nodes as with two.  No node looks more often than once in LOOK_MS for all classes.
 * The pause is a fraction of what a cold start takes, so to wait for a warm place in vain is cheap beside not to wait.
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

/* Words of ready that are neither own nor in the list yet. */
static void add_words(const char *ready, const char *own, struct buf *list)
{
	while (*ready) {
		size_t n = strcspn(ready, " ");

		if (!placement_has(own, ready, n) && !placement_has(buf_str(list), ready, n))
			(void)buf_addf(list, "%s%.*s", list->len ? " " : "", (int)n, ready);
		ready += n + (ready[n] == ' ');
	}
}

/* Classes that others are warm in and have places for, and how many nodes have places. */
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
