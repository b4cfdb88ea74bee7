/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.c - the control plane: reads of sandboxes
 *
 * Lists are paged. The token of the next page is the creation time and id of the last sandbox on this page, so paging
 * continues at the same place whatever is created or ends in between.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "base/when.h"
#include "net/http1.h"
#include "server/doors/e2b/control.h"

#define PAGE_MAX      100
#define QUERY_MAX     8192
#define PAIRS_MAX     64
#define TOKEN_BETWEEN '/'
#define ID_LEN        16

/* ---- documents ------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

json_t *e2b_note(const json_t *session)
{
	const char *text = text_of(session, "note");
	json_t *note = *text ? json_loads(text, 0, NULL) : NULL;

	if (!json_is_object(note)) { /* the session was not created through this door */
		json_decref(note);
		note = json_object();
	}
	return note;
}

bool e2b_is_id(const char *text)
{
	return strlen(text) == ID_LEN && strspn(text, ID_ALPHABET) == ID_LEN;
}

bool e2b_read_token(const struct client *c, char *dst, size_t size)
{
	if (door_query(c, "nextToken", dst, size))
		return true;
	dst[0] = '\0';
	return !strstr(c->req->call->query, "nextToken=");
}

static json_t *template_of(const json_t *note)
{
	const json_t *name = json_object_get(note, "templateID");

	return json_is_string(name) ? json_string(json_string_value(name)) : json_string("base");
}

/* Servers in a sandbox have host names below this domain, with the port by which the client reached us. */
static json_t *domain_of(const struct client *c)
{
	const char *host = door_line(c, "Host"), *colon = host ? strrchr(host, ':') : NULL;
	bool has_port = colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';

	if (!c->front->options->port_domain)
		return json_null();
	return json_sprintf("%s%s", c->front->options->port_domain, has_port ? colon : "");
}

json_t *e2b_sandbox(const struct client *c, const json_t *session)
{
	json_t *note = e2b_note(session), *doc;

	doc = json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:o}", "templateID", template_of(note), "sandboxID",
			text_of(session, "id"), "clientID", "local", "envdVersion", E2B_ENVD_VERSION, "envdAccessToken",
			text_of(session, "key"), "trafficAccessToken", text_of(session, "key"), "domain", domain_of(c));
	json_decref(note);
	return doc;
}

static bool is_paused(const json_t *session)
{
	return str_eq(text_of(session, "state"), "paused");
}

static bool is_there(const json_t *session)
{
	return is_paused(session) || str_eq(text_of(session, "state"), "ready");
}

static json_t *listed(const json_t *session, const json_t *note)
{
	json_t *metadata = json_object_get(note, "metadata");
	json_int_t percent = number_of(session, "cpu_percent");

	return json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:o, s:[]}", "sandboxID",
			 text_of(session, "id"), "templateID", template_of(note), "clientID", "local", "startedAt",
			 text_of(session, "created"), "endAt", text_of(session, "ends"), "state",
			 is_paused(session) ? "paused" : "running", "cpuCount",
			 percent > 100 ? (percent + 99) / 100 : (json_int_t)1, "memoryMB",
			 number_of(session, "memory") / (json_int_t)MiB, "diskSizeMB",
			 number_of(session, "disk") / (json_int_t)MiB, "envdVersion", E2B_ENVD_VERSION, "metadata",
			 json_is_object(metadata) ? json_incref(metadata) : json_object(), "volumeMounts");
}

/* ---- one ------------------------------------------------------------------------------------------------------- */

void e2b_not_found(struct client *c)
{
	char none[120];

	(void)snprintf(none, sizeof(none), "Sandbox \"%s\" not found", c->req->call->id);
	e2b_reply_error(c, 404, none);
}

bool e2b_goes_on(const json_t *note)
{
	return json_is_true(json_object_get(json_object_get(note, "autoResume"), "enabled"));
}

static json_t *detail(const struct client *c, const json_t *session)
{
	json_t *note = e2b_note(session), *doc = listed(session, note);
	json_t *access = json_object_get(note, "allow_internet_access"), *network = json_object_get(note, "network");

	if (doc) {
		(void)json_object_update_new(
			doc, json_pack("{s:o, s:s, s:{s:s, s:b}}", "domain", domain_of(c), "envdAccessToken",
				       text_of(session, "key"), "lifecycle", "onTimeout",
				       json_is_true(json_object_get(note, "autoPause")) ? "pause" : "kill",
				       "autoResume", e2b_goes_on(note)));
		if (json_is_boolean(access))
			(void)json_object_set(doc, "allowInternetAccess", access);
		if (network)
			(void)json_object_set(doc, "network", network);
	}
	json_decref(note);
	return doc;
}

