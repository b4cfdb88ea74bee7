/* SPDX-License-Identifier: Apache-2.0 */
/* reading.c - parsing of queries, of the service's languages and of results for doors */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/doors/door.h"

#define FINDINGS_SHOWN 20
#define LANGUAGES_NS   (10 * NS_PER_SEC)

/* Decodes a form value: a plus is a blank. */
static bool read_value(const char *raw, size_t len, char *dst, size_t size)
{
	char text[sizeof(((struct door_call *)0)->query)];
	size_t n;

	memcpy(text, raw, len);
	for (size_t i = 0; i < len; i++)
		if (text[i] == '+')
			text[i] = ' ';
	return http1_decode(text, len, dst, size, &n) && str_is_utf8(dst, n);
}

bool door_query(const struct client *c, const char *name, char *dst, size_t size)
{
	const char *at = c->req->call->query;
	size_t n = strlen(name);

	while (*at) {
		size_t stop = strcspn(at, "&");

		if (stop > n && at[n] == '=' && memcmp(at, name, n) == 0)
			return read_value(at + n + 1, stop - n - 1, dst, size);
		at += stop + (at[stop] == '&');
	}
	return false;
}

static void on_whoami(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? NULL : door_answer_json(m);

	if (status == 200)
		c->req->call->then_let_in(c);
	else
		door_error(c, status, door_answer_message(doc));
	json_decref(doc);
}

void door_when_let_in(struct client *c, void (*then)(struct client *c))
{
	c->req->call->then_let_in = then;
	(void)door_fields(c);
	door_ask(c, ROUTE_whoami, FD_NONE, FD_NONE, on_whoami);
}

void door_put_option(struct buf *fields, const char *key, uint64_t n)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "%s=%llu", key, (unsigned long long)n);
	message_put_text(fields, FIELD_option, text);
}

/* ---- languages ---------------------------------------------------------------------------------------------- */

static void on_languages(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = door_answer_json(m), *list = json_object_get(doc, "languages");
	struct front *f = c->front;

	if (status == 200 && json_is_array(list)) {
		json_decref(f->languages);
		f->languages = json_incref(list);
		f->languages_ns = f->now_ns;
		c->req->call->then(c, list);
	} else {
		door_error(c, status == 200 ? 500 : status, door_answer_message(doc));
	}
	json_decref(doc);
}

void door_with_languages(struct client *c, bool is_fresh, void (*then)(struct client *c, json_t *languages))
{
	struct front *f = c->front;
	json_t *kept = f->languages;

	c->req->call->is_fresh = is_fresh || !kept || f->now_ns - f->languages_ns > LANGUAGES_NS;
	if (!c->req->call->is_fresh) {
		then(c, json_incref(kept));
		json_decref(kept);
		return;
	}
	c->req->call->then = then;
	(void)door_fields(c);
	door_ask(c, ROUTE_languages, FD_NONE, FD_NONE, on_languages);
}

json_t *door_language(json_t *languages, const char *name)
{
	json_t *row, *other;
	size_t i, k;

	json_array_foreach(languages, i, row)
	{
		const char *own = json_string_value(json_object_get(row, "name"));
		bool is_it = own && str_eq(own, name);

		json_array_foreach(json_object_get(row, "aliases"), k, other) is_it |=
			str_eq(json_string_value(other) ? json_string_value(other) : "", name);
		if (is_it)
			return json_is_true(json_object_get(row, "installed")) ? row : NULL;
	}
	return NULL;
}

/* ---- results -------------------------------------------------------------------------------------------------- */

/* Replaces each byte that is not UTF-8 with U+FFFD. */
static void add_text(struct buf *out, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t good = str_utf8_prefix(bytes, len);

		(void)buf_add(out, bytes, good);
		if (good < len) {
			(void)buf_adds(out, "\xef\xbf\xbd");
			good++;
		}
		bytes += good;
		len -= good;
	}
}

json_t *door_text(const char *text, size_t len, bool is_base64)
{
	AUTO_FREE char *bytes = NULL;
	AUTO_BUF out = BUF_INIT(MESSAGE_MAX);
	ssize_t n;

	if (!is_base64)
		return json_stringn(text, len);
	bytes = malloc(len / 4 * 3 + 1);
	n = bytes ? base64_get(bytes, text, len) : -1;
	if (n < 0)
		return json_string("");
	add_text(&out, bytes, (size_t)n);
	return out.no_memory ? NULL : json_stringn(buf_str(&out), out.len);
}

json_t *door_output(const json_t *result, const char *stream)
{
	const json_t *text = json_object_get(result, stream), *encoding;
	char name[32];

	(void)snprintf(name, sizeof(name), "%s_encoding", stream);
	encoding = json_object_get(result, name);
	if (!json_is_string(text))
		return json_string("");
	return door_text(json_string_value(text), json_string_length(text),
			 json_is_string(encoding) && str_eq(json_string_value(encoding), "base64"));
}

static const char *member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

void door_findings_text(const json_t *result, struct buf *out)
{
	const json_t *finding;
	size_t i;

	(void)buf_addf(out, "%s\n", member(result, "reason"));
	json_array_foreach(json_object_get(result, "findings"), i, finding)
	{
		if (i == FINDINGS_SHOWN)
			break;
		(void)buf_addf(out, "line %lld: %s [%s]\n",
			       (long long)json_integer_value(json_object_get(finding, "line")),
			       member(finding, "message"), member(finding, "rule"));
	}
}
