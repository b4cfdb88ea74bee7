/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of several parts: what comes out of them, what is refused, and that it does not matter in which pieces they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "net/multipart.h"

#define LF    "\r\n"
#define TYPE  "multipart/form-data; boundary=b"
#define NAMED "Content-Disposition: form-data; name="
#define PART  "--b" LF NAMED "\"a\"" LF LF
#define END   LF "--b--" LF

/* ---- Content-Type ------------------------------------------------------------------------------- */

static const struct {
	const char *type, *boundary; /* NULL: refused */
	unsigned status;
} types[] = {
	{ "multipart/form-data; boundary=abc", "abc", 0 },
	{ "Multipart/Form-Data;BOUNDARY=\"a:b c\"", NULL, 400 },
	{ "Multipart/Form-Data;BOUNDARY=\"a:b\"", "a:b", 0 },
	{ "multipart/form-data ; charset=utf-8 ;; boundary=----WebKitFormBoundaryX1 ;", "----WebKitFormBoundaryX1", 0 },
	{ "multipart/form-data; boundary=1234567890123456789012345678901234567890123456789012345678901234567890",
	  "1234567890123456789012345678901234567890123456789012345678901234567890", 0 },
	{ "multipart/form-data; boundary=12345678901234567890123456789012345678901234567890123456789012345678901", NULL,
	  400 },
	{ "multipart/form-data", NULL, 400 },
	{ "multipart/form-data; boundary=", NULL, 400 },
	{ "multipart/form-data; boundary=\"\"", NULL, 400 },
	{ "multipart/form-data; boundary=\"a", NULL, 400 },
	{ "multipart/form-data; boundary=a b", NULL, 400 },
	{ "multipart/form-data; boundary=a; boundary=b", NULL, 400 },
	{ "multipart/form-data; boundary=a, b", NULL, 400 },
	{ "multipart/form-data boundary=a", NULL, 415 },
	{ "multipart/form-data; boundary = a", NULL, 400 },
	{ "multipart/form-data; boundary=a\xc3\xbc", NULL, 400 },
	{ "multipart/form-data; boundary=\"a*\"", NULL, 400 },
	{ "multipart/mixed; boundary=a", NULL, 415 },
	{ "application/json", NULL, 415 },
	{ "", NULL, 415 },
};

static void boundaries_are_read(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct multipart m;
		bool ok = multipart_begin(&m, types[i].type, strlen(types[i].type));
		const char *boundary = types[i].boundary;

		if (ok != (boundary != NULL) || m.status != types[i].status)
			fail_msg("'%s': %u, %s", types[i].type, m.status, m.why ? m.why : "fine");
		if (ok && (m.delimiter_len != 4 + strlen(boundary) ||
			   memcmp(m.delimiter + 4, boundary, strlen(boundary)) != 0))
			fail_msg("'%s' has another boundary", types[i].type);
	}
}

/* ---- forms -------------------------------------------------------------------------------------- */

/* What was told, in a form that can be compared: [name|filename|type]data. for each part, ! at the end. */
struct told {
	struct multipart m;
	char text[512];
	size_t len;
	bool bad;
};

static void tell(struct told *t, const char *bytes, size_t len)
{
	assert_true(t->len + len < sizeof(t->text));
	memcpy(t->text + t->len, bytes, len);
	t->len += len;
	t->text[t->len] = '\0';
}

static void tell_text(struct told *t, const char *text)
{
	tell(t, text, strlen(text));
}

static void tell_part(struct told *t)
{
	tell_text(t, "[");
	tell_text(t, t->m.name);
	tell_text(t, "|");
	tell_text(t, t->m.file_name ? t->m.file_name : "-");
	tell_text(t, "|");
	tell_text(t, t->m.type ? t->m.type : "-");
	tell_text(t, "]");
}

