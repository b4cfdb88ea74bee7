/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_head.c - heads of requests to a server in a session, and of its answers (port.h)
 *
 * Headers are copied except those in port_lines.def.  Redirects are checked: a client that follows one repeats its
 * credentials, if its library considers the target the same origin, or does not know the header as a credential.  So on
 * the service's own origin only redirects within the same port are forwarded; elsewhere redirects to other hosts are
 * forwarded only to browsers, which are authenticated by cookie.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "server/front/port.h"

#define POLICY_OF_SERVERS "sandbox; frame-ancestors 'none'"

enum where { ON_OWN = 1, ON_BOTH = 3 };

static const struct left_out {
	const char *name;
	enum where where;
} left_out_of_requests[] = {
#define REQUEST(name) { name, ON_BOTH },
#include "server/front/port_lines.def"
}, left_out_of_answers[] = {
#define ANSWER(name, where) { name, ON_##where },
#include "server/front/port_lines.def"
};

/* ---- lines --------------------------------------------------------------------------------------------------------- */

static bool is_named(const char *bytes, struct http1_text name, const char *pattern)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] != '*')
		return http1_is(bytes, name, pattern);
	return name.len >= len - 1 && strncasecmp(bytes + name.at, pattern, len - 1) == 0;
}

/* Whether the header is hop-by-hop, or replaced by ours. */
static bool is_left_out(const char *bytes, const struct http1_head *head, struct http1_text name,
			const struct left_out *rows, size_t n, bool by_host)
{
	for (size_t i = 0; i < n; i++)
		if (is_named(bytes, name, rows[i].name) && (!by_host || rows[i].where == ON_BOTH))
			return true;
	return http1_has_word(bytes, head, "Connection", bytes + name.at, name.len);
}

static void put_line(struct buf *out, const char *bytes, const struct http1_line *line)
{
	(void)buf_add(out, bytes + line->name.at, line->name.len);
	(void)buf_adds(out, ": ");
	(void)buf_add(out, bytes + line->value.at, line->value.len);
	(void)buf_adds(out, "\r\n");
}

/* The next item of a semicolon-separated list, trimmed; false: none. */
static bool next_part(const char *bytes, struct http1_text *rest, struct http1_text *ret)
{
	const char *semicolon;
	size_t len;

	while (rest->len > 0 && strchr("; \t", bytes[rest->at])) {
		rest->at++;
		rest->len--;
	}
	if (rest->len == 0)
		return false;
	semicolon = memchr(bytes + rest->at, ';', rest->len);
	len = semicolon ? (size_t)(semicolon - bytes) - rest->at : rest->len;
	*ret = (struct http1_text){ rest->at, len };
	rest->at += len;
	rest->len -= len;
	while (ret->len > 0 && strchr(" \t", bytes[ret->at + ret->len - 1]))
		ret->len--;
	return true;
}

/* Whether an item is "NAME" or "NAME=...", with optional blanks before the "=". */
static bool part_is(const char *bytes, struct http1_text part, const char *name)
{
	size_t len = strlen(name), at = len;

	if (part.len < len || strncasecmp(bytes + part.at, name, len) != 0)
		return false;
	while (at < part.len && strchr(" \t", bytes[part.at + at]))
		at++;
	return at == part.len || bytes[part.at + at] == '=';
}

/* Copies a list without the items of one name; writes nothing if none is left. */
static void put_parts(struct buf *out, const char *line, const char *bytes, struct http1_text value,
		      const char *without)
{
	struct http1_text part;
	bool is_first = true;

	while (next_part(bytes, &value, &part)) {
		if (part_is(bytes, part, without))
			continue;
		(void)buf_adds(out, is_first ? line : "; ");
		(void)buf_add(out, bytes + part.at, part.len);
		is_first = false;
	}
	if (!is_first)
		(void)buf_adds(out, "\r\n");
}

/* ---- requests ------------------------------------------------------------------------------------------------------- */

/* RULE P1: filters Authorization and Cookie, which may be the server's own. */
static void put_if_its_own(struct port *p, const char *bytes, const struct http1_line *line)
{
	static const char scheme[] = "Bearer ";
	size_t skip = strlen(scheme);

	if (!p->by_host)
		return;
	if (http1_is(bytes, line->name, "Cookie"))
		put_parts(&p->out, "Cookie: ", bytes, line->value, PORT_COOKIE);
	else if (line->value.len <= skip || strncasecmp(bytes + line->value.at, scheme, skip) != 0 ||
		 !port_is_ours(bytes + line->value.at + skip, line->value.len - skip))
		put_line(&p->out, bytes, line);
}

