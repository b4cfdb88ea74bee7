/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_access.c - which port of which session a request is for, and the client's credentials (port.h)
 *
 * A client presents a token of the service, the session's key, or a link: in X-Access-Token, X-API-Key or
 * Authorization; at a port's own host name also as a query parameter, for which a browser gets a cookie, and as that
 * cookie.  The runner verifies it.
 *
 * Browsers send a cookie whichever page triggers the request, and host names of other sessions belong to the same site.
 * So a request that has only the cookie, or needs no credential because of --no-auth, must come from a page of the same
 * origin or be a top-level navigation.
 *
 * Some ports are services of a door (DOOR_PORT): requests to their names go to the door, and no port of a session is
 * involved.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/str.h"
#include "net/host.h"
#include "server/doors/door.h"
#include "server/front/port.h"

#define CREDENTIAL_MAX 256
#define ID_LEN         16
#define KEY_LEN        32
#define PLAIN          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define CODE_LEN       64 /* of a link, after the expiry time and a dot */

/* ---- credentials ------------------------------------------------------------------------------------------------- */

static bool has_only(const char *text, size_t len, const char *characters)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == '\0' || !strchr(characters, text[i]))
			return false;
	return len > 0;
}

static bool is_token(const char *text, size_t len)
{
	static const char prefix[] = "brig_";

	return len > strlen(prefix) && len <= CREDENTIAL_MAX && memcmp(text, prefix, strlen(prefix)) == 0 &&
	       has_only(text, len, PLAIN);
}

static bool is_key(const char *text, size_t len)
{
	return len == KEY_LEN && has_only(text, len, ID_ALPHABET);
}

/* "1794957600.CODE" */
static bool is_link(const char *text, size_t len)
{
	const char *dot = memchr(text, '.', len);
	size_t digits = dot ? (size_t)(dot - text) : 0;

	return digits > 0 && digits <= 12 && len - digits - 1 == CODE_LEN && has_only(text, digits, "0123456789") &&
	       has_only(dot + 1, CODE_LEN, "0123456789abcdef");
}

bool port_is_ours(const char *text, size_t len)
{
	return is_token(text, len) || is_key(text, len) || is_link(text, len);
}

static void put_credential(struct client *c, const char *text, size_t len)
{
	struct buf *fields = &c->req->fields;
	char copy[CREDENTIAL_MAX + 1];
	uint64_t expires = 0;

	memcpy(copy, text, len);
	copy[len] = '\0';
	if (is_token(text, len)) {
		message_put_text(fields, FIELD_credential, copy);
	} else if (is_key(text, len)) {
		message_put_text(fields, FIELD_session_key, copy);
	} else {
		char *dot = strchr(copy, '.');

		*dot = '\0';
		(void)str_to_u64(copy, &expires);
		message_put_number(fields, FIELD_expires, expires);
		message_put_text(fields, FIELD_link, dot + 1);
	}
	explicit_bzero(copy, sizeof(copy));
}

/* The credential in a header, without its scheme; len 0: none of ours. */
static struct http1_text in_line(const char *bytes, const struct http1_head *head, const char *name, const char *scheme)
{
	const struct http1_line *line = http1_find(bytes, head, name);
	struct http1_text text = line ? line->value : (struct http1_text){ 0, 0 };
	size_t skip = strlen(scheme);

	if (text.len <= skip || strncasecmp(bytes + text.at, scheme, skip) != 0)
		return (struct http1_text){ 0, 0 };
	text.at += skip;
	text.len -= skip;
	return port_is_ours(bytes + text.at, text.len) ? text : (struct http1_text){ 0, 0 };
}

/* The service's cookie. */
static struct http1_text in_cookies(const char *bytes, const struct http1_head *head)
{
	static const char name[] = PORT_COOKIE "=";

