/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_host.c - what a worker reports about its host
 *
 * Which protections cells have here, and which backends can enforce the policy, is tested in an answerer, exactly as
 * for a request for /v1/capabilities: at startup, and periodically since hosts change.  A worker has no front, so the
 * answer goes nowhere but into the cache.  Until there is one, the entry lists neither, and no jobs are requested: a
 * job that this host would refuse may run on another.
 */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/requests.h"
#include "server/runner/service.h"

#define LOOK_NS     (600 * NS_PER_SEC)
#define MEMORY_MOST 20.0 /* memory pressure in per cent (PSI, some avg10), above which one job runs at a time */
#define CPU_MOST    90.0 /* CPU pressure, above which half of the jobs run */

void worker_look_at_host(struct service *s)
{
	static const struct token nobody;
	struct request req = { .route = ROUTE_capabilities, .request_id = "", .token = &nobody };
	uint64_t now = clock_now_ns(), *last = &s->queue.host_ns;

	if (*last && now - *last < (s->capabilities ? LOOK_NS : CAPABILITIES_NS))
		return;
	*last = now;
	handle_capabilities(s, &req);
}

/* Respects the limits of the field: one value too many would make the whole entry invalid. */
static void put_word(struct buf *m, enum field f, const char *word, size_t *n)
{
	if (strlen(word) > message_max_bytes(f) || *n == message_max_count(f))
		return;
	message_put_text(m, f, word);
	++*n;
}

static void put_capabilities(const json_t *doc, struct buf *m)
{
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
}

/* ---- requirements of the policy -------------------------------------------------------------- */

static bool is_missing(const json_t *row)
{
	const char *status = json_string_value(json_object_get(row, "status"));

	return status && str_eq(status, "missing");
}

/*
 * The row of the backend that the policy prescribes for this trust level; NULL: it names none, or there is no such row.
 */
static const json_t *named_backend(const struct service *s, enum token_trust trust, const json_t *doc)
{
	const char *wanted = s->host->level[trust].backend, *area, *name;
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "rows"), i, row)
	{
		area = json_string_value(json_object_get(row, "area"));
		name = json_string_value(json_object_get(row, "name"));
		if (*wanted && area && name && str_eq(area, "backends") && str_eq(name, wanted))
			return row;
	}
	return NULL;
}

bool worker_look_at_policy(struct service *s)
{
	struct queue *q = &s->queue;
	uint64_t of_ns = s->capabilities ? s->capabilities_ns : 0;
	bool is_changed = false;
	json_t *doc;

	if (of_ns == q->able_ns)
		return false;
	q->able_ns = of_ns;
	doc = s->capabilities ? json_loads(s->capabilities, JSON_ALLOW_NUL, NULL) : NULL;
	for (enum token_trust t = 0; t < TOKEN_TRUST_COUNT; t++) {
		const json_t *backend = named_backend(s, t, doc);
		bool is_able = backend ? !is_missing(backend) : json_is_true(json_object_get(doc, "ok"));

		is_changed |= is_able != q->is_able[t];
		q->is_able[t] = is_able;
	}
	json_decref(doc);
	return is_changed;
}

static void put_reason(struct buf *m, const char *trust, const json_t *row, size_t *n)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *detail = json_string_value(json_object_get(row, "detail"));
	const char *fix = json_string_value(json_object_get(row, "fix"));
	char text[400];

	(void)snprintf(text, sizeof(text), "%s%s%s: %.200s%s%.120s", trust ? trust : "", trust ? ": " : "",
		       name ? name : "-", detail ? detail : "-", fix && *fix ? "; " : "", fix ? fix : "");
	for (char *at = text; *at; at++)
		*at = *at == '\n' ? ' ' : *at; /* no newlines */
	put_word(m, FIELD_cannot, text, n);
}

