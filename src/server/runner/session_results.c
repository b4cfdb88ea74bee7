/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_results.c - values shown by a run in a session, and its result
 *
 * Values shown in a notebook are sent as events and kept for the result, up to the limits.  The result is the library's
 * document with output and values added.  To avoid parsing it, new members are appended to its text; only output, for
 * which it has members already, requires parsing and serialising it.
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "server/runner/answer.h"

/* results of a run that are sent before its end although they do not fit into a record */
#define LONG_EVENTS_MAX 64

/* Representations of a value as members of an object; those that are not UTF-8 are omitted. */
static json_t *forms_of(const struct brig_session_event *e, size_t *ret_bytes)
{
	json_t *forms = json_object();

	*ret_bytes = 0;
	for (size_t i = 0; i < e->n_fields; i++) {
		const struct brig_session_field *f = &e->fields[i];
		json_t *value = json_stringn(f->value, f->len);

		*ret_bytes += f->len;
		if (str_eq(f->name, "main")) {
			json_decref(value);
			value = json_boolean(str_eq(f->value, "1"));
		}
		if (value)
			(void)json_object_set_new(forms, f->name, value);
	}
	return forms;
}

static void tell_result(struct session_piece *p, json_t *forms, size_t bytes)
{
	if (bytes > CHANNEL_INLINE_MAX / 6 && json_array_size(p->results) > LONG_EVENTS_MAX)
		p->results_are_late = true; /* and so are all that follow, to preserve their order */
	if (!p->results_are_late && events_are_heard(&p->x))
		events_put(&p->x, EVENT_result, json_pack("{s:s, s:O}", "event", "result", "result", forms));
}

void session_piece_show(struct session_piece *p, const struct brig_session_event *e)
{
	size_t bytes;
	json_t *forms = forms_of(e, &bytes);

	if (p->results_bytes + bytes > SESSION_RESULTS_BYTES || json_array_size(p->results) == SESSION_RESULTS_MAX ||
	    !session_piece_hold(p, bytes)) {
		p->results_are_cut = true;
	} else if (forms && json_object_get(forms, "traceback")) {
		json_decref(p->error);
		p->error = json_incref(forms);
		p->results_bytes += bytes;
		tell_result(p, forms, bytes);
	} else if (forms) {
		(void)json_array_append(p->results, forms);
		p->results_bytes += bytes;
		tell_result(p, forms, bytes);
	}
	json_decref(forms);
}

/* Output as in other results: text, or base64 if it is not UTF-8. */
static void add_output(json_t *doc, const char *name, const struct buf *bytes)
{
	size_t good = bytes->len > 0 ? str_utf8_prefix(bytes->data, bytes->len) : 0;
	/* truncation may have split a character */
	size_t len = bytes->full && bytes->len - good < 4 ? good : bytes->len;
	AUTO_FREE char *coded = malloc(base64_len(len) + 1);
	json_t *text = len > 0 ? json_stringn(bytes->data, len) : json_string("");
	char member[32];

	(void)snprintf(member, sizeof(member), "%s_encoding", name);
	if (!text && coded) {
		base64_put(coded, bytes->data, len);
		text = json_stringn(coded, base64_len(len));
		(void)json_object_set_new(doc, member, json_string("base64"));
	}
	(void)json_object_set_new(doc, name, text ? text : json_string(""));
	(void)snprintf(member, sizeof(member), "%s_truncated", name);
	if (bytes->full || bytes->no_memory)
		(void)json_object_set_new(doc, member, json_true());
}

static void add_shown(json_t *doc, const struct session_piece *p, uint64_t count)
{
	if (p->context == 0) {
		(void)json_object_set_new(doc, "process", json_integer((json_int_t)p->tag));
		if (p->start_error)
			(void)json_object_set_new(doc, "start_error", json_integer(p->start_error));
		if (p->is_bad_cwd)
			(void)json_object_set_new(doc, "bad_cwd", json_true());
		return;
	}
	(void)json_object_set_new(doc, "context", json_integer((json_int_t)p->context));
	(void)json_object_set_new(doc, "execution_count", json_integer((json_int_t)count));
	(void)json_object_set(doc, "results", p->results);
	(void)json_object_set_new(doc, "results_truncated", json_boolean(p->results_are_cut));
	(void)json_object_set_new(doc, "error", p->error ? json_incref(p->error) : json_null());
}

static bool has_output(const struct buf *output)
{
	return output->len > 0 || output->full || output->no_memory;
}

/* Parses the document, adds the output and serialises it; NULL: that failed. */
static char *with_output(const struct session_piece *p, const char *text)
{
	json_t *doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	char *whole;

	if (!doc)
		return NULL;
	add_output(doc, "stdout", &p->output[0]);
	add_output(doc, "stderr", &p->output[1]);
	whole = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return whole;
}

/* Concatenates two JSON objects without common members, given as text. */
static char *join_objects(const char *first, const char *second)
{
	size_t a = strlen(first), b = strlen(second);
	char *both = a > 2 && b > 2 ? malloc(a + b) : NULL;

	if (!both)
		return NULL;
	memcpy(both, first, a - 1); /* without the closing bracket */
	both[a - 1] = ',';
	memcpy(both + a, second + 1, b); /* including the NUL */
	return both;
}

/* The library's document with output (which the library delivered in events) and shown values. */
void session_piece_keep_result(struct session_piece *p, const struct brig_result *r, uint64_t count)
{
	struct execution *x = &p->x;
	json_t *shown = json_object();
	AUTO_FREE char *more = NULL, *whole = NULL;
	char *text = NULL;

	if (brig_result_json(r, &text, NULL) < 0)
		text = NULL;
	add_shown(shown, p, count);
	more = json_dumps(shown, JSON_COMPACT);
	json_decref(shown);
	if (text && (has_output(&p->output[0]) || has_output(&p->output[1])))
		whole = with_output(p, text);
	else if (text)
		whole = strdup(text);
	brig_free(text);
	x->result = whole && more ? join_objects(whole, more) : NULL;
	x->result_len = x->result ? strlen(x->result) : 0;
}
