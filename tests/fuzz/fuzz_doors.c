/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of every door, as the front reads them, and answers of the runner that follow.  The first byte chooses the row of the table, the
 * second what the runner says; the rest is the body, or what is typed into a WebSocket.  Whatever comes, the runner is asked in messages
 * that it understands, and each request is answered, or its connection over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/ustar.h"
#include "server/doors/door.h"
#include "server/doors/librechat/librechat.h"
#include "server/doors/mcp/mcp.h"
#include "server/front/websocket.h"

#define ASKS_MAX 600

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

static const struct {
	enum door door;
	const char *row;
	enum door_access access;
	enum door_body body;
} requests[] = {
#define DOOR_ROUTE(door, method, path, body, access, handler, summary) \
	{ DOOR_##door, #method " " path, DOOR_ACCESS_##access, DOOR_BODY_##body },
#include "server/doors.def"
};

static const char languages[] = "{\"languages\":[{\"name\":\"python\",\"aliases\":[\"py\"],\"extensions\":[\".py\"],"
				"\"compiles\":false,\"installed\":true,"
				"\"version\":\"3.11.2\"},{\"name\":\"cpp\",\"aliases\":[\"c++\"],\"extensions\":[\"."
				"cpp\"],\"compiles\":true,\"installed\":true}]}";
static const char files[] = "{\"files\":[{\"path\":\"/workspace/b\",\"type\":\"link\",\"target\":\"/workspace/"
			    "a\",\"target_type\":\"folder\",\"mode\":511},{\"path\":\"/workspace/a\",\"type\":"
			    "\"folder\"}]}";
static const char processes[] = "{\"processes\":[{\"state\":\"running\",\"pid\":5,\"args\":[\"a\",\"b\"],"
				"\"env\":{},\"label\":\"x\",\"cwd\":\"/workspace\"}]}";
static const char changes[] = "{\"watch\":7,\"changes\":[{\"change\":\"created\",\"name\":\"a\"},{\"change\":"
			      "\"lost\",\"name\":\"\"}]}";
static const char *const results[] = {
	"{\"id\":\"aaaaaaaaaaaaaaaa\",\"verdict\":\"ok\",\"exit_code\":0,\"stdout\":\"x\",\"stderr\":\"\","
	"\"artifacts\":[{\"path\":\"a\","
	"\"path_encoding\":\"utf-8\",\"content\":\"/w==\",\"content_encoding\":\"base64\"}],\"changes\":[]}",
	"{\"verdict\":\"blocked\",\"reason\":\"r\",\"findings\":[{\"line\":1,\"message\":\"m\",\"rule\":\"x\"}]}",
	"{\"verdict\":\"error\",\"step\":\"compile\",\"exit_code\":1,\"stderr\":\"/"
	"w==\",\"stderr_encoding\":\"base64\"}",
	"{\"verdict\":\"refused\",\"reason\":\"no\"}",
	"[]",
};

static const char *const sessions[] = {
	"{\"id\":\"aaaaaaaaaaaaaaaa\",\"state\":\"ready\",\"token\":\"\",\"created\":\"2026-11-17T22:26:48.150Z\","
	"\"ends\":\"2026-11-17T23:26:48.150Z\",\"key\":\"k\",\"network\":\"none\",\"memory\":536870912,"
	"\"note\":\"{\\\"templateID\\\":\\\"base\\\",\\\"metadata\\\":{\\\"a\\\":\\\"b\\\"}}\"}",
	"{\"id\":\"aaaaaaaaaaaaaaaa\",\"state\":\"paused\",\"note\":\"{\"}",
	"{\"id\":\"aaaaaaaaaaaaaaaa\",\"state\":\"ended\"}",
	"{\"sessions\":[{\"id\":\"a\",\"state\":\"ready\",\"token\":\"\",\"created\":\"2026-11-17T22:26:48.150Z\"},"
	"{\"id\":\"b\",\"state\":\"paused\",\"token\":\"\",\"note\":\"[]\"},7]}",
};

struct world {
	struct front *f;
	struct channel *runner;
	struct client *c;
	int other; /* of the client's connection */
};

static void open_world(struct world *w)
{
	static struct serve_options options = { .no_auth = true };
	static struct listener listener = { .is_unix = true };
	int ends[2], wire[2];

	if (!doors_any(&options.doors) && doors_parse("all", &options.doors, NULL) < 0)
		abort();
	w->f = calloc(1, sizeof(*w->f));
	w->c = calloc(1, sizeof(*w->c));
	if (!w->f || !w->c || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, wire) < 0 ||
	    channel_new(&ends[0], &w->f->channel, NULL) < 0 || channel_new(&ends[1], &w->runner, NULL) < 0)
		abort();
	w->f->options = &options;
	w->f->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->f->body_max = FRONT_BODY_MAX;
	relays_init(w->f);
	w->other = wire[1];
	w->f->n_clients = 1;
	w->c->source = (struct source){ .kind = SOURCE_CLIENT, .fd = wire[0] };
	w->c->front = w->f;
	w->c->listener = &listener;
	w->c->deadline_kind = DEADLINE_NONE;
	w->c->in = (struct buf)BUF_INIT(FRONT_BODY_MAX);
	w->c->out = (struct buf)BUF_INIT(FRONT_PENDING_MAX);
	w->c->state = CLIENT_HEAD;
	deadline_set(w->c, DEADLINE_HEAD);
}