static void on_one(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;

	if (!doc)
		e2b_fail(c, status, m);
	else if (!is_there(doc))
		e2b_not_found(c);
	else
		door_reply(c, 200, detail(c, doc));
	json_decref(doc);
}

static void ask_one(struct client *c, void (*then)(struct client *c, unsigned status, const struct message *m))
{
	message_put_text(door_fields(c), FIELD_id, c->req->call->id);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, then);
}

void e2b_get(struct client *c)
{
	ask_one(c, on_one);
}

/* ---- list ------------------------------------------------------------------------------------------------------ */

struct wanted {
	char metadata[QUERY_MAX], template[129], token[120];
	uint64_t after_ns; /* 0: no such filter */
	bool has_metadata, is_oldest_first, running, paused;
	uint64_t limit;
	json_t *pairs;
};

/* "running,paused", once or in several parameters; default: both. */
static bool read_states(struct client *c, struct wanted *w)
{
	char text[64];
	char *word, *rest = text;

	w->running = w->paused = true;
	if (!door_query(c, "state", text, sizeof(text)))
		return !strstr(c->req->call->query, "state=");
	w->running = w->paused = false;
	while ((word = strsep(&rest, ","))) {
		w->running |= str_eq(word, "running");
		w->paused |= str_eq(word, "paused");
		if (!str_eq(word, "running") && !str_eq(word, "paused"))
			return false;
	}
	if (strstr(c->req->call->query, "state=running&state=paused") ||
	    strstr(c->req->call->query, "state=paused&state=running"))
		w->running = w->paused = true;
	return true;
}

/* Decodes a part of a form whose text was URI-encoded before. */
static char *decode_twice(const char *text, size_t len, char *dst, size_t size)
{
	AUTO_FREE char *once = malloc(len + 1);
	size_t n;

	if (!once || !http1_decode(text, len, once, len + 1, &n) || !http1_decode(once, n, dst, size, &n) ||
	    !str_is_utf8(dst, n))
		return NULL;
	return dst;
}

/* The value of the query is itself a form, with each name and value encoded before that. */
static bool read_metadata(struct wanted *w)
{
	char name[1025], value[4097];

	w->pairs = json_object();
	for (const char *at = w->metadata; *at;) {
		size_t len = strcspn(at, "&"), equals = strcspn(at, "=&");

		if (equals >= len || json_object_size(w->pairs) == PAIRS_MAX ||
		    !decode_twice(at, equals, name, sizeof(name)) ||
		    !decode_twice(at + equals + 1, len - equals - 1, value, sizeof(value)))
			return false;
		(void)json_object_set_new(w->pairs, name, json_string(value));
		at += len + (at[len] == '&');
	}
	return true;
}

/* True if it is none, or one that a page before may have ended with: "2026-01-01T00:00:00Z/abcdefghijklmnop". */
static bool is_token(const char *token)
{
	const char *between = strchr(token, TOKEN_BETWEEN);
	char created[sizeof(((struct wanted *)0)->token)];
	uint64_t created_ns;

	if (!*token)
		return true;
	if (!between || !e2b_is_id(between + 1))
		return false;
	(void)snprintf(created, sizeof(created), "%.*s", (int)(between - token), token);
	return when_parse(created, 0, &created_ns);
}

