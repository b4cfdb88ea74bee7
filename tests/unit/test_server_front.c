/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the process that speaks HTTP which need no connection: routes, parameters, bodies, what it may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "cli/options.h"
#include "server/front/front.h"
#include "sys/seccomp.h"

/* ---- routes ---------------------------------------------------------------------------------------- */

static const struct {
	const char *method, *path;
	enum route route; /* ROUTE_COUNT: there is none */
	const char *id, *rest, *allow;
} routed[] = {
	{ "POST", "/v1/executions", ROUTE_execute, "", "", NULL },
	{ "GET", "/v1/executions", ROUTE_executions, "", "", NULL },
	{ "HEAD", "/v1/executions", ROUTE_executions, "", "", NULL },
	{ "GET", "/v1/executions/abc", ROUTE_execution, "abc", "", NULL },
	{ "GET", "/v1/executions/a%62c", ROUTE_execution, "abc", "", NULL },
	{ "GET", "/v1/%65xecutions/abc", ROUTE_execution, "abc", "", NULL },
	{ "DELETE", "/v1/executions/abc", ROUTE_cancel, "abc", "", NULL },
	{ "GET", "/v1/executions/abc/events", ROUTE_execution_events, "abc", "", NULL },
	{ "GET", "/v1/executions/abc/artifacts/out/a%20b.png", ROUTE_artifact, "abc", "out/a b.png", NULL },
	{ "GET", "/v1/executions/abc/artifacts/...", ROUTE_artifact, "abc", "...", NULL },
	{ "GET", "/", ROUTE_page, "", "", NULL },
	{ "GET", "/assets/app-0123.js", ROUTE_asset, "", "app-0123.js", NULL },
	{ "GET", "/healthz", ROUTE_healthz, "", "", NULL },
	/* another method */
	{ "PUT", "/v1/executions", ROUTE_COUNT, "", "", "POST, GET, HEAD" },
	{ "POST", "/v1/executions/abc", ROUTE_COUNT, "", "", "GET, HEAD, DELETE" },
	{ "get", "/healthz", ROUTE_COUNT, "", "", "GET, HEAD" },
	{ "OPTIONS", "/v1/whoami", ROUTE_COUNT, "", "", "GET, HEAD" },
	/* nothing */
	{ "GET", "", ROUTE_COUNT, "", "", NULL },
	{ "GET", "healthz", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/healthz/", ROUTE_COUNT, "", "", NULL },
	{ "GET", "//healthz", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/./whoami", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/x/../whoami", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/..", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/a%2Fb", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/a%00", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/a%", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/a%ff", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1%2fwhoami", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/abc/artifacts/", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/abc/artifacts/a//b", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/abc/artifacts/../x", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/abc/artifacts/a/%2e%2e/x", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/v1/executions/abc/artifacts/a%2f..%2fx", ROUTE_COUNT, "", "", NULL },
	{ "GET", "/assets/", ROUTE_COUNT, "", "", NULL },
};

static void paths_find_their_routes(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(routed); i++) {
		struct route_match m;

		route_find(routed[i].method, strlen(routed[i].method), routed[i].path, strlen(routed[i].path), &m);
		if (routed[i].allow) {
			assert_true(m.is_wrong_method);
			assert_string_equal(m.allow, routed[i].allow);
			continue;
		}
		if (m.is_wrong_method || m.route != routed[i].route)
			fail_msg("%s %s", routed[i].method, routed[i].path);
		if (m.route == ROUTE_COUNT)
			continue;
		assert_string_equal(m.id, routed[i].id);
		assert_string_equal(m.path, routed[i].rest);
	}
}

static void an_id_has_its_length(void **state UNUSED)
{
	char path[200] = "/v1/history/";
	struct route_match m;

	memset(path + strlen(path), 'a', 64);
	route_find("GET", 3, path, strlen(path), &m);
	assert_int_equal(m.route, ROUTE_history_entry);
	path[strlen(path)] = 'a';
	route_find("GET", 3, path, strlen(path), &m);
	assert_int_equal(m.route, ROUTE_COUNT);
}

/* ---- parameters ----------------------------------------------------------------------------------------- */

static const struct {
	enum route route;
	const char *query, *complaint; /* NULL: it is fine */
} queried[] = {
	{ ROUTE_history, "", NULL },
	{ ROUTE_history, "verdict=ok&limit=3&since=2026-11-17", NULL },
	{ ROUTE_history, "&verdict=ok&&", NULL },
	{ ROUTE_history, "limt=3", "unknown parameter 'limt'; did you mean 'limit'?" },
	{ ROUTE_history, "limit=0", "parameter 'limit' must be a number from 1 to 1000000" },
	{ ROUTE_history, "limit=-1", "parameter 'limit' must be a number from 1 to 1000000" },
	{ ROUTE_history, "limit", "parameter 'limit' must be a number from 1 to 1000000" },
	{ ROUTE_history, "limit=1&limit=2", "parameter 'limit' is there twice" },
	{ ROUTE_history, "verdict=%zz", "the value of parameter 'verdict' has a bad escape or is not UTF-8" },
	{ ROUTE_history, "verdict=%ff", "the value of parameter 'verdict' has a bad escape or is not UTF-8" },
	{ ROUTE_history, "verdict=%00", "the value of parameter 'verdict' has a bad escape or is not UTF-8" },
	{ ROUTE_history, "verdict=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	  "parameter 'verdict' is too long: it may have 32 bytes" },
	{ ROUTE_whoami, "x=1", "unknown parameter 'x': there are none here" },
	{ ROUTE_policy, "trust=unknown", NULL },
	{ ROUTE_executions, "state=lost", NULL },
	{ ROUTE_executions, "state=queue", "parameter 'state' must be one of: queued running finished lost" },
	{ ROUTE_executions, "state=", "parameter 'state' must be one of: queued running finished lost" },
};

static void parameters_are_read(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(queried); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
		struct message m;
		const char *why;
		int rc = route_query(queried[i].route, queried[i].query, strlen(queried[i].query), &fields, &err);

		assert_int_equal(rc, queried[i].complaint ? -BRIG_E_USAGE : 0);
		assert_string_equal(err.msg, queried[i].complaint ? queried[i].complaint : "");
		assert_true(rc < 0 || message_read(buf_str(&fields), fields.len, &m, &why));
	}
}

static void a_blank_may_be_a_plus(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	const char *query = "since=2026-11-17+10%3A00%2B01";
	struct message m;
	const char *why;

	assert_int_equal(route_query(ROUTE_history, query, strlen(query), &fields, &err), 0);
	assert_true(message_read(buf_str(&fields), fields.len, &m, &why));
	assert_string_equal(message_text(&m, FIELD_since), "2026-11-17 10:00+01");
}

/* ---- bodies ----------------------------------------------------------------------------------------------- */

struct read_body {
	struct buf fields;
	struct message m;
	struct brig_error err;
	int rc, files;
};

static struct read_body read_body(enum route route, const char *text)
{
	struct read_body b = { .fields = BUF_INIT(MESSAGE_MAX) };
	const struct bytes body = { text, strlen(text) };
	const char *why;

	b.rc = body_to_fields(route, &body, &(struct body_parts){ 0 }, &b.fields, &b.files, &b.err);
	if (b.rc == 0)
		assert_true(message_read(buf_str(&b.fields), b.fields.len, &b.m, &why));
	return b;
}

static void release(struct read_body *b)
{
	buf_release(&b->fields);
	fd_closep(&b->files);
}

static void a_job_becomes_fields(void **state UNUSED)
{
	struct read_body b = read_body(
		ROUTE_execute,
		"{\"language\":\"python\",\"code\":\"a\\u0000b\",\"stdin\":{\"base64\":\"aGk=\"},\"args\":[\"x\",\"y\"]"
		","
		"\"env\":{\"A\":\"1\"},\"options\":{\"memory\":\"64m\",\"timeout\":5},\"files\":{\"d/a\":\"x\"},"
		"\"priority\":7,\"async\":true,\"inline_artifacts\":\"1m\",\"environment\":\"e\"}");
	const char *texts[2];
	size_t len;

	assert_int_equal(b.rc, 0);
	assert_int_equal(message_number(&b.m, FIELD_kind, 99), BRIG_KIND_CODE);
	assert_string_equal(message_text(&b.m, FIELD_language), "python");
	assert_memory_equal(message_bytes(&b.m, FIELD_code, &len), "a\0b", 3);
	assert_int_equal(len, 3);
	assert_memory_equal(message_bytes(&b.m, FIELD_input, &len), "hi", 2);
	assert_int_equal(message_count(&b.m, FIELD_arg), 2);
	message_texts(&b.m, FIELD_arg, texts);
	assert_string_equal(texts[1], "y");
	assert_string_equal(message_text(&b.m, FIELD_variable), "A=1");
	message_texts(&b.m, FIELD_option, texts);
	assert_string_equal(texts[0], "mem_limit=64m");
	assert_string_equal(texts[1], "timeout=5");
	assert_int_equal(message_number(&b.m, FIELD_priority, 5), 7);
	assert_int_equal(message_number(&b.m, FIELD_async, 0), 1);
	assert_int_equal(message_number(&b.m, FIELD_inline_artifacts, 0), MiB);
	assert_false(message_has(&b.m, FIELD_receipt));
	assert_true(b.files >= 0);
	release(&b);
}

static void a_route_has_its_kind(void **state UNUSED)
{
	static const struct {
		enum route route;
		const char *body;
		int kind; /* -1: refused */
	} rows[] = {
		{ ROUTE_execute, "{\"code\":\"1\"}", BRIG_KIND_CODE },
		{ ROUTE_execute, "{\"kind\":\"shell\",\"code\":\"1\"}", BRIG_KIND_SHELL },
		{ ROUTE_execute, "{\"kind\":\"tests\"}", BRIG_KIND_TESTS },
		{ ROUTE_execute, "{\"kind\":\"test\"}", -1 },
		{ ROUTE_command, "{\"args\":[\"ls\"]}", BRIG_KIND_COMMAND },
		{ ROUTE_command, "{\"code\":\"ls | wc\"}", BRIG_KIND_SHELL },
		{ ROUTE_command, "{\"kind\":\"command\",\"args\":[\"ls\"]}", BRIG_KIND_COMMAND },
		{ ROUTE_command, "{\"kind\":\"code\",\"code\":\"1\"}", -1 },
		{ ROUTE_tests, "{}", BRIG_KIND_TESTS },
		{ ROUTE_tests, "{\"kind\":\"code\"}", -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct read_body b = read_body(rows[i].route, rows[i].body);

		assert_int_equal(b.rc, rows[i].kind < 0 ? -BRIG_E_USAGE : 0);
		if (rows[i].kind >= 0)
			assert_int_equal(message_number(&b.m, FIELD_kind, 99), rows[i].kind);
		release(&b);
	}
}

static const struct {
	enum route route;
	const char *body, *complaint;
} bad_bodies[] = {
	{ ROUTE_execute, "", "column 0: '[' or '{' expected near end of file" },
	{ ROUTE_execute, "[]", "the body must be an object" },
	{ ROUTE_execute, "{\"code\":1}", "code must be a string, or {\"base64\": ...} for bytes" },
	{ ROUTE_execute, "{\"cod\":\"1\"}", "unknown member 'cod'; did you mean 'code'?" },
	{ ROUTE_execute, "{\"expected\":\"1\"}", "unknown member 'expected'" },
	{ ROUTE_execute, "{\"code\":\"1\",\"code\":\"2\"}", "column 18: duplicate object key near '\"code\"'" },
	{ ROUTE_execute, "{\"args\":[\"a\",1]}", "args[1] must be a string" },
	{ ROUTE_execute, "{\"args\":[\"a\\u0000\"]}", "args[0] has a NUL character, which is not possible there" },
	{ ROUTE_execute, "{\"env\":{\"A=B\":\"1\"}}", "env.A=B is no name of a variable" },
	{ ROUTE_execute, "{\"priority\":10}", "priority must be a number from 0 to 9" },
	{ ROUTE_execute, "{\"async\":1}", "async must be true or false" },
	{ ROUTE_execute, "{\"code\":{\"base64\":\"!\"}}", "code.base64 is not base64" },
	{ ROUTE_execute, "{\"inline_artifacts\":\"much\"}", "inline_artifacts 'much' is no size: give one such as 1m" },
	{ ROUTE_execute, "{\"trust\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
	  "trust is too long: it may have 32 bytes" },
	{ ROUTE_execute, "{\"code\":\"\xff\"}", "byte 10 is not UTF-8" },
	{ ROUTE_execute, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "byte 33: the document is deeper than 32 levels" },
	{ ROUTE_inspect, "{}", "give one of \"code\", \"command\" and \"path\"" },
	{ ROUTE_inspect, "{\"code\":\"1\",\"path\":\"x\"}", "give one of \"code\", \"command\" and \"path\"" },
	{ ROUTE_verify_receipt, "{}", "\"receipt\" is missing" },
	{ ROUTE_verify_receipt, "{\"receipt\":1}", "receipt must be the receipt: an object, or its text as a string" },
};

static void bad_bodies_are_complained_about(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_bodies); i++) {
		struct read_body b = read_body(bad_bodies[i].route, bad_bodies[i].body);

		assert_int_equal(b.rc, -BRIG_E_USAGE);
		assert_string_equal(b.err.msg, bad_bodies[i].complaint);
		assert_int_equal(b.files, FD_NONE);
		release(&b);
	}
}

