/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP/1.1: what is read of them, what is refused, and that it does not matter in which pieces they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "test_http1_cases.h"

/* ---- heads -------------------------------------------------------------------------------------- */

static bool same_text(struct http1_text a, struct http1_text b)
{
	return a.at == b.at && a.len == b.len;
}

static bool same_head(const struct http1_head *a, const struct http1_head *b)
{
	if (a->n_lines != b->n_lines || a->trouble != b->trouble || a->status != b->status || a->why != b->why ||
	    a->bad_line != b->bad_line || a->form != b->form || a->body != b->body || a->length != b->length ||
	    a->used != b->used || a->version_1_0 != b->version_1_0 || a->keep_alive != b->keep_alive ||
	    a->expects_continue != b->expects_continue || a->upgrade != b->upgrade)
		return false;
	for (size_t i = 0; i < a->n_lines; i++)
		if (!same_text(a->line[i].name, b->line[i].name) || !same_text(a->line[i].value, b->line[i].value))
			return false;
	return same_text(a->method, b->method) && same_text(a->target, b->target) && same_text(a->path, b->path) &&
	       same_text(a->query, b->query) && same_text(a->scheme, b->scheme) &&
	       same_text(a->authority, b->authority) && same_text(a->host, b->host);
}

/* In copies of just this length, so that a sanitizer sees a byte too far. */
static enum http1_parse parse_copy(const char *bytes, size_t len, size_t *seen, struct http1_head *ret)
{
	AUTO_FREE char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return http1_head_parse(copy, len, seen, ret);
}

static enum http1_parse parse_whole(const char *bytes, size_t len, struct http1_head *ret)
{
	size_t seen = 0;

	return parse_copy(bytes, len, &seen, ret);
}

/* Byte by byte, and cut at every place: the same is decided, with the same byte. */
static void parse_in_pieces(const char *bytes, size_t len, enum http1_parse expected, const struct http1_head *whole,
			    size_t decided_at)
{
	struct http1_head h;
	enum http1_parse p = HTTP1_MORE;
	size_t seen = 0, n = 0;

	while (p == HTTP1_MORE && n < len)
		p = parse_copy(bytes, ++n, &seen, &h);
	if (p != expected || n != decided_at || !same_head(&h, whole))
		fail_msg("'%s' byte by byte: %d after %zu bytes, %s", bytes, p, n, h.why);
	for (size_t cut = 0; cut <= len; cut++) {
		seen = 0;
		p = parse_copy(bytes, cut, &seen, &h);
		if (p != (cut < decided_at ? HTTP1_MORE : expected))
			fail_msg("'%s': %d with %zu bytes", bytes, p, cut);
		if (p == HTTP1_MORE)
			p = parse_copy(bytes, len, &seen, &h);
		if (p != expected || !same_head(&h, whole))
			fail_msg("'%s' cut at %zu: %d, %s", bytes, cut, p, h.why);
	}
}

static bool text_is(const char *bytes, struct http1_text text, const char *expected)
{
	size_t len = expected ? strlen(expected) : 0;

	return text.len == len && memcmp(bytes + text.at, expected ? expected : "", len) == 0;
}

static bool head_is(const struct http1_head *h, const struct good_head *g)
{
	return text_is(g->bytes, h->method, g->method) && text_is(g->bytes, h->target, g->target) &&
	       text_is(g->bytes, h->path, g->path) && text_is(g->bytes, h->query, g->query) &&
	       text_is(g->bytes, h->authority, g->authority) && h->form == g->form && h->body == g->body &&
	       h->length == g->length && h->version_1_0 == g->version_1_0 && h->keep_alive == !g->close &&
	       h->expects_continue == g->expects_continue && h->upgrade == g->upgrade && h->used == g->len;
}

static void good_heads_are_read(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(good_heads); i++) {
		const struct good_head *g = &good_heads[i];
		struct http1_head h;

		if (parse_whole(g->bytes, g->len, &h) != HTTP1_DONE)
			fail_msg("'%s' is refused: %s", g->bytes, h.why ? h.why : "more is wanted");
		if (!head_is(&h, g))
			fail_msg("'%s' is read as something else", g->bytes);
		parse_in_pieces(g->bytes, g->len, HTTP1_DONE, &h, g->len);
	}
}