/* NULL or what is wrong with the query. */
static const char *read_query(struct client *c, struct wanted *w)
{
	char text[64];

	w->limit = PAGE_MAX;
	if (door_query(c, "limit", text, sizeof(text)) &&
	    (!str_to_u64(text, &w->limit) || w->limit == 0 || w->limit > PAGE_MAX))
		return "limit must be a number from 1 to 100";
	if (!read_states(c, w))
		return "state must be running, paused or both";
	if (door_query(c, "startedAfter", text, sizeof(text)) && !when_parse(text, clock_wall_ns(), &w->after_ns))
		return "startedAfter must be a moment";
	if (door_query(c, "order", text, sizeof(text))) {
		if (!str_eq(text, "asc") && !str_eq(text, "desc"))
			return "order must be asc or desc";
		w->is_oldest_first = str_eq(text, "asc");
	}
	(void)door_query(c, "template", w->template, sizeof(w->template));
	if (!e2b_read_token(c, w->token, sizeof(w->token)) || !is_token(w->token))
		return E2B_BAD_TOKEN;
	w->has_metadata = door_query(c, "metadata", w->metadata, sizeof(w->metadata));
	if (w->has_metadata && !read_metadata(w))
		return "metadata cannot be read";
	return NULL;
}

static bool has_metadata(const json_t *note, const struct wanted *w)
{
	const json_t *own = json_object_get(note, "metadata");
	const char *name;
	json_t *value;

	if (!w->has_metadata)
		return true;
	json_object_foreach(w->pairs, name, value) if (!json_equal(json_object_get(own, name), value)) return false;
	return true;
}

static bool is_wanted(const json_t *session, const json_t *note, const struct wanted *w, const char *who)
{
	const char *template = text_of(note, "templateID");
	uint64_t created_ns = 0;

	if (!is_there(session) || !(is_paused(session) ? w->paused : w->running) ||
	    !str_eq(text_of(session, "token"), who) || !has_metadata(note, w))
		return false;
	if (w->template[0] && !str_eq(w->template, *template ? template : "base"))
		return false;
	return !w->after_ns || (when_parse(text_of(session, "created"), 0, &created_ns) && created_ns >= w->after_ns);
}

/* True if a sandbox comes after the last one of the previous page. */
static bool is_behind(const json_t *session, const struct wanted *w)
{
	const char *between = strchr(w->token, TOKEN_BETWEEN);
	size_t len = between ? (size_t)(between - w->token) : 0;
	int order = between ? strncmp(text_of(session, "created"), w->token, len) : 0;

	if (!between)
		return true;
	if (order == 0)
		order = strcmp(text_of(session, "id"), between + 1);
	return w->is_oldest_first ? order > 0 : order < 0;
}

/* By creation time, then by id; the page token relies on this order. */
static int compare(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int order = strcmp(text_of(x, "created"), text_of(y, "created"));

	return order ? order : strcmp(text_of(x, "id"), text_of(y, "id"));
}

/* The entries of one page, in order; next is set if there are more. A new reference. */
static json_t *choose(const json_t *sessions, const struct wanted *w, const char *who, char next[120])
{
	size_t n = json_array_size(sessions), i;
	json_t **row = calloc(n + 1, sizeof(json_t *)), *list = json_array();
	const json_t *last = NULL;

	for (i = 0; row && i < n; i++)
		row[i] = json_array_get(sessions, i);
	if (row)
		qsort(row, n, sizeof(json_t *), compare);
	for (i = 0; row && i < n; i++) {
		json_t *one = row[w->is_oldest_first ? i : n - 1 - i], *note = e2b_note(one);
		bool is_it = is_wanted(one, note, w, who) && is_behind(one, w);

		if (is_it && json_array_size(list) == w->limit)
			(void)snprintf(next, 120, "%s%c%s", text_of(last, "created"), TOKEN_BETWEEN,
				       text_of(last, "id"));
		else if (is_it)
			(void)json_array_append_new(list, listed(one, note));
		json_decref(note);
		if (next[0])
			break;
		last = is_it ? one : last;
	}
	free(row);
	return list;
}

void e2b_reply_list(struct client *c, json_t *list, const char *next)
{
	AUTO_FREE char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
	char line[160] = "";

	json_decref(list);
	if (*next)
		(void)snprintf(line, sizeof(line), "X-Next-Token: %s\r\n", next);
	if (text)
		reply_send(c, &(struct reply){ .status = 200, .body = text, .len = strlen(text), .more = line });
	else
		client_close(c, true);
}

static void on_list(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;
	AUTO_FREE struct wanted *w = calloc(1, sizeof(*w));
	const char *why = w ? read_query(c, w) : NULL;
	char next[120] = "";

	if (!doc)
		e2b_fail(c, status, m);
	else if (!w)
		e2b_reply_error(c, 503, "there is no memory for the request");
	else if (why)
		e2b_reply_error(c, 400, why);
	else
		e2b_reply_list(c, choose(json_object_get(doc, "sessions"), w, c->req->who, next), next);
	if (w)
		json_decref(w->pairs);
	json_decref(doc);
}