/* A few megabytes of brackets would be gigabytes as a tree. */
static void a_document_has_so_many_values(void **state UNUSED)
{
	AUTO_BUF text = BUF_INIT(4 * MiB);
	struct read_body b;

	(void)buf_adds(&text, "{\"args\":[");
	for (size_t i = 0; i < 300000; i++)
		(void)buf_adds(&text, "[],");
	b = read_body(ROUTE_execute, buf_str(&text));
	assert_int_equal(b.rc, -BRIG_E_USAGE);
	assert_non_null(strstr(b.err.msg, "more than 200000 values"));
	release(&b);
}

static void inspections_and_receipts_become_fields(void **state UNUSED)
{
	struct read_body b =
		read_body(ROUTE_inspect, "{\"command\":\"rm -rf /\",\"rules\":{\"a\":\"allow\",\"b\":\"block\"},"
					 "\"strict\":true,\"level\":\"guard\"}");
	size_t len;

	assert_int_equal(b.rc, 0);
	assert_string_equal(message_text(&b.m, FIELD_check_kind), "command");
	assert_string_equal(message_text(&b.m, FIELD_rules), "a=allow,b=block");
	assert_int_equal(message_number(&b.m, FIELD_strict, 0), 1);
	release(&b);
	b = read_body(ROUTE_verify_receipt, "{\"receipt\":{\"b\":1,\"a\":2},\"public_key\":\"k\"}");
	assert_int_equal(b.rc, 0);
	assert_memory_equal(message_bytes(&b.m, FIELD_text, &len), "{\"b\":1,\"a\":2}", 13);
	assert_int_equal(len, 13);
	release(&b);
}

