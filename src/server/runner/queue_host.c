/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_host.c - what a worker says of the host that it is on
 *
 * Which protections cells have here, and which backends can keep the policy, is found out by trying, in an answerer, as for
 * anybody who asks for /v1/capabilities: at first, and again now and then, since hosts change.  A worker has no front, so
 * nobody is answered and the document is kept.  Until there is one, nothing is said of either.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/asks.h"
#include "server/runner/service.h"

#define LOOK_NS (600 * NS_PER_SEC)

void worker_look_at_host(struct service *s)
{
	static const struct token nobody;
	struct ask ask = { .route = ROUTE_capabilities, .request_id = "", .token = &nobody };
	uint64_t now = clock_now_ns(), *last = &s->queue.host_ns;

	if (*last && now - *last < (s->capabilities ? LOOK_NS : CAPABILITIES_NS))
		return;
	*last = now;
	ask_capabilities(s, &ask);
}

/* No more than there may be of a kind: one too many, and the whole entry is none. */
static void put_word(struct buf *m, enum field f, const char *word, size_t *n)
{
	if (strlen(word) > message_max_bytes(f) || *n == message_max_count(f))
		return;
	message_put_text(m, f, word);
	++*n;
}

static void put_capabilities(const struct service *s, struct buf *m)
{
	json_t *doc = s->capabilities ? json_loads(s->capabilities, JSON_ALLOW_NUL, NULL) : NULL;
	size_t i, n_has = 0, n_lacks = 0, n_backends = 0;
	const json_t *row;

	json_array_foreach(json_object_get(doc, "rows"), i, row)
	{
		const char *protection = json_string_value(json_object_get(row, "protection"));
		const char *area = json_string_value(json_object_get(row, "area"));
		const char *name = json_string_value(json_object_get(row, "name"));
		const char *status = json_string_value(json_object_get(row, "status"));
		bool works = status && str_eq(status, "ok");

		if (protection && *protection)
			put_word(m, works ? FIELD_protection : FIELD_lacks, protection, works ? &n_has : &n_lacks);
		else if (works && name && area && str_eq(area, "backends"))
			put_word(m, FIELD_backend, name, &n_backends);
	}
	json_decref(doc);
}

/* Kinds of jobs that find a cell which waits for them; pools of one kind may differ in more than is said here. */
static void put_ready(const struct service *s, struct buf *m)
{
	char *text = NULL, what[80], class[160];
	json_t *doc, *said;
	const json_t *row;
	size_t i, n = 0;

	if (brig_pools_json(s->host->b, &text, NULL) < 0)
		return;
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	said = json_object();
	brig_free(text);
	json_array_foreach(json_object_get(doc, "pools"), i, row)
	{
		const char *language = json_string_value(json_object_get(row, "language"));
		const char *environment = json_string_value(json_object_get(row, "environment"));
		const char *trust = json_string_value(json_object_get(row, "trust"));

		if (!trust || !language || json_integer_value(json_object_get(row, "ready")) < 1)
			continue;
		(void)snprintf(what, sizeof(what), "%s%.60s", environment ? "env-" : "",
			       environment ? environment : language);
		queue_class(trust, what, class, sizeof(class));
		if (json_object_get(said, class))
			continue;
		(void)json_object_set_new(said, class, json_true());
		put_word(m, FIELD_ready, class, &n);
	}
	json_decref(said);
	json_decref(doc);
}

static void put_pressure(struct buf *m, enum field f, double per_cent)
{
	if (per_cent >= 0)
		message_put_number(m, f, (uint64_t)(per_cent * 100));
}

void worker_put_host(const struct service *s, struct buf *m)
{
	put_pressure(m, FIELD_pressure_cpu, s->queue.pressure_cpu);
	put_pressure(m, FIELD_pressure_memory, s->queue.pressure_memory);
	put_capabilities(s, m);
	put_ready(s, m);
}