void e2b_list(struct client *c)
{
	(void)door_fields(c);
	door_ask(c, ROUTE_sessions, FD_NONE, FD_NONE, on_list);
}

/* ---- metrics --------------------------------------------------------------------------------------------------- */

static json_t *metric(const json_t *session)
{
	uint64_t now = clock_wall_ns();
	char text[WHEN_TEXT_MAX];
	json_int_t percent = number_of(session, "cpu_percent");

	return json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "timestamp",
			 when_utc(text, sizeof(text), now), "timestampUnix", (json_int_t)(now / NS_PER_SEC), "cpuCount",
			 percent > 100 ? (percent + 99) / 100 : (json_int_t)1, "cpuUsedPct",
			 json_number_value(json_object_get(session, "cpu_used_percent")), "memUsed",
			 number_of(session, "memory_used"), "memTotal", number_of(session, "memory"), "memCache",
			 (json_int_t)0, "diskUsed", number_of(session, "disk_used"), "diskTotal",
			 number_of(session, "disk"));
}

/* The same in envd's format. */
static json_t *envd_metric(const json_t *session)
{
	json_int_t percent = number_of(session, "cpu_percent");

	return json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "ts", (json_int_t)(clock_wall_ns() / NS_PER_SEC),
			 "cpu_count", percent > 100 ? (percent + 99) / 100 : (json_int_t)1, "cpu_used_pct",
			 json_number_value(json_object_get(session, "cpu_used_percent")), "mem_used",
			 number_of(session, "memory_used"), "mem_total", number_of(session, "memory"), "mem_cache",
			 (json_int_t)0, "disk_used", number_of(session, "disk_used"), "disk_total",
			 number_of(session, "disk"));
}

#define METRICS_APART_S 5 /* the interval of the original's samples */

/* True if the requested interval (seconds) contains the only sample, that of now. */
static bool wants_now(struct client *c)
{
	uint64_t now = clock_wall_ns() / NS_PER_SEC, start = 0, end = UINT64_MAX;
	char text[32];

	if (door_query(c, "start", text, sizeof(text)) && !str_to_u64(text, &start))
		return true;
	if (door_query(c, "end", text, sizeof(text)) && !str_to_u64(text, &end))
		return true;
	return start <= now && now - METRICS_APART_S <= end;
}

static void on_metrics(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;

	if (!doc)
		e2b_fail(c, status, m);
	else if (!is_there(doc))
		e2b_not_found(c);
	else
		door_reply(c, 200, wants_now(c) ? json_pack("[o]", metric(doc)) : json_array());
	json_decref(doc);
}

void e2b_metrics(struct client *c)
{
	ask_one(c, on_metrics);
}

/* ---- envd's ---------------------------------------------------------------------------------------------------- */

static void reply_of(struct client *c, unsigned status, const struct message *m, json_t *(*say)(const json_t *session))
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL;
	bool has_ended = doc ? !is_there(doc) : e2b_is_gone(status, m); /* since it was found */

	if (has_ended)
		e2b_gone(c);
	else if (doc)
		door_reply(c, 200, say(doc));
	else
		e2b_fail(c, status, m);
	json_decref(doc);
}

static void on_envd_metrics(struct client *c, unsigned status, const struct message *m)
{
	reply_of(c, status, m, envd_metric);
}

static void ask_envd_metrics(struct client *c)
{
	(void)door_fields(c);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, on_envd_metrics);
}

void e2b_envd_metrics(struct client *c)
{
	e2b_with_sandbox(c, E2B_ENVD, ask_envd_metrics);
}

static json_t *variables(const json_t *session)
{
	return json_incref(json_object_get(session, "variables"));
}

static void on_variables(struct client *c, unsigned status, const struct message *m)
{
	reply_of(c, status, m, variables);
}

static void ask_variables(struct client *c)
{
	message_put_number(door_fields(c), FIELD_with_variables, 1);
	door_ask(c, ROUTE_session, FD_NONE, FD_NONE, on_variables);
}

void e2b_envs(struct client *c)
{
	e2b_with_sandbox(c, E2B_ENVD, ask_variables);
}
