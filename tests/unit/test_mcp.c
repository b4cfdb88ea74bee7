/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `brig mcp` that need no child: lines, messages, schemas, archives, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "mcp_shared/rpc.h"
#include "mcp_shared/schema.h"
#include "mcp_shared/text.h"
#include "mcp/tools.h"

/* ---- lines ---------------------------------------------------------------------------------------- */

struct lines {
	char text[512];
	size_t too_long;
};

static void on_line(void *user, const char *line, size_t len)
{
	struct lines *l = user;

	if (!line) {
		l->too_long++;
		return;
	}
	strncat(l->text, line, len);
	strcat(l->text, "|");
}

static void test_lines(void **state)
{
	static const char text[] = "one\n\n \t\r\ntwo\nthr";

	(void)state;
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		struct rpc_lines r = RPC_LINES_INIT;
		struct lines l = { "", 0 };

		for (size_t at = 0; at < strlen(text); at += piece)
			rpc_lines_feed(&r, text + at, strnlen(text + at, piece), on_line, &l);
		rpc_lines_feed(&r, "ee\n", 3, on_line, &l);
		assert_string_equal(l.text, "one|two|three|");
		rpc_lines_release(&r);
	}
}

static void test_line_too_long(void **state)
{
	struct rpc_lines r = { .part = BUF_INIT(8) };
	struct lines l = { "", 0 };

	(void)state;
	rpc_lines_feed(&r, "12345678\n123456789\n1234567890123\nok\n", 36, on_line, &l);
	assert_string_equal(l.text, "12345678|ok|");
	assert_int_equal(l.too_long, 2);
	rpc_lines_release(&r);
}

/* ---- messages ------------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	enum rpc_kind kind;
	int code;
	const char *id; /* as JSON; NULL: none */
} messages[] = {
	{ "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}", RPC_REQUEST, 0, "0" },
	{ "{\"method\":\"ping\",\"id\":\"a\\u0000b\",\"jsonrpc\":\"2.0\",\"params\":{}}", RPC_REQUEST, 0,
	  "\"a\\u0000b\"" },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", RPC_NOTIFICATION, 0, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", RPC_RESPONSE, 0, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", RPC_RESPONSE, 0, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":1}", RPC_BAD, RPC_PARAMS, "1" },
	{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", RPC_BAD, RPC_INVALID, "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_BAD, RPC_INVALID, "1" },
	{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", RPC_BAD, RPC_INVALID, NULL },
	{ "1", RPC_BAD, RPC_INVALID, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RPC_BAD, RPC_PARSE, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\"}", RPC_BAD, RPC_PARSE, NULL },
	{ "", RPC_BAD, RPC_PARSE, NULL },
};

static void test_messages(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
		struct rpc_message m;
		char *id;

		rpc_read(messages[i].text, strlen(messages[i].text), &m);
		id = m.id ? json_dumps(m.id, JSON_ENCODE_ANY) : NULL;
		assert_int_equal(m.kind, messages[i].kind);
		assert_int_equal(m.code, messages[i].code);
		assert_int_equal(m.kind == RPC_BAD, m.why[0] != '\0');
		assert_string_equal(id ? id : "none", messages[i].id ? messages[i].id : "none");
		free(id);
		rpc_release(&m);
	}
}

static void test_depth(void **state)
{
	char text[600] = "";
	struct rpc_message m;

	(void)state;
	for (int depth = RPC_DEPTH_MAX; depth <= RPC_DEPTH_MAX + 1; depth++) {
		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		rpc_read(text, 2 * (size_t)depth, &m);
		assert_int_equal(m.code, depth > RPC_DEPTH_MAX ? RPC_PARSE : RPC_INVALID);
		rpc_release(&m);
	}
	/* Brackets in strings are none, whatever is escaped there. */
	strcpy(text, "[\"\\\"");
	memset(text + strlen(text), '[', 200);
	strcat(text, "\"]");
	rpc_read(text, strlen(text), &m);
	assert_int_equal(m.code, RPC_INVALID);
	rpc_release(&m);
}

/* ---- schemas -------------------------------------------------------------------------------------- */

static const struct {
	const char *value, *why; /* NULL: it fits */
} values[] = {
	{ "{\"a\":\"x\"}", NULL },
	{ "{\"a\":\"x\",\"n\":2.5,\"e\":\"one\",\"l\":[\"x\"],\"o\":{\"any\":true}}", NULL },
	{ "{}", "a is missing" },
	{ "[]", "must be of type object" },
	{ "{\"a\":1}", "'a' must be of type string" },
	{ "{\"a\":\"\"}", "'a' must have at least 1 bytes" },
	{ "{\"a\":\"12345\"}", "'a' must have at most 4 bytes" },
	{ "{\"a\":\"x\\u0000\"}", "'a' must have no NUL" },
	{ "{\"a\":\"x\",\"n\":0}", "'n' must be at least 1" },
	{ "{\"a\":\"x\",\"n\":11}", "'n' must be at most 10" },
	{ "{\"a\":\"x\",\"e\":\"two\"}", "'e' must be one of: one, other" },
	{ "{\"a\":\"x\",\"l\":[\"x\",1]}", "'l' must be of type string" },
	{ "{\"a\":\"x\",\"l\":[\"x\",\"x\",\"x\"]}", "'l' must have at most 2 items" },
	{ "{\"a\":\"x\",\"o\":{\"any\":1}}", "'any' must be of type boolean, null" },
	{ "{\"a\":\"x\",\"z\":1}", "'z' is not known" },
};

