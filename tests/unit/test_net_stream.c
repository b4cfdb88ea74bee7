/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that stop being HTTP, and TLS: against servers that behave, misbehave and hang. */
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/str.h"
#include "net_server.h"

/* ---- streams -------------------------------------------------------------------------------------- */

/* Reads until the end, or until want bytes are there. */
static void stream_expect(struct http_stream *st, const char *want, bool at_end)
{
	AUTO_BUF got = BUF_INIT(1 * MiB);
	ssize_t n;

	for (;;) {
		char piece[64];
		struct pollfd p = { .fd = http_stream_fd(st), .events = POLLIN };

		n = http_stream_read(st, piece, sizeof(piece));
		if (n > 0)
			(void)buf_add(&got, piece, (size_t)n);
		if (n == 0 || (n < 0 && n != -EAGAIN) || (!at_end && got.len >= strlen(want)))
			break;
		if (n == -EAGAIN && !http_stream_pending(st))
			assert_int_equal(poll(&p, 1, LONG_MS), 1);
	}
	assert_string_equal(buf_str(&got), want);
	if (at_end)
		assert_int_equal(n, 0);
}

static const char *const upgrades[] = {
	"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: "
	"tcp\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n",
	"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nahead of all",
};

static void test_stream(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(upgrades); i++) {
		struct script line = { .answer = upgrades[i / 2], .echo = true, .pieces = i % 2 };
		AUTO_ANSWER a = HTTP_ANSWER_INIT;
		struct brig_error err = BRIG_ERROR_INIT;
		struct http_request req = get(LONG_MS);
		struct http_stream *st = NULL;
		struct http_client *c;
		struct server s;

		server_start(&s, i == 0, &line, 1);
		c = client_of(&s);
		req.method = "POST";
		req.path = "/containers/x/attach?stream=1";
		if (http_stream_open(c, &req, &st, &a, NULL, &err) < 0)
			fail_msg("%s", err.msg);
		http_close(c); /* a stream does not need its client */
		assert_int_equal(fcntl(http_stream_fd(st), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		if (i / 2 == 2)
			stream_expect(st, "ahead of all", false);
		assert_int_equal(http_stream_write(st, "to and fro", 10), 10);
		stream_expect(st, "to and fro", false);
		assert_int_equal(http_stream_end_writing(st), 0);
		stream_expect(st, "bye", true);
		http_stream_close(st);
		server_stop(&s);
		assert_non_null(strstr(s.seen, "POST /containers/x/attach?stream=1 HTTP/1.1\r\n"));
		assert_non_null(strstr(s.seen, "Upgrade: tcp\r\n"));
	}
}

static const struct {
	const char *name;
	struct script line;
	enum http_trouble trouble;
	int status;
	const char *body;
	bool hangs;
} bad_streams[] = {
	{ "not found",
	  { .answer = "HTTP/1.1 404 No\r\nContent-Length: 7\r\n\r\nnothing", .hang = true },
	  HTTP_FINE,
	  404,
	  "nothing" },
	{ "an error in pieces",
	  { .answer = "HTTP/1.1 500 No\r\nContent-Length: 7\r\n\r\nnothing", .pieces = true, .hang = true },
	  HTTP_FINE,
	  500,
	  "nothing" },
	{ "an error cut off",
	  { .answer = "HTTP/1.1 500 No\r\nContent-Length: 7\r\n\r\nnoth" },
	  HTTP_FINE,
	  500,
	  "noth" },
	{ "silence", { .answer = "", .hang = true }, HTTP_LATE, .hangs = true },
	{ "silence in the head", { .answer = "HTTP/1.1 101 UPG", .hang = true }, HTTP_LATE, .hangs = true },
	{ "closed", { .answer = "" }, HTTP_CLOSED },
	{ "closed in the head", { .answer = "HTTP/1.1 101 UPGRADED\r\nConn" }, HTTP_CLOSED },
	{ "garbage", { .answer = "SSH-2.0-x\r\n" }, HTTP_GARBAGE },
	{ "garbage without an end", { .answer = "xxxxxxxxxxx", .hang = true }, HTTP_GARBAGE },
	{ "endless head", { .answer = "HTTP/1.1 200 OK\r\n", .again = "X: y\r\n" }, HTTP_GARBAGE },
	{ "endless line", { .answer = "HTTP/1.1 200 OK", .again = "K" }, HTTP_TOO_BIG },
};

static void test_bad_streams(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_streams); i++) {
		AUTO_ANSWER a = HTTP_ANSWER_INIT;
		enum http_trouble trouble = HTTP_OTHER;
		struct brig_error err = BRIG_ERROR_INIT;
		struct http_request req = get(bad_streams[i].hangs ? SHORT_MS : LONG_MS);
		struct http_stream *st = NULL;
		struct http_client *c;
		struct server s;

		server_start(&s, false, &bad_streams[i].line, 1);
		c = client_of(&s);
		req.method = "POST";
		assert_true(http_stream_open(c, &req, &st, &a, &trouble, &err) < 0);
		assert_null(st);
		if (trouble != bad_streams[i].trouble &&
		    !(trouble == HTTP_GARBAGE && bad_streams[i].trouble == HTTP_TOO_BIG))
			fail_msg("%s: trouble %d instead of %d: %s", bad_streams[i].name, trouble,
				 bad_streams[i].trouble, err.msg);
		if (bad_streams[i].status &&
		    (a.status != bad_streams[i].status || !str_eq(buf_str(&a.body), bad_streams[i].body)))
			fail_msg("%s: status %d, body '%s'", bad_streams[i].name, a.status, buf_str(&a.body));
		http_close(c);
		server_stop(&s);
	}
}

