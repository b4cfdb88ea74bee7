/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that follows a script, in a thread of the test: for each connection it reads one request and then does what
 * the script's next line says.  It listens on a unix socket in a folder of its own, or on a loopback port.
 */
#ifndef TESTS_NET_SERVER_H
#define TESTS_NET_SERVER_H

#include <dirent.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/util.h"
#include "net/http.h"

struct script {
	const char *answer;
	size_t len;        /* 0: strlen(answer) */
	bool pieces;       /* byte by byte */
	bool hang;         /* then neither say anything nor close, until the test is over */
	bool gate;         /* wait for server_open_gate() first */
	const char *then;  /* after the answer, behind a second gate */
	const char *again; /* after the answer, again and again, until the client goes away */
	bool echo;         /* after the answer: send back what comes, and "bye" at its end */
	bool deaf;         /* do not read the request: answer and close */
	bool keep;         /* serve the next line on the same connection */
};

#define SERVER_SEEN 8192
struct server {
	char folder[64];
	struct http_target target;
	int listening;
	int over[2]; /* closed: the test is over */
	int gates[2];
	const struct script *script;
	size_t n_script;
	size_t requests;        /* how many were read */
	char seen[SERVER_SEEN]; /* the requests, as they came */
	size_t seen_len;
	pthread_t thread;
};

static inline uint64_t in_ms(uint64_t ms)
{
	return clock_now_ns() + ms * NS_PER_MS;
}

/* false: the test is over. */
static inline bool server_wait(struct server *s, int fd, short events)
{
	struct pollfd p[2] = { { .fd = fd, .events = events }, { .fd = s->over[0] } };

	while (poll(p, 2, -1) < 0)
		;
	return !p[1].revents;
}

static inline bool server_send(struct server *s, int fd, const char *data, size_t len, bool pieces)
{
	while (len > 0) {
		ssize_t n = send(fd, data, pieces ? 1 : len, MSG_NOSIGNAL);

		if (n <= 0 || !server_wait(s, fd, POLLOUT))
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* Reads up to the end of a head, and of a body whose length or chunks say where it ends. */
static inline bool server_read(struct server *s, int fd)
{
	size_t start = s->seen_len;

	for (;;) {
		char *head, *length, *chunked, *end;
		ssize_t n;

		s->seen[s->seen_len] = '\0';
		head = s->seen + start;
		end = strstr(head, "\r\n\r\n");
		length = strcasestr(head, "content-length: ");
		chunked = strcasestr(head, "transfer-encoding: chunked");
		if (end && ((chunked && strstr(end, "\r\n0\r\n\r\n")) ||
			    (!chunked &&
			     (!length || (size_t)(s->seen + s->seen_len - (end + 4)) >= (size_t)atoi(length + 16)))))
			break;
		if (!server_wait(s, fd, POLLIN))
			return false;
		n = recv(fd, s->seen + s->seen_len, SERVER_SEEN - 1 - s->seen_len, 0);
		if (n <= 0)
			return false;
		s->seen_len += (size_t)n;
	}
	s->requests++;
	return true;
}

static inline bool server_gate(struct server *s)
{
	char c;

	return server_wait(s, s->gates[0], POLLIN) && read(s->gates[0], &c, 1) == 1;
}

static inline void server_echo(struct server *s, int fd)
{
	char piece[4096];
	ssize_t n;

	while (server_wait(s, fd, POLLIN) && (n = recv(fd, piece, sizeof(piece), 0)) > 0)
		if (!server_send(s, fd, piece, (size_t)n, false))
			return;
	(void)server_send(s, fd, "bye", 3, false);
}

static inline void server_follow(struct server *s, int fd, const struct script *line)
{
	size_t len = line->len ? line->len : line->answer ? strlen(line->answer) : 0;

	if (line->gate && !server_gate(s))
		return;
	if (!server_send(s, fd, line->answer, len, line->pieces))
		return;
	while (line->again && server_send(s, fd, line->again, strlen(line->again), false))
		;
	if (line->then && server_gate(s))
		(void)server_send(s, fd, line->then, strlen(line->then), false);
	if (line->echo)
		server_echo(s, fd);
	if (line->hang)
		(void)server_wait(s, -1, 0);
}

static inline void *server_main(void *arg)
{
	struct server *s = arg;
	int fd = -1;

	for (size_t i = 0; i < s->n_script; i++) {
		if (fd < 0) {
			if (!server_wait(s, s->listening, POLLIN))
				break;
			fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC);
		}
		if (fd >= 0 && (s->script[i].deaf || server_read(s, fd)))
			server_follow(s, fd, &s->script[i]);
		if (fd >= 0 && !s->script[i].keep) {
			close(fd);
			fd = -1;
		}
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static inline void server_listen(struct server *s, bool tcp)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);

	s->listening = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->listening >= 0);
	if (tcp) {
		assert_int_equal(bind(s->listening, (struct sockaddr *)&in, sizeof(in)), 0);
		assert_int_equal(getsockname(s->listening, (struct sockaddr *)&in, &len), 0);
		strcpy(s->target.host, "127.0.0.1");
		s->target.port = ntohs(in.sin_port);
	} else {
		strcpy(s->folder, "/tmp/unit-net-XXXXXX");
		assert_non_null(mkdtemp(s->folder));
		(void)snprintf(s->target.socket, sizeof(s->target.socket), "%s/sock", s->folder);
		strcpy(un.sun_path, s->target.socket);
		assert_int_equal(bind(s->listening, (struct sockaddr *)&un, sizeof(un)), 0);
	}
	assert_int_equal(listen(s->listening, 16), 0);
}

static inline void server_start(struct server *s, bool tcp, const struct script *script, size_t n)
{
	memset(s, 0, sizeof(*s));
	s->script = script;
	s->n_script = n;
	server_listen(s, tcp);
	assert_int_equal(pipe2(s->over, O_CLOEXEC), 0);
	assert_int_equal(pipe2(s->gates, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static inline void server_open_gate(struct server *s)
{
	assert_int_equal(write(s->gates[1], "g", 1), 1);
}

/* After this the script has been followed, or broken off. */
static inline void server_stop(struct server *s)
{
	close(s->over[1]);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	close(s->over[0]);
	close(s->gates[0]);
	close(s->gates[1]);
	close(s->listening);
	if (s->folder[0]) {
		(void)unlink(s->target.socket);
		(void)rmdir(s->folder);
	}
}

/* ---- what the tests of the client share ---------------------------------------------------------- */

#define LONG_MS  60000 /* for what comes */
#define SHORT_MS 60    /* for what does not */

#define OK_ANSWER                                                                                                     \
	"HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\nServer: test/1\r\nApi-Version: 1.41\r\n" \
	"Content-Length: 2\r\n\r\n{}"

static inline struct http_client *client_of(const struct server *s)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_client *c = NULL;

	if (http_open(&s->target, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static inline struct http_request get(uint64_t ms)
{
	return (struct http_request){ .method = "GET", .path = "/x", .deadline_ns = in_ms(ms), .max_body = 4096 };
}

static inline int step_until(struct http_call *call, struct http_answer *a, enum http_trouble *trouble)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int rc;

	do {
		struct pollfd p = { .fd = http_call_fd(call), .events = POLLIN };

		assert_int_equal(poll(&p, 1, LONG_MS), 1);
		rc = http_call_step(call, a, trouble, &err);
	} while (rc == 0);
	return rc;
}

/* Descriptors of this process. */
static inline size_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