static void bad_heads_are_refused(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_heads); i++) {
		const struct bad_head *b = &bad_heads[i];
		struct http1_head h;
		enum http1_parse p = parse_whole(b->bytes, b->len, &h);

		if (p != HTTP1_BAD || h.trouble != b->trouble || h.status != b->status || h.bad_line != b->line)
			fail_msg("%zu, '%s': %d, %u in line %zu: %s", i, b->bytes, p, h.status, h.bad_line, h.why);
		assert_true(h.why && h.why[0]);
		parse_in_pieces(b->bytes, b->len, HTTP1_BAD, &h, b->len);
	}
}

/* What is judged as it comes needs no end; everything else has one. */
static void refusals_do_not_wait(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_heads); i++) {
		const struct bad_head *b = &bad_heads[i];
		bool ends = b->len >= 4 && memcmp(b->bytes + b->len - 4, "\r\n\r\n", 4) == 0;

		assert_int_equal(ends, !b->at_once);
	}
}

/* Whatever comes behind: the next request, or a body. */
static void bytes_behind_the_head_are_not_looked_at(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(good_heads); i++) {
		const struct good_head *g = &good_heads[i];
		char bytes[512];
		struct http1_head h;

		assert_true(g->len + 4 < sizeof(bytes));
		memcpy(bytes, g->bytes, g->len);
		memcpy(bytes + g->len, "\0\n \r", 4);
		assert_int_equal(parse_whole(bytes, g->len + 4, &h), HTTP1_DONE);
		assert_true(head_is(&h, g));
	}
}

static void every_trouble_has_a_case(void **state UNUSED)
{
	bool seen[HTTP1_TROUBLE_COUNT] = {
		[HTTP1_ok] = true,
		/* these in heads_are_bounded(), extras_are_bounded() and answers_are_bounded() */
		[HTTP1_answer_too_long] = true,
		[HTTP1_answer_lines] = true,
		[HTTP1_head_too_long] = true,
		[HTTP1_line_too_long] = true,
		[HTTP1_too_many_lines] = true,
		[HTTP1_extra_too_long] = true
	};

	for (size_t i = 0; i < ARRAY_LEN(bad_heads); i++)
		seen[bad_heads[i].trouble] = true;
	for (size_t i = 0; i < ARRAY_LEN(body_cases); i++)
		seen[body_cases[i].trouble] = true;
	for (size_t i = 0; i < ARRAY_LEN(answer_cases); i++)
		seen[answer_cases[i].trouble] = true;
	for (size_t i = 0; i < HTTP1_TROUBLE_COUNT; i++)
		if (!seen[i])
			fail_msg("trouble %zu has none", i);
}

static void expect_too_long(const char *bytes, enum http1_trouble trouble, unsigned status)
{
	struct http1_head h;
	size_t seen = 0;

	assert_int_equal(http1_head_parse(bytes, HTTP1_HEAD_MAX - 1, &seen, &h), HTTP1_MORE);
	assert_int_equal(http1_head_parse(bytes, HTTP1_HEAD_MAX, &seen, &h), HTTP1_BAD);
	assert_int_equal(h.trouble, trouble);
	assert_int_equal(h.status, status);
	assert_int_equal(parse_whole(bytes, HTTP1_HEAD_MAX + 100, &h), HTTP1_BAD);
	assert_int_equal(h.trouble, trouble);
}

static void heads_are_bounded(void **state UNUSED)
{
	static const char begin[] = GET_A "X: ";
	static char big[HTTP1_HEAD_MAX + 100];
	struct http1_head h;

	memset(big, 'A', sizeof(big));
	expect_too_long(big, HTTP1_line_too_long, 414);
	memcpy(big, begin, sizeof(begin) - 1);
	expect_too_long(big, HTTP1_head_too_long, 431);
	memcpy(big + HTTP1_HEAD_MAX - 4, "\r\n\r\n", 4);
	assert_int_equal(parse_whole(big, HTTP1_HEAD_MAX, &h), HTTP1_DONE);
	assert_int_equal(h.used, HTTP1_HEAD_MAX);
}

