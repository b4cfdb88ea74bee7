/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests to the proxy: CONNECT host:port, or an http:// URL.  net/http1.c checks whether they are well-formed;
 * this file decides what a proxy can do with them, and writes the head that is sent to the host.
 */
#include "egress/request.h"

#include <stdio.h>
#include <string.h>

const struct why_info why_info[WHY_COUNT] = {
#define WHY(name, kind, status, reply, fix, text) { WHY_KIND_##kind, status, reply, FIX_##fix, text },
#include "egress/why.def"
};

/* What the parser's reasons are called here; the rest is malformed. */
static const enum why why_of_trouble[HTTP1_TROUBLE_COUNT] = {
	[HTTP1_not_http] = WHY_not_http,
	[HTTP1_head_too_long] = WHY_too_long,
	[HTTP1_line_too_long] = WHY_too_long,
	[HTTP1_too_many_lines] = WHY_too_long,
	[HTTP1_target_form] = WHY_not_proxied,
	[HTTP1_asterisk] = WHY_not_proxied,
	[HTTP1_user_info] = WHY_user_info,
	[HTTP1_authority] = WHY_strange_host,
	[HTTP1_host_missing] = WHY_host_differs,
	[HTTP1_host_twice] = WHY_host_differs,
	[HTTP1_host_value] = WHY_host_differs,
	[HTTP1_host_differs] = WHY_host_differs,
	[HTTP1_length_twice] = WHY_ambiguous,
	[HTTP1_length_value] = WHY_ambiguous,
	[HTTP1_length_huge] = WHY_ambiguous,
	[HTTP1_coding_twice] = WHY_ambiguous,
	[HTTP1_coding] = WHY_ambiguous,
	[HTTP1_coding_1_0] = WHY_ambiguous,
	[HTTP1_length_and_coding] = WHY_ambiguous,
	[HTTP1_connect_body] = WHY_ambiguous,
	[HTTP1_connection_names] = WHY_ambiguous,
};

/* ---- what is asked for ---------------------------------------------------------------------------- */

/* The request line is sound, but asks a server for something, or for what only a tunnel carries. */
static bool is_not_proxied(const char *head, const struct http1_head *h)
{
	return (h->form == HTTP1_ORIGIN && h->path.len > 0) || h->form == HTTP1_ASTERISK ||
	       (h->form == HTTP1_ABSOLUTE && !http1_is(head, h->scheme, "http"));
}

static enum why judge(const char *head, const struct http1_head *h)
{
	if (is_not_proxied(head, h))
		return WHY_not_proxied;
	if (h->trouble != HTTP1_ok && why_of_trouble[h->trouble] == WHY_ok)
		return WHY_malformed;
	return why_of_trouble[h->trouble];
}

/* Also of a refused request, which is reported with its host.  Before an @ there may be a password. */
static void read_host(const char *head, const struct http1_head *h, struct request *r)
{
	const char *text = head + h->authority.at, *at = memrchr(text, '@', h->authority.len);

	if (at)
		(void)host_parse(at + 1, (size_t)(text + h->authority.len - at - 1), true, &r->host);
	else
		(void)authority_parse(text, h->authority.len, &r->host, &r->port);
	if (r->port == 0 && r->forward)
		r->port = 80;
}

enum parse http_parse(const char *bytes, size_t len, size_t *seen, struct request *ret)
{
	struct http1_head h;
	enum http1_parse p = http1_head_parse(bytes, (size_t)min_u64(len, REQUEST_HEAD_MAX), seen, &h);

	*ret = (struct request){ .why = WHY_ok };
	if (p == HTTP1_MORE && len < REQUEST_HEAD_MAX)
		return PARSE_MORE;
	ret->why = p == HTTP1_MORE ? WHY_too_long : judge(bytes, &h);
	ret->used = h.used;
	ret->forward = h.form == HTTP1_ABSOLUTE;
	if (h.authority.len > 0)
		read_host(bytes, &h, ret);
	http1_body_begin(&ret->body, &h);
	/* The chunks are forwarded unchanged: they must not contain anything that was not checked here. */
	ret->body.plain = true;
	return ret->why == WHY_ok ? PARSE_DONE : PARSE_BAD;
}

size_t http_body_take(struct http1_body_reader *body, const char *bytes, size_t len)
{
	size_t used = 0, data_at, data_len;

	while (used < len && !body->done && !body->bad)
		used += http1_body_take(body, bytes + used, len - used, &data_at, &data_len);
	return used;
}

/* ---- what goes on to the host --------------------------------------------------------------------- */

struct out {
	char *at;
	size_t len, size;
	bool full;
};

static void put(struct out *o, const char *bytes, size_t len)
{
	if (o->full || len > o->size - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->at + o->len, bytes, len);
	o->len += len;
}

static void puts_to(struct out *o, const char *text)
{
	put(o, text, strlen(text));
}

static void put_host(struct out *o, const struct request *r)
{
	bool v6 = r->host.is_address && r->host.address.v6;
	char port[16];

	puts_to(o, "Host: ");
	puts_to(o, v6 ? "[" : "");
	puts_to(o, r->host.text);
	puts_to(o, v6 ? "]" : "");
	if (r->port != 80) {
		(void)snprintf(port, sizeof(port), ":%u", r->port);
		puts_to(o, port);
	}
	puts_to(o, "\r\n");
}

/* Headers between the program and us (RFC 9110, 7.6.1), and Host, which is our own; they go no further. */
static const char *const dropped[] = {
	"host", "connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
	"te",   "trailer",    "upgrade"
};

static bool is_dropped(const char *head, const struct http1_head *h, struct http1_text name)
{
	for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
		if (http1_is(head, name, dropped[i]))
			return true;
	return http1_has_word(head, h, "connection", head + name.at, name.len);
}

static void put_line(struct out *o, const char *head, const struct http1_line *line)
{
	put(o, head + line->name.at, line->name.len);
	puts_to(o, ": ");
	put(o, head + line->value.at, line->value.len);
	puts_to(o, "\r\n");
}

size_t http_rewrite(const char *head, const struct request *req, char *dst, size_t size)
{
	struct out o = { .at = dst, .size = size };
	struct http1_head h;
	size_t seen = 0;

	if (http1_head_parse(head, req->used, &seen, &h) != HTTP1_DONE)
		return 0;
	put(&o, head + h.method.at, h.method.len);
	puts_to(&o, h.path.len == 0 ? " /" : " ");
	put(&o, head + h.path.at, (size_t)(h.target.at + h.target.len - h.path.at));
	puts_to(&o, h.version_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
	put_host(&o, req);
	for (size_t i = 0; i < h.n_lines; i++)
		if (!is_dropped(head, &h, h.line[i].name))
			put_line(&o, head, &h.line[i]);
	puts_to(&o, "Connection: close\r\n\r\n");
	return o.full ? 0 : o.len;
}
