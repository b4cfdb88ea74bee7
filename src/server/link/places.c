/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.c - the stream of jobs, and the buckets for claims, results, bodies, nodes, session addresses,
 * Idempotency-Keys and batches
 *
 * Each is created if it does not exist; an existing one is not changed, so that an operator can create it with more
 * replicas or other limits.  They are created one after the other, with retries until a broker has answered for each: a
 * cluster without a leader does not answer.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "server/link/link.h"

#define AGAIN_NS     (300 * NS_PER_MS)
#define COUNT_NS     (2 * NS_PER_SEC)
#define IN_USE       10058 /* it exists with other settings */
#define DAY_S        (24 * 3600)
#define JOBS_MAX     1000000
#define DUPLICATES_S 120

/* In the order of enum link_bucket. */
static const struct place {
	const char *bucket; /* NULL: the stream of jobs */
	uint64_t age_s;
} places[] = {
	[BUCKET_CLAIMS] = { "brig-claims", DAY_S },     [BUCKET_RESULTS] = { "brig-results", DAY_S },
	[BUCKET_BODIES] = { "brig-bodies", DAY_S },     [BUCKET_NODES] = { "brig-nodes", 60 },
	[BUCKET_SESSIONS] = { "brig-sessions", DAY_S }, [BUCKET_KEYS] = { "brig-keys", DAY_S },
	[BUCKET_BATCHES] = { "brig-batches", DAY_S },   [BUCKET_JOBS] = { NULL, DAY_S },
};

const char *link_bucket_name(enum link_bucket bucket)
{
	return places[bucket].bucket;
}

bool places_are_there(const struct link *l)
{
	return l->n_places == ARRAY_LEN(places);
}

static void describe(const struct place *p, unsigned replicas, struct buf *subject, struct buf *body)
{
	if (!p->bucket) {
		(void)buf_addf(subject, "$JS.API.STREAM.CREATE.%s", LINK_STREAM);
		(void)buf_addf(
			body,
			"{\"name\":\"%s\",\"subjects\":[\"%s>\"],\"retention\":\"workqueue\",\"storage\":\"file\","
			"\"discard\":\"new\",\"max_msgs\":%d,\"max_age\":%llu000000000,\"num_replicas\":%u,"
			"\"duplicate_window\":%d000000000}",
			LINK_STREAM, LINK_JOBS, JOBS_MAX, (unsigned long long)p->age_s, replicas, DUPLICATES_S);
		return;
	}
	(void)buf_addf(subject, "$JS.API.STREAM.CREATE.KV_%s", p->bucket);
	(void)buf_addf(body,
		       "{\"name\":\"KV_%s\",\"subjects\":[\"$KV.%s.>\"],\"retention\":\"limits\",\"storage\":\"file\","
		       "\"discard\":\"new\",\"max_msgs_per_subject\":1,\"max_age\":%llu000000000,\"num_replicas\":%u,"
		       "\"allow_rollup_hdrs\":true,\"deny_delete\":true,\"allow_direct\":true,"
		       "\"duplicate_window\":%llu000000000}",
		       p->bucket, p->bucket, (unsigned long long)p->age_s, replicas,
		       (unsigned long long)min_u64(p->age_s, DUPLICATES_S));
}

static void on_made(void *user, uint64_t arg, const struct broker_message *m)
{
	struct link *l = user;
	uint64_t sequence;
	int error = m ? ops_error_of(m, &sequence) : -1;

	l->is_placing = false;
	if (arg != l->n_places)
		return;
	if (error == 0 || error == IN_USE) {
		l->n_places++;
		l->place_again_ns = 0;
	} else if (error > 0) {
		char why[64];

		(void)snprintf(why, sizeof(why), "a broker's error %d", error);
		link_complain(l, places[arg].bucket ? places[arg].bucket : LINK_STREAM, why);
	}
	places_step(l);
}

/* { "state": { "messages", "first_ts": "2026-11-18T02:04:35.1Z" } } */
static void on_counted(void *user, uint64_t arg UNUSED, const struct broker_message *m)
{
	struct link *l = user;
	json_t *doc = m ? json_loadb(m->data ? m->data : "", m->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *state = json_object_get(doc, "state");
	const char *first = json_string_value(json_object_get(state, "first_ts"));
	json_int_t n = json_integer_value(json_object_get(state, "messages"));
	struct tm tm = { 0 };
	AUTO_BUF out = BUF_INIT(KiB);

	if (json_is_object(state) && n >= 0) {
		message_put_number(&out, FIELD_stream_depth, (uint64_t)n);
		if (n > 0 && first && strptime(first, "%Y-%m-%dT%H:%M:%S", &tm))
			message_put_number(&out, FIELD_oldest, (uint64_t)timegm(&tm));
		link_send(l, 0, LINK_STATS, &out);
	}
	json_decref(doc);
}

void places_count(struct link *l)
{
	uint64_t now = clock_now_ns();

	if (!l->is_up || l->options->is_worker || now - l->stats_ns < COUNT_NS)
		return;
	l->stats_ns = now;
	(void)broker_request(l->broker, &(struct broker_message){ .subject = "$JS.API.STREAM.INFO." LINK_STREAM },
			     LINK_REQUEST_NS, on_counted, 0);
}

void places_begin(struct link *l)
{
	l->n_places = 0;
	l->is_placing = false;
	l->place_again_ns = 0;
}

void places_step(struct link *l)
{
	AUTO_BUF subject = BUF_INIT(BROKER_SUBJECT_MAX);
	AUTO_BUF body = BUF_INIT(4 * KiB);
	uint64_t now = clock_now_ns();

	if (!broker_is_up(l->broker) || l->is_placing || places_are_there(l) || now < l->place_again_ns)
		return;
	describe(&places[l->n_places], l->replicas, &subject, &body);
	l->place_again_ns = now + AGAIN_NS;
	l->is_placing = broker_request(l->broker,
				       &(struct broker_message){
					       .subject = buf_str(&subject), .data = buf_str(&body), .len = body.len },
				       LINK_REQUEST_NS, on_made, l->n_places) == 0;
}
