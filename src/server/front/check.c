/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - checks of a request's head before it is processed
 *
 * Host    must name this service, against DNS rebinding: a page whose name was made to resolve to this address
 *         gets nothing
 * Origin  must be this service's own, if present: browsers send it on behalf of pages
 *
 * Browsers cannot reach unix sockets, so there any Host is accepted.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/str.h"
#include "net/host.h"
#include "server/front/front.h"

/* A name from --host: there may be a reverse proxy in front of the service, with its own port and TLS. */
static bool is_given_name(const struct client *c, const char *name)
{
	const struct serve_options *o = c->front->options;

	for (size_t i = 0; i < o->n_host_names; i++)
		if (strcasecmp(o->host_names[i], name) == 0)
			return true;
	return false;
}

/* The same for names of servers in sessions. */
static bool is_port_name(const struct client *c, const char *name)
{
	const char *domain = c->front->options->port_domain, *dot = strchr(name, '.');

	return dot && domain && !str_eq(domain, "localhost") && strcasecmp(dot + 1, domain) == 0;
}

static bool names_us(const struct client *c, const char *bytes, struct http1_text written)
{
	struct host host;
	uint16_t port;

	if (!authority_parse(bytes + written.at, written.len, &host, &port))
		return false;
	if (is_given_name(c, host.text))
		return true;
	if ((port ? port : c->is_tls ? 443 : 80) != c->local_port)
		return false;
	return host.is_address ? address_eq(&host.address, &c->local)
			       : address_is_loopback(&c->local) && str_eq(host.text, "localhost");
}

/* "http://HOST" or "https://HOST", where HOST is the Host of this request. */
bool check_origin(const struct client *c, const char *bytes, struct http1_text written, struct http1_text origin)
{
	static const char tls[] = "https://";
	const char *own = c->is_tls ? tls : "http://";
	size_t len = strlen(own);
	struct host host;
	uint16_t port;

	if (authority_parse(bytes + written.at, written.len, &host, &port) &&
	    (is_given_name(c, host.text) || is_port_name(c, host.text)) && origin.len > strlen(tls) &&
	    strncasecmp(bytes + origin.at, tls, strlen(tls)) == 0)
		len = strlen(tls);
	else if (origin.len <= len || strncasecmp(bytes + origin.at, own, len) != 0)
		return false;
	return origin.len == len + written.len &&
	       strncasecmp(bytes + origin.at + len, bytes + written.at, written.len) == 0;
}

bool check_host(struct client *c, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *origin = http1_find(bytes, head, "Origin");
	struct http1_text host = head->host.len > 0 ? head->host : head->authority;

	/* HTTP/1.0 requests may lack Host; no browser sends them. */
	if (!c->listener->is_unix && host.len > 0 && !names_us(c, bytes, host)) {
		reply_refuse(c, 421,
			     "Host '%.*s' is not a name of this service: use its address, or start it with --host NAME",
			     (int)min_u64(host.len, 100), bytes + host.at);
		return false;
	}
	if (origin && (http1_count(bytes, head, "Origin") > 1 || !check_origin(c, bytes, host, origin->value))) {
		reply_refuse(c, 403, "Origin '%.*s' is not this service's: pages of others cannot use it",
			     (int)min_u64(origin->value.len, 100), bytes + origin->value.at);
		return false;
	}
	return true;
}

/* ---- request ids -------------------------------------------------------------------------------------------- */

static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", text[i]) || !text[i])
			return false;
	return len > 0;
}

void check_id(struct request *req, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *id = http1_find(bytes, head, "X-Request-Id");

	if (id && id->value.len <= REQUEST_ID_MAX && is_plain(bytes + id->value.at, id->value.len)) {
		memcpy(req->id, bytes + id->value.at, id->value.len);
		req->id[id->value.len] = '\0';
	}
	message_put_text(&req->fields, FIELD_request_id, req->id);
	trace_take(req, bytes, head);
}

/* ---- credentials -------------------------------------------------------------------------------------------- */

