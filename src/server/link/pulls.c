/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulls.c - fetching jobs, as many as the runner grants credit for
 *
 * Each class has one consumer of the stream, shared by all nodes that accept the class: a work-queue stream does not
 * permit overlapping consumers.  One job is requested at a time from each; a request costs less than a cell.  A job
 * that arrives when the credit is used up, because several classes were requested, goes back to the stream at once.  It
 * was not started; attempts are counted by claims (runner/queue_worker.c), not by deliveries.
 *
 * A class for which other nodes are warm is not waited for but polled, with pauses: a broker delivers a job to a
 * waiting node first, so a poll finds only jobs for which no node with a warm cell had a free slot.  A job that arrives
 * for a pull that was waiting when the class became one of these goes back at once, to a node that still waits; that
 * happens once per pull.
 *
 * Credit is a running total since the channel was opened, not a number of free slots, so that jobs in transit are not
 * counted twice.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/link/link.h"

#define PULL_S       5
#define PULL_NS      (PULL_S * NS_PER_SEC)
#define PULL_LATE_NS (2 * NS_PER_SEC)
#define NAK_LATER    "-NAK {\"delay\": 20000000}"
#define NAK_NOW      "-NAK"

static bool is_word(const char *text, const char *also)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	for (; *text; text++)
		if (!strchr(plain, *text) && !strchr(also, *text))
			return false;
	return true;
}

void pulls_set_classes(struct link *l, const struct message *m)
{
	size_t n = message_count(m, FIELD_class);
	AUTO_FREE const char **texts = calloc(n + 1, sizeof(*texts));
	struct link_consumer *list = calloc(n + 1, sizeof(*list));

	if (!texts || !list) {
		free(list);
		return;
	}
	message_texts(m, FIELD_class, texts);
	free(l->consumer);
	l->consumer = list;
	l->n_consumers = 0;
	for (size_t i = 0; i < n; i++) {
		struct link_consumer *c = &list[l->n_consumers];

		if (!is_word(texts[i], "."))
			continue;
		(void)str_copy(c->class, sizeof(c->class), texts[i]);
		(void)str_copy(c->name, sizeof(c->name), texts[i]);
		for (char *at = c->name; *at; at++)
			if (*at == '.')
				*at = '_';
		l->n_consumers++;
	}
}

void pulls_set_later(struct link *l, const struct message *m)
{
	size_t n = message_count(m, FIELD_class);
	AUTO_FREE const char **texts = calloc(n + 1, sizeof(*texts));

	if (!texts)
		return;
	message_texts(m, FIELD_class, texts);
	l->pause_ns = message_number(m, FIELD_pause, 0) * NS_PER_MS;
	for (size_t i = 0; i < l->n_consumers; i++) {
		struct link_consumer *c = &l->consumer[i];
		bool was_later = c->is_later;

		c->is_later = false;
		for (size_t k = 0; k < n && !c->is_later; k++)
			c->is_later = str_eq(texts[k], c->class);
		if (c->is_later && !was_later)
			c->look_ns = clock_now_ns() + l->pause_ns;
	}
}

void pulls_forget(struct link *l)
{
	for (size_t i = 0; i < l->n_consumers; i++)
		l->consumer[i].is_pulling = l->consumer[i].is_asked = l->consumer[i].is_made = false;
}

/* ---- consumers ------------------------------------------------------------------------------------------------ */

static void on_made(void *user, uint64_t i, const struct broker_message *m)
{
	struct link *l = user;
	uint64_t sequence;

	if (i >= l->n_consumers)
		return;
	l->consumer[i].is_asked = false;
	l->consumer[i].is_made = m && ops_error_of(m, &sequence) == 0;
	pulls_step(l);
}

