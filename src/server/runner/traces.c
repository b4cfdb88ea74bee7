/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces.c - executions as trace spans
 *
 *	execution          in the trace of the request; its parent is the span named in the client's traceparent, its id the
 *	                   one in the answer's traceparent
 *	  queued           until it was started
 *	  STAGE.STEP       each step of the run (brig_trace): "resolve", "run.begin", "run.watch" ...
 *	run, process       the same for runs and processes in a session, which have no steps; attributes name the session
 *
 * A request without a traceparent starts a new trace.  One whose flags say that it is not sampled is not exported.
 */
#include "server/runner/traces.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/exporter.h"
#include "server/runner/service.h"

#define TRACE_LEN 32
#define SPAN_LEN  16
#define TRACE_AT  3
#define SPAN_AT   36
#define FLAGS_AT  53
#define TEXT_LEN  55

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2 };
enum span_status { STATUS_UNSET = 0, STATUS_OK = 1, STATUS_ERROR = 2 };

struct trace_place {
	char trace[TRACE_LEN + 1], span[SPAN_LEN + 1], parent[SPAN_LEN + 1]; /* parent "": none */
};

struct trace_step {
	char name[64];
	uint64_t begin_ns, end_ns; /* monotonic */
};

struct trace_steps {
	struct trace_step step[TRACE_STEPS_MAX];
	size_t n, left_out;
	struct trace_place place; /* of a run or process in a session, whose request is gone when it ends */
	const char *name;         /* of that span; NULL: it is an execution */
	char session[EXECUTION_ID_LEN + 1];
};

/* ---- steps ------------------------------------------------------------------------------------------------ */

static void on_trace(void *user, const struct brig_trace *w)
{
	struct execution *x = user;
	struct trace_steps *t = x->trace;
	struct trace_step *s;

	if (t->n == TRACE_STEPS_MAX) {
		t->left_out++;
		return;
	}
	s = &t->step[t->n++];
	(void)snprintf(s->name, sizeof(s->name), "%.30s%s%.30s", w->stage, *w->stage ? "." : "", w->step);
	s->begin_ns = w->at_ns - w->took_ns;
	s->end_ns = w->at_ns;
}

void traces_attach(struct execution *x, struct brig_request *req)
{
	if (!x->service->exporter)
		return;
	x->trace = calloc(1, sizeof(*x->trace));
	if (x->trace)
		req->on_trace = on_trace;
}

void traces_release(struct execution *x)
{
	free(x->trace);
	x->trace = NULL;
}

/* ---- ids ---------------------------------------------------------------------------------------------------- */

/* A random id, not 0. */
static bool make_number(char *dst, size_t len)
{
	uint64_t n[2] = { 0, 0 };

	if (getrandom(n, sizeof(n), GRND_NONBLOCK) != sizeof(n) || n[0] == 0)
		return false;
	(void)snprintf(dst, len + 1, "%016llx%016llx", (unsigned long long)n[0], (unsigned long long)n[1]);
	dst[len] = '\0';
	return true;
}

static bool is_hex(const char *text, size_t len)
{
	return strspn(text, "0123456789abcdef") >= len;
}

/* The front has validated it, but the front is not trusted. */
static bool is_sound(const char *text)
{
	return strlen(text) == TEXT_LEN && is_hex(text + TRACE_AT, TRACE_LEN) && is_hex(text + SPAN_AT, SPAN_LEN) &&
	       is_hex(text + FLAGS_AT, 2);
}

/* False: not sampled, hence not exported. */
static bool find_place(const struct message *m, struct trace_place *ret)
{
	const char *text = message_text(m, FIELD_traceparent), *parent = message_text(m, FIELD_parent_span);

	*ret = (struct trace_place){ .trace = "" };
	if (!text || !is_sound(text))
		return make_number(ret->trace, TRACE_LEN) && make_number(ret->span, SPAN_LEN);
	memcpy(ret->trace, text + TRACE_AT, TRACE_LEN);
	memcpy(ret->span, text + SPAN_AT, SPAN_LEN);
	if (parent && strlen(parent) == SPAN_LEN && is_hex(parent, SPAN_LEN))
		memcpy(ret->parent, parent, SPAN_LEN);
	return strchr("13579bdf", text[FLAGS_AT + 1]) != NULL; /* sampled */
}

