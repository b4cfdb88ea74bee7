/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client against servers that behave, misbehave and hang.  Deadlines decide verdicts, never how fast. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/str.h"
#include "net_server.h"

#define LONG_MS  60000 /* for what comes */
#define SHORT_MS 60    /* for what does not */

#define OK_ANSWER                                                                                                     \
	"HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\nServer: test/1\r\nApi-Version: 1.41\r\n" \
	"Content-Length: 2\r\n\r\n{}"

static size_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct http_client *client_of(const struct server *s)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_client *c = NULL;

	if (http_open(&s->target, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static struct http_request get(uint64_t ms)
{
	return (struct http_request){ .method = "GET", .path = "/x", .deadline_ns = in_ms(ms), .max_body = 4096 };
}

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

static int step_until(struct http_call *call, struct http_answer *a, enum http_trouble *trouble)
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
	strcpy(t->folder, "/tmp/brig-tls-XXXXXX");
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

/* ---- text ----------------------------------------------------------------------------------------- */

static void test_escape(void **state)
{
	AUTO_BUF b = BUF_INIT(1024);

	(void)state;
	http_escape(&b, "aZ0-._~/?#&=%+ \r\n\"\xc3\xa4");
	assert_string_equal(buf_str(&b), "aZ0-._~%2F%3F%23%26%3D%25%2B%20%0D%0A%22%C3%A4");
}

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
	test_stream(state);
	test_bad_streams(state);
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
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_bad_streams),
		cmocka_unit_test(test_writing_to_nobody),
		cmocka_unit_test(test_tls),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_parse_head),
		cmocka_unit_test(test_no_descriptor_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