/* Both spellings of a setting mean the same here and on the command line. */
static void settings_have_the_names_of_options(void **state UNUSED)
{
#define AT(member) 0
	static const struct option_row rows[] = {
#include "cli/wish_options.def"
	};
#undef AT

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].kind == OPTION_WISH && rows[i].key)
			assert_string_equal(body_setting_of(rows[i].name), rows[i].key);
	assert_string_equal(body_setting_of("mem_limit"), "mem_limit");
}

/* ---- forms ----------------------------------------------------------------------------------------------------- */

#define PART(name, data) "--x\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" data "\r\n"
#define NAMED(name, path, data) \
	"--x\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"" path "\"\r\n\r\n" data "\r\n"

static const struct {
	const char *form, *complaint; /* NULL: it is fine */
	bool has_files;
} forms[] = {
	{ PART("job", "{\"language\":\"python\"}") PART("code", "1") PART("stdin", "") "--x--\r\n", NULL, false },
	{ NAMED("file", "d/a", "1") PART("job", "{\"code\":\"1\"}") NAMED("file", "b", "2") "--x--\r\n", NULL, true },
	{ PART("code", "1") "--x--\r\n", "the form has no part 'job' with the JSON object", false },
	{ PART("job", "{}") PART("job", "{}") "--x--\r\n", "part 2: 'job' is there twice", false },
	{ PART("job", "{\"code\":\"1\"}") PART("code", "1") "--x--\r\n",
	  "'code' is a part of the form and a member of the job: give one of them", false },
	{ PART("job", "{\"files\":{\"a\":\"1\"}}") NAMED("file", "b", "1") "--x--\r\n",
	  "files are parts of the form, or \"files\" of the job, but not both", false },
	{ PART("job", "{}") PART("file", "1") "--x--\r\n",
	  "part 2: a file needs a file name of 1 to 1024 bytes: its path", false },
	{ PART("jobs", "{}") "--x--\r\n", "part 1: 'jobs' is none of job, code, stdin and file; did you mean 'job'?",
	  false },
	{ PART("job", "{") "--x--\r\n", "column 1: string or '}' expected near end of file", false },
};