static void lines_are_bounded(void **state UNUSED)
{
	char many[8192] = "GET / HTTP/1.1\r\nHost: a.test\r\n";
	struct http1_head h;
	size_t len = strlen(many);

	for (int i = 1; i < HTTP1_LINES_MAX; i++, len += 6)
		memcpy(many + len, "X: y\r\n", 6);
	memcpy(many + len, "\r\n", 2);
	assert_int_equal(parse_whole(many, len + 2, &h), HTTP1_DONE);
	assert_int_equal(h.n_lines, HTTP1_LINES_MAX);
	memcpy(many + len, "X: y\r\n\r\n", 8);
	assert_int_equal(parse_whole(many, len + 8, &h), HTTP1_BAD);
	assert_int_equal(h.trouble, HTTP1_too_many_lines);
	assert_int_equal(h.status, 431);
	assert_int_equal(h.bad_line, HTTP1_LINES_MAX + 2);
}

/* ---- answers ------------------------------------------------------------------------------------ */

/* In a copy of just this length. */
static enum http1_parse parse_answer(const char *bytes, size_t len, size_t *seen, bool is_of_head,
				     struct http1_head *ret)
{
	AUTO_FREE char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return http1_answer_parse(copy, len, seen, is_of_head, ret);
}

static bool answer_is(const struct answer_case *a, enum http1_parse p, const struct http1_head *h)
{
	if (a->trouble != HTTP1_ok)
		return p == HTTP1_BAD && h->trouble == a->trouble && h->status == 502 && h->why;
	return p == HTTP1_DONE && h->code == a->code && h->body == a->body && h->length == a->length &&
	       h->upgrade == a->upgrade && h->used == a->len;
}

/* Whole, and byte by byte. */
static void answers_are_read(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(answer_cases); i++) {
		const struct answer_case *a = &answer_cases[i];
		size_t seen = 0, n = 0;
		struct http1_head h;
		enum http1_parse p = parse_answer(a->bytes, a->len, &seen, a->is_of_head, &h);

		if (!answer_is(a, p, &h))
			fail_msg("%zu, '%s': %d, %u, %s", i, a->bytes, p, h.code, h.why);
		for (p = HTTP1_MORE, seen = 0; p == HTTP1_MORE && n < a->len;)
			p = parse_answer(a->bytes, ++n, &seen, a->is_of_head, &h);
		if (!answer_is(a, p, &h))
			fail_msg("%zu, '%s' byte by byte: %d, %u, %s", i, a->bytes, p, h.code, h.why);
	}
}

static void answers_are_bounded(void **state UNUSED)
{
	static char big[HTTP1_HEAD_MAX + 100];
	char many[8192] = OK_LINE;
	size_t len = strlen(many), seen = 0;
	struct http1_head h;

	memset(big, 'A', sizeof(big));
	memcpy(big, OK_LINE, strlen(OK_LINE));
	assert_int_equal(http1_answer_parse(big, HTTP1_HEAD_MAX - 1, &seen, false, &h), HTTP1_MORE);
	assert_int_equal(http1_answer_parse(big, sizeof(big), &seen, false, &h), HTTP1_BAD);
	assert_int_equal(h.trouble, HTTP1_answer_too_long);
	for (int i = 0; i <= HTTP1_LINES_MAX; i++, len += 6)
		memcpy(many + len, "X: y\r\n", 6);
	memcpy(many + len, "\r\n", 2);
	seen = 0;
	assert_int_equal(http1_answer_parse(many, len + 2, &seen, false, &h), HTTP1_BAD);
	assert_int_equal(h.trouble, HTTP1_answer_lines);
}

/* A body without a length has all that comes. */
static void bodies_of_answers_may_end_with_the_connection(void **state UNUSED)
{
	const struct http1_head h = { .body = HTTP1_BODY_UNTIL_END };
	struct http1_body_reader r;
	size_t at, n;

	http1_body_begin(&r, &h);
	assert_false(r.done);
	assert_int_equal(http1_body_take(&r, "hello", 5, &at, &n), 5);
	assert_int_equal(at, 0);
	assert_int_equal(n, 5);
	assert_false(r.done || r.bad);
}