/* Adds the reasons, as `brig doctor` words them, why jobs of some trust level are not accepted. */
static void put_cannot(const struct service *s, const json_t *doc, struct buf *m)
{
	bool needs_any = false; /* the policy names no backend, and none can enforce it */
	const json_t *row;
	size_t i, n = 0;

	if (!doc) {
		put_word(m, FIELD_cannot, "what this host can enforce is not known yet", &n);
		return;
	}
	for (enum token_trust t = 0; t < TOKEN_TRUST_COUNT; t++) {
		const json_t *backend = named_backend(s, t, doc);

		if (!s->host->level[t].is_known || s->queue.is_able[t])
			continue;
		if (backend)
			put_reason(m, token_trust_name(t), backend, &n);
		needs_any |= !backend;
	}
	if (!needs_any)
		return;
	json_array_foreach(json_object_get(doc, "rows"), i,
			   row) if (is_missing(row) && json_is_true(json_object_get(row, "required")))
		put_reason(m, NULL, row, &n);
	if (n == 0)
		put_word(m, FIELD_cannot, "the policy cannot be kept here; run: brig doctor", &n);
}

/* ---- warm kinds ------------------------------------------------------------------------------ */

/* A pool whose cells are all in use counts as well: new ones are being created. */
static bool is_warm(const json_t *row)
{
	return !json_is_true(json_object_get(row, "given_up")) &&
	       (json_integer_value(json_object_get(row, "ready")) > 0 ||
		(json_integer_value(json_object_get(row, "made")) > 0 &&
		 json_integer_value(json_object_get(row, "wanted")) > 0));
}

/* Lists the kinds of jobs for which cells are kept ready; pools of one kind may differ in other respects. */
bool worker_look_at_pools(struct service *s)
{
	AUTO_BUF words = BUF_INIT(sizeof(s->queue.warm) - 1);
	char *text = NULL, what[80], class[160];
	json_t *doc;
	const json_t *row;
	bool is_changed;
	size_t i;

	if (brig_pools_json(s->host->b, &text, NULL) < 0)
		return false;
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	json_array_foreach(json_object_get(doc, "pools"), i, row)
	{
		const char *language = json_string_value(json_object_get(row, "language"));
		const char *environment = json_string_value(json_object_get(row, "environment"));
		const char *trust = json_string_value(json_object_get(row, "trust"));

		if (!trust || !language || !is_warm(row))
			continue;
		(void)snprintf(what, sizeof(what), "%s%.60s", environment ? "env-" : "",
			       environment ? environment : language);
		queue_class(trust, what, class, sizeof(class));
		if (!placement_has(buf_str(&words), class, strlen(class)))
			(void)buf_addf(&words, "%s%s", words.len ? " " : "", class);
	}
	json_decref(doc);
	is_changed = !str_eq(buf_str(&words), s->queue.warm);
	(void)str_copy(s->queue.warm, sizeof(s->queue.warm), buf_str(&words));
	return is_changed;
}

static void put_ready(const struct service *s, struct buf *m)
{
	const char *at = s->queue.warm;
	char class[160];
	size_t n = 0;

	while (*at) {
		size_t len = strcspn(at, " ");

		(void)snprintf(class, sizeof(class), "%.*s", (int)len, at);
		put_word(m, FIELD_ready, class, &n);
		at += len + (at[len] == ' ');
	}
}

/* ---- pressure -------------------------------------------------------------------------------- */

/* Parses "some avg10=1.23 ..."; negative: not available. */
static double pressure_of(const char *file)
{
	char text[256];
	const char *at;

	if (fd_get_at(AT_FDCWD, file, text, sizeof(text)) < 0)
		return -1;
	at = strstr(text, "avg10=");
	return at ? strtod(at + 6, NULL) : -1;
}

void worker_look_at_pressure(struct service *s)
{
	struct queue *q = &s->queue;

	q->pressure_memory = pressure_of("/proc/pressure/memory");
	q->pressure_cpu = pressure_of("/proc/pressure/cpu");
	q->places = q->pressure_memory > MEMORY_MOST ? 1 : q->pressure_cpu > CPU_MOST ? s->jobs / 2 + 1 : s->jobs;
}

static void put_pressure(struct buf *m, enum field f, double per_cent)
{
	if (per_cent >= 0)
		message_put_number(m, f, (uint64_t)(per_cent * 100));
}

void worker_put_host(const struct service *s, struct buf *m)
{
	json_t *doc = s->capabilities ? json_loads(s->capabilities, JSON_ALLOW_NUL, NULL) : NULL;

	put_pressure(m, FIELD_pressure_cpu, s->queue.pressure_cpu);
	put_pressure(m, FIELD_pressure_memory, s->queue.pressure_memory);
	put_capabilities(doc, m);
	put_cannot(s, doc, m);
	put_ready(s, m);
	json_decref(doc);
}