	for (size_t i = 0; i < head->n_lines; i++) {
		struct http1_text rest = head->line[i].value;
		size_t at = rest.at, end = rest.at + rest.len;

		if (!http1_is(bytes, head->line[i].name, "Cookie"))
			continue;
		while (at < end) {
			const char *semicolon = memchr(bytes + at, ';', end - at);
			size_t stop = semicolon ? (size_t)(semicolon - bytes) : end, from = at + strlen(name);

			if (stop > from && memcmp(bytes + at, name, strlen(name)) == 0 &&
			    is_link(bytes + from, stop - from))
				return (struct http1_text){ from, stop - from };
			at = stop + 1;
			while (at < end && bytes[at] == ' ')
				at++;
		}
	}
	return (struct http1_text){ 0, 0 };
}

/* Position of a query parameter, including its name. */
static struct http1_text find_parameter(const char *bytes, struct http1_text query, const char *name)
{
	size_t at = query.at, end = query.at + query.len, len = strlen(name);

	while (at < end) {
		const char *stop = memchr(bytes + at, '&', end - at);
		size_t n = (stop ? (size_t)(stop - bytes) : end) - at;

		if (n > len && memcmp(bytes + at, name, len) == 0 && bytes[at + len] == '=')
			return (struct http1_text){ at, n };
		at += n + 1;
	}
	return (struct http1_text){ 0, 0 };
}

static struct http1_text in_query(const char *bytes, struct http1_text parameter)
{
	size_t skip = strlen(PORT_PARAMETER) + 1;

	if (parameter.len <= skip || !is_link(bytes + parameter.at + skip, parameter.len - skip))
		return (struct http1_text){ 0, 0 };
	return (struct http1_text){ parameter.at + skip, parameter.len - skip };
}

/* The first credential in a header. */
static struct http1_text in_lines(const char *bytes, const struct http1_head *head)
{
	static const struct {
		const char *name, *scheme;
	} lines[] = { { "X-Access-Token", "" },
		      { "E2B-Traffic-Access-Token", "" },
		      { "X-API-Key", "" },
		      { "Authorization", "Bearer " } };

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct http1_text found = in_line(bytes, head, lines[i].name, lines[i].scheme);

		if (found.len > 0)
			return found;
	}
	return (struct http1_text){ 0, 0 };
}

/* False: the request was refused. */
static bool take_credential(struct client *c, struct port *p, const char *bytes, const struct http1_head *head,
			    struct http1_text parameter)
{
	struct http1_text found = in_lines(bytes, head);

	p->by_browser = p->by_host && found.len == 0;
	if (p->by_host && found.len == 0 && in_query(bytes, parameter).len > 0) {
		found = in_query(bytes, parameter);
		(void)snprintf(p->link, sizeof(p->link), "%.*s", (int)found.len, bytes + found.at);
		p->by_browser = false; /* the link itself is the credential */
	}
	if (p->by_host && found.len == 0)
		found = in_cookies(bytes, head);
	if (found.len > 0)
		put_credential(c, bytes + found.at, found.len);
	if (found.len > 0 || c->front->options->no_auth || c->listener->is_unix)
		return true;
	reply_refuse(
		c, 401,
		"a server of a session needs a token, the key of the session or a link: send it as X-Access-Token, or "
		"open an address of POST /v1/sessions/{id}/links");
	return false;
}

/* ---- requests by pages of other origins ------------------------------------------------------ */

static bool line_is(const char *bytes, const struct http1_head *head, const char *name, const char *word)
{
	const struct http1_line *line = http1_find(bytes, head, name);

	return line && http1_is(bytes, line->value, word);
}

/* False if a page of another origin made the request, unless it is a navigation. */
static bool is_own_page(const struct client *c, const char *bytes, const struct http1_head *head,
			struct http1_text host)
{
	const struct http1_line *origin = http1_find(bytes, head, "Origin");