static void test_schema(void **state)
{
	json_t *schema =
		json_loads("{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false,\"properties\":{"
			   "\"a\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4},\"n\":{\"type\":\"number\","
			   "\"minimum\":1,\"maximum\":10},"
			   "\"e\":{\"enum\":[\"one\",\"other\"]},\"l\":{\"type\":\"array\",\"maxItems\":2,\"items\":{"
			   "\"type\":\"string\"}},"
			   "\"o\":{\"type\":\"object\",\"additionalProperties\":{\"type\":[\"boolean\",\"null\"]}}}}",
			   0, NULL);

	(void)state;
	assert_non_null(schema);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		json_t *value = json_loads(values[i].value, JSON_ALLOW_NUL, NULL);
		struct brig_error err = BRIG_ERROR_INIT;

		assert_int_equal(schema_check(schema, value, &err), values[i].why ? -BRIG_E_USAGE : 0);
		if (values[i].why && !strstr(err.msg, values[i].why))
			fail_msg("%s: %s", values[i].value, err.msg);
		json_decref(value);
	}
	json_decref(schema);
}

/* What clients are shown and what is done agree: the same tools. */
static void test_tools(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *tools = tools_load(true, &err), *tool;
	size_t i, rows = 0;

	(void)state;
	assert_non_null(tools);
	json_array_foreach(tools, i, tool)
	{
		assert_non_null(tool_find(text_member(tool, "name")));
		assert_true(json_is_object(json_object_get(tool, "outputSchema")));
	}
#define TOOL(name, needs_root) rows++, assert_non_null(tools_entry(tools, #name));
#include "mcp/tools.def"
#undef TOOL
	assert_int_equal(rows, json_array_size(tools));
	json_decref(tools);
	tools = tools_load(false, &err); /* without a project */
	assert_non_null(tools);
	assert_null(tools_entry(tools, "write_file"));
	assert_non_null(tools_entry(tools, "run_code"));
	json_array_foreach(tools, i, tool)
	{
		assert_null(json_object_get(tool, "without_project"));
		assert_null(json_object_get(json_object_get(json_object_get(tool, "inputSchema"), "properties"),
					    "in_project"));
	}
	json_decref(tools);
}

/* ---- text ----------------------------------------------------------------------------------------- */

static void test_text(void **state)
{
	AUTO_BUF out = BUF_INIT(1000);
	json_t *text = text_json("a\xff\xc3\xa9\xc3", 5);

	(void)state;
	assert_string_equal(json_string_value(text), "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
	json_decref(text);
	assert_false(text_add_cut(&out, "12345678", 8, 8));
	out.len = 0;
	assert_true(
		text_add_cut(&out, "a\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9z", 10, 4)); /* no half character on either side */
	assert_string_equal(buf_str(&out), "a\n[... 8 bytes left out ...]\nz");
	out.len = 0;
	assert_true(text_from_base64("AP8=", 4, &out));
	assert_memory_equal(out.data, "\0\xff", 2);
	assert_false(text_from_base64("A*", 2, &out));
	assert_string_equal(text_image_type("x", "iVBORw0KGgoAAA"), "image/png");
	assert_string_equal(text_image_type("a.SVG", ""), "image/svg+xml");
	assert_null(text_image_type("a.png", "bm90IGEgcG5n"));
}

static void test_archive(void **state)
{
	AUTO_BUF tar = BUF_INIT(1 * MiB);
	char path[200] = "";

	(void)state;
	memset(path, 'p', 150);
	assert_true(tar_add(&tar, "a/b", "content", 7));
	assert_int_equal(tar.len, 1024);
	assert_memory_equal(tar.data + 257, "ustar", 6);
	assert_memory_equal(tar.data + 512, "content\0", 8);
	assert_true(tar_add(&tar, path, "", 0));
	assert_int_equal(tar.len, 1024 + 1024 + 512);
	assert_memory_equal(tar.data + 1536, "160 path=ppp", 12); /* which is how long it is */
	assert_true(tar_end(&tar));
	assert_int_equal(tar.len % 512, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines), cmocka_unit_test(test_line_too_long), cmocka_unit_test(test_messages),
		cmocka_unit_test(test_depth), cmocka_unit_test(test_schema),        cmocka_unit_test(test_tools),
		cmocka_unit_test(test_text),  cmocka_unit_test(test_archive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
