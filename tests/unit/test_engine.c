/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a container engine: where it is looked for, what it says when something is wrong, what it lets through. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "backend/docker/engine_internal.h"
#include "backend/docker/frames.h"
#include "base/str.h"
#include "net_server.h"

#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define PING                                                                                    \
	{                                                                                       \
		.answer = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nConnection: close\r\n\r\nOK" \
	}
#define INTRODUCTION(server, api) \
	"HTTP/1.1 200 OK\r\nApi-Version: " api "\r\nServer: " server "\r\nConnection: close\r\n\r\nOK"
#define VERSION_OLD                                                             \
	{                                                                       \
		.answer = HEAD "{\"Version\":\"1.13\",\"ApiVersion\":\"1.25\"}" \
	}
#define VERSION_NEW                                                                                      \
	{                                                                                                \
		.answer = HEAD "{\"Version\":\"99\",\"ApiVersion\":\"1.99\",\"MinAPIVersion\":\"1.60\"}" \
	}
#define VERSION                                                                                                \
	{                                                                                                      \
		.answer = HEAD "{\"Version\":\"20.10.24\",\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\"," \
			       "\"Components\":[{\"Name\":\"runc\",\"Version\":\"1.1.5\"}]}"                   \
	}

/* ---- frames --------------------------------------------------------------------------------------- */

static const struct {
	const char *name, *bytes;
	size_t len;
	const char *out, *err;
	enum frame_error error;
} streams[] = {
	{ "nothing", "", 0, "", "", FRAME_OK },
	{ "one", "\1\0\0\0\0\0\0\2hi", 10, "hi", "", FRAME_OK },
	{ "both", "\1\0\0\0\0\0\0\1a\2\0\0\0\0\0\0\1b\1\0\0\0\0\0\0\1c", 27, "ac", "b", FRAME_OK },
	{ "an empty one", "\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1x", 17, "x", "", FRAME_OK },
	{ "at the ceiling", "\1\0\0\0\0\0\0\4abcd", 12, "abcd", "", FRAME_OK },
	{ "above it", "\1\0\0\0\0\0\0\5abcde", 13, "", "", FRAME_TOO_BIG },
	{ "far above it", "\1\0\0\0\xff\xff\xff\xff", 8, "", "", FRAME_TOO_BIG },
	{ "stdin", "\0\0\0\0\0\0\0\1x", 9, "", "", FRAME_BAD_STREAM },
	{ "system error", "\3\0\0\0\0\0\0\1x", 9, "", "", FRAME_BAD_STREAM },
	{ "text", "hello, world", 12, "", "", FRAME_BAD_STREAM },
	{ "padding", "\1\0\1\0\0\0\0\1x", 9, "", "", FRAME_BAD_PADDING },
	{ "after a good one", "\1\0\0\0\0\0\0\1x\7\0\0\0\0\0\0\1y", 18, "x", "", FRAME_BAD_STREAM },
	{ "cut in the header", "\1\0\0\0\0", 5, "", "", FRAME_CUT },
	{ "cut in the middle", "\1\0\0\0\0\0\0\3ab", 10, "ab", "", FRAME_CUT },
};

static void decode(const char *bytes, size_t size, size_t piece, struct frames *f, struct buf *out, struct buf *err)
{
	for (size_t at = 0; at < size; at += piece) {
		const char *p = bytes + at, *part;
		size_t len = piece < size - at ? piece : size - at, n;
		enum frame_stream stream;

		while (frames_next(f, &p, &len, &stream, &part, &n) == 1)
			(void)buf_add(stream == FRAME_STDOUT ? out : err, part, n);
	}
}

static void test_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(streams); i++)
		for (size_t piece = 1; piece <= 28; piece++) {
			AUTO_BUF out = BUF_INIT(64), err = BUF_INIT(64);
			struct frames f = FRAMES_INIT(4);

			decode(streams[i].bytes, streams[i].len, piece, &f, &out, &err);
			if (frames_end(&f) != (streams[i].error == FRAME_OK) || f.error != streams[i].error ||
			    !str_eq(buf_str(&out), streams[i].out) || !str_eq(buf_str(&err), streams[i].err))
				fail_msg("%s in pieces of %zu: error %d, out '%s', err '%s'", streams[i].name, piece,
					 f.error, buf_str(&out), buf_str(&err));
			assert_true(frames_error_text(f.error)[0] != '\0');
		}
}