/* The token in the request; "": none; NULL: malformed. */
static const char *find_credential(const char *bytes, const struct http1_head *head, char text[257])
{
	static const char scheme[] = "Bearer ";
	const struct http1_line *line = http1_find(bytes, head, "Authorization");
	size_t skip = 0;

	text[0] = '\0';
	if (http1_count(bytes, head, "Authorization") > 1 || http1_count(bytes, head, "X-API-Key") > 1)
		return NULL;
	if (line) {
		skip = strlen(scheme);
		if (line->value.len <= skip || strncasecmp(bytes + line->value.at, scheme, skip) != 0)
			return NULL;
	} else {
		line = http1_find(bytes, head, "X-API-Key");
	}
	if (!line)
		return text;
	if (line->value.len - skip > 256 || !is_plain(bytes + line->value.at + skip, line->value.len - skip))
		return NULL;
	memcpy(text, bytes + line->value.at + skip, line->value.len - skip);
	text[line->value.len - skip] = '\0';
	return text;
}

/* Whether the request has a link to a file, which replaces a token. */
static bool has_link(const struct request *req, const char *bytes, const struct http1_head *head)
{
	static const char name[] = "link=";
	const char *at = bytes + head->query.at;

	if (req->route != ROUTE_session_file && req->route != ROUTE_session_file_put)
		return false;
	for (size_t i = 0; i + strlen(name) < head->query.len; i++)
		if ((i == 0 || at[i - 1] == '&') && memcmp(at + i, name, strlen(name)) == 0)
			return true;
	return false;
}

bool check_credentials(struct client *c, const char *bytes, const struct http1_head *head)
{
	struct request *req = c->req;
	bool needs_one = route_rows[req->route].access != ACCESS_OPEN && !c->front->options->no_auth &&
			 !has_link(req, bytes, head); /* the runner verifies the link */
	char text[257];
	const char *credential = find_credential(bytes, head, text);
	bool is_sound = credential != NULL, is_sent = credential && *credential;

	if (is_sent)
		message_put_text(&req->fields, FIELD_credential, credential);
	explicit_bzero(text, sizeof(text));
	if (!needs_one || is_sent || (is_sound && c->listener->is_unix))
		return true;
	reply_refuse(
		c, 401, "%s",
		is_sound ? "this needs a token: send 'Authorization: Bearer brig_...' ('brig token create' makes one)"
			 : "Authorization must be 'Bearer ' and a token ('brig token create' makes one)");
	return false;
}

/* ---- media ------------------------------------------------------------------------------------------------------ */

/*
 * Whether Accept permits a type: "application/json, text/plain;q=0.5".  A quality of 0 is ignored, since no client
 * sends it.
 */
static bool accepts(const char *bytes, const struct http1_head *head, const char *type, const char *whole,
		    bool *ret_named)
{
	const struct http1_line *line = http1_find(bytes, head, "Accept");
	const char *at = line ? bytes + line->value.at : NULL, *end = line ? at + line->value.len : NULL;

	*ret_named = false;
	if (!line)
		return true;
	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at)), *semicolon;
		size_t len;

		if (!comma)
			comma = end;
		while (at < comma && *at == ' ')
			at++;
		semicolon = memchr(at, ';', (size_t)(comma - at));
		len = (size_t)((semicolon ? semicolon : comma) - at);
		while (len > 0 && at[len - 1] == ' ')
			len--;
		if (len == strlen(type) && strncasecmp(at, type, len) == 0)
			*ret_named = true;
		if (*ret_named || (len == 3 && memcmp(at, "*/*", 3) == 0) ||
		    (len == strlen(whole) && strncasecmp(at, whole, len) == 0))
			return true;
		at = comma < end ? comma + 1 : end;
	}
	return false;
}

/* Selects the form of the answer: an event stream if requested by name, else a document. */
static bool check_accept(struct client *c, const char *bytes, const struct http1_head *head)
{
	const struct route_row *row = &route_rows[c->req->route];
	bool is_events = route_is_events(c->req->route);
	bool can_stream =
		row->body == BODY_JOB || row->body == BODY_PIECE || is_events || c->req->route == ROUTE_batch_results;
	bool named_stream, named_json, named_diff;
	bool stream = accepts(bytes, head, "text/event-stream", "text/*", &named_stream);
	bool json = accepts(bytes, head, "application/json", "application/*", &named_json);

	if (row->answers == ANSWERS_FRONT || c->req->route == ROUTE_artifact || c->req->route == ROUTE_metrics ||
	    c->req->route == ROUTE_workspace_archive || c->req->route == ROUTE_session_file)
		return true;
	if (c->req->route == ROUTE_workspace_diff && accepts(bytes, head, "text/x-diff", "text/*", &named_diff) &&
	    (named_diff || !json)) {
		message_put_number(&c->req->fields, FIELD_diff, 1);
		return true;
	}
	c->req->wants_stream = can_stream && (is_events ? stream : named_stream);
	if (c->req->wants_stream || (json && !is_events))
		return true;
	if (c->req->route == ROUTE_batch_results &&
	    accepts(bytes, head, "application/x-ndjson", "application/*", &named_json))
		return true;
	reply_refuse(c, 406, "Accept allows nothing that is answered here: %s%s%s", is_events ? "" : "application/json",
		     can_stream && !is_events ? " or " : "", can_stream ? "text/event-stream" : "");
	return false;
}