static void close_world(struct world *w)
{
	client_close(w->c, true);
	websocket_free(w->c->websocket);
	input_free(w->c->input);
	free(w->c);
	channel_free(w->f->channel);
	channel_free(w->runner);
	(void)close(w->f->epoll);
	(void)close(w->other);
	json_decref(w->f->languages);
	mcp_sessions_free(w->f);
	librechat_runtimes_free(w->f);
	free(w->f);
}

/* What the runner says to an ask of this route. */
static void put_answer(struct buf *m, enum route route, unsigned char choice, unsigned *ret_status)
{
	static const struct bytes content = { "text", 4 };
	const char *text = route == ROUTE_languages                               ? languages
			   : route == ROUTE_execute || route == ROUTE_session_run ? results[choice % ARRAY_LEN(results)]
			   : route == ROUTE_session                               ? sessions[(choice & 3) % 3]
			   : route == ROUTE_session_make || route == ROUTE_session_timeout             ? sessions[0]
			   : route == ROUTE_sessions                                                   ? sessions[3]
			   : route == ROUTE_session_files                                              ? files
			   : route == ROUTE_processes                                                  ? processes
			   : route == ROUTE_session_watch_make || route == ROUTE_session_watch_changes ? changes
			   : route == ROUTE_workspace_put || route == ROUTE_batch ? "{\"id\":\"aaaaaaaaaaaaaaaa\"}"
			   : route == ROUTE_workspace && !(choice & 0x10)
				   ? "{\"created\":\"t\",\"files\":[{\"path\":\"faaaaaaaaaaaaaaaaaaaa/a.b\","
				     "\"size\":1}]}"
				   : "{}";
	AUTO_BUF tar = BUF_INIT(64 * KiB);

	*ret_status = route == ROUTE_workspace_put || route == ROUTE_session_watch_make || route == ROUTE_session_make
			      ? 201
			      : 200;
	if (route == ROUTE_batch)
		*ret_status = 202;
	if (choice & 0x80 && route != ROUTE_session)
		*ret_status = choice & 0x40 ? 403 : 503;
	if (route == ROUTE_workspace_archive && ustar_add_file(&tar, "faaaaaaaaaaaaaaaaaaaa/a.txt", &content) &&
	    ustar_add_end(&tar))
		message_put_bytes(m, FIELD_body, tar.data, tar.len);
	else
		message_put_bytes(m, FIELD_body, text, strlen(text));
}

/* Of jobs, some of which were never asked for. */
static void tell_results(struct client *c, unsigned char choice)
{
	char text[2048];

	for (int i = 0; i < 4 && c->state != CLIENT_DEAD && c->req && c->req->call->on_event; i++) {
		(void)snprintf(text, sizeof(text), "{\"job\":\"%d\",%s", (i + choice) % 4,
			       results[choice % (ARRAY_LEN(results) - 1)] + 1);
		c->req->call->on_event(c, EVENT_result, text, strlen(text));
	}
}

/* What comes before the answer of who asked for events. */
static void tell_events(struct client *c, enum route route, unsigned char choice)
{
	char verdict[2048];
	const struct {
		enum event_kind kind;
		const char *text;
	} events[] = {
		{ EVENT_started, "{\"pid\":5,\"pty\":false}" },
		{ EVENT_stdout, "{\"data\":\"x\"}" },
		{ EVENT_stderr, "{\"data\":\"/w==\",\"encoding\":\"base64\"}" },
		{ EVENT_changed, "{\"change\":\"written\",\"name\":\"a\",\"entry\":{\"path\":\"/a\"}}" },
		{ EVENT_verdict, verdict },
	};

	if (route == ROUTE_batch_results) {
		tell_results(c, choice);
		return;
	}
	if (route != ROUTE_process_start && route != ROUTE_process_events && route != ROUTE_session_watch)
		return;
	(void)snprintf(verdict, sizeof(verdict), "{\"verdict\":\"%s\",\"result\":%s}", choice & 2 ? "error" : "blocked",
		       results[choice % ARRAY_LEN(results)]);
	for (size_t i = choice & 1; i < ARRAY_LEN(events); i++)
		if (c->state != CLIENT_DEAD && c->req && c->req->call->on_event)
			c->req->call->on_event(c, events[i].kind, events[i].text, strlen(events[i].text));
}