	if (origin)
		return check_origin(c, bytes, host, origin->value);
	if (!http1_find(bytes, head, "Sec-Fetch-Site") || line_is(bytes, head, "Sec-Fetch-Site", "same-origin") ||
	    line_is(bytes, head, "Sec-Fetch-Site", "none"))
		return true;
	return line_is(bytes, head, "Sec-Fetch-Mode", "navigate") &&
	       (http1_is(bytes, head->method, "GET") || http1_is(bytes, head->method, "HEAD"));
}

/* ---- names ------------------------------------------------------------------------------------------------------------ */

struct port_name {
	char id[ID_LEN + 1];
	uint16_t number;
};

/* "3000-abcdefghijklmnop.localhost" */
static bool read_name(const struct client *c, const char *text, struct port_name *ret)
{
	const char *domain = c->front->options->port_domain, *dash = strchr(text, '-'), *dot;

	if (!domain || !dash || !port_parse(text, (size_t)(dash - text), &ret->number))
		return false;
	dot = dash + 1 + strspn(dash + 1, ID_ALPHABET);
	if (dot != dash + 1 + ID_LEN || *dot != '.' || strcasecmp(dot + 1, domain) != 0)
		return false;
	(void)snprintf(ret->id, sizeof(ret->id), "%.*s", ID_LEN, dash + 1);
	return true;
}

/* Names below localhost require a loopback address and our port; for another domain there may be a reverse proxy. */
static bool find_name(const struct client *c, const char *bytes, struct http1_text written, struct port_name *ret)
{
	struct host host;
	uint16_t port;

	if (written.len == 0 || !authority_parse(bytes + written.at, written.len, &host, &port) || host.is_address ||
	    !read_name(c, host.text, ret))
		return false;
	return c->listener->is_unix || !str_eq(c->front->options->port_domain, "localhost") ||
	       (address_is_loopback(&c->local) && (port        ? port
						   : c->is_tls ? 443
							       : 80) == c->local_port);
}

/*
 * Passes a request to a door that owns this name.  The door checks its own credentials, none of which browsers send by
 * themselves.
 */
static void take_door(struct client *c, const char *bytes, const struct http1_head *head, struct http1_text host,
		      const struct port_name *name)
{
	if (is_own_page(c, bytes, head, host))
		door_begin_port(c, bytes, head, name->id, name->number);
	else
		reply_refuse(c, 403, "a page of another origin cannot use a service of a session");
}

/* Writes the address without the parameter.  False: too long. */
static bool cut_parameter(struct port *p, const char *bytes, const struct http1_head *head, struct http1_text parameter)
{
	size_t before = parameter.at - head->query.at, after = head->query.len - before - parameter.len;
	const char *rest = bytes + parameter.at + parameter.len;
	int n;

	if (after > 0) { /* the ampersand */
		rest++;
		after--;
	} else if (before > 0) {
		before--;
	}
	n = snprintf(p->redirect, sizeof(p->redirect), "%.*s%s%.*s%.*s", (int)head->path.len, bytes + head->path.at,
		     before + after > 0 ? "?" : "", (int)before, bytes + head->query.at, (int)after, rest);
	return n >= 0 && (size_t)n < sizeof(p->redirect);
}

static void note_request(struct port *p, const char *bytes, const struct http1_head *head)
{
	p->is_of_head = http1_is(bytes, head->method, "HEAD");
	p->wants_upgrade = head->upgrade && head->body == HTTP1_BODY_NONE && http1_is(bytes, head->method, "GET") &&
			   http1_has_word(bytes, head, "Upgrade", "websocket", strlen("websocket"));
}