static bool type_is(const char *value, size_t len, const char *type)
{
	size_t n = strlen(type);

	return len >= n && strncasecmp(value, type, n) == 0 && (len == n || value[n] == ';' || value[n] == ' ');
}

/* Checks the type of the body. */
static bool check_content(struct client *c, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *line = http1_find(bytes, head, "Content-Type");
	const char *value = line ? bytes + line->value.at : "";
	size_t len = line ? line->value.len : 0;
	struct request *req = c->req;

	if (http1_find(bytes, head, "Content-Encoding")) {
		reply_refuse(c, 415, "a Content-Encoding is not taken: send the body as it is");
		return false;
	}
	if (route_rows[req->route].body == BODY_FILE) {
		req->media = MEDIA_FILE;
		return true;
	}
	if (type_is(value, len, "application/json") && route_rows[req->route].body != BODY_TAR)
		return true;
	if (route_rows[req->route].body == BODY_TAR && type_is(value, len, "application/x-tar")) {
		req->media = MEDIA_TAR;
		return true;
	}
	if (route_rows[req->route].body == BODY_BATCH && type_is(value, len, "application/x-ndjson")) {
		req->media = MEDIA_LINES;
		return true;
	}
	if (route_rows[req->route].body == BODY_JOB && type_is(value, len, "multipart/form-data") &&
	    len < sizeof(req->content_type)) {
		memcpy(req->content_type, value, len);
		req->content_type[len] = '\0';
		req->media = MEDIA_FORM;
		return true;
	}
	reply_refuse(c, 415, "Content-Type '%.*s' is not taken here: send %s%s", (int)min_u64(len, 80), value,
		     route_rows[req->route].body == BODY_TAR ? "application/x-tar" : "application/json",
		     route_rows[req->route].body == BODY_JOB     ? ", or multipart/form-data with a boundary"
		     : route_rows[req->route].body == BODY_BATCH ? ", or application/x-ndjson"
								 : "");
	return false;
}

/* Checks the length of the body. */
static bool check_length(struct client *c, const char *bytes, const struct http1_head *head)
{
	bool takes_body = route_rows[c->req->route].body != BODY_NONE;

	if (head->body == HTTP1_BODY_NONE && route_rows[c->req->route].body == BODY_FILE &&
	    http1_find(bytes, head, "Content-Length")) { /* an empty file */
		c->req->media = MEDIA_FILE;
		return true;
	}
	if (head->body == HTTP1_BODY_NONE && takes_body) {
		const char *what = route_rows[c->req->route].body == BODY_TAR ? "a tar archive" : "a JSON object";

		if (http1_find(bytes, head, "Content-Length"))
			reply_refuse(c, 400, "the body is empty: send %s", what);
		else
			reply_refuse(c, 411, "there is no body: send %s with Content-Length or in chunks", what);
		return false;
	}
	if (head->body != HTTP1_BODY_NONE && !takes_body) {
		reply_refuse(c, 400, "%s %s takes no body", route_rows[c->req->route].method,
			     route_rows[c->req->route].path);
		return false;
	}
	if (head->body == HTTP1_BODY_LENGTH && head->length > c->front->body_max) {
		reply_refuse(c, 413, "a body of %llu bytes is longer than the %llu that are taken here",
			     (unsigned long long)head->length, (unsigned long long)c->front->body_max);
		return false;
	}
	return true;
}

bool check_media(struct client *c, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *match = http1_find(bytes, head, "If-None-Match");

	c->req->takes_gzip = http1_has_word(bytes, head, "Accept-Encoding", "gzip", strlen("gzip"));
	if (match && match->value.len < sizeof(c->req->etag)) {
		memcpy(c->req->etag, bytes + match->value.at, match->value.len);
		c->req->etag[match->value.len] = '\0';
	}
	return check_accept(c, bytes, head) && check_length(c, bytes, head) &&
	       (head->body == HTTP1_BODY_NONE || check_content(c, bytes, head));
}