/* The other side is gone: an error, not a signal. */
static void test_writing_to_nobody(void **state)
{
	struct script line = { .answer = "HTTP/1.1 101 UPGRADED\r\n\r\n" };
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_stream *st = NULL;
	struct http_client *c;
	struct server s;
	ssize_t n;

	(void)state;
	server_start(&s, false, &line, 1);
	c = client_of(&s);
	req.method = "POST";
	assert_int_equal(http_stream_open(c, &req, &st, &a, NULL, &err), 0);
	stream_expect(st, "", true);
	do {
		n = http_stream_write(st, "into the void", 13);
	} while (n > 0);
	assert_true(n == -EPIPE || n == -ECONNRESET);
	http_stream_close(st);
	http_close(c);
	server_stop(&s);
}

/* ---- TLS ------------------------------------------------------------------------------------------ */

struct tls_server {
	char folder[64];
	pid_t pid;
	int in, out;
	unsigned port;
};

static bool tls_start(struct tls_server *t)
{
	const char *root = getenv("TEST_SOURCE_ROOT");
	posix_spawn_file_actions_t actions;
	char script[512], line[64] = "";
	char *words[] = { (char *)(uintptr_t) "python3", script, t->folder, NULL };
	int to[2], from[2], rc;
	FILE *f;

	if (!root || access("/usr/bin/python3", X_OK) < 0 || access("/usr/bin/openssl", X_OK) < 0)
		return false;
	strcpy(t->folder, "/tmp/unit-tls-XXXXXX");
	assert_non_null(mkdtemp(t->folder));
	(void)snprintf(script, sizeof(script), "%s/tests/unit/tls_server.py", root);
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	posix_spawn_file_actions_adddup2(&actions, to[0], 0);
	posix_spawn_file_actions_adddup2(&actions, from[1], 1);
	rc = posix_spawn(&t->pid, "/usr/bin/python3", &actions, NULL, words, environ);
	assert_int_equal(rc, 0);
	posix_spawn_file_actions_destroy(&actions);
	close(to[0]);
	close(from[1]);
	t->in = to[1];
	f = fdopen(from[0], "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_int_equal(sscanf(line, "port %u", &t->port), 1);
	fclose(f);
	return true;
}

static void tls_stop(struct tls_server *t)
{
	char command[128];
	int status;

	close(t->in);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", t->folder);
	assert_int_equal(system(command), 0);
}

static struct http_target tls_target(const struct tls_server *t, const char *ca, const char *client)
{
	struct http_target target = { .host = "127.0.0.1", .port = t->port, .tls = true };

	(void)snprintf(target.ca, sizeof(target.ca), "%s/%s/ca.pem", t->folder, ca);
	if (client) {
		(void)snprintf(target.cert, sizeof(target.cert), "%s/%s/cert.pem", t->folder, client);
		(void)snprintf(target.key, sizeof(target.key), "%s/%s/key.pem", t->folder, client);
	}
	return target;
}

/* or_closed: TLS 1.3 lets a client write before the server has judged its certificate, so that which of the two sees the
 * end first is open. */
static void tls_request(const struct http_target *target, enum http_trouble expected, bool or_closed)
{
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_OTHER;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_client *c = NULL;

	assert_int_equal(http_open(target, &c, &err), 0);
	if ((http_send(c, &req, &a, &trouble, &err) == 0) != (expected == HTTP_FINE) ||
	    (trouble != expected && !(or_closed && trouble == HTTP_CLOSED)))
		fail_msg("trouble %d instead of %d: %s", trouble, expected, err.msg);
	if (expected == HTTP_FINE)
		assert_string_equal(buf_str(&a.body), "{\"ok\":true}");
	http_close(c);
}

static void tls_call(const struct http_target *target)
{
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_OTHER;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_call *call = NULL;
	struct http_client *c = NULL;

	assert_int_equal(http_open(target, &c, &err), 0);
	assert_int_equal(http_call_open(c, &req, in_ms(LONG_MS), &call, &trouble, &err), 0);
	assert_int_equal(step_until(call, &a, &trouble), 1);
	assert_string_equal(buf_str(&a.body), "{\"ok\":true}");
	http_call_close(call);
	http_close(c);
}

static void tls_stream(const struct http_target *target)
{
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_stream *st = NULL;
	struct http_client *c = NULL;

	assert_int_equal(http_open(target, &c, &err), 0);
	req.method = "POST";
	req.path = "/echo";
	if (http_stream_open(c, &req, &st, &a, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	http_close(c);
	stream_expect(st, "ready", false);
	assert_int_equal(http_stream_write(st, "over TLS", 8), 8);
	stream_expect(st, "over TLS", false);
	assert_int_equal(http_stream_end_writing(st), 0);
	stream_expect(st, "bye", true);
	http_stream_close(st);
}

static void test_tls(void **state)
{
	static const struct script plain = { .answer = OK_ANSWER, .deaf = true };
	struct tls_server t;
	struct http_target target;
	struct server s;

	(void)state;
	if (!tls_start(&t))
		skip();
	target = tls_target(&t, "good", "good");
	tls_request(&target, HTTP_FINE, false);
	tls_call(&target);
	tls_stream(&target);
	strcpy(target.host, "localhost"); /* the certificate is for 127.0.0.1 */
	tls_request(&target, HTTP_TLS, false);
	target = tls_target(&t, "other", "good");
	tls_request(&target, HTTP_TLS, false);
	target = tls_target(&t, "good", "other");
	tls_request(&target, HTTP_TLS, true);
	target = tls_target(&t, "good", NULL);
	tls_request(&target, HTTP_TLS, true);
	strcpy(target.ca, "/nonexistent/ca.pem");
	tls_request(&target, HTTP_TLS, false);
	server_start(&s, true, &plain, 1); /* no TLS there */
	target = tls_target(&t, "good", "good");
	target.port = s.target.port;
	tls_request(&target, HTTP_TLS, false);
	server_stop(&s);
	tls_stop(&t);
}

/* ---- the head of an answer ----------------------------------------------------------------------- */

static const struct {
	const char *text;
	ssize_t len; /* -2: all of it */
	int status;
	int64_t length;
} heads[] = {
	{ "HTTP/1.1 200 OK\r\n\r\n", -2, 200, -1 },
	{ "HTTP/1.0 404\r\nContent-Length: 12\r\n\r\n", -2, 404, 12 },
	{ "HTTP/1.1 101 UPGRADED\r\ncontent-length:\t0 \r\nA: b: c\r\n\r\n", -2, 101, 0 },
	{ "HTTP/1.1 200 OK\r\n\r\nbody", 19, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", -2, 200, 1 },
	{ "", 0, 0, -1 },
	{ "HTTP", 0, 0, -1 },
	{ "HTTP/1.1 200 OK\r\n", 0, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nA: b\r\n", 0, 200, -1 },
	{ "HTTP/2.0 200 OK\r\n\r\n", -1, 0, -1 },
	{ "HTTP/1.1 20 OK\r\n\r\n", -1, 0, -1 },
	{ "HTTP/1.1 2000 OK\r\n\r\n", -1, 0, -1 },
	{ "HTTP/1.1 999 OK\r\n\r\n", -1, 999, -1 },
	{ "HTTP/1.1  200 OK\r\n\r\n", -1, 0, -1 },
	{ "GET / HTTP/1.1\r\n\r\n", -1, 0, -1 },
	{ "xxxxx", -1, 0, -1 },
	{ "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\n: no name\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nA: x\ny\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", -1, 200, -1 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", -1, 200, 1 },
};

static void test_parse_head(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		struct http_answer a = HTTP_ANSWER_INIT;
		int64_t length;
		size_t len = strlen(heads[i].text);
		ssize_t n = http_parse_head(heads[i].text, len, &a, &length);

		if (n != (heads[i].len == -2 ? (ssize_t)len : heads[i].len) || a.status != heads[i].status ||
		    length != heads[i].length)
			fail_msg("'%s': %zd, status %d, length %lld", heads[i].text, n, a.status, (long long)length);
		/* Every shorter piece is unfinished, unless it is wrong already. */
		for (size_t k = 0; heads[i].len == -2 && k < len; k++)
			assert_int_equal(http_parse_head(heads[i].text, k, &a, &length), 0);
	}
}

static void test_no_descriptor_stays(void **state)
{
	size_t before = count_fds();

	test_stream(state);
	test_bad_streams(state);
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_bad_streams),
		cmocka_unit_test(test_writing_to_nobody),
		cmocka_unit_test(test_tls),
		cmocka_unit_test(test_parse_head),
		cmocka_unit_test(test_no_descriptor_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