/* ---- where it is ---------------------------------------------------------------------------------- */

static const struct {
	const char *setting, *variable;
	const char *address; /* NULL: refused */
	const char *says;
} places[] = {
	{ "unix:///a/b.sock", "unix:///c", "unix:///a/b.sock", NULL },
	{ "", "unix:///c", "unix:///c", NULL },
	{ "tcp://127.0.0.1:2375", "", "tcp://127.0.0.1:2375", NULL },
	{ "tcp://localhost", "", "tcp://localhost:2375", NULL },
	{ "tcp://[::1]:99", "", "tcp://::1:99", NULL },
	{ "tcp://[::1]", "", "tcp://::1:2375", NULL },
	{ "tcp://203.0.113.5:2375", "", NULL, "TLS is not set up" },
	{ "tcp://localhost.example:2375", "", NULL, "TLS is not set up" },
	{ "unix://relative", "", NULL, "absolute" },
	{ "unix://", "", NULL, "absolute" },
	{ "ssh://host", "", NULL, "not understood" },
	{ "npipe:////./pipe/docker_engine", "", NULL, "not understood" },
	{ "/run/docker.sock", "", NULL, "not understood" },
	{ "", "http://127.0.0.1", NULL, "not understood" },
	{ "tcp://127.0.0.1:0", "", NULL, "not a port" },
	{ "tcp://127.0.0.1:65536", "", NULL, "not a port" },
	{ "tcp://127.0.0.1:12x", "", NULL, "not a port" },
	{ "tcp://127.0.0.1:1/x", "", NULL, "not a port" },
	{ "tcp://", "", NULL, "not tcp://host:port" },
	{ "tcp://:1", "", NULL, "not tcp://host:port" },
	{ "tcp://127.0.0.1\r\nX: y", "", NULL, "not" },
	{ "tcp://127.0.0.1@evil", "", NULL, "not tcp://host:port" },
};

static void test_places(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct settings set = { 0 };
		struct brig_error err = BRIG_ERROR_INIT;
		struct http_target target;
		char address[300] = "";
		int rc;

		(void)str_copy(set.docker_host, sizeof(set.docker_host), places[i].setting);
		setenv("DOCKER_HOST", places[i].variable, 1);
		rc = engine_locate(&set, &target, address, sizeof(address), &err);
		if (places[i].address ? rc != 0 || !str_eq(address, places[i].address)
				      : rc != -BRIG_E_REFUSED || !strstr(err.msg, places[i].says))
			fail_msg("'%s' '%s': %d, %s, %s", places[i].setting, places[i].variable, rc, address, err.msg);
	}
	unsetenv("DOCKER_HOST");
}