static void fields_are_found(void **state UNUSED)
{
	static const char bytes[] = GET_A "Accept: a" LF "X-Empty:" LF "accept:\tb , c " LF LF;
	const struct http1_line *line;
	struct http1_head h;

	assert_int_equal(parse_whole(bytes, sizeof(bytes) - 1, &h), HTTP1_DONE);
	assert_int_equal(h.n_lines, 4);
	assert_true(text_is(bytes, h.host, "a.test"));
	line = http1_find(bytes, &h, "ACCEPT");
	assert_true(line && text_is(bytes, line->value, "a") && text_is(bytes, line->name, "Accept"));
	assert_int_equal(http1_count(bytes, &h, "Accept"), 2);
	assert_true(text_is(bytes, h.line[3].value, "b , c"));
	line = http1_find(bytes, &h, "x-empty");
	assert_true(line && line->value.len == 0);
	assert_null(http1_find(bytes, &h, "accep"));
	assert_null(http1_find(bytes, &h, "accept2"));
	assert_int_equal(http1_count(bytes, &h, "x"), 0);
	assert_true(http1_has_word(bytes, &h, "accept", "C", 1));
	assert_true(http1_has_word(bytes, &h, "accept", "a", 1));
	assert_false(http1_has_word(bytes, &h, "accept", "b ", 2));
	assert_false(http1_has_word(bytes, &h, "host", "a", 1));
	assert_true(http1_is(bytes, h.method, "GET"));
	assert_false(http1_is(bytes, h.method, "GE"));
	assert_false(http1_is(bytes, h.method, "GETS"));
}

/* What the egress proxy reports of a request that it refuses. */
static void what_was_read_before_the_trouble_is_told(void **state UNUSED)
{
	static const char bytes[] = "GET http://a.test:81/x HTTP/1.1" LF "no field" LF LF;
	struct http1_head h;

	assert_int_equal(parse_whole(bytes, sizeof(bytes) - 1, &h), HTTP1_BAD);
	assert_int_equal(h.form, HTTP1_ABSOLUTE);
	assert_true(text_is(bytes, h.authority, "a.test:81"));
	assert_true(text_is(bytes, h.path, "/x"));
}

/* ---- bodies ------------------------------------------------------------------------------------- */

struct taken {
	struct http1_body_reader r;
	char data[64];
	size_t n_data, n;
};

/* As much of len as belongs to the body. */
static void take(struct taken *t, const char *bytes, size_t len)
{
	AUTO_FREE char *copy = malloc(len ? len : 1);
	size_t from = 0;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	while (from < len && !t->r.done && !t->r.bad) {
		size_t at, n, used = http1_body_take(&t->r, copy + from, len - from, &at, &n);

		assert_true(used > 0 && used <= len - from && at + n <= used);
		assert_true(t->n_data + n <= sizeof(t->data));
		memcpy(t->data + t->n_data, copy + from + at, n);
		t->n_data += n;
		from += used;
	}
	t->n += from;
}

static void begin(struct taken *t, const struct body_case *c)
{
	const struct http1_head h = { .body = c->kind, .length = c->length };

	*t = (struct taken){ .n = 0 };
	http1_body_begin(&t->r, &h);
	t->r.plain = c->plain;
}

static void check_taken(const struct taken *t, const struct body_case *c, const char *how, size_t cut)
{
	if (t->n != c->taken || t->r.done != c->done || t->r.bad != (c->trouble != HTTP1_ok) ||
	    t->r.trouble != c->trouble || t->n_data != strlen(c->data) || memcmp(t->data, c->data, t->n_data) != 0)
		fail_msg("'%s' %s %zu: %zu bytes, %zu of data, %s", c->bytes, how, cut, t->n, t->n_data,
			 t->r.done  ? "done"
			 : t->r.bad ? t->r.why
				    : "more");
	if (t->r.bad)
		assert_true(t->r.status == 400 && t->r.why[0]);
}

static void bodies_end_where_they_say(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(body_cases); i++) {
		const struct body_case *c = &body_cases[i];
		size_t len = strlen(c->bytes);
		struct taken t;

		begin(&t, c);
		for (size_t n = 0; n < len; n++)
			take(&t, c->bytes + n, 1);
		check_taken(&t, c, "in pieces of", 1);
		for (size_t cut = 0; cut <= len; cut++) {
			begin(&t, c);
			take(&t, c->bytes, cut);
			take(&t, c->bytes + cut, len - cut);
			check_taken(&t, c, "cut at", cut);
		}
	}
}

