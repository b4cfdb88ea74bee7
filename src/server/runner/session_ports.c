/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_ports.c - connections to servers in a session, and links
 *
 * A server on the cell's loopback is reached through a socket that the cell connects, so no name or address from a
 * client is resolved outside.  The socket is passed to the front with the answer: the front parses what the server
 * sends, the runner never does.
 *
 * A link permits one operation for some time: reading a file, writing it, or connecting to a port.  It is an
 * HMAC-SHA-256 with the session's key over the operation, its object, the session and the expiry time.  So no state is
 * kept, and links expire with the session, or when the owning token becomes invalid.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "sys/crypto.h"

#define LINK_SECONDS     (3600)          /* default lifetime */
#define LINK_SECONDS_MAX (7 * 24 * 3600) /* longer than any session */
#define LINK_MESSAGE_MAX (8 * KiB)
#define LINK_URL_MAX     (20 * KiB)
#define PLAIN_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-~"

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static bool read_port(const struct message *m, uint16_t *ret)
{
	uint64_t n = message_number(m, FIELD_item, 0);

	*ret = (uint16_t)n;
	return n >= 1 && n <= UINT16_MAX;
}

void handle_session_port(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t tag = 0;
	uint16_t port;
	int rc;

	if (!x)
		return;
	if (!read_port(req->m, &port)) {
		answer_error(s, req, 404, "a port is a number from 1 to 65535");
		return;
	}
	if (x->needs_key && req->token->is_anonymous && !req->session) {
		answer_error(s, req, 403, "the ports of this session need its key: send it as X-Access-Token");
		return;
	}
	if (message_number(req->m, FIELD_only_check, 0)) {
		answer_json(s, req, 200, json_object());
		return;
	}
	if (!session_can_wait(s, req, x))
		return;
	rc = x->is_paused && x->resumes ? session_wake(x, &err) : 0;
	if (rc < 0 || brig_session_connect(x->inside, port, &tag, &err) < 0)
		session_trouble(s, req, &err);
	else
		(void)session_wait_for(s, req, x, tag);
	session_go_on(s, x);
}

void session_port_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };

	if (event->kind != BRIG_SESSION_DONE)
		return;
	if (event->error == ECONNREFUSED)
		answer_errno(
			x->service, &req, 502, ECONNREFUSED,
			"no process in the session listens at this port on 127.0.0.1 or ::1: start a server there");
	else if (event->error || event->fd < 0)
		answer_error(x->service, &req, 502, "the session cannot connect to this port: %s",
			     strerror(event->error ? event->error : EPROTO));
	else
		answer_send(x->service, w->tag, &(struct answer){ .status = 200, .who = w->who, .fd = &event->fd });
	session_wait_free(x, w);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *operation;
	enum route route;
} operations[] = {
	{ "read", ROUTE_session_file },
	{ "write", ROUTE_session_file_put },
	{ "port", ROUTE_session_port },
};

static const char *operation_of(enum route route)
{
	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		if (operations[i].route == route)
			return operations[i].operation;
	return NULL;
}

/* Parts are separated by newlines, which only the last part can contain. */
static bool make_code(const struct server_session *x, const char *operation, const char *what, uint64_t expires,
		      uint8_t ret[SHA256_LEN])
{
	AUTO_BUF text = BUF_INIT(LINK_MESSAGE_MAX);
	struct hmac256 key;

	_Static_assert(SESSION_KEY_LEN == SHA256_LEN, "the key is used as it is");
	if (!buf_addf(&text, "brig link\n%s\n%s\n%llu\n%s", operation, x->id, (unsigned long long)expires, what))
		return false;
	hmac256_key(&key, (const uint8_t *)x->key);
	hmac256(&key, text.data, text.len, ret);
	crypto_wipe(&key, sizeof(key));
	return true;
}

bool session_link_holds(const struct server_session *x, enum route route, const struct message *m)
{
	const char *given = message_text(m, FIELD_link), *operation = operation_of(route);
	const char *path = message_text(m, FIELD_path);
	uint64_t expires = message_number(m, FIELD_expires, 0);
	uint8_t made[SHA256_LEN], shown[SHA256_LEN];
	char port[24];

	(void)snprintf(port, sizeof(port), "%llu", (unsigned long long)message_number(m, FIELD_item, 0));
	return given && operation && expires > clock_wall_ns() / NS_PER_SEC && strlen(given) == SHA256_HEX &&
	       hex_get(given, shown, sizeof(shown)) &&
	       make_code(x, operation,
			 route == ROUTE_session_port ? port
			 : path                      ? path
						     : "",
			 expires, made) &&
	       crypto_same(made, shown, sizeof(made));
}