bool port_take_host(struct client *c, const char *bytes, const struct http1_head *head)
{
	struct http1_text host = head->host.len > 0 ? head->host : head->authority;
	struct http1_text parameter = find_parameter(bytes, head->query, PORT_PARAMETER);
	struct bytes target[2] = { { bytes + head->path.at, head->path.len }, { NULL, 0 } };
	struct port_name name;
	struct port *p;

	if (!find_name(c, bytes, host, &name))
		return false;
	if (door_has_port(c, name.number)) {
		take_door(c, bytes, head, host, &name);
		return true;
	}
	p = port_new(c);
	if (!p)
		return true;
	p->by_host = true;
	p->number = name.number;
	(void)str_copy(p->id, sizeof(p->id), name.id);
	note_request(p, bytes, head);
	if (!take_credential(c, p, bytes, head, parameter))
		return true;
	if (p->by_browser && !is_own_page(c, bytes, head, host)) {
		reply_refuse(c, 403, "a page of another origin cannot use a server of a session");
		return true;
	}
	if (parameter.len == 0) {
		target[1] = (struct bytes){ bytes + head->query.at, head->query.len };
	} else if (cut_parameter(p, bytes, head, parameter)) { /* RULE P1 */
		target[0] = (struct bytes){ p->redirect, strlen(p->redirect) };
	} else {
		reply_refuse(c, 414, "the address is too long for one with a link in it");
		return true;
	}
	p->only_check = p->link[0] != '\0';
	port_write_request(p, bytes, head, host, target);
	port_ask(c, p, head);
	return true;
}

/* ---- paths ------------------------------------------------------------------------------------------------------------- */

/* The end of the fifth segment; NULL: there are fewer. */
static const char *end_of_prefix(const char *path, size_t len)
{
	const char *at = path, *end = path + len;

	for (int i = 0; i < 5; i++) {
		if (at == end || *at != '/')
			return NULL;
		at = memchr(at + 1, '/', (size_t)(end - at - 1));
		if (!at)
			return i == 4 ? end : NULL;
	}
	return at;
}

/* Redirects to the path with a final slash, without which relative links of a page would be wrong. */
static void send_to_slash(struct client *c, const char *path, size_t len)
{
	char where[256];

	(void)snprintf(where, sizeof(where), "%.*s/", (int)min_u64(len, sizeof(where) - 2), path);
	c->is_last |= c->req->reader.kind != HTTP1_BODY_NONE;
	reply_send(c, &(struct reply){ .status = 308, .location = where, .content_type = "text/plain" });
}

bool port_take_path(struct client *c, const char *bytes, const struct http1_head *head)
{
	const char *path = bytes + head->path.at, *end = end_of_prefix(path, head->path.len);
	struct bytes target[2] = { { end, end ? head->path.len - (size_t)(end - path) : 0 },
				   { bytes + head->query.at, head->query.len } };
	struct route_match m = { .route = ROUTE_COUNT };
	struct port *p;

	if (!end || !route_fits("/v1/sessions/{id}/ports/{item}", path, end, &m) || m.item > UINT16_MAX ||
	    !has_only(m.id, strlen(m.id), PLAIN)) /* it is copied into headers */
		return false;
	c->req->route = ROUTE_session_port;
	c->req->reader.kind = head->body;
	if (target[0].len == 0) {
		send_to_slash(c, path, head->path.len);
		return true;
	}
	p = port_new(c);
	if (!p)
		return true;
	p->number = (uint16_t)m.item;
	(void)str_copy(p->id, sizeof(p->id), m.id);
	note_request(p, bytes, head);
	if (!take_credential(c, p, bytes, head, (struct http1_text){ 0, 0 }))
		return true;
	port_write_request(p, bytes, head, head->host, target);
	port_ask(c, p, head);
	return true;
}

/* ---- links ------------------------------------------------------------------------------------------------------------- */

void port_put_origin(struct client *c, const char *bytes, const struct http1_head *head)
{
	char text[300];

	if (c->listener->is_unix || head->host.len == 0 || head->host.len > 255)
		return;
	(void)snprintf(text, sizeof(text), "%s://%.*s", c->is_tls ? "https" : "http", (int)head->host.len,
		       bytes + head->host.at);
	message_put_text(&c->req->fields, FIELD_origin, text);
}