static void no_body_is_done_at_once(void **state UNUSED)
{
	const struct body_case none = { .kind = HTTP1_BODY_NONE };
	struct taken t;
	size_t at, n;

	begin(&t, &none);
	assert_true(t.r.done);
	assert_int_equal(http1_body_take(&t.r, "GET", 3, &at, &n), 0);
	assert_int_equal(n, 0);
}

static void expect_bounded(const char *before, const char *again)
{
	const struct body_case chunked = { .kind = HTTP1_BODY_CHUNKED };
	struct taken t;

	begin(&t, &chunked);
	take(&t, before, strlen(before));
	while (!t.r.bad && t.n < 100 * HTTP1_EXTRA_MAX) {
		t.n_data = 0;
		take(&t, again, strlen(again));
	}
	assert_int_equal(t.r.trouble, HTTP1_extra_too_long);
	assert_int_equal(t.r.status, 431);
	assert_true(t.n > HTTP1_EXTRA_MAX);
}

/* In one line or in many, of one chunk or of many. */
static void extras_are_bounded(void **state UNUSED)
{
	expect_bounded("1;", "x");
	expect_bounded("", "1;x\r\na\r\n");
	expect_bounded("0\r\nX: ", "y");
	expect_bounded("0\r\n", "X: y\r\n");
	expect_bounded("0\r\n", "x");
}

static void long_bodies_come_in_long_pieces(void **state UNUSED)
{
	static char piece[100000];
	const struct http1_head h = { .body = HTTP1_BODY_LENGTH, .length = 5000000000 };
	struct http1_body_reader r;
	uint64_t total = 0;

	http1_body_begin(&r, &h);
	while (!r.done) {
		size_t at, n, used = http1_body_take(&r, piece, sizeof(piece), &at, &n);

		assert_true(at == 0 && used == n && n > 0);
		total += n;
	}
	assert_int_equal(total, 5000000000);
}

/* ---- percent-decoding --------------------------------------------------------------------------- */

static const struct {
	const char *raw, *decoded; /* NULL: refused */
} escapes[] = {
	{ "", "" },       { "abc", "abc" },       { "a%20b", "a b" }, { "%2e%2E%2f", "../" }, { "%c3%BC", "\xc3\xbc" },
	{ "a+b", "a+b" }, { "%25%32%30", "%20" }, /* once, not twice */
	{ "%00", NULL },  { "a%", NULL },         { "a%2", NULL },    { "%2g", NULL },        { "%g2", NULL },
	{ "% 2", NULL },  { "%%20", NULL },       { "%+2", NULL },
};

static void escapes_are_decoded_once(void **state UNUSED)
{
	char dst[16];
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
		bool ok = http1_decode(escapes[i].raw, strlen(escapes[i].raw), dst, sizeof(dst), &n);

		if (ok != (escapes[i].decoded != NULL) ||
		    (ok && (!str_eq(dst, escapes[i].decoded) || n != strlen(escapes[i].decoded))))
			fail_msg("'%s' is %s", escapes[i].raw, ok ? dst : "refused");
	}
	assert_false(http1_decode("a\0b", 3, dst, sizeof(dst), &n));
	assert_true(http1_decode("%41%42", 6, dst, 3, &n));
	assert_false(http1_decode("%41%42", 6, dst, 2, &n));
	assert_false(http1_decode("", 0, dst, 0, &n));
	assert_true(http1_decode("", 0, dst, 1, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_heads_are_read),
		cmocka_unit_test(bad_heads_are_refused),
		cmocka_unit_test(refusals_do_not_wait),
		cmocka_unit_test(bytes_behind_the_head_are_not_looked_at),
		cmocka_unit_test(every_trouble_has_a_case),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(answers_are_read),
		cmocka_unit_test(answers_are_bounded),
		cmocka_unit_test(bodies_of_answers_may_end_with_the_connection),
		cmocka_unit_test(fields_are_found),
		cmocka_unit_test(what_was_read_before_the_trouble_is_told),
		cmocka_unit_test(bodies_end_where_they_say),
		cmocka_unit_test(no_body_is_done_at_once),
		cmocka_unit_test(extras_are_bounded),
		cmocka_unit_test(long_bodies_come_in_long_pieces),
		cmocka_unit_test(escapes_are_decoded_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
