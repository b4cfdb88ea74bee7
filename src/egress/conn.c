/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the program, from its first byte until data flows or it is refused.
 *
 * The decision is made here, in this order: is the request well-formed; is the host listed with this port; does the run
 * have connections and bytes left; which addresses does the name have; is each of them public, or listed itself.  Only
 * then is a socket created, and connected to one of the checked addresses: the name is not looked up again, so it
 * cannot lead elsewhere the second time (DNS rebinding).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "egress/server.h"

struct conn *conn_new(struct server *s, int fd)
{
	struct conn *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	/* The pipes' bytes stay as they are: clearing them would cost more than the rest. */
	memset(c, 0, offsetof(struct conn, up));
	c->up.first = c->up.len = c->down.first = c->down.len = 0;
	c->up.ended = c->up.closed = c->down.ended = c->down.closed = false;
	memset((char *)c + offsetof(struct conn, body), 0, sizeof(*c) - offsetof(struct conn, body));
	c->server = s;
	c->client = (struct end){ .conn = c, .fd = fd };
	c->host = (struct end){ .conn = c, .fd = FD_NONE };
	c->deadline = clock_now_ns() + HEAD_NS;
	return c;
}

/* ---- answers --------------------------------------------------------------------------------------- */

static void answer_http(struct conn *c, enum why why, const char *detail)
{
	const struct why_info *info = &why_info[why];
	char text[768], head[256];

	(void)snprintf(text, sizeof(text), "brig: %s%s%s%s%s\n", c->req.host.text, c->req.host.text[0] ? ": " : "",
		       info->text, detail[0] ? ": " : "", detail);
	(void)snprintf(head, sizeof(head),
		       "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		       info->status, info->kind == WHY_KIND_DENIED ? "Denied" : "Failed", strlen(text));
	pipe_put(&c->down, head, strlen(head));
	pipe_put(&c->down, text, strlen(text));
}

static void answer_socks(struct conn *c, enum why why)
{
	const char reply[] = { 5, (char)why_info[why].reply, 0, 1, 0, 0, 0, 0, 0, 0 };

	pipe_put(&c->down, reply, why == WHY_socks_method ? 2 : sizeof(reply));
}

/* There is no way to answer on a connection that is meant for another server; but it can be reset. */
static void reset(struct conn *c)
{
	const struct linger at_once = { .l_onoff = 1 };

	(void)setsockopt(c->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	conn_close(c);
}

/* The answer goes out, the row is written, and the connection ends. */
static void refuse(struct conn *c, enum why why, const char *detail)
{
	(void)table_note(c->server->table, c->req.host.text, c->req.port, why, detail);
	fd_closep(&c->host.fd);
	c->host.events = 0;
	if (c->direct) {
		reset(c);
		return;
	}
	if (c->socks)
		answer_socks(c, why);
	else
		answer_http(c, why, detail);
	c->state = CONN_LINGER;
	c->deadline = clock_now_ns() + LINGER_NS;
	relay_linger(c);
}

/* ---- connecting ------------------------------------------------------------------------------------ */

/*
 * Whether the address is one of this host's own: traffic to it never passes the firewall that guards it from outside.
 * The kernel then takes the address itself as the source, which a datagram socket shows without sending anything.
 */
static bool is_own(const struct sockaddr_storage *to, socklen_t len, const struct address *a)
{
	AUTO_FD probe = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	struct address source;

	if (probe < 0 || connect(probe, (const struct sockaddr *)to, len) < 0 ||
	    getsockname(probe, (struct sockaddr *)&from, &from_len) < 0 ||
	    !address_from_sockaddr((const struct sockaddr *)&from, &source))
		return false; /* it will not be reached over TCP either */
	return address_eq(&source, a);
}

static enum why judge_address(const struct conn *c, const struct address *a, char *detail, size_t size)
{
	char text[ADDRESS_TEXT_MAX];
	const char *special = address_special(a);
	struct sockaddr_storage to;
	socklen_t len;

	(void)address_text(a, text);
	if (rules_match_address(c->server->rules, a, c->req.port))
		return WHY_ok;
	if (special) {
		(void)snprintf(detail, size, "%s (%s)", text, special);
		return WHY_special;
	}
	len = address_to_sockaddr(a, c->req.port, &to);
	if (!is_own(&to, len, a))
		return WHY_ok;
	(void)snprintf(detail, size, "%s", text);
	return WHY_own_address;
}

/* Connecting is under way, or done; the first event says which.  -errno. */
static int connect_to(struct conn *c, const struct address *a)
{
	int size = SOCKET_BUFFER, on = 1;
	struct sockaddr_storage to;
	socklen_t len = address_to_sockaddr(a, c->req.port, &to);
	AUTO_FD fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return -errno;
	c->host.fd = fd_move(&fd);
	c->host.events = 0;
	return 0;
}

/* The next of the addresses that are left; when there is none, the last trouble is the reason. */
static void try_next(struct conn *c, int trouble)
{
	while (c->next_address < c->n_addresses) {
		const struct address *a = &c->address[c->next_address++];

		fd_closep(&c->host.fd);
		trouble = -connect_to(c, a);
		if (trouble == 0) {
			c->state = CONN_CONNECT;
			return;
		}
	}
	refuse(c, WHY_unreachable, trouble ? strerrordesc_np(trouble) : "");
}

/* Keeps of the addresses those that may be connected to. */
static void adopt_addresses(struct conn *c, const struct address *list, size_t n)
{
	char detail[TABLE_DETAIL_MAX] = "";
	enum why why = WHY_unresolved, one;

	c->n_addresses = c->next_address = 0;
	for (size_t i = 0; i < n; i++) {
		one = judge_address(c, &list[i], detail, sizeof(detail));
		if (one == WHY_ok)
			c->address[c->n_addresses++] = list[i];
		else
			why = one;
	}
	if (c->n_addresses == 0) {
		refuse(c, why, detail);
		return;
	}
	if (c->server->connections >= c->server->connections_max) {
		refuse(c, WHY_connections, ""); /* others were faster while the name was looked up */
		return;
	}
	c->server->connections++;
	c->deadline = clock_now_ns() + CONNECT_NS;
	try_next(c, 0);
}

void conn_on_answer(struct conn *c, const struct answer *a)
{
	if (a->n == 0)
		refuse(c, WHY_unresolved, a->why);
	else
		adopt_addresses(c, a->address, a->n);
	if (c->state != CONN_DEAD)
		conn_watch(c);
}

/* ---- deciding -------------------------------------------------------------------------------------- */

static enum why judge_request(const struct conn *c)
{
	const struct server *s = c->server;

	switch (rules_match(s->rules, &c->req.host, c->req.port)) {
	case MATCH_NONE:
		return WHY_unlisted;
	case MATCH_OTHER_PORT:
		return WHY_other_port;
	case MATCH_YES:
		break;
	}
	if (s->connections >= s->connections_max)
		return WHY_connections;
	return s->bytes >= s->bytes_max ? WHY_bytes : WHY_ok;
}

/* The head as the host shall see it takes the place of the one that came. */
static bool replace_head(struct conn *c)
{
	char head[PIPE_BYTES];
	const char *bytes = c->up.data + c->up.first;
	size_t rest = c->up.len - c->req.used, len, body;

	len = http_rewrite(bytes, &c->req, head, sizeof(head));
	if (len == 0 || len + rest > PIPE_BYTES)
		return false;
	c->body = c->req.body;
	body = http_body_take(&c->body, bytes + c->req.used, rest);
	memmove(c->up.data + len, bytes + c->req.used, rest);
	memcpy(c->up.data, head, len);
	c->up.first = 0;
	c->up.len = len + rest;
	c->sendable = len + body;
	return true;
}

/* A valid request: from here on nothing is read from the client until its bytes can be passed on. */
static void decide(struct conn *c)
{
	enum why why = judge_request(c);

	if (why != WHY_ok) {
		refuse(c, why, "");
		return;
	}
	if (!c->req.forward) {
		pipe_drop(&c->up, c->req.used);
		c->sendable = c->up.len;
	} else if (!replace_head(c)) {
		refuse(c, WHY_too_long, "");
		return;
	}
	if (c->req.host.is_address) {
		adopt_addresses(c, &c->req.host.address, 1);
		return;
	}
	c->ticket = ++c->server->tickets;
	c->state = CONN_LOOKUP;
	c->deadline = clock_now_ns() + LOOKUP_NS;
	if (!resolver_ask(c->server->resolver, c->ticket, c->req.host.text))
		refuse(c, WHY_unresolved, "too many lookups at once");
}

void conn_begin(struct conn *c)
{
	struct sockaddr_in at = { .sin_port = 0 };
	socklen_t len = sizeof(at);
	const char *name;

	c->direct = true;
	if (getsockname(c->client.fd, (struct sockaddr *)&at, &len) < 0 || len != sizeof(at)) {
		reset(c);
		return;
	}
	c->req.port = ntohs(at.sin_port);
	name = names_at(&c->server->names, ntohl(at.sin_addr.s_addr));
	if (name && host_parse(name, strlen(name), false, &c->req.host)) {
		decide(c);
		return;
	}
	(void)inet_ntop(AF_INET, &at.sin_addr, c->req.host.text, sizeof(c->req.host.text));
	refuse(c, WHY_no_name, "");
}

/* PARSE_DONE: the greeting is answered and gone from the pipe. */
static enum parse greet(struct conn *c)
{
	static const char open[] = { 5, 0 };
	enum parse p = socks_parse_greeting(c->up.data + c->up.first, c->up.len, &c->req);

	if (p != PARSE_DONE)
		return p;
	pipe_drop(&c->up, c->req.used);
	pipe_put(&c->down, open, sizeof(open));
	c->greeted = true;
	return PARSE_DONE;
}

static enum parse parse_request(struct conn *c)
{
	enum parse p;

	if (!c->socks)
		return http_parse(c->up.data + c->up.first, c->up.len, &c->seen, &c->req);
	if (!c->greeted) {
		p = greet(c);
		if (p != PARSE_DONE)
			return p;
	}
	return socks_parse_request(c->up.data + c->up.first, c->up.len, &c->req);
}

/* A client that connects and sends nothing has not attempted anything. */
static void end_early(struct conn *c)
{
	if (c->up.len > 0 || c->greeted)
		(void)table_note(c->server->table, "", 0, WHY_cut_short, "");
	conn_close(c);
}

static void read_request(struct conn *c)
{
	/* Not more than a head may have: what takes its place is a little longer, and must fit together with the rest. */
	int rc = pipe_fill(&c->up, c->client.fd, REQUEST_HEAD_MAX - c->up.len);

	if (c->up.len == 0 && (rc < 0 || c->up.ended)) {
		end_early(c);
		return;
	}
	if (c->up.len > 0 && c->seen == 0 && !c->greeted)
		c->socks = c->up.data[c->up.first] == 5;
	switch (parse_request(c)) {
	case PARSE_BAD:
		refuse(c, c->req.why, "");
		break;
	case PARSE_DONE:
		decide(c);
		break;
	case PARSE_MORE:
		if (rc < 0 || c->up.ended)
			end_early(c);
		break;
	}
}

/* ---- events ---------------------------------------------------------------------------------------- */

static void on_connected(struct conn *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	int trouble = 0;
	socklen_t len = sizeof(trouble);

	if (getsockopt(c->host.fd, SOL_SOCKET, SO_ERROR, &trouble, &len) < 0)
		trouble = errno;
	if (trouble) {
		try_next(c, trouble);
		return;
	}
	c->row = table_note(c->server->table, c->req.host.text, c->req.port, WHY_ok, "");
	if (c->socks)
		answer_socks(c, WHY_ok);
	else if (!c->req.forward && !c->direct)
		pipe_put(&c->down, established, sizeof(established) - 1);
	relay_begin(c);
}

void conn_on_event(struct conn *c, const struct end *e)
{
	switch (c->state) {
	case CONN_HEAD:
		if (c->down.len > 0 && pipe_flush(&c->down, c->client.fd, c->down.len) < 0)
			conn_close(c);
		else
			read_request(c);
		break;
	case CONN_LOOKUP:
	case CONN_CONNECT:
		if (e == &c->host)
			on_connected(c);
		break;
	case CONN_RELAY:
		relay(c);
		break;
	case CONN_LINGER:
		relay_linger(c);
		break;
	case CONN_DEAD:
		return;
	}
	if (c->state != CONN_DEAD)
		conn_watch(c);
}

void conn_on_deadline(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		if (c->up.len == 0 && !c->greeted) {
			conn_close(c); /* it has said nothing yet */
			return;
		}
		refuse(c, WHY_too_slow, "");
		break;
	case CONN_LOOKUP:
		refuse(c, WHY_timed_out, "of the resolver");
		break;
	case CONN_CONNECT:
		refuse(c, WHY_timed_out, "");
		break;
	default:
		conn_close(c);
		return;
	}
	if (c->state != CONN_DEAD)
		conn_watch(c);
}
