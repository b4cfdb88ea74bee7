/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client against servers that behave, misbehave and hang.  Deadlines decide verdicts, never how fast. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/str.h"
#include "net_server.h"

/* ---- one request, one answer --------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct script line;
	enum http_trouble trouble;
	int status;
	const char *body;
	bool hangs;
} answers[] = {
	{ "a length", { .answer = OK_ANSWER }, HTTP_FINE, 200, "{}" },
	{ "bytes one by one", { .answer = OK_ANSWER, .pieces = true }, HTTP_FINE, 200, "{}" },
	{ "chunks",
	  { .answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n" },
	  HTTP_FINE,
	  200,
	  "abc" },
	{ "chunks, byte by byte",
	  { .answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
	    .pieces = true },
	  HTTP_FINE,
	  200,
	  "abc" },
	{ "up to the end", { .answer = "HTTP/1.0 200 OK\r\n\r\nall of it" }, HTTP_FINE, 200, "all of it" },
	{ "no body", { .answer = "HTTP/1.1 204 No Content\r\n\r\n" }, HTTP_FINE, 204, "" },
	{ "an error", { .answer = "HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nbad" }, HTTP_FINE, 500, "bad" },
	{ "a redirection is not followed",
	  { .answer = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n" },
	  HTTP_FINE,
	  302,
	  "" },
	{ "a hint before the answer",
	  { .answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx" },
	  HTTP_FINE,
	  200,
	  "x" },
	{ "a body cut off", { .answer = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nshort" }, HTTP_GARBAGE },
	{ "a chunk cut off",
	  { .answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab" },
	  HTTP_GARBAGE },
	{ "a bad chunk",
	  { .answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n" },
	  HTTP_GARBAGE },
	{ "not HTTP", { .answer = "SSH-2.0-OpenSSH_9.2\r\n" }, HTTP_GARBAGE },
	{ "binary nonsense", { .answer = "\x15\x03\x01\x00\x02\x02\x46", .len = 7 }, HTTP_GARBAGE },
	{ "closed at once", { .answer = "" }, HTTP_CLOSED },
	{ "a body beyond the ceiling",
	  { .answer = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", .hang = true },
	  HTTP_LATE,
	  .hangs = true },
	{ "an endless body", { .answer = "HTTP/1.1 200 OK\r\n\r\n", .again = "xxxxxxxx" }, HTTP_TOO_BIG },
	{ "an endless head",
	  { .answer = "HTTP/1.1 200 OK\r\n", .again = "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" },
	  HTTP_TOO_BIG },
	{ "silence", { .answer = "", .hang = true }, HTTP_LATE, .hangs = true },
	{ "silence in the head", { .answer = "HTTP/1.1 200 OK\r\nConte", .hang = true }, HTTP_LATE, .hangs = true },
	{ "silence in the body",
	  { .answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", .hang = true },
	  HTTP_LATE,
	  .hangs = true },
};

static void test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		AUTO_ANSWER a = HTTP_ANSWER_INIT;
		struct brig_error err = BRIG_ERROR_INIT;
		enum http_trouble trouble = HTTP_OTHER;
		struct http_client *c;
		struct http_request req;
		struct server s;
		int rc;

		server_start(&s, i % 2, &answers[i].line, 1);
		c = client_of(&s);
		req = get(answers[i].hangs ? SHORT_MS : LONG_MS);
		rc = http_send(c, &req, &a, &trouble, &err);
		if (trouble != answers[i].trouble || (rc == 0) != (trouble == HTTP_FINE))
			fail_msg("%s: trouble %d instead of %d: %s", answers[i].name, trouble, answers[i].trouble,
				 err.msg);
		if (rc == 0) {
			if (a.status != answers[i].status || !str_eq(buf_str(&a.body), answers[i].body))
				fail_msg("%s: status %d, body '%s'", answers[i].name, a.status, buf_str(&a.body));
		} else if (!strstr(err.msg, "GET /x at ")) {
			fail_msg("%s: the message does not say where: %s", answers[i].name, err.msg);
		}
		http_close(c);
		server_stop(&s);
	}
}

static void test_headers_of_answer(void **state)
{
	static const struct script script = { .answer = OK_ANSWER };
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_client *c;
	struct server s;

	(void)state;
	server_start(&s, false, &script, 1);
	c = client_of(&s);
	assert_int_equal(http_send(c, &req, &a, NULL, &err), 0);
	assert_string_equal(a.content_type, "application/json");
	assert_string_equal(a.server, "test/1");
	assert_string_equal(a.api_version, "1.41");
	http_close(c);
	server_stop(&s);
}

static void test_a_ceiling_of_zero(void **state)
{
	static const struct script script = { .answer = OK_ANSWER };
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_client *c;
	struct server s;

	(void)state;
	server_start(&s, false, &script, 1);
	c = client_of(&s);
	req.max_body = 1;
	assert_true(http_send(c, &req, &a, &trouble, &err) < 0);
	assert_int_equal(trouble, HTTP_TOO_BIG);
	http_close(c);
	server_stop(&s);
}

/* ---- what is sent --------------------------------------------------------------------------------- */