/* In copies of just this length, so that a sanitizer sees a byte too far. */
static void feed(struct told *t, const char *bytes, size_t len)
{
	AUTO_FREE char *copy = malloc(len ? len : 1);
	enum multipart_event e = MULTIPART_DATA;
	size_t from = 0;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	while (e != MULTIPART_MORE && e != MULTIPART_BAD) {
		const char *data;
		size_t used, n;

		e = multipart_take(&t->m, copy + from, len - from, &used, &data, &n);
		assert_true(used <= len - from && (e == MULTIPART_DATA) == (n > 0));
		if (e == MULTIPART_PART)
			tell_part(t);
		else if (e == MULTIPART_DATA)
			tell(t, data, n);
		else if (e == MULTIPART_PART_END || e == MULTIPART_DONE)
			tell_text(t, e == MULTIPART_DONE ? "!" : ".");
		from += used;
	}
	assert_true(e == MULTIPART_BAD || from == len);
	t->bad = e == MULTIPART_BAD;
}

static void begin(struct told *t, const char *type)
{
	*t = (struct told){ .len = 0 };
	assert_true(multipart_begin(&t->m, type, strlen(type)));
}

static const struct {
	const char *body, *told;
} good_forms[] = {
	{ "--b--", "!" },
	{ "--b--" LF, "!" },
	{ PART "x" END, "[a|-|-]x.!" },
	{ PART END, "[a|-|-].!" },
	{ PART "x" LF "--b--", "[a|-|-]x.!" },
	{ PART "x" LF PART "y" LF PART END, "[a|-|-]x.[a|-|-]y.[a|-|-].!" },
	{ "--b" LF "content-disposition:form-data;name=a" LF LF "x" END, "[a|-|-]x.!" },
	{ "--b" LF NAMED "\"f\"; filename=\"/a/\xc3\xbc %22;.txt\"" LF "Content-Type: text/plain; charset=utf-8 " LF LF
	  "x" END,
	  "[f|/a/\xc3\xbc %22;.txt|text/plain; charset=utf-8]x.!" },
	{ "--b" LF "Content-Type: a/b" LF "Content-Disposition: form-data; filename=\"\"; x=y; name=\"f\"" LF LF END,
	  "[f||a/b].!" },
	{ "--b" LF NAMED "\"f\"; filename=\"C:\\a\\b\"" LF LF END, "[f|C:\\a\\b|-].!" },
	{ "--b" LF NAMED "\"../..\"; filename=\"../../etc/passwd\"" LF LF END, "[../..|../../etc/passwd|-].!" },
	{ "--b" LF NAMED "a" LF "Content-Transfer-Encoding: 8BIT" LF "X-Other: x" LF LF "x" END, "[a|-|-]x.!" },
	/* data that looks like a delimiter */
	{ PART LF "--" END, "[a|-|-]" LF "--.!" },
	{ PART "--b" END, "[a|-|-]--b.!" },
	{ PART "-b--" END, "[a|-|-]-b--.!" },
	{ PART "\r\r\n-" LF "-\r" LF END, "[a|-|-]\r\r\n-" LF "-\r" LF ".!" },
	{ PART "\r" END, "[a|-|-]\r.!" },
	{ PART "\n--b\n" END, "[a|-|-]\n--b\n.!" },
	{ PART LF "--B" LF "- -b" END, "[a|-|-]" LF "--B" LF "- -b.!" },
	{ PART LF LF "--" LF "--x" END, "[a|-|-]" LF LF "--" LF "--x.!" },
};

static void expect_good(const struct told *t, size_t i, size_t cut)
{
	if (t->bad || !str_eq(t->text, good_forms[i].told))
		fail_msg("%zu, '%s' cut at %zu: '%s' %s", i, good_forms[i].body, cut, t->text, t->bad ? t->m.why : "");
}

static void good_forms_are_read(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(good_forms); i++) {
		const char *body = good_forms[i].body;
		size_t len = strlen(body);
		struct told t;

		begin(&t, TYPE);
		for (size_t n = 0; n < len; n++)
			feed(&t, body + n, 1);
		expect_good(&t, i, 1);
		for (size_t cut = 0; cut <= len; cut++) {
			begin(&t, TYPE);
			feed(&t, body, cut);
			feed(&t, body + cut, len - cut);
			expect_good(&t, i, cut);
			assert_true(multipart_end(&t.m));
		}
	}
}

#define HEAD(s) "--b" LF s LF LF "x" END