static void put_framing(struct port *p, const char *bytes, const struct http1_head *head)
{
	if (head->body == HTTP1_BODY_LENGTH)
		(void)buf_addf(&p->out, "Content-Length: %llu\r\n", (unsigned long long)head->length);
	else if (head->body == HTTP1_BODY_CHUNKED)
		(void)buf_adds(&p->out, "Transfer-Encoding: chunked\r\n");
	else if (http1_find(bytes, head, "Content-Length"))
		(void)buf_adds(&p->out, "Content-Length: 0\r\n");
	(void)buf_adds(&p->out, p->wants_upgrade ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
						 : "Connection: close\r\n\r\n");
}

static void put_names(struct port *p, const char *bytes, struct http1_text host)
{
	if (p->by_host)
		(void)buf_addf(&p->out, "Host: %.*s\r\n", (int)host.len, bytes + host.at);
	else
		(void)buf_addf(&p->out, "Host: localhost:%u\r\nX-Forwarded-Prefix: /v1/sessions/%s/ports/%u\r\n",
			       (unsigned)p->number, p->id, (unsigned)p->number);
	if (host.len > 0)
		(void)buf_addf(&p->out, "X-Forwarded-Host: %.*s\r\n", (int)host.len, bytes + host.at);
	(void)buf_addf(&p->out, "X-Forwarded-Proto: %s\r\n", p->client->is_tls ? "https" : "http");
}

void port_write_request(struct port *p, const char *bytes, const struct http1_head *head, struct http1_text host,
			const struct bytes target[2])
{
	(void)buf_add(&p->out, bytes + head->method.at, head->method.len);
	(void)buf_adds(&p->out, target[0].len > 0 ? " " : " /");
	(void)buf_add(&p->out, target[0].data, target[0].len);
	if (target[1].len > 0) {
		(void)buf_adds(&p->out, "?");
		(void)buf_add(&p->out, target[1].data, target[1].len);
	}
	(void)buf_adds(&p->out, " HTTP/1.1\r\n");
	put_names(p, bytes, host);
	for (size_t i = 0; i < head->n_lines; i++) {
		const struct http1_line *line = &head->line[i];

		if (is_left_out(bytes, head, line->name, left_out_of_requests, ARRAY_LEN(left_out_of_requests), false))
			continue;
		if (http1_is(bytes, line->name, "Authorization") || http1_is(bytes, line->name, "Cookie"))
			put_if_its_own(p, bytes, line);
		else
			put_line(&p->out, bytes, line);
	}
	put_framing(p, bytes, head);
}

/* ---- redirects ------------------------------------------------------------------------------- */

/* Whether a segment of the path is "." or "..", possibly percent-encoded. */
static bool has_dots(const char *at, const char *end)
{
	while (at < end && !strchr("?#", *at)) {
		size_t len = 0, n = 0;
		char part[8];

		while (at + len < end && !strchr("/?#", at[len]))
			len++;
		if (len > 0 && len < 7 && http1_decode(at, len, part, sizeof(part), &n) &&
		    (str_eq(part, ".") || str_eq(part, "..")))
			return true;
		at += len;
		if (at < end && *at == '/')
			at++;
	}
	return false;
}

/* What follows "http://localhost:PORT" and other names by which the server may address itself; NULL: no such prefix. */
static const char *behind_own_name(const struct port *p, const char *text, const char *end)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]", "0.0.0.0" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char own[64];
		size_t len = (size_t)snprintf(own, sizeof(own), "http://%s:%u", names[i], (unsigned)p->number);

		if ((size_t)(end - text) >= len && strncasecmp(text, own, len) == 0 &&
		    (text + len == end || strchr("/?#", text[len])))
			return text + len;
	}
	return NULL;
}

static bool has_scheme(const char *text, const char *end)
{
	while (text < end && !strchr("/?#:", *text))
		text++;
	return text < end && *text == ':';
}

