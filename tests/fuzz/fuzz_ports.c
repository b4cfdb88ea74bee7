/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for servers of sessions, and what such servers answer.  The first byte says how the request is made, the second where the
 * answer is cut in two; what follows, up to a byte 0xff, are lines of its head, or a body; the rest is what the server says before
 * it hangs up.  Whatever comes, the server gets a sound head without the client's token, the client gets a sound answer or none, and
 * on the service's own origin nothing of it concerns that origin.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "server/front/port.h"

#define SECRET    "brig_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define PREFIX    "/v1/sessions/aaaaaaaaaaaaaaaa/ports/3000"
#define NAME      "3000-aaaaaaaaaaaaaaaa.localhost"
#define TURNS_MAX 10000

enum { BY_HOST = 1, UPGRADE = 2, OF_HEAD = 4, OLD = 8, CHUNKED = 16, IN_BODY = 32, BY_COOKIE = 64 };

/* One line per request would be all that there is to see. */
void log_request(struct client *c)
{
	(void)c;
}

void log_relay(struct front *f, const char *route, const char *who, unsigned status, uint64_t began_ns)
{
	(void)f, (void)route, (void)who, (void)status, (void)began_ns;
}

void log_trouble(struct front *f, const char *text)
{
	(void)f, (void)text;
}

static void require(bool what)
{
	if (!what)
		abort();
}

struct world {
	struct front *f;
	struct channel *runner;
	struct client *c;
	int client, server; /* the other ends */
	struct buf asked, answered;
};

static void open_world(struct world *w)
{
	static struct serve_options options = { .no_auth = true, .port_domain = "localhost" };
	static struct listener listener = { .is_unix = true };
	int ends[2], wire[2];

	w->f = calloc(1, sizeof(*w->f));
	w->c = calloc(1, sizeof(*w->c));
	require(w->f && w->c && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 &&
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, wire) == 0 &&
		channel_new(&ends[0], &w->f->channel, NULL) == 0 && channel_new(&ends[1], &w->runner, NULL) == 0);
	w->f->options = &options;
	w->f->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->f->body_max = FRONT_BODY_MAX;
	relays_init(w->f);
	w->client = wire[1];
	w->server = FD_NONE;
	w->asked = w->answered = (struct buf)BUF_INIT(64 * MiB);
	w->f->n_clients = 1;
	*w->c = (struct client){ .source = { .kind = SOURCE_CLIENT, .fd = wire[0] },
				 .front = w->f,
				 .listener = &listener,
				 .deadline_kind = DEADLINE_NONE,
				 .in = BUF_INIT(FRONT_BODY_MAX),
				 .out = BUF_INIT(FRONT_PENDING_MAX),
				 .state = CLIENT_HEAD };
	deadline_set(w->c, DEADLINE_HEAD);
}

static void close_world(struct world *w)
{
	client_close(w->c, true);
	ports_free_closed(w->f);
	require(w->f->n_ports == 0);
	free(w->c);
	channel_free(w->f->channel);
	channel_free(w->runner);
	(void)close(w->f->epoll);
	(void)close(w->client);
	fd_closep(&w->server);
	buf_release(&w->asked);
	buf_release(&w->answered);
	free(w->f);
}