static const struct {
	const char *body, *why; /* a piece of the sentence */
	unsigned status;
} bad_forms[] = {
	{ "x", "does not begin", 400 },
	{ LF "--b", "does not begin", 400 },
	{ "preamble" LF PART, "does not begin", 400 },
	{ "--c", "does not begin", 400 },
	{ "--b\n", "neither the end", 400 },
	{ "--b " LF, "neither the end", 400 },
	{ "--bb" LF, "neither the end", 400 },
	{ "--b\rX", "neither the end", 400 },
	{ "--b-" LF, "neither the end", 400 },
	{ PART "x" LF "--b x", "neither the end", 400 },
	{ PART "x" LF "--bc" LF, "neither the end", 400 },
	{ PART "x" END "y", "behind the end", 400 },
	{ PART "x" LF "--b--x", "behind the end", 400 },
	{ PART "x" LF "--b--\n", "behind the end", 400 },
	{ PART "x" LF "--b--\r\r", "behind the end", 400 },
	/* heads of parts */
	{ "--b" LF LF "x" END, "no sound Content-Disposition", 400 },
	{ "--b" LF " x", "begins with a blank", 400 },
	{ HEAD(NAMED "a" LF " b"), "begins with a blank", 400 },
	{ "--b" LF NAMED "\"a\"\n", "LF without CR", 400 },
	{ "--b" LF NAMED "\"a\"\rx", "CR without LF", 400 },
	{ "--b" LF NAMED "\"\x01", "control character", 400 },
	{ HEAD("Content-Disposition"), "no colon", 400 },
	{ HEAD("Content-Disposition : form-data; name=a"), "no blank before the colon", 400 },
	{ HEAD(": x"), "no name", 400 },
	{ HEAD("Content-Type: a/b"), "no sound Content-Disposition", 400 },
	{ HEAD("Content-Disposition: attachment; name=a"), "no sound Content-Disposition", 400 },
	{ HEAD("Content-Disposition: form-data"), "no name", 400 },
	{ HEAD("Content-Disposition: form-data; filename=a"), "no name", 400 },
	{ HEAD("Content-Disposition: form-data, name=a"), "no sound Content-Disposition", 400 },
	{ HEAD("Content-Disposition: form-data name=a"), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED "\"\""), "no name", 400 },
	{ HEAD(NAMED "\"a"), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED "\"a\"b"), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED "a; name=b"), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED "a; filename=b; FileName=c"), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED "a; filename"), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED "a; =b"), "no sound Content-Disposition", 400 },
	{ HEAD(NAMED "\"\xff\""), "not UTF-8", 400 },
	{ HEAD(NAMED "a; filename=\"\xc3\""), "not UTF-8", 400 },
	{ HEAD(NAMED "a; filename=\"\xed\xa0\x80\""), "not UTF-8", 400 },
	{ HEAD(NAMED "a; filename*=UTF-8''b"), "filename*", 400 },
	{ HEAD(NAMED "\"a\\\"b\""), "backslash before", 400 },
	{ HEAD(NAMED "a; filename=\"b\\\""), "backslash before", 400 },
	{ HEAD(NAMED "a" LF NAMED "a"), "more than one", 400 },
	{ HEAD(NAMED "a" LF "Content-Type: a/b" LF "content-type:"), "more than one", 400 },
	{ HEAD(NAMED "a" LF "Content-Transfer-Encoding: base64"), "Content-Transfer-Encoding", 400 },
	{ HEAD(NAMED "a" LF "Content-Transfer-Encoding: quoted-printable"), "Content-Transfer-Encoding", 400 },
};

static void expect_bad(const struct told *t, size_t i, size_t cut)
{
	if (!t->bad || t->m.status != bad_forms[i].status || !strstr(t->m.why, bad_forms[i].why))
		fail_msg("%zu, '%s' cut at %zu: '%s', %u %s", i, bad_forms[i].body, cut, t->text, t->m.status,
			 t->m.why ? t->m.why : "fine");
}