/* ---- spans -------------------------------------------------------------------------------------------------- */

struct span {
	const char *name, *id, *parent;
	enum span_kind kind;
	uint64_t begin_ns, end_ns; /* wall clock */
	json_t *attributes;        /* owned; NULL: none */
	enum span_status status;
};

/* 64-bit numbers are strings in OTLP/JSON. */
static json_t *nanoseconds(uint64_t ns)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)ns);
	return json_string(text);
}

static void put_span(struct buf *out, const struct trace_place *place, const struct span *s, uint32_t *n)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:{s:i}}", "traceId", place->trace, "spanId", s->id,
			  "name", s->name, "kind", (int)s->kind, "startTimeUnixNano", nanoseconds(s->begin_ns),
			  "endTimeUnixNano", nanoseconds(max_u64(s->begin_ns, s->end_ns)), "attributes",
			  s->attributes ? s->attributes : json_array(), "status", "code", (int)s->status);
	AUTO_FREE char *text = NULL;

	if (doc && *s->parent)
		(void)json_object_set_new(doc, "parentSpanId", json_string(s->parent));
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	if (!text)
		return;
	buf_addf(out, "%s%s", out->len ? "," : "", text);
	++*n;
}

static void put_child(struct buf *out, const struct trace_place *place, const char *name, uint64_t begin_ns,
		      uint64_t end_ns, uint32_t *n)
{
	char id[SPAN_LEN + 1];

	if (!make_number(id, SPAN_LEN))
		return;
	put_span(out, place,
		 &(struct span){ .name = name,
				 .id = id,
				 .parent = place->span,
				 .kind = SPAN_INTERNAL,
				 .begin_ns = begin_ns,
				 .end_ns = end_ns },
		 n);
}

static void add_attribute(json_t *list, const char *key, const char *value)
{
	if (*value)
		(void)json_array_append_new(list, json_pack("{s:s, s:{s:s%}}", "key", key, "value", "stringValue",
							    value, str_utf8_prefix(value, strlen(value))));
}

static json_t *describe(const struct execution *x)
{
	json_t *list = json_array();

	add_attribute(list, "brig.execution.id", x->id);
	add_attribute(list, "brig.kind", x->kind);
	add_attribute(list, "brig.language", x->language);
	add_attribute(list, "brig.trust", x->trust);
	add_attribute(list, "brig.token", x->owner);
	add_attribute(list, "brig.verdict", x->verdict);
	add_attribute(list, "brig.environment", x->makes);
	add_attribute(list, "brig.session.id", x->trace->session);
	return list;
}

void traces_attach_piece(struct execution *x, const struct message *m, const char *name, const char *session)
{
	if (!x->service->exporter)
		return;
	x->trace = calloc(1, sizeof(*x->trace));
	if (!x->trace)
		return;
	x->trace->name = name;
	(void)str_copy(x->trace->session, sizeof(x->trace->session), session);
	if (!find_place(m, &x->trace->place))
		traces_release(x);
}

void traces_finish(struct execution *x)
{
	const uint64_t offset_ns = clock_wall_ns() - clock_now_ns();
	AUTO_BUF out = BUF_INIT(EXPORTER_RECORD_MAX - 64);
	struct trace_place place;
	uint32_t n = 0;

	if (!x->trace || (!x->trace->name && (!x->job || !find_place(&x->job->m, &place))))
		return;
	if (x->trace->name)
		place = x->trace->place;
	put_span(&out, &place,
		 &(struct span){ .name = x->trace->name ? x->trace->name : "execution",
				 .id = place.span,
				 .parent = place.parent,
				 .kind = SPAN_SERVER,
				 .begin_ns = x->created_ns,
				 .end_ns = x->ended_ns,
				 .attributes = describe(x),
				 .status = str_eq(x->verdict, "ok") ? STATUS_OK : STATUS_ERROR },
		 &n);
	if (!x->trace->name)
		put_child(&out, &place, "queued", x->created_ns, x->started_ns, &n);
	for (size_t i = 0; i < x->trace->n; i++)
		put_child(&out, &place, x->trace->step[i].name, x->trace->step[i].begin_ns + offset_ns,
			  x->trace->step[i].end_ns + offset_ns, &n);
	exporter_send(x->service->exporter, buf_str(&out), out.len, n);
	traces_release(x);
}