/* All that there is to be read at an end. */
static void drain(int fd, struct buf *into)
{
	char bytes[4096];
	ssize_t n;

	while (fd >= 0 && (n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		(void)buf_add(into, bytes, (size_t)n);
}

/* The runner connects; false: it was not asked. */
static bool connect_it(struct world *w)
{
	struct record ask, answer = { .type = RECORD_ANSWER, .status = 200, .data = "", .n_fds = 1 };
	int ends[2];

	if (w->c->state != CLIENT_ASKED || channel_receive(w->runner, &ask, NULL) != 1)
		return false;
	require(ask.type == RECORD_ASK &&
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	for (size_t i = 0; i < ask.n_fds; i++)
		fd_closep(&ask.fds[i]);
	answer.tag = ask.tag;
	answer.fds[0] = ends[0];
	w->server = ends[1];
	request_on_answer(w->c, &answer);
	fd_closep(&answer.fds[0]);
	return true;
}

/* What the front would be told of by epoll. */
static void turn(struct world *w)
{
	for (int i = 0; i < TURNS_MAX; i++) {
		struct epoll_event ev[4];
		int n = epoll_wait(w->f->epoll, ev, 4, 0);

		drain(w->server, &w->asked);
		drain(w->client, &w->answered);
		if (n <= 0)
			return;
		for (int k = 0; k < n; k++) {
			struct source *s = ev[k].data.ptr;

			if (s->kind == SOURCE_PORT)
				port_on_event((struct port *)s, ev[k].events);
			else if (s->kind == SOURCE_CLIENT)
				client_on_event((struct client *)s, ev[k].events);
		}
		ports_free_closed(w->f);
	}
	abort(); /* it is told of the same again and again */
}

static void say(struct world *w, const unsigned char *bytes, size_t len)
{
	while (len > 0 && w->server >= 0) {
		ssize_t n = send(w->server, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n <= 0)
			break;
		bytes += n;
		len -= (size_t)n;
		turn(w);
	}
}

static void write_request(struct buf *in, unsigned how, const unsigned char *text, size_t len)
{
	const char *at = how & BY_HOST ? "" : PREFIX;

	(void)buf_addf(in, "%s %s/a?b HTTP/1.%d\r\nHost: %s\r\n", how & OF_HEAD ? "HEAD" : "GET", at, how & OLD ? 0 : 1,
		       how & BY_HOST ? NAME : "x");
	if (!(how & BY_COOKIE))
		(void)buf_adds(in, "X-Access-Token: " SECRET "\r\n");
	if (how & UPGRADE)
		(void)buf_adds(in, "Connection: upgrade\r\nUpgrade: websocket\r\n");
	if (!(how & IN_BODY)) {
		(void)buf_add(in, text, len);
		(void)buf_adds(in, "\r\n");
		return;
	}
	if (how & CHUNKED)
		(void)buf_adds(in, "Transfer-Encoding: chunked\r\n\r\n");
	else
		(void)buf_addf(in, "Content-Length: %zu\r\n\r\n", len);
	(void)buf_add(in, text, len);
}

/* What the server got; is_elsewhere: the client sends its token as something else, too. */
static void check_asked(const struct world *w, bool is_elsewhere)
{
	static struct http1_head h;
	size_t seen = 0;

	if (w->asked.len == 0)
		return;
	require(http1_head_parse(w->asked.data, w->asked.len, &seen, &h) == HTTP1_DONE);
	require(!http1_find(w->asked.data, &h, "X-Access-Token"));
	require(is_elsewhere || !memmem(w->asked.data, h.used, SECRET, strlen(SECRET)));
}

/* What the client got of an answer of the server's, and not of our own. */
static void check_answered(const struct world *w, unsigned how)
{
	static const char *const never[] = { "Set-Cookie",       "Clear-Site-Data",
					     "Alt-Svc",          "Access-Control-Allow-Origin",
					     "WWW-Authenticate", "Service-Worker-Allowed" };
	static const char own[] = "default-src 'none'"; /* a refusal's */
	static struct http1_head h;
	const struct http1_line *line;
	size_t seen = 0;

	if (w->answered.len == 0)
		return;
	require(http1_answer_parse(w->answered.data, w->answered.len, &seen, how & OF_HEAD, &h) == HTTP1_DONE);
	line = http1_find(w->answered.data, &h, "Content-Security-Policy");
	if (line && strncmp(w->answered.data + line->value.at, own, strlen(own)) == 0)
		return;
	if (how & BY_HOST)
		return;
	require(line && strncmp(w->answered.data + line->value.at, "sandbox", 7) == 0);
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		require(!http1_find(w->answered.data, &h, never[i]));
	line = http1_find(w->answered.data, &h, "Location");
	if (!line || line->value.len == 0 || w->answered.data[line->value.at] != '/')
		return;
	require(line->value.len > strlen(PREFIX) &&
		memcmp(w->answered.data + line->value.at, PREFIX "/", strlen(PREFIX) + 1) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	const unsigned char *text = data + 2, *end;
	struct world w = { 0 };
	size_t said, cut;

	if (len < 2)
		return 0;
	end = memchr(text, 0xff, len - 2);
	said = end ? (size_t)(data + len - end) - 1 : 0;
	cut = said ? data[1] % said : 0;
	open_world(&w);
	write_request(&w.c->in, data[0], text, end ? (size_t)(end - text) : len - 2);
	client_advance(w.c);
	if (connect_it(&w)) {
		turn(&w);
		if (end) {
			say(&w, end + 1, cut);
			say(&w, end + 1 + cut, said - cut);
		}
		turn(&w);
		drain(w.server, &w.asked);
		fd_closep(&w.server);
		turn(&w);
		check_asked(&w, memmem(data, len, SECRET, strlen(SECRET)));
		check_answered(&w, data[0]);
	}
	close_world(&w);
	return 0;
}