static void make(struct link *l, size_t i)
{
	struct link_consumer *c = &l->consumer[i];
	AUTO_BUF subject = BUF_INIT(BROKER_SUBJECT_MAX);
	AUTO_BUF body = BUF_INIT(KiB);

	(void)buf_addf(&subject, "$JS.API.CONSUMER.DURABLE.CREATE.%s.%s", LINK_STREAM, c->name);
	(void)buf_addf(&body,
		       "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"%s\",\"filter_subject\":\"%s%s.*\","
		       "\"deliver_policy\":\"all\",\"replay_policy\":\"instant\",\"ack_policy\":\"explicit\","
		       "\"ack_wait\":%llu,\"max_deliver\":-1,\"max_ack_pending\":65536,\"max_waiting\":8192}}",
		       LINK_STREAM, c->name, LINK_JOBS, c->class, (unsigned long long)l->patience_ns);
	c->is_asked = broker_request(l->broker,
				     &(struct broker_message){
					     .subject = buf_str(&subject), .data = buf_str(&body), .len = body.len },
				     LINK_REQUEST_NS, on_made, i) == 0;
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

static void pull(struct link *l, size_t i)
{
	struct link_consumer *c = &l->consumer[i];
	char subject[BROKER_SUBJECT_MAX], reply[128], body[64];
	int len = c->is_later ? snprintf(body, sizeof(body), "{\"batch\":1,\"no_wait\":true}")
			      : snprintf(body, sizeof(body), "{\"batch\":1,\"expires\":%d000000000}", PULL_S);

	(void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", LINK_STREAM, c->name);
	(void)snprintf(reply, sizeof(reply), "%s.p.%zu", broker_inbox(l->broker), i);
	c->is_standing = !c->is_later;
	c->until_ns = clock_now_ns() + (c->is_standing ? PULL_NS : 0) + PULL_LATE_NS;
	c->is_pulling =
		broker_publish(l->broker,
			       &(struct broker_message){
				       .subject = subject, .reply = reply, .data = body, .len = (size_t)len }) == 0;
}

void pulls_step(struct link *l)
{
	uint64_t now = clock_now_ns();

	if (!l->is_up || !l->channel)
		return;
	for (size_t i = 0; i < l->n_consumers; i++) {
		struct link_consumer *c = &l->consumer[i];

		if (!c->is_made && !c->is_asked)
			make(l, i);
		if (c->is_pulling && c->until_ns <= now)
			c->is_pulling = false;
		if (c->is_made && !c->is_pulling && l->given < l->credit && !l->draining &&
		    (!c->is_later || c->look_ns <= now))
			pull(l, i);
	}
}

int pulls_patience(const struct link *l, int wait_ms)
{
	uint64_t now = clock_now_ns(), most_ns = 500 * NS_PER_MS;

	if (l->n_consumers == 0)
		return wait_ms;
	for (size_t i = 0; i < l->n_consumers && l->given < l->credit; i++) {
		const struct link_consumer *c = &l->consumer[i];

		if (c->is_made && c->is_later && !c->is_pulling)
			most_ns = min_u64(most_ns, c->look_ns > now ? c->look_ns - now : 0);
	}
	/*
	 * a poll that is due is sent in the same turn: rounding up by a millisecond is harmless, but a timeout of 0
	 * could loop
	 */
	return (int)min_u64(wait_ms < 0 ? 500 : (uint64_t)wait_ms, most_ns / NS_PER_MS + 1);
}

void pulls_return(struct link *l, const char *ack, bool is_for_nobody)
{
	const char *word = is_for_nobody ? "+TERM" : NAK_LATER;

	if (l->given > 0)
		l->given--;
	(void)broker_publish(l->broker, &(struct broker_message){ .subject = ack, .data = word, .len = strlen(word) });
	pulls_step(l);
}

static void hand_back(struct link *l, const struct broker_message *m, const char *word)
{
	(void)broker_publish(l->broker,
			     &(struct broker_message){ .subject = m->reply, .data = word, .len = strlen(word) });
}

/* c NULL: the class is not accepted any more. */
static void give(struct link *l, struct link_consumer *c, const struct broker_message *m)
{
	struct destination to = { .op = LINK_JOB };

	if (strncmp(m->reply, "$JS.ACK.", 8) != 0 || !str_copy(to.subject, sizeof(to.subject), m->reply)) {
		link_complain(l, m->subject, "a job that cannot be acknowledged");
		return;
	}
	if (!c || !l->channel || l->given >= l->credit || l->draining) {
		hand_back(l, m, NAK_LATER);
		return;
	}
	if (c->is_later && c->is_standing) {
		c->is_standing = false;
		c->look_ns = clock_now_ns() + l->pause_ns;
		hand_back(l, m, NAK_NOW);
		return;
	}
	c->look_ns = 0; /* poll again at once: there may be more */
	l->given++;
	bodies_deliver(l, &to, m->data, m->len);
}

bool pulls_on_message(struct link *l, const struct broker_message *m)
{
	const char *inbox = broker_inbox(l->broker);
	size_t len = strlen(inbox);
	struct link_consumer *c = NULL;
	uint64_t i;

	if (strncmp(m->subject, inbox, len) == 0 && strncmp(m->subject + len, ".p.", 3) == 0 && m->status != 0) {
		if (m->status != 100 && str_to_u64(m->subject + len + 3, &i) && i < l->n_consumers) {
			l->consumer[i].is_pulling = false; /* the pull has expired, or there is no job */
			l->consumer[i].look_ns = clock_now_ns() + l->pause_ns;
		}
		pulls_step(l);
		return true;
	}
	if (strncmp(m->subject, LINK_JOBS, strlen(LINK_JOBS)) != 0)
		return false;
	/* A job keeps the subject under which it was published, so its class identifies the pull. */
	for (i = 0; i < l->n_consumers; i++) {
		size_t n = strlen(l->consumer[i].class);

		if (strncmp(m->subject + strlen(LINK_JOBS), l->consumer[i].class, n) == 0 &&
		    m->subject[strlen(LINK_JOBS) + n] == '.') {
			c = &l->consumer[i];
			c->is_pulling = false;
		}
	}
	give(l, c, m);
	pulls_step(l);
	return true;
}