static void send_one(struct server *s, struct http_request *req, int expected_status)
{
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_client *c = client_of(s);

	if (http_send(c, req, &a, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(a.status, expected_status);
	http_close(c);
}

static void test_requests(void **state)
{
	static const struct script script[] = { { .answer = OK_ANSWER },
						{ .answer = OK_ANSWER },
						{ .answer = OK_ANSWER } };
	struct http_request req = get(LONG_MS);
	struct server s;

	(void)state;
	server_start(&s, false, script, ARRAY_LEN(script));
	req.method = "POST";
	req.path = "/v1.41/containers/create?name=a%20b";
	req.body = "{\"a\":1}";
	req.body_len = 7;
	req.content_type = "application/json";
	req.headers[0] = "X-More: yes";
	send_one(&s, &req, 200);
	assert_non_null(strstr(s.seen, "POST /v1.41/containers/create?name=a%20b HTTP/1.1\r\nHost: localhost\r\n"));
	assert_non_null(strstr(s.seen, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(s.seen, "X-More: yes\r\n"));
	assert_non_null(strstr(s.seen, "\r\n\r\n{\"a\":1}"));
	assert_null(strstr(s.seen, "Expect:"));
	req = get(LONG_MS);
	req.method = "DELETE";
	req.path = "/containers/x?force=1";
	send_one(&s, &req, 200);
	assert_non_null(strstr(s.seen, "DELETE /containers/x?force=1 HTTP/1.1\r\n"));
	req = get(LONG_MS);
	send_one(&s, &req, 200);
	assert_non_null(strstr(s.seen, "GET /x HTTP/1.1\r\n"));
	assert_int_equal(s.requests, 3);
	server_stop(&s);
}

static void test_body_from_descriptor(void **state)
{
	static const struct script script = { .answer = OK_ANSWER };
	struct http_request req = get(LONG_MS);
	struct server s;
	int ends[2];

	(void)state;
	server_start(&s, false, &script, 1);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "tar tar", 7), 7);
	close(ends[1]);
	req.method = "PUT";
	req.has_body_fd = true;
	req.body_fd = ends[0];
	req.content_type = "application/x-tar";
	send_one(&s, &req, 200);
	assert_non_null(strstr(s.seen, "PUT /x HTTP/1.1\r\n"));
	assert_non_null(strstr(s.seen, "\r\n7\r\ntar tar\r\n0\r\n"));
	close(ends[0]);
	server_stop(&s);
}

static void test_body_that_does_not_come(void **state)
{
	static const struct script script = { .answer = OK_ANSWER };
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(SHORT_MS);
	struct http_client *c;
	struct server s;
	int ends[2];

	(void)state;
	server_start(&s, false, &script, 1);
	c = client_of(&s);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	req.method = "POST";
	req.has_body_fd = true;
	req.body_fd = ends[0];
	assert_true(http_send(c, &req, &a, &trouble, &err) < 0);
	assert_int_equal(trouble, HTTP_LATE);
	http_close(c);
	close(ends[0]);
	close(ends[1]);
	server_stop(&s);
}

/* A kept connection that the server closes: what reads is sent again, what changes something is not. */
static void test_nothing_is_sent_twice(void **state)
{
	static const struct script script[] = {
		{ .answer = OK_ANSWER, .keep = true }, /* GET */
		{ .answer = "" },                      /* GET on the kept connection: closed */
		{ .answer = OK_ANSWER },               /* ... and sent again */
		{ .answer = "" },                      /* POST: closed */
		{ .answer = OK_ANSWER },               /* must not happen */
	};
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_client *c;
	struct server s;

	(void)state;
	server_start(&s, false, script, ARRAY_LEN(script));
	c = client_of(&s);
	assert_int_equal(http_send(c, &req, &a, NULL, &err), 0);
	http_answer_release(&a);
	assert_int_equal(http_send(c, &req, &a, NULL, &err), 0);
	assert_int_equal(s.requests, 3);
	req.method = "POST";
	assert_true(http_send(c, &req, &a, &trouble, &err) < 0);
	assert_int_equal(trouble, HTTP_CLOSED);
	http_close(c);
	server_stop(&s);
	assert_int_equal(s.requests, 4);
}

static int stop_at_once(void *arg, const char *data, size_t len)
{
	(void)data;
	*(size_t *)arg += len;
	return -1;
}

static int count_bytes(void *arg, const char *data, size_t len)
{
	(void)data;
	*(size_t *)arg += len;
	return 0;
}

static void test_data_as_it_comes(void **state)
{
	static const struct script script[] = { { .answer = OK_ANSWER },
						{ .answer = "HTTP/1.1 200 OK\r\n\r\n", .again = "xx" },
						{ .answer = "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone" } };
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_client *c;
	struct server s;
	size_t n = 0;

	(void)state;
	server_start(&s, false, script, ARRAY_LEN(script));
	c = client_of(&s);
	req.on_data = count_bytes;
	req.arg = &n;
	assert_int_equal(http_send(c, &req, &a, NULL, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(a.body.len, 0);
	req.on_data = stop_at_once;
	assert_true(http_send(c, &req, &a, &trouble, &err) < 0);
	assert_int_equal(trouble, HTTP_STOPPED);
	n = 0;
	req.on_data = count_bytes; /* the body of an error is not data */
	assert_int_equal(http_send(c, &req, &a, NULL, &err), 0);
	assert_int_equal(n, 0);
	assert_string_equal(buf_str(&a.body), "none");
	http_close(c);
	server_stop(&s);
}

static const struct {
	const char *method, *path, *header;
	bool deadline;
} bad_requests[] = {
	{ "GET", "/x HTTP/1.1\r\nX: y", NULL, true },
	{ "GET", "/a b", NULL, true },
	{ "GET", "/a\r", NULL, true },
	{ "GET", "/\xc3\xa4", NULL, true },
	{ "GET", "x", NULL, true },
	{ "GET", "", NULL, true },
	{ "GET", NULL, NULL, true },
	{ "get", "/x", NULL, true },
	{ "GET /", "/x", NULL, true },
	{ NULL, "/x", NULL, true },
	{ "GET", "/x", "A: b\r\nC: d", true },
	{ "GET", "/x", NULL, false },
};

static void test_bad_requests(void **state)
{
	static const struct script script = { .answer = OK_ANSWER };
	struct http_client *c;
	struct server s;

	(void)state;
	server_start(&s, false, &script, 1);
	c = client_of(&s);
	for (size_t i = 0; i < ARRAY_LEN(bad_requests); i++) {
		AUTO_ANSWER a = HTTP_ANSWER_INIT;
		struct brig_error err = BRIG_ERROR_INIT;
		struct http_request req = { .method = bad_requests[i].method,
					    .path = bad_requests[i].path,
					    .headers = { bad_requests[i].header },
					    .deadline_ns = bad_requests[i].deadline ? in_ms(LONG_MS) : 0 };
		struct http_call *call = NULL;
		struct http_stream *stream = NULL;

		assert_int_equal(http_send(c, &req, &a, NULL, &err), -BRIG_E_INTERNAL);
		assert_int_equal(http_call_begin(c, &req, in_ms(LONG_MS), &call, NULL, &err), -BRIG_E_INTERNAL);
		assert_int_equal(http_stream_open(c, &req, &stream, &a, NULL, &err), -BRIG_E_INTERNAL);
	}
	http_close(c);
	server_stop(&s);
	assert_int_equal(s.requests, 0);
}

/* ---- no server ------------------------------------------------------------------------------------ */

static enum http_trouble trouble_at(const struct http_target *target, int *ret_sys)
{
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_client *c = NULL;

	assert_int_equal(http_open(target, &c, &err), 0);
	assert_true(http_send(c, &req, &a, &trouble, &err) < 0);
	*ret_sys = err.sys;
	http_close(c);
	return trouble;
}

static void test_no_server(void **state)
{
	struct http_target target = { .socket = "/nonexistent/engine.sock" };
	struct server s;
	int sys;

	(void)state;
	assert_int_equal(trouble_at(&target, &sys), HTTP_NO_SERVER);
	assert_int_equal(sys, ENOENT);
	memset(&s, 0, sizeof(s));
	server_listen(&s, false); /* a socket that nobody listens on any more */
	close(s.listening);
	assert_int_equal(trouble_at(&s.target, &sys), HTTP_NO_SERVER);
	assert_int_equal(sys, ECONNREFUSED);
	(void)unlink(s.target.socket);
	(void)rmdir(s.folder);
	memset(&s, 0, sizeof(s));
	server_listen(&s, true);
	close(s.listening);
	assert_int_equal(trouble_at(&s.target, &sys), HTTP_NO_SERVER);
	assert_int_equal(sys, ECONNREFUSED);
}

/* As an ordinary user, on a socket of mode 0600 of somebody else: in a child, which gives up its identity. */
static void test_no_permission(void **state)
{
	struct server s = { 0 };
	int status, sys = 0;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	server_listen(&s, false);
	assert_int_equal(chmod(s.folder, 0755), 0);
	assert_int_equal(chmod(s.target.socket, 0600), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(3);
		_exit(trouble_at(&s.target, &sys) == HTTP_DENIED && sys == EACCES ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(s.listening);
	(void)unlink(s.target.socket);
	(void)rmdir(s.folder);
}

static void test_environment_takes_no_part(void **state)
{
	static const struct script script = { .answer = OK_ANSWER };
	struct http_request req = get(LONG_MS);
	struct server s;

	(void)state;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("all_proxy", "http://127.0.0.1:1", 1);
	server_start(&s, true, &script, 1);
	send_one(&s, &req, 200);
	server_stop(&s);
	unsetenv("http_proxy");
	unsetenv("all_proxy");
}

static void test_bad_target(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_client *c = NULL;
	struct http_target none = { 0 }, portless = { .host = "localhost" },
			   beyond = { .host = "localhost", .port = 65536 };

	(void)state;
	assert_int_equal(http_open(&none, &c, &err), -BRIG_E_USAGE);
	assert_int_equal(http_open(&portless, &c, &err), -BRIG_E_USAGE);
	assert_int_equal(http_open(&beyond, &c, &err), -BRIG_E_USAGE);
	http_close(NULL);
	http_call_close(NULL);
	http_stream_close(NULL);
}

/* ---- calls that take their time ------------------------------------------------------------------- */

static const char wait_head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char wait_rest[] = "10\r\n{\"StatusCode\":3}\r\n0\r\n\r\n";

static void test_call(void **state)
{
	static const struct script script = { .answer = wait_head, .then = wait_rest };
	AUTO_ANSWER a = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_OTHER;
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_call *call = NULL;
	struct http_client *c;
	struct server s;

	(void)state;
	server_start(&s, false, &script, 1);
	c = client_of(&s);
	req.method = "POST";
	if (http_call_open(c, &req, in_ms(LONG_MS), &call, &trouble, &err) < 0)
		fail_msg("%s", err.msg);
	http_close(c); /* a call does not need its client */
	assert_int_equal(http_call_status(call), 200);
	assert_int_equal(http_call_step(call, &a, &trouble, &err), 0);
	server_open_gate(&s);
	assert_int_equal(step_until(call, &a, &trouble), 1);
	assert_int_equal(a.status, 200);
	assert_string_equal(buf_str(&a.body), "{\"StatusCode\":3}");
	assert_true(http_call_step(call, &a, &trouble, &err) < 0); /* once */
	http_call_close(call);
	server_stop(&s);
}

/* The whole answer is there before anybody polls: the descriptor must say so. */
static void test_call_that_is_over_already(void **state)
{
	static const struct script script[] = { { .answer = OK_ANSWER },
						{ .answer = OK_ANSWER, .pieces = true },
						{ .answer = "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno" } };
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_request req = get(LONG_MS);
	struct http_client *c;
	struct server s;

	(void)state;
	server_start(&s, false, script, ARRAY_LEN(script));
	c = client_of(&s);
	for (size_t i = 0; i < ARRAY_LEN(script); i++) {
		AUTO_ANSWER a = HTTP_ANSWER_INIT;
		enum http_trouble trouble;
		struct http_call *call = NULL;

		assert_int_equal(http_call_open(c, &req, in_ms(LONG_MS), &call, &trouble, &err), 0);
		assert_int_equal(http_call_status(call), i == 2 ? 404 : 200);
		assert_int_equal(step_until(call, &a, &trouble), 1);
		assert_string_equal(buf_str(&a.body), i == 2 ? "no" : "{}");
		http_call_close(call);
	}
	http_close(c);
	server_stop(&s);
}

static const struct {
	const char *name;
	struct script line;
	enum http_trouble trouble;
	bool opens; /* the headers come; what is wrong comes later */
	bool hangs;
} bad_calls[] = {
	{ "silence", { .answer = "", .hang = true }, HTTP_LATE, .hangs = true },
	{ "closed", { .answer = "" }, HTTP_CLOSED },
	{ "garbage", { .answer = "hello\r\n\r\n" }, HTTP_GARBAGE },
	{ "half a head", { .answer = "HTTP/1.1 200 OK\r\nConten" }, HTTP_CLOSED },
	{ "endless head",
	  { .answer = "HTTP/1.1 200 OK\r\n", .again = "X: yyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" },
	  HTTP_TOO_BIG },
	{ "silence later", { .answer = wait_head, .hang = true }, HTTP_LATE, .opens = true, .hangs = true },
	{ "cut later", { .answer = wait_head, .then = "10\r\n{\"St" }, HTTP_GARBAGE, .opens = true },
	{ "bad chunk later", { .answer = wait_head, .then = "-1\r\n" }, HTTP_GARBAGE, .opens = true },
	{ "endless body", { .answer = "HTTP/1.1 200 OK\r\n\r\n", .again = "xx" }, HTTP_TOO_BIG, .opens = true },
};

static void test_bad_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_calls); i++) {
		AUTO_ANSWER a = HTTP_ANSWER_INIT;
		enum http_trouble trouble = HTTP_FINE;
		struct brig_error err = BRIG_ERROR_INIT;
		uint64_t ms = bad_calls[i].hangs ? SHORT_MS : LONG_MS;
		struct http_request req;
		struct http_call *call = NULL;
		struct http_client *c;
		struct server s;
		int rc;

		server_start(&s, false, &bad_calls[i].line, 1);
		c = client_of(&s);
		/* What is to come comes in time, however slow the machine; only the whole may be short. */
		req = get(bad_calls[i].opens ? LONG_MS : ms);
		rc = http_call_open(c, &req, in_ms(bad_calls[i].opens && bad_calls[i].hangs ? 1000 : ms), &call,
				    &trouble, &err);
		if ((rc == 0) != bad_calls[i].opens && trouble != HTTP_TOO_BIG)
			fail_msg("%s: %d %s", bad_calls[i].name, rc, err.msg);
		if (rc == 0 && bad_calls[i].line.then)
			server_open_gate(&s);
		if (rc == 0)
			assert_true(step_until(call, &a, &trouble) < 0);
		if (trouble != bad_calls[i].trouble &&
		    !(bad_calls[i].trouble == HTTP_CLOSED && trouble == HTTP_GARBAGE))
			fail_msg("%s: trouble %d instead of %d: %s", bad_calls[i].name, trouble, bad_calls[i].trouble,
				 err.msg);
		http_call_close(call);
		http_close(c);
		server_stop(&s);
	}
}

/* ---- text ----------------------------------------------------------------------------------------- */

static void test_escape(void **state)
{
	AUTO_BUF b = BUF_INIT(1024);

	(void)state;
	http_escape(&b, "aZ0-._~/?#&=%+ \r\n\"\xc3\xa4");
	assert_string_equal(buf_str(&b), "aZ0-._~%2F%3F%23%26%3D%25%2B%20%0D%0A%22%C3%A4");
}

static void test_no_descriptor_stays(void **state)
{
	static const struct script script = { .answer = OK_ANSWER };
	struct http_request req = get(LONG_MS);
	size_t before;
	struct server s;

	(void)state;
	before = count_fds();
	for (size_t i = 0; i < 20; i++) {
		server_start(&s, i % 2, &script, 1);
		send_one(&s, &req, 200);
		server_stop(&s);
	}
	test_call(state);
	test_bad_calls(state);
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_headers_of_answer),
		cmocka_unit_test(test_a_ceiling_of_zero),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_body_from_descriptor),
		cmocka_unit_test(test_body_that_does_not_come),
		cmocka_unit_test(test_nothing_is_sent_twice),
		cmocka_unit_test(test_data_as_it_comes),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_no_server),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_environment_takes_no_part),
		cmocka_unit_test(test_bad_target),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_call_that_is_over_already),
		cmocka_unit_test(test_bad_calls),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_no_descriptor_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