/* Answers asks until there are no more; a door that asks without end would be a fault of its own. */
static void be_runner(struct world *w, unsigned char choice)
{
	for (int i = 0; w->c->state != CLIENT_DEAD && w->c->req && w->c->req->tag; i++) {
		AUTO_BUF m = BUF_INIT(MESSAGE_MAX);
		struct record ask, answer = { .type = RECORD_ANSWER };
		struct message got;
		const char *why;
		unsigned status;

		do {
			if (channel_receive(w->runner, &ask, NULL) != 1 || i > ASKS_MAX)
				abort();
			for (size_t k = 0; k < ask.n_fds; k++)
				fd_closep(&ask.fds[k]);
		} while (ask.type != RECORD_ASK);
		if (!message_read(ask.data, ask.len, &got, &why))
			abort();
		tell_events(w->c, (enum route)message_number(&got, FIELD_route, 0), choice);
		if (w->c->state == CLIENT_DEAD || !w->c->req)
			return;
		if (w->c->req->tag != ask.tag) /* it has heard enough */
			continue;
		put_answer(&m, (enum route)message_number(&got, FIELD_route, 0), choice, &status);
		answer.tag = ask.tag;
		answer.status = (uint16_t)status;
		answer.data = m.data;
		answer.len = m.len;
		request_on_answer(w->c, &answer);
	}
}

/* As a client would write it, but for what means something in a query. */
static void add_query(struct buf *head, const unsigned char *data, size_t len)
{
	(void)buf_adds(head, "?");
	for (size_t i = 0; i < len && i < 2000; i++)
		(void)buf_addf(head, data[i] > 0x20 && data[i] < 0x7f && data[i] != '#' ? "%c" : "%%%02X", data[i]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	static bool is_loaded;
	AUTO_BUF head = BUF_INIT(8 * KiB);
	struct world w = { 0 };
	const char *row;
	bool is_socket, is_sandbox, is_list;
	size_t which;

	if (len < 2)
		return 0;
	if (!is_loaded && websocket_load(NULL) < 0)
		abort();
	is_loaded = true;
	which = data[0] % ARRAY_LEN(requests);
	row = requests[which].row;
	is_sandbox = requests[which].access == DOOR_ACCESS_SESSION;
	is_socket = requests[which].body == DOOR_BODY_SOCKET;
	is_list = requests[which].door == DOOR_e2b && !is_sandbox && requests[which].body == DOOR_BODY_NONE;
	open_world(&w);
	if (strncmp(row, "ANY ", 4) == 0) {
		(void)buf_adds(&head, "PATCH ");
		row += 4;
	}
	for (const char *at = row; *at;) /* what the path names */
		if (strncmp(at, "{id}", 4) == 0 || strncmp(at, "{path}", 6) == 0) {
			(void)buf_adds(&head, at[1] == 'i' ? "aaaaaaaaaaaaaaaa" : "faaaaaaaaaaaaaaaaaaaa");
			at += at[1] == 'i' ? 4 : 6;
		} else {
			(void)buf_add(&head, at++, 1);
		}
	if (is_list)
		add_query(&head, data + 2, len - 2);
	(void)buf_adds(&head,
		       is_sandbox ? "?path=a&username=user HTTP/1.1\r\nHost: x\r\n" : " HTTP/1.1\r\nHost: x\r\n");
	if (is_socket)
		(void)buf_adds(&head, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
				      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
	else if (strstr(row, "/mcp")) /* of the era that the second byte says */
		(void)buf_addf(&head, "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
			       data[1] & 0x20 ? "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
						"Mcp-Name: run_code\r\n"
					      : "",
			       len - 2);
	else if (is_list)
		(void)buf_adds(&head, "\r\n");
	else if (is_sandbox)
		(void)buf_addf(&head,
			       "E2b-Sandbox-Id: aaaaaaaaaaaaaaaa\r\nX-Access-Token: k\r\nX-Metadata-A: b\r\n"
			       "Content-Type: %s\r\n%sContent-Length: %zu\r\n\r\n",
			       data[1] & 0x20 ? "application/connect+json"
			       : data[1] & 8  ? "application/json"
					      : "multipart/form-data; boundary=x",
			       data[1] & 4 ? "Content-Encoding: gzip\r\n" : "", len - 2);
	else
		(void)buf_addf(&head, "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: %zu\r\n\r\n",
			       len - 2);
	(void)buf_add(&w.c->in, head.data, head.len);
	if (!is_socket && !is_list)
		(void)buf_add(&w.c->in, data + 2, len - 2);
	client_advance(w.c);
	be_runner(&w, data[1]);
	if (w.c->state == CLIENT_SOCKET && w.c->websocket) {
		websocket_on_bytes(w.c, (const char *)data + 2, len - 2);
		be_runner(&w, data[1]);
	} else if (w.c->state == CLIENT_ASKED || w.c->state == CLIENT_HEAD) {
		abort(); /* neither answered nor over */
	}
	close_world(&w);
	return 0;
}
