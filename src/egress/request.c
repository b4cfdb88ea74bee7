/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of HTTP requests, as RFC 9112 writes them and not otherwise.  Lines end with CR LF and with nothing else; no
 * control character, no folded line, no space before a colon; one Host that says what the request line says; one
 * Content-Length or one "Transfer-Encoding: chunked", never both.  A request is either CONNECT host:port or has an
 * http:// address.
 */
#include "egress/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

#define METHOD_MAX 24

const struct why_info why_info[WHY_COUNT] = {
#define WHY(name, kind, status, reply, fix, text) { WHY_KIND_##kind, status, reply, FIX_##fix, text },
#include "egress/why.def"
};

/* A piece of the head. */
struct span {
	const char *at;
	size_t len;
};

static enum parse bad(struct request *r, enum why why)
{
	r->why = why;
	return PARSE_BAD;
}

static bool span_is(struct span s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static bool is_token_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_token_char((unsigned char)s.at[i]))
			return false;
	return s.len > 0;
}

/* ---- where the head ends -------------------------------------------------------------------------- */

/* Judges each byte once, as it comes: what can be no head is not waited for. */
static enum parse find_end(const char *bytes, size_t len, size_t *seen, struct request *r)
{
	for (size_t i = *seen; i < len && i < REQUEST_HEAD_MAX; i++) {
		unsigned char c = (unsigned char)bytes[i], before = i ? (unsigned char)bytes[i - 1] : 0;

		*seen = i + 1;
		if (i == 0 && (c < 'A' || c > 'Z'))
			return bad(r, WHY_not_http);
		if ((c == '\n') != (before == '\r') || (c < ' ' && c != '\r' && c != '\n' && c != '\t') || c == 0x7f)
			return bad(r, WHY_malformed);
		if (c == '\n' && i >= 3 && bytes[i - 2] == '\n') {
			r->used = i + 1;
			return PARSE_DONE;
		}
	}
	return len >= REQUEST_HEAD_MAX ? bad(r, WHY_too_long) : PARSE_MORE;
}

/* Cuts the next line off *rest; the CR LF is gone from both. */
static struct span next_line(struct span *rest)
{
	const char *end = memchr(rest->at, '\r', rest->len);
	struct span line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
	size_t gone = line.len + 2 < rest->len ? line.len + 2 : rest->len;

	rest->at += gone;
	rest->len -= gone;
	return line;
}

/* ---- the request line ----------------------------------------------------------------------------- */

/* host or host:port; a port of 0 in ret means that none is written. */
static enum why parse_authority(struct span a, struct host *host, uint16_t *port)
{
	const char *end = a.at + a.len, *from = a.at, *colon, *at = memrchr(a.at, '@', a.len);

	if (at) { /* only the host is reported: before it there may be a password */
		(void)host_parse(at + 1, (size_t)(end - at - 1), true, host);
		return WHY_user_info;
	}
	if (a.len > 0 && a.at[0] == '[') {
		from = memchr(a.at, ']', a.len);
		if (!from)
			return WHY_strange_host;
	}
	colon = memchr(from, ':', (size_t)(end - from));
	*port = 0;
	if (colon && !port_parse(colon + 1, (size_t)(end - colon - 1), port))
		return WHY_strange_host;
	return host_parse(a.at, (size_t)((colon ? colon : end) - a.at), true, host) ? WHY_ok : WHY_strange_host;
}

/* http://host[:port][/path][?query] */
static enum why parse_url(const char *head, struct span url, struct request *r)
{
	static const char scheme[] = "http://";
	struct span authority = { url.at + sizeof(scheme) - 1, 0 };
	enum why why;

	if (url.len < sizeof(scheme) || strncasecmp(url.at, scheme, sizeof(scheme) - 1) != 0)
		return WHY_not_proxied;
	while (authority.at + authority.len < url.at + url.len && !strchr("/?#\\", authority.at[authority.len]))
		authority.len++;
	if (memchr(url.at, '#', url.len))
		return WHY_malformed;
	r->path = (size_t)(authority.at + authority.len - head);
	r->path_len = url.len - (sizeof(scheme) - 1) - authority.len;
	r->path_is_query = r->path_len > 0 && head[r->path] == '?';
	if (r->path_len > 0 && head[r->path] == '\\')
		return WHY_strange_host;
	why = parse_authority(authority, &r->host, &r->port);
	if (r->port == 0)
		r->port = 80;
	return why;
}