static void forms_become_fields(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		const struct bytes form = { forms[i].form, strlen(forms[i].form) };
		struct brig_error err = BRIG_ERROR_INIT;
		AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
		AUTO_FD files = FD_NONE;
		struct message m;
		const char *why;
		int rc = form_to_fields(ROUTE_execute, "multipart/form-data; boundary=x", &form, &fields, &files, &err);

		assert_string_equal(err.msg, forms[i].complaint ? forms[i].complaint : "");
		assert_int_equal(rc, forms[i].complaint ? -BRIG_E_USAGE : 0);
		assert_int_equal(files >= 0, forms[i].has_files);
		if (rc == 0)
			assert_true(message_read(buf_str(&fields), fields.len, &m, &why) &&
				    message_has(&m, FIELD_code));
	}
}

/* ---- what it may do -------------------------------------------------------------------------------------------- */

static uint32_t decide(long nr, uint64_t second, uint64_t third)
{
	const struct seccomp_data call = { .nr = (int)nr,
					   .arch = seccomp_filter_front().insns[1].k,
					   .args = { 0, second, third } };

	return seccomp_decide(seccomp_filter_front(), &call) & SECCOMP_RET_ACTION_FULL;
}

static void the_filter_opens_and_starts_nothing(void **state UNUSED)
{
	static const long deadly[] = { SYS_openat,  SYS_openat2,        SYS_execve,      SYS_execveat,
				       SYS_socket,  SYS_connect,        SYS_bind,        SYS_listen,
				       SYS_clone,   SYS_clone3,         SYS_kill,        SYS_tgkill,
				       SYS_ptrace,  SYS_newfstatat,     SYS_statx,       SYS_unlinkat,
				       SYS_mkdirat, SYS_setuid,         SYS_prctl,       SYS_ioctl,
				       SYS_bpf,     SYS_io_uring_setup, SYS_pidfd_getfd, SYS_process_vm_readv };
	static const long fine[] = { SYS_recvfrom,  SYS_sendmsg, SYS_recvmsg,     SYS_accept4,
				     SYS_epoll_ctl, SYS_close,   SYS_memfd_create };

	for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
		assert_int_equal(decide(deadly[i], 0, 0), SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < ARRAY_LEN(fine); i++)
		assert_int_equal(decide(fine[i], 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(decide(SYS_mmap, 4096, 3), SECCOMP_RET_ALLOW);
	assert_int_equal(decide(SYS_mmap, 4096, 7), SECCOMP_RET_ERRNO);
	assert_int_equal(decide(SYS_setsockopt, 1, 13), SECCOMP_RET_ALLOW); /* SOL_SOCKET, SO_LINGER */
	assert_int_equal(decide(SYS_setsockopt, 1, 25), SECCOMP_RET_ERRNO); /* SO_BINDTODEVICE */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_find_their_routes),
		cmocka_unit_test(an_id_has_its_length),
		cmocka_unit_test(parameters_are_read),
		cmocka_unit_test(a_blank_may_be_a_plus),
		cmocka_unit_test(a_job_becomes_fields),
		cmocka_unit_test(a_route_has_its_kind),
		cmocka_unit_test(bad_bodies_are_complained_about),
		cmocka_unit_test(a_document_has_so_many_values),
		cmocka_unit_test(inspections_and_receipts_become_fields),
		cmocka_unit_test(settings_have_the_names_of_options),
		cmocka_unit_test(forms_become_fields),
		cmocka_unit_test(the_filter_opens_and_starts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