/* A path as it appears in requests: relative to the workspace, without ".", ".." and empty components. */
static bool is_plain_path(const char *path)
{
	const char *at = path;

	for (;;) {
		size_t len = strcspn(at, "/");

		if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		if (at[len] == '\0')
			return str_is_utf8(path, strlen(path));
		at += len + 1;
	}
}

static void add_escaped(struct buf *url, const char *path)
{
	for (; *path; path++)
		if (*path == '/' || strchr(PLAIN_CHARACTERS, *path))
			(void)buf_add(url, path, 1);
		else
			(void)buf_addf(url, "%%%02X", (unsigned char)*path);
}

/* Makes "http://3000-ID.localhost:8377" of "http://127.0.0.1:8377". */
static void add_port_origin(const struct server_session *x, const char *origin, const char *domain, uint16_t port,
			    struct buf *url)
{
	const char *host = strstr(origin, "://"), *colon;

	if (!host)
		return;
	host += 3;
	colon = strrchr(host, ':');
	if (colon && strchr(colon, ']')) /* the colon is part of an IPv6 address without port */
		colon = NULL;
	(void)buf_addf(url, "%.*s%u-%s.%s%s", (int)(host - origin), origin, (unsigned)port, x->id, domain,
		       colon ? colon : "");
}

struct link {
	const char *operation, *path, *origin, *domain;
	uint16_t port;
	uint64_t expires;
	char code[SHA256_HEX + 1];
};

static void add_url(const struct server_session *x, const struct link *l, struct buf *url)
{
	if (l->path) {
		(void)buf_addf(url, "%s/v1/sessions/%s/files/", l->origin, x->id);
		add_escaped(url, l->path);
		(void)buf_addf(url, "?expires=%llu&link=%s", (unsigned long long)l->expires, l->code);
	} else {
		add_port_origin(x, l->origin, l->domain, l->port, url);
		(void)buf_addf(url, "/?brig_token=%llu.%s", (unsigned long long)l->expires, l->code);
	}
}

static void answer_link(struct service *s, const struct request *req, const struct server_session *x,
			const struct link *l)
{
	AUTO_BUF url = BUF_INIT(LINK_URL_MAX);
	char when[WHEN_TEXT_MAX];
	json_t *doc;

	add_url(x, l, &url);
	doc = json_pack("{s:s, s:s, s:s, s:s}", "url", buf_str(&url), "operation", l->operation, "method",
			str_eq(l->operation, "write") ? "PUT" : "GET", "expires",
			when_utc(when, sizeof(when), l->expires * NS_PER_SEC));
	if (doc && !l->path)
		(void)json_object_set_new(doc, "token",
					  json_sprintf("%llu.%s", (unsigned long long)l->expires, l->code));
	answer_json(s, req, 201, doc);
}

/* NULL: the request is valid; otherwise the reason why not. */
static const char *wrong_with(const struct request *req, struct link *l)
{
	l->path = message_text(req->m, FIELD_path);
	l->operation = message_text(req->m, FIELD_operation);
	if (!l->path == !message_has(req->m, FIELD_item))
		return "a link has a \"path\" or a \"port\", and not both";
	if (!l->path)
		l->operation = l->operation ? l->operation : "port";
	else if (!l->operation)
		l->operation = "read";
	if (str_eq(l->operation, "port") != !l->path ||
	    (l->path && !str_eq(l->operation, "read") && !str_eq(l->operation, "write")))
		return "\"operation\" of a path is \"read\" or \"write\"";
	if (l->path && !is_plain_path(l->path))
		return "\"path\" must be below the workspace, without empty parts, \".\" and \"..\"";
	return l->path || read_port(req->m, &l->port) ? NULL : "\"port\" must be a number from 1 to 65535";
}

void handle_session_link(struct service *s, struct request *req)
{
	const struct server_session *x = session_find(s, req);
	uint64_t seconds = message_number(req->m, FIELD_timeout_ms, 0) / 1000;
	const char *origin = message_text(req->m, FIELD_origin), *why;
	/* set if another front forwards the request */
	const char *domain = message_text(req->m, FIELD_port_domain);
	struct link l = { .origin = origin ? origin : "", .domain = domain ? domain : s->options->port_domain };
	uint8_t code[SHA256_LEN];
	char port[8];

	if (!x)
		return;
	why = wrong_with(req, &l);
	if (why) {
		answer_error(s, req, 422, "%s", why);
		return;
	}
	(void)snprintf(port, sizeof(port), "%u", (unsigned)l.port);
	l.expires = clock_wall_ns() / NS_PER_SEC + min_u64(seconds ? seconds : LINK_SECONDS, LINK_SECONDS_MAX);
	if (!make_code(x, l.operation, l.path ? l.path : port, l.expires, code)) {
		answer_retry(s, req, 503, 1, "there is no memory for the link");
		return;
	}
	(void)hex_put(l.code, code, sizeof(code));
	answer_link(s, req, x, &l);
}