static enum why parse_target(const char *head, struct span method, struct span target, struct request *r)
{
	enum why why;

	for (size_t i = 0; i < target.len; i++)
		if (target.at[i] <= ' ' || target.at[i] > '~')
			return WHY_malformed;
	if (!span_is(method, "CONNECT")) {
		r->forward = true;
		return parse_url(head, target, r);
	}
	why = parse_authority(target, &r->host, &r->port);
	return why == WHY_ok && r->port == 0 ? WHY_strange_host : why;
}

static enum why parse_request_line(const char *head, struct span line, struct request *r)
{
	const char *first = memchr(line.at, ' ', line.len);
	const char *last = memrchr(line.at, ' ', line.len);
	struct span method, target, version;

	if (!first || first == last)
		return WHY_malformed;
	method = (struct span){ line.at, (size_t)(first - line.at) };
	target = (struct span){ first + 1, (size_t)(last - first - 1) };
	version = (struct span){ last + 1, line.len - (size_t)(last + 1 - line.at) };
	/* Compared with their case: "http/1.1" or "connect" may be something else to the next reader. */
	r->http_1_0 = version.len == 8 && memcmp(version.at, "HTTP/1.0", 8) == 0;
	if (!r->http_1_0 && (version.len != 8 || memcmp(version.at, "HTTP/1.1", 8) != 0))
		return WHY_malformed;
	if (method.len > METHOD_MAX || target.len == 0)
		return WHY_malformed;
	for (size_t i = 0; i < method.len; i++)
		if (!(method.at[i] >= 'A' && method.at[i] <= 'Z') && method.at[i] != '-')
			return WHY_malformed;
	r->method_len = method.len;
	return parse_target(head, method, target, r);
}

/* ---- the other lines ------------------------------------------------------------------------------ */

struct header {
	struct span name, value;
};

static bool parse_header(struct span line, struct header *ret)
{
	const char *colon = memchr(line.at, ':', line.len);

	if (!colon)
		return false;
	ret->name = (struct span){ line.at, (size_t)(colon - line.at) };
	ret->value = (struct span){ colon + 1, line.len - ret->name.len - 1 };
	while (ret->value.len > 0 && (ret->value.at[0] == ' ' || ret->value.at[0] == '\t')) {
		ret->value.at++;
		ret->value.len--;
	}
	while (ret->value.len > 0 &&
	       (ret->value.at[ret->value.len - 1] == ' ' || ret->value.at[ret->value.len - 1] == '\t'))
		ret->value.len--;
	return is_token(ret->name);
}

/* What has been seen of those that may stand there once. */
struct seen_once {
	bool host, length, encoding;
};

static enum why take_host(struct span value, struct request *r, struct seen_once *seen)
{
	struct host host;
	uint16_t port;

	if (!r->forward) /* it goes no further, and some clients name the proxy there */
		return WHY_ok;
	if (seen->host)
		return WHY_host_differs;
	seen->host = true;
	if (parse_authority(value, &host, &port) != WHY_ok || !str_eq(host.text, r->host.text))
		return WHY_host_differs;
	return (port ? port : 80) == r->port ? WHY_ok : WHY_host_differs;
}

static enum why take_length(struct span value, struct request *r, struct seen_once *seen)
{
	uint64_t n = 0;

	if (seen->length || seen->encoding || value.len == 0 || value.len > 18)
		return WHY_ambiguous;
	seen->length = true;
	for (size_t i = 0; i < value.len; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return WHY_ambiguous;
		n = n * 10 + (uint64_t)(value.at[i] - '0');
	}
	r->length = n;
	r->body = n ? BODY_LENGTH : BODY_NONE;
	return WHY_ok;
}

static enum why take_encoding(struct span value, struct request *r, struct seen_once *seen)
{
	if (seen->encoding || seen->length || r->http_1_0 || !span_is(value, "chunked"))
		return WHY_ambiguous;
	seen->encoding = true;
	r->body = BODY_CHUNKED;
	return WHY_ok;
}

/* Headers between the program and us (RFC 9110, 7.6.1); they go no further. */
static const char *const hop_by_hop[] = {
	"connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
	"te",         "trailer",          "upgrade"
};

/* Those that we send or judge ourselves; no Connection header can have them removed. */
static const char *const ours[] = { "host", "content-length", "transfer-encoding" };