static void test_long_socket(void **state)
{
	struct settings set = { 0 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_target target;
	char address[300];

	(void)state;
	memset(set.docker_host, 'x', 200);
	memcpy(set.docker_host, "unix:///", 8);
	assert_int_equal(engine_locate(&set, &target, address, sizeof(address), &err), -BRIG_E_REFUSED);
}

static void test_tls_files(void **state)
{
	struct settings set = { .docker_host = "tcp://203.0.113.5", .docker_cert_path = "/nonexistent" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_target target;
	char address[300], folder[] = "/tmp/unit-certs-XXXXXX", path[64];
	static const char *const files[] = { "ca.pem", "cert.pem", "key.pem" };

	(void)state;
	assert_int_equal(engine_locate(&set, &target, address, sizeof(address), &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "/nonexistent/ca.pem"));
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	(void)str_copy(set.docker_cert_path, sizeof(set.docker_cert_path), folder);
	assert_int_equal(engine_locate(&set, &target, address, sizeof(address), &err), 0);
	assert_true(target.tls);
	assert_string_equal(address, "tcp://203.0.113.5:2376");
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		(void)unlink(path);
	}
	(void)rmdir(folder);
}

/* ---- opening --------------------------------------------------------------------------------------- */

static int open_at(const struct server *s, uint64_t ms, struct engine **ret, struct brig_error *err)
{
	struct settings set = { 0 };

	(void)snprintf(set.docker_host, sizeof(set.docker_host), "unix://%s", s->target.socket);
	return engine_open(&set, in_ms(ms), ret, err);
}

static const struct {
	const char *name;
	struct script lines[2];
	int code; /* 0: it opens */
	const char *says;
	bool hangs;
} openings[] = {
	{ "docker", { PING, VERSION }, 0, NULL },
	{ "an old docker that introduces itself",
	  { { .answer = INTRODUCTION("Docker/1.13 (linux)", "1.25") }, VERSION_OLD },
	  BRIG_E_REFUSED,
	  "too old: it speaks API 1.25, and brig needs 1.40" },
	{ "a new docker that introduces itself",
	  { { .answer = INTRODUCTION("Docker/99 (linux)", "1.99") }, VERSION_NEW },
	  BRIG_E_REFUSED,
	  "Update brig" },
	{ "docker without a version of its interface",
	  { { .answer = INTRODUCTION("Docker/20 (linux)", "1.x") }, VERSION },
	  0,
	  NULL },
	{ "no engine", { { .answer = HEAD "<html>" } }, BRIG_E_SYSTEM, "not a container engine" },
	{ "nothing there",
	  { { .answer = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n" } },
	  BRIG_E_SYSTEM,
	  "not a container engine" },
	{ "an engine in trouble",
	  { { .answer = "HTTP/1.1 500 No\r\nContent-Length: 19\r\n\r\n{\"message\":\"oh\\n!\"}" } },
	  BRIG_E_SYSTEM,
	  "answered 500: oh !" },
	{ "too old", { PING, VERSION_OLD }, BRIG_E_REFUSED, "too old: it speaks API 1.25, and brig needs 1.40" },
	{ "too new", { PING, VERSION_NEW }, BRIG_E_REFUSED, "Update brig" },
	{ "no version", { PING, { .answer = HEAD "{}" } }, BRIG_E_SYSTEM, "does not say which version" },
	{ "a silly version",
	  { PING, { .answer = HEAD "{\"ApiVersion\":\"2.x\"}" } },
	  BRIG_E_SYSTEM,
	  "does not say which version" },
	{ "garbage", { PING, { .answer = HEAD "{\"ApiVersion\":" } }, BRIG_E_SYSTEM, "is not JSON" },
	{ "a list", { PING, { .answer = HEAD "[]" } }, BRIG_E_SYSTEM, "not an object" },
	{ "doubled keys",
	  { PING, { .answer = HEAD "{\"ApiVersion\":\"1.41\",\"ApiVersion\":\"1.40\"}" } },
	  BRIG_E_SYSTEM,
	  "not JSON" },
	{ "hangs up", { { .answer = "" } }, BRIG_E_SYSTEM, "engine's log" },
	{ "hangs", { { .answer = "", .hang = true } }, BRIG_E_SYSTEM, "overloaded or stuck", true },
};

static void test_openings(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(openings); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		struct engine *e = NULL;
		struct server s;
		int rc;

		server_start(&s, false, openings[i].lines, openings[i].lines[1].answer ? 2 : 1);
		rc = open_at(&s, openings[i].hangs ? SHORT_MS : LONG_MS, &e, &err);
		if (rc != -openings[i].code || (rc < 0 && !strstr(err.msg, openings[i].says)))
			fail_msg("%s: %d %s", openings[i].name, rc, err.msg);
		if (rc == 0) {
			assert_string_equal(engine_about(e)->name, "Docker");
			assert_string_equal(engine_about(e)->version, "20.10.24");
			assert_string_equal(engine_about(e)->runtime, "runc 1.1.5");
			assert_int_equal(engine_about(e)->api, 41);
			assert_true(engine_about(e)->local);
		}
		engine_close(e);
		server_stop(&s);
	}
}

/* One question: an engine that says who it is is not asked for more. */
static void test_introduction(void **state)
{
	static const struct script script = { .answer = INTRODUCTION("Docker/20.10.24+x (linux)", "1.41") };
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine *e = NULL;
	struct server s;

	(void)state;
	server_start(&s, false, &script, 1);
	assert_int_equal(open_at(&s, LONG_MS, &e, &err), 0);
	assert_string_equal(engine_about(e)->name, "Docker");
	assert_string_equal(engine_about(e)->version, "20.10.24+x");
	assert_string_equal(engine_about(e)->runtime, "");
	assert_int_equal(engine_about(e)->api, 41);
	assert_false(engine_about(e)->podman);
	engine_close(e);
	server_stop(&s);
}

static void test_absent(void **state)
{
	struct settings set = { .docker_host = "unix:///nonexistent/docker.sock" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine *e = NULL;

	(void)state;
	assert_int_equal(engine_open(&set, in_ms(LONG_MS), &e, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "No such file or directory"));
	assert_non_null(strstr(err.msg, "systemctl start docker"));
}

static void test_podman(void **state)
{
	static const struct script script[] = {
		PING,
		{ .answer = HEAD
		  "{\"Version\":\"4.3.1\",\"ApiVersion\":\"1.99\",\"MinAPIVersion\":\"1.24\",\"Components\":"
		  "[{\"Name\":\"Podman Engine\"},{\"Name\":\"OCI Runtime (crun)\",\"Version\":\"crun "
		  "1.8\\ncommit\"}]}" },
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine *e = NULL;
	struct server s;

	(void)state;
	server_start(&s, false, script, 2);
	assert_int_equal(open_at(&s, LONG_MS, &e, &err), 0);
	assert_true(engine_about(e)->podman);
	assert_string_equal(engine_about(e)->name, "Podman");
	assert_string_equal(engine_about(e)->runtime, "OCI Runtime (crun) crun 1.8 commit");
	assert_int_equal(engine_about(e)->api, ENGINE_API_NEWEST);
	engine_close(e);
	server_stop(&s);
}

/* ---- calls ----------------------------------------------------------------------------------------- */

enum call { CREATE, INSPECT, START, KILL, REMOVE, LIST, STATS, CHANGES, IMAGE, COMMIT, ATTACH, WAIT, INFO };

static int on_change(void *arg, enum engine_change kind, const char *path)
{
	(void)kind;
	(void)path;
	++*(int *)arg;
	return 0;
}

static int wait_for(struct engine *e, struct brig_error *err)
{
	struct http_call *call = NULL;
	struct engine_exit end = { 0 };
	int rc = engine_wait_begin(e, ID, in_ms(LONG_MS), &call, err);

	if (rc < 0)
		return rc;
	do {
		struct pollfd p = { .fd = http_call_fd(call), .events = POLLIN };

		assert_int_equal(poll(&p, 1, LONG_MS), 1);
		rc = engine_wait_step(call, &end, err);
	} while (rc == 0);
	http_call_close(call);
	return rc < 0 ? rc : end.code;
}

static int make(struct engine *e, enum call what, const char *name, struct brig_error *err)
{
	char id[ENGINE_IMAGE_LEN + 1], warnings[64];
	struct http_stream *stream = NULL;
	struct engine_stats stats;
	struct engine_host host;
	json_t *v = NULL, *body;
	int rc = -1, n = 0;

	switch (what) {
	case CREATE:
		body = json_object();
		rc = engine_create(e, name, body, id, warnings, sizeof(warnings), err);
		json_decref(body);
		break;
	case INSPECT:
		rc = engine_inspect(e, name, &v, err);
		break;
	case START:
		rc = engine_start(e, name, err);
		break;
	case KILL:
		rc = engine_kill(e, name, "SIGKILL", err);
		break;
	case REMOVE:
		rc = engine_remove(e, name, err);
		break;
	case LIST:
		rc = engine_list(e, "brig.run", &v, err);
		break;
	case STATS:
		rc = engine_stats(e, name, &stats, err);
		break;
	case CHANGES:
		rc = engine_changes(e, name, on_change, &n, err);
		break;
	case IMAGE:
		rc = engine_image_inspect(e, name, &v, err);
		break;
	case COMMIT:
		rc = engine_commit(e, name, "brig", "x", id, err);
		break;
	case ATTACH:
		rc = engine_attach(e, name, true, &stream, err);
		http_stream_close(stream);
		break;
	case WAIT:
		rc = wait_for(e, err);
		break;
	case INFO:
		rc = engine_info(e, &host, err);
		break;
	}
	json_decref(v);
	return rc;
}

#define STATUS(n) "HTTP/1.1 " #n " x\r\nConnection: close\r\n\r\n"
#define NO(n)     STATUS(n) "{\"message\":\"because\"}"

static const struct {
	const char *name;
	enum call call;
	struct script lines[3];
	int rc;
	const char *says;
} calls[] = {
	{ "created", CREATE, { { .answer = STATUS(201) "{\"Id\":\"" ID "\",\"Warnings\":[]}" } }, 0, NULL },
	{ "created without an id",
	  CREATE,
	  { { .answer = STATUS(201) "{\"Id\":\"x\"}" } },
	  -BRIG_E_SYSTEM,
	  "no usable id" },
	{ "created with a way up as id",
	  CREATE,
	  { { .answer = STATUS(201) "{\"Id\":\"../../" ID "\"}" } },
	  -BRIG_E_SYSTEM,
	  "no usable id" },
	{ "name taken", CREATE, { { .answer = NO(409) } }, -BRIG_E_SYSTEM, "answered 409: because" },
	{ "inspected", INSPECT, { { .answer = STATUS(200) "{\"Id\":\"" ID "\"}" } }, 0, NULL },
	{ "not there", INSPECT, { { .answer = NO(404) } }, 1, NULL },
	{ "inspected, a list", INSPECT, { { .answer = STATUS(200) "[]" } }, -BRIG_E_SYSTEM, "no id" },
	{ "started", START, { { .answer = STATUS(204) } }, 0, NULL },
	{ "started already", START, { { .answer = STATUS(304) } }, -BRIG_E_SYSTEM, "answered 304" },
	{ "start fails", START, { { .answer = NO(500) } }, -BRIG_E_SYSTEM, "because" },
	{ "killed", KILL, { { .answer = STATUS(204) } }, 0, NULL },
	{ "dead already", KILL, { { .answer = NO(409) } }, 1, NULL },
	{ "kill of nothing", KILL, { { .answer = NO(404) } }, 1, NULL },
	{ "podman's way",
	  KILL,
	  { { .answer = STATUS(500) "{\"message\":\"can only kill running containers\"}" } },
	  1,
	  NULL },
	{ "kill fails", KILL, { { .answer = NO(500) } }, -BRIG_E_SYSTEM, "because" },
	{ "removed", REMOVE, { { .answer = STATUS(204) } }, 0, NULL },
	{ "removed already", REMOVE, { { .answer = NO(404) } }, 0, NULL },
	{ "being removed",
	  REMOVE,
	  { { .answer = NO(409) }, { .answer = STATUS(200) "{}" }, { .answer = NO(404) } },
	  0,
	  NULL },
	{ "cannot be removed", REMOVE, { { .answer = NO(500) } }, -BRIG_E_SYSTEM, "because" },
	{ "a list", LIST, { { .answer = HEAD "[{\"Id\":\"" ID "\",\"Labels\":{}}]" } }, 0, NULL },
	{ "a list without ids", LIST, { { .answer = HEAD "[{\"Labels\":{}}]" } }, -BRIG_E_SYSTEM, "not one" },
	{ "a list without labels", LIST, { { .answer = HEAD "[{\"Id\":\"" ID "\"}]" } }, -BRIG_E_SYSTEM, "not one" },
	{ "no list", LIST, { { .answer = HEAD "{}" } }, -BRIG_E_SYSTEM, "not one" },
	{ "stats",
	  STATS,
	  { { .answer = HEAD "{\"read\":\"2024-\",\"pids_stats\":{\"limit\":18446744073709551615}}" } },
	  0,
	  NULL },
	{ "no stats", STATS, { { .answer = HEAD "{\"read\":\"0001-01-01T00:00:00Z\"}" } }, 1, NULL },
	{ "no changes", CHANGES, { { .answer = HEAD "null" } }, 0, NULL },
	{ "changes", CHANGES, { { .answer = HEAD "[{\"Path\":\"/x\",\"Kind\":1}]" } }, 0, NULL },
	{ "silly changes",
	  CHANGES,
	  { { .answer = HEAD "[{\"Path\":\"x\",\"Kind\":9}]" } },
	  -BRIG_E_SYSTEM,
	  "makes no sense" },
	{ "an image", IMAGE, { { .answer = HEAD "{\"Id\":\"sha256:" ID "\"}" } }, 0, NULL },
	{ "no image", IMAGE, { { .answer = NO(404) } }, 1, NULL },
	{ "an image without id", IMAGE, { { .answer = HEAD "{\"Id\":\"latest\"}" } }, -BRIG_E_SYSTEM, "no id" },
	{ "committed", COMMIT, { { .answer = STATUS(201) "{\"Id\":\"sha256:" ID "\"}" } }, 0, NULL },
	{ "committed, but what",
	  COMMIT,
	  { { .answer = STATUS(201) "{\"Id\":7}" } },
	  -BRIG_E_SYSTEM,
	  "no id of the image" },
	{ "attached", ATTACH, { { .answer = "HTTP/1.1 101 UPGRADED\r\n\r\n" } }, 0, NULL },
	{ "not attached",
	  ATTACH,
	  { { .answer = "HTTP/1.1 404 x\r\nContent-Length: 21\r\n\r\n{\"message\":\"because\"}" } },
	  -BRIG_E_SYSTEM,
	  "answered 404: because" },
	{ "ended", WAIT, { { .answer = HEAD "{\"StatusCode\":7,\"Error\":null}" } }, 7, NULL },
	{ "ended with nonsense",
	  WAIT,
	  { { .answer = HEAD "{\"StatusCode\":-1}" } },
	  -BRIG_E_SYSTEM,
	  "with which status" },
	{ "ended with more nonsense",
	  WAIT,
	  { { .answer = HEAD "{\"StatusCode\":256}" } },
	  -BRIG_E_SYSTEM,
	  "with which status" },
	{ "ended with a cut", WAIT, { { .answer = HEAD "{\"StatusCode\":" } }, -BRIG_E_SYSTEM, "not JSON" },
	{ "not waited for", WAIT, { { .answer = NO(404) } }, -BRIG_E_SYSTEM, "answered 404: because" },
	{ "info", INFO, { { .answer = HEAD "{\"SecurityOptions\":[\"name=seccomp,profile=default\"]}" } }, 0, NULL },
	{ "no info", INFO, { { .answer = HEAD "nothing" } }, -BRIG_E_SYSTEM, "not JSON" },
};

static void test_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct script script[5] = { PING, VERSION };
		struct brig_error err = BRIG_ERROR_INIT;
		struct engine *e = NULL;
		struct server s;
		size_t n = 2;
		int rc;

		while (n < 5 && calls[i].lines[n - 2].answer) {
			script[n] = calls[i].lines[n - 2];
			n++;
			if (n == 5)
				break;
		}
		server_start(&s, false, script, n);
		if (open_at(&s, LONG_MS, &e, &err) < 0)
			fail_msg("%s", err.msg);
		rc = make(e, calls[i].call, calls[i].call == IMAGE ? "a/b:c" : ID, &err);
		if (rc != calls[i].rc || (rc < 0 && !strstr(err.msg, calls[i].says)))
			fail_msg("%s: %d %s", calls[i].name, rc, err.msg);
		engine_close(e);
		server_stop(&s);
		assert_int_equal(s.requests, n);
	}
}

/* What a request may contain as a name never becomes another path. */
static const char *const bad_names[] = {
	"",          ".",   "..",  "../x",      "a/../b", "a..b",     "-x",   "_x",
	"a?force=1", "a#b", "a b", "a\r\nX: y", "a%2e",   "\xc3\xa4", "a//b", "@x",
};

static void test_names(void **state)
{
	static const struct script script[] = { PING, VERSION };
	static const enum call all[] = { INSPECT, START, KILL, REMOVE, STATS, CHANGES, ATTACH, IMAGE };
	struct brig_error err = BRIG_ERROR_INIT;
	char name[600] = "";
	struct engine *e = NULL;
	struct server s;

	(void)state;
	server_start(&s, false, script, 2);
	assert_int_equal(open_at(&s, LONG_MS, &e, &err), 0);
	memset(name, 'a', sizeof(name) - 1);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		for (size_t k = 0; k < ARRAY_LEN(bad_names); k++) {
			assert_int_equal(make(e, all[i], bad_names[k], &err), -BRIG_E_REFUSED);
			assert_non_null(strstr(err.msg, "not a name"));
		}
		assert_int_equal(make(e, all[i], name, &err), -BRIG_E_REFUSED);
		if (all[i] != IMAGE)
			assert_int_equal(make(e, all[i], "a/b", &err), -BRIG_E_REFUSED);
	}
	engine_close(e);
	server_stop(&s);
	assert_int_equal(s.requests, 2);
}

static void test_paths(void **state)
{
	static const struct script script[] = {
		PING, VERSION, { .answer = HEAD "[]" }, { .answer = NO(404) }, { .answer = NO(500) }
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine *e = NULL;
	json_t *v = NULL;
	struct server s;

	(void)state;
	server_start(&s, false, script, 5);
	assert_int_equal(open_at(&s, LONG_MS, &e, &err), 0);
	assert_int_equal(engine_list(e, "a=\"&x", &v, &err), 0);
	json_decref(v);
	assert_int_equal(engine_image_inspect(e, "localhost:5000/a/b:c@sha256:x", &v, &err), 1);
	assert_true(engine_create(e, "a b&c=d", NULL, (char[ENGINE_ID_LEN + 1]){ 0 }, NULL, 0, &err) < 0);
	assert_int_equal(engine_status(e), 500);
	assert_int_equal(engine_trouble(e), ENGINE_SAID_NO);
	engine_close(e);
	server_stop(&s);
	assert_non_null(
		strstr(s.seen,
		       "GET /v1.41/containers/json?all=1&filters=%7B%22label%22%3A%5B%22a%3D%5C%22%26x%22%5D%7D HTTP"));
	assert_non_null(strstr(s.seen, "GET /v1.41/images/localhost%3A5000%2Fa%2Fb%3Ac%40sha256%3Ax/json HTTP"));
	assert_non_null(strstr(s.seen, "POST /v1.41/containers/create?name=a%20b%26c%3Dd HTTP"));
}

static void test_deadline(void **state)
{
	static const struct script script[] = { PING, VERSION, { .answer = "", .hang = true } };
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine *e = NULL;
	struct server s;

	(void)state;
	server_start(&s, false, script, 3);
	assert_int_equal(open_at(&s, LONG_MS, &e, &err), 0);
	engine_set_deadline(e, in_ms(SHORT_MS));
	assert_int_equal(engine_start(e, ID, &err), -BRIG_E_SYSTEM);
	assert_int_equal(engine_trouble(e), ENGINE_LATE);
	assert_non_null(strstr(err.msg, "startup_timeout_ms"));
	engine_set_deadline(e, 1); /* long past */
	assert_int_equal(engine_remove(e, ID, &err), -BRIG_E_SYSTEM);
	assert_int_equal(engine_trouble(e), ENGINE_LATE);
	engine_close(e);
	server_stop(&s);
}

/* ---- images ---------------------------------------------------------------------------------------- */

struct told {
	int lines;
	char last[128];
};

static void on_line(void *arg, const char *line)
{
	struct told *t = arg;

	t->lines++;
	(void)str_copy(t->last, sizeof(t->last), line);
}

static void test_build(void **state)
{
	static const struct script script[] = {
		PING,
		VERSION,
		{ .answer = HEAD
		  "{\"stream\":\"Step 1/2 : FROM scratch\\n\"}\r\n{\"stream\":\"\\u001b[31mred\\n\"}\r\nnonsense\r\n"
		  "{\"aux\":{\"ID\":\"sha256:" ID "\"}}\r\n" },
		{ .answer = HEAD "{\"stream\":\"Step\"}\n{\"errorDetail\":{},\"error\":\"no such\\nfile\"}" },
		{ .answer = HEAD "{\"status\":\"" ID "\"}\n" },
	};
	struct brig_error err = BRIG_ERROR_INIT;
	char id[ENGINE_IMAGE_LEN + 1];
	struct engine *e = NULL;
	struct told told = { 0 };
	struct engine_build build = { .tag = "brig/x:1", .progress = on_line, .arg = &told, .network = "none" };
	struct server s;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	build.context_fd = null;
	server_start(&s, false, script, 5);
	assert_int_equal(open_at(&s, LONG_MS, &e, &err), 0);
	if (engine_image_build(e, &build, id, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(id, "sha256:" ID);
	assert_int_equal(told.lines, 2);
	assert_string_equal(told.last, "[31mred");
	assert_int_equal(engine_image_build(e, &build, id, &err), -BRIG_E_SYSTEM);
	assert_non_null(strstr(err.msg, "says: no such file"));
	assert_int_equal(
		engine_image_import(e, null, "brig/x", "1", (const char *const[]){ "USER 1000", NULL }, id, &err), 0);
	assert_string_equal(id, "sha256:" ID);
	engine_close(e);
	close(null);
	server_stop(&s);
	assert_non_null(strstr(
		s.seen, "POST /v1.41/build?t=brig%2Fx%3A1&dockerfile=Dockerfile&rm=1&forcerm=1&networkmode=none HTTP"));
	assert_non_null(strstr(s.seen, "/images/create?fromSrc=-&repo=brig%2Fx&tag=1&changes=USER%201000 HTTP"));
}

/* ---- values ---------------------------------------------------------------------------------------- */

static void test_values(void **state)
{
	static const char text[] =
		"{\"a\":{\"b\":{\"n\":5,\"s\":\"x\",\"t\":true,\"l\":[\"p\",1,\"q\"],\"m\":-1}},\"e\":\"\",\"z\":null}";
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *v = answer_parse(text, sizeof(text) - 1, &err);
	uint64_t n = 0;
	int64_t m = 0;
	bool t = false;

	(void)state;
	assert_non_null(v);
	assert_true(answer_u64(v, "a.b.n", &n) && n == 5);
	assert_false(answer_u64(v, "a.b.m", &n));
	assert_true(answer_i64(v, "a.b.m", &m) && m == -1);
	assert_true(answer_bool(v, "a.b.t", &t) && t);
	assert_false(answer_bool(v, "a.b.n", &t));
	assert_string_equal(answer_text(v, "a.b.s"), "x");
	assert_null(answer_text(v, "a.b.n"));
	assert_null(answer_text(v, "a.b.s.more"));
	assert_null(answer_at(v, "a..b"));
	assert_null(answer_at(v, ""));
	assert_true(answer_has_item(v, "a.b.l", "q"));
	assert_false(answer_has_item(v, "a.b.l", "r"));
	assert_false(answer_has_item(v, "a.b.s", "x"));
	assert_true(answer_is_empty(v, "e") && answer_is_empty(v, "z") && answer_is_empty(v, "none"));
	assert_false(answer_is_empty(v, "a.b.t") || answer_is_empty(v, "a.b.l") || answer_is_empty(v, "a"));
	json_decref(v);
}

static void test_ids(void **state)
{
	char id[ENGINE_IMAGE_LEN + 1], text[8];

	(void)state;
	assert_true(answer_is_id(ID));
	assert_false(answer_is_id(NULL) || answer_is_id("") || answer_is_id(ID "0") || answer_is_id("0123"));
	assert_false(answer_is_id("0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"));
	assert_true(answer_is_image_id("sha256:" ID) && !answer_is_image_id(ID) && !answer_is_image_id(NULL));
	assert_true(answer_image_id(ID, id));
	assert_string_equal(id, "sha256:" ID);
	assert_false(answer_image_id("sha256:x", id) || answer_image_id(NULL, id));
	assert_string_equal(answer_clean(text, sizeof(text), "a\n\t b\x1b[1m"), "a b [1m");
	assert_string_equal(answer_clean(text, sizeof(text), "  \xc3\xa4\x7f  "), "??");
	assert_string_equal(answer_clean(text, sizeof(text), "0123456789"), "0123456");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),    cmocka_unit_test(test_places),   cmocka_unit_test(test_long_socket),
		cmocka_unit_test(test_tls_files), cmocka_unit_test(test_openings), cmocka_unit_test(test_introduction),
		cmocka_unit_test(test_absent),    cmocka_unit_test(test_podman),   cmocka_unit_test(test_calls),
		cmocka_unit_test(test_names),     cmocka_unit_test(test_paths),    cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_build),     cmocka_unit_test(test_values),   cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