/* Characters that all clients parse in the same way. */
static bool is_plain(const char *text, const char *end)
{
	for (; text < end; text++)
		if (*text <= ' ' || *text > '~' || *text == '\\')
			return false;
	return true;
}

static void put_location(const struct port *p, const char *bytes, struct http1_text value, struct buf *out)
{
	const char *text = bytes + value.at, *end = text + value.len, *own = behind_own_name(p, text, end);
	bool is_foreign = !own && (has_scheme(text, end) || (value.len > 1 && text[0] == '/' && text[1] == '/'));
	char prefix[128] = "";

	if (!is_plain(text, end) || (is_foreign && !p->by_browser))
		return;
	if (own)
		text = own;
	if (!p->by_host && has_dots(text, end))
		return;
	if (own && end - text > 1 && text[0] == '/' && text[1] == '/')
		return;
	if (!p->by_host && (own || text[0] == '/'))
		(void)snprintf(prefix, sizeof(prefix), "/v1/sessions/%s/ports/%u", p->id, (unsigned)p->number);
	(void)buf_addf(out, "Location: %s%s%.*s\r\n", prefix, own && (text == end || text[0] != '/') ? "/" : "",
		       (int)(end - text), text);
}

/* ---- answers --------------------------------------------------------------------------------------------------------- */

static bool is_own_cookie(const char *bytes, struct http1_text value)
{
	struct http1_text part;

	return next_part(bytes, &value, &part) && part_is(bytes, part, PORT_COOKIE);
}

static void put_answer_line(const struct port *p, const char *bytes, const struct http1_line *line, struct buf *out)
{
	if (http1_is(bytes, line->name, "Location"))
		put_location(p, bytes, line->value, out);
	else if (!http1_is(bytes, line->name, "Set-Cookie"))
		put_line(out, bytes, line);
	else if (!is_own_cookie(bytes,
				/* removes Domain: the cookie must not apply to other names below the domain */
				line->value))
		put_parts(out, "Set-Cookie: ", bytes, line->value, "Domain");
}

/* The status line with the server's reason phrase, if it has one. */
static void put_status(const char *bytes, const struct http1_head *h, const struct client *c, struct buf *out)
{
	const char *reason = bytes + strlen("HTTP/1.1 200"), *end = memchr(bytes, '\r', h->used);
	char date[32];

	reply_date(date);
	if (end && end > reason)
		(void)buf_addf(out, "HTTP/1.1 %u%.*s\r\n", h->code, (int)(end - reason), reason);
	else
		(void)buf_addf(out, "HTTP/1.1 %u \r\n", h->code);
	(void)buf_addf(out, "Date: %s\r\nX-Request-Id: %s\r\n", date, c->req->id);
}

static void put_answer_framing(const struct port *p, const char *bytes, const struct http1_head *h, struct buf *out)
{
	const struct client *c = p->client;
	const struct http1_line *length = http1_find(bytes, h, "Content-Length");

	if (h->code == 101) {
		(void)buf_adds(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
		return;
	}
	if (p->is_chunked)
		(void)buf_adds(out, "Transfer-Encoding: chunked\r\n");
	else if (h->body == HTTP1_BODY_LENGTH || (p->is_of_head && length && h->code >= 200 && h->code != 204))
		(void)buf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)h->length);
	else if (h->body == HTTP1_BODY_NONE && !p->is_of_head && h->code != 204 && h->code != 304)
		(void)buf_adds(out, "Content-Length: 0\r\n");
	if (c->is_last)
		(void)buf_adds(out, "Connection: close\r\n");
	else if (c->req->version_1_0)
		(void)buf_adds(out, "Connection: keep-alive\r\n");
	(void)buf_adds(out, "\r\n");
}

void port_write_answer(struct port *p, const char *bytes, const struct http1_head *answer, struct buf *out)
{
	put_status(bytes, answer, p->client, out);
	if (!p->by_host)
		(void)buf_adds(out, "Content-Security-Policy: " POLICY_OF_SERVERS "\r\n"
				    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
				    "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n");
	for (size_t i = 0; i < answer->n_lines; i++) {
		const struct http1_line *line = &answer->line[i];

		if (!is_left_out(bytes, answer, line->name, left_out_of_answers, ARRAY_LEN(left_out_of_answers),
				 p->by_host))
			put_answer_line(p, bytes, line, out);
	}
	put_answer_framing(p, bytes, answer, out);
}