static bool is_in(struct span name, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (span_is(name, words[i]))
			return true;
	return false;
}

/* Calls each with every word of a comma-separated list until it says true. */
static bool any_word(struct span list, bool (*each)(struct span word, const void *arg), const void *arg)
{
	while (list.len > 0) {
		const char *comma = memchr(list.at, ',', list.len);
		struct span word = { list.at, comma ? (size_t)(comma - list.at) : list.len };
		size_t gone = word.len + (comma ? 1 : 0);

		while (word.len > 0 && (word.at[0] == ' ' || word.at[0] == '\t')) {
			word.at++;
			word.len--;
		}
		while (word.len > 0 && (word.at[word.len - 1] == ' ' || word.at[word.len - 1] == '\t'))
			word.len--;
		if (each(word, arg))
			return true;
		list.at += gone;
		list.len -= gone;
	}
	return false;
}

static bool names_ours(struct span word, const void *arg UNUSED)
{
	return is_in(word, ours, ARRAY_LEN(ours));
}

static enum why take_header(const struct header *h, struct request *r, struct seen_once *seen)
{
	if (span_is(h->name, "host"))
		return take_host(h->value, r, seen);
	if (span_is(h->name, "content-length"))
		return take_length(h->value, r, seen);
	if (span_is(h->name, "transfer-encoding"))
		return take_encoding(h->value, r, seen);
	if (span_is(h->name, "connection") && any_word(h->value, names_ours, NULL))
		return WHY_ambiguous;
	return WHY_ok;
}

static enum why parse_head(const char *head, struct request *r)
{
	struct span rest = { head, r->used };
	struct seen_once seen = { .host = false };
	enum why why = parse_request_line(head, next_line(&rest), r);
	struct header h;

	for (size_t n = 0; why == WHY_ok; n++) {
		struct span line = next_line(&rest);

		if (line.len == 0)
			break;
		if (n == REQUEST_LINES_MAX)
			return WHY_too_long;
		why = parse_header(line, &h) ? take_header(&h, r, &seen) : WHY_malformed;
	}
	if (why != WHY_ok)
		return why;
	/* Behind the head of a CONNECT comes what the tunnel carries, so it has no body. */
	if (!r->forward)
		return r->body == BODY_NONE ? WHY_ok : WHY_ambiguous;
	return seen.host || r->http_1_0 ? WHY_ok : WHY_host_differs;
}

enum parse http_parse(const char *bytes, size_t len, size_t *seen, struct request *ret)
{
	enum parse end;

	*ret = (struct request){ .why = WHY_ok };
	end = find_end(bytes, len, seen, ret);
	if (end != PARSE_DONE)
		return end;
	ret->why = parse_head(bytes, ret);
	return ret->why == WHY_ok ? PARSE_DONE : PARSE_BAD;
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

static bool is_word(struct span word, const void *arg)
{
	const struct span *name = arg;

	return word.len == name->len && strncasecmp(word.at, name->at, word.len) == 0;
}

/* Whether some Connection header of the head names it. */
static bool is_connection_option(struct span head, const struct header *h)
{
	struct header other;

	(void)next_line(&head);
	for (struct span line = next_line(&head); line.len > 0; line = next_line(&head))
		if (parse_header(line, &other) && span_is(other.name, "connection") &&
		    any_word(other.value, is_word, &h->name))
			return true;
	return false;
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

size_t http_rewrite(const char *head, const struct request *req, char *dst, size_t size)
{
	struct out o = { .at = dst, .size = size };
	struct span whole = { head, req->used }, rest = whole;
	struct header h;

	put(&o, head, req->method_len);
	puts_to(&o, req->path_len == 0 || req->path_is_query ? " /" : " ");
	put(&o, head + req->path, req->path_len);
	puts_to(&o, req->http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
	put_host(&o, req);
	(void)next_line(&rest);
	for (struct span line = next_line(&rest); line.len > 0; line = next_line(&rest)) {
		if (!parse_header(line, &h) || span_is(h.name, "host") ||
		    is_in(h.name, hop_by_hop, ARRAY_LEN(hop_by_hop)) || is_connection_option(whole, &h))
			continue;
		put(&o, h.name.at, h.name.len);
		puts_to(&o, ": ");
		put(&o, h.value.at, h.value.len);
		puts_to(&o, "\r\n");
	}
	puts_to(&o, "Connection: close\r\n\r\n");
	return o.full ? 0 : o.len;
}