static void bad_forms_are_refused(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_forms); i++) {
		const char *body = bad_forms[i].body;
		size_t len = strlen(body);
		struct told t;

		begin(&t, TYPE);
		for (size_t n = 0; n < len; n++)
			feed(&t, body + n, 1);
		expect_bad(&t, i, 1);
		for (size_t cut = 0; cut <= len; cut++) {
			begin(&t, TYPE);
			feed(&t, body, cut);
			feed(&t, body + cut, len - cut);
			expect_bad(&t, i, cut);
			assert_false(multipart_end(&t.m));
			assert_true(t.m.status == bad_forms[i].status); /* not "cut off" */
		}
	}
}

static void nul_is_data_and_nothing_else(void **state UNUSED)
{
	static const char body[] = PART "\0\0" END;
	struct told t;

	begin(&t, TYPE);
	feed(&t, body, sizeof(body) - 1);
	assert_false(t.bad);
	assert_int_equal(t.len, strlen("[a|-|-]..!") + 1);
	assert_memory_equal(t.text, "[a|-|-]\0\0.!", t.len);
	begin(&t, TYPE);
	feed(&t, "--b\r\nX: \0", 9);
	assert_true(t.bad && strstr(t.m.why, "control character"));
}

static void forms_that_are_cut_are_not_complete(void **state UNUSED)
{
	static const char body[] = PART "x" LF "--b--" LF;

	for (size_t len = 0; len < sizeof(body); len++) {
		bool whole = len == sizeof(body) - 1 || len == sizeof(body) - 3;
		struct told t;

		begin(&t, TYPE);
		feed(&t, body, len);
		assert_false(t.bad);
		assert_int_equal(multipart_end(&t.m), whole);
		if (!whole)
			assert_true(t.m.status == 400 && strstr(t.m.why, "ends before"));
	}
}

static void parts_are_counted(void **state UNUSED)
{
	struct told t;

	begin(&t, TYPE);
	for (int i = 0; i < MULTIPART_PARTS_MAX; i++) {
		t.len = 0;
		feed(&t, PART LF, strlen(PART LF));
		assert_false(t.bad);
	}
	assert_int_equal(t.m.n_parts, MULTIPART_PARTS_MAX);
	feed(&t, PART, strlen(PART));
	assert_true(t.bad);
	assert_int_equal(t.m.status, 413);
}

static void heads_of_parts_are_bounded(void **state UNUSED)
{
	static char head[MULTIPART_HEAD_MAX + 2] = NAMED "a" LF "X: ";
	struct told t;

	memset(head + strlen(head), 'x', sizeof(head) - strlen(head));
	memcpy(head + MULTIPART_HEAD_MAX - 4, LF LF, 4);
	begin(&t, TYPE);
	feed(&t, "--b" LF, 5);
	feed(&t, head, MULTIPART_HEAD_MAX);
	assert_false(t.bad);
	assert_string_equal(t.text, "[a|-|-]");
	memset(head + MULTIPART_HEAD_MAX - 4, 'x', 4);
	begin(&t, TYPE);
	feed(&t, "--b" LF, 5);
	feed(&t, head, MULTIPART_HEAD_MAX);
	assert_false(t.bad);
	feed(&t, "x", 1);
	assert_true(t.bad);
	assert_int_equal(t.m.status, 431);
}

/* Data goes on at once, but for what may be the beginning of a delimiter. */
static void data_is_not_kept(void **state UNUSED)
{
	struct told t;

	begin(&t, TYPE);
	feed(&t, PART "xy", strlen(PART "xy"));
	assert_string_equal(t.text, "[a|-|-]xy");
	feed(&t, "z\r\n--", 5);
	assert_string_equal(t.text, "[a|-|-]xyz");
	feed(&t, "c", 1);
	assert_string_equal(t.text, "[a|-|-]xyz\r\n--c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boundaries_are_read),
		cmocka_unit_test(good_forms_are_read),
		cmocka_unit_test(bad_forms_are_refused),
		cmocka_unit_test(nul_is_data_and_nothing_else),
		cmocka_unit_test(forms_that_are_cut_are_not_complete),
		cmocka_unit_test(parts_are_counted),
		cmocka_unit_test(heads_of_parts_are_bounded),
		cmocka_unit_test(data_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
