/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of HTTP/1.1, one behind the other as on a connection that is kept.  Whole, byte by byte and cut in two, the same
 * is decided and the same data comes out; places lie within the head, and what is let through has one meaning only.
 * Then the same bytes as an answer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(what)            \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

/* ---- heads -------------------------------------------------------------------------------------- */

static bool same_text(struct http1_text a, struct http1_text b)
{
	return a.at == b.at && a.len == b.len;
}

static void require_same(const struct http1_head *a, const struct http1_head *b)
{
	REQUIRE(a->trouble == b->trouble && a->status == b->status && a->why == b->why && a->bad_line == b->bad_line);
	REQUIRE(a->form == b->form && a->body == b->body && a->length == b->length && a->used == b->used);
	REQUIRE(a->version_1_0 == b->version_1_0 && a->keep_alive == b->keep_alive && a->upgrade == b->upgrade);
	REQUIRE(a->expects_continue == b->expects_continue && a->n_lines == b->n_lines);
	REQUIRE(same_text(a->method, b->method) && same_text(a->target, b->target) && same_text(a->path, b->path));
	REQUIRE(same_text(a->query, b->query) && same_text(a->authority, b->authority) && same_text(a->host, b->host));
	for (size_t i = 0; i < a->n_lines; i++)
		REQUIRE(same_text(a->line[i].name, b->line[i].name) && same_text(a->line[i].value, b->line[i].value));
}

static void require_inside(const struct http1_head *h, struct http1_text text)
{
	REQUIRE(text.at <= h->used && text.len <= h->used - text.at);
}

static void check_done(const char *bytes, const struct http1_head *h)
{
	REQUIRE(h->used >= 4 && memcmp(bytes + h->used - 4, "\r\n\r\n", 4) == 0);
	REQUIRE(!memmem(bytes, h->used - 1, "\r\n\r\n", 4) && !memchr(bytes, '\0', h->used));
	REQUIRE(h->method.len > 0 && h->target.len > 0 && h->n_lines <= HTTP1_LINES_MAX);
	require_inside(h, h->method);
	require_inside(h, h->target);
	require_inside(h, h->path);
	require_inside(h, h->query);
	require_inside(h, h->authority);
	require_inside(h, h->host);
	for (size_t i = 0; i < h->n_lines; i++) {
		require_inside(h, h->line[i].name);
		require_inside(h, h->line[i].value);
	}
	REQUIRE(http1_count(bytes, h, "host") <= 1);
	REQUIRE(h->version_1_0 || h->form == HTTP1_AUTHORITY || http1_count(bytes, h, "host") == 1);
	REQUIRE(http1_count(bytes, h, "content-length") + http1_count(bytes, h, "transfer-encoding") <= 1);
	REQUIRE((h->body == HTTP1_BODY_CHUNKED) == (http1_count(bytes, h, "transfer-encoding") == 1));
	REQUIRE((h->body == HTTP1_BODY_LENGTH) == (h->length > 0));
}

static enum http1_parse parse_head(const char *bytes, size_t size, struct http1_head *ret)
{
	static struct http1_head other;
	size_t seen = 0, cut = size ? (unsigned char)bytes[size - 1] % size : 0;
	enum http1_parse p = http1_head_parse(bytes, size, &seen, ret), q = HTTP1_MORE;

	seen = 0;
	for (size_t n = 1; n <= size && q == HTTP1_MORE; n++)
		q = http1_head_parse(bytes, n, &seen, &other);
	REQUIRE(p == q);
	if (p != HTTP1_MORE)
		require_same(ret, &other);
	seen = 0;
	q = http1_head_parse(bytes, cut, &seen, &other);
	if (q == HTTP1_MORE)
		q = http1_head_parse(bytes, size, &seen, &other);
	REQUIRE(p == q);
	if (p != HTTP1_MORE)
		require_same(ret, &other);
	REQUIRE((p == HTTP1_BAD) == (ret->trouble != HTTP1_ok) && (p != HTTP1_BAD || (ret->status >= 400 && ret->why)));
	return p;
}

/* ---- bodies ------------------------------------------------------------------------------------- */

struct outcome {
	struct http1_body_reader r;
	size_t taken;
	uint64_t data, hash; /* how much, and what */
};

static void take(struct outcome *o, const char *bytes, size_t len)
{
	while (len > 0 && !o->r.done && !o->r.bad) {
		size_t at, n, used = http1_body_take(&o->r, bytes, len, &at, &n);

		REQUIRE(used > 0 && used <= len && at <= used && n <= used - at);
		for (size_t i = 0; i < n; i++)
			o->hash = o->hash * 31 + (unsigned char)bytes[at + i];
		o->data += n;
		o->taken += used;
		bytes += used;
		len -= used;
	}
}

static size_t check_body(const char *bytes, size_t len, const struct http1_head *h, bool plain)
{
	struct outcome whole = { .taken = 0 }, single;

	http1_body_begin(&whole.r, h);
	whole.r.plain = plain;
	single = whole;
	take(&whole, bytes, len);
	for (size_t i = 0; i < len; i++)
		take(&single, bytes + i, 1);
	REQUIRE(whole.taken == single.taken && whole.data == single.data && whole.hash == single.hash);
	REQUIRE(whole.r.done == single.r.done && whole.r.bad == single.r.bad && whole.r.trouble == single.r.trouble);
	REQUIRE(!(whole.r.done && whole.r.bad) && whole.r.extra <= HTTP1_EXTRA_MAX + 1);
	REQUIRE(whole.r.done || whole.r.bad || whole.taken == len);
	REQUIRE(h->body != HTTP1_BODY_LENGTH || !whole.r.done || whole.data == h->length);
	return whole.r.done ? whole.taken : SIZE_MAX;
}

static void check_decoding(const char *bytes, struct http1_text path)
{
	static char dst[HTTP1_HEAD_MAX];
	size_t n;

	if (http1_decode(bytes + path.at, path.len, dst, sizeof(dst), &n))
		REQUIRE(n <= path.len && strlen(dst) == n);
}

static void check_answer(const char *bytes, size_t size, bool is_of_head)
{
	static struct http1_head h, other;
	size_t seen = 0;
	enum http1_parse p = http1_answer_parse(bytes, size, &seen, is_of_head, &h), q = HTTP1_MORE;

	seen = 0;
	for (size_t n = 1; n <= size && q == HTTP1_MORE; n++)
		q = http1_answer_parse(bytes, n, &seen, is_of_head, &other);
	REQUIRE(p == q && (p != HTTP1_BAD || (h.status == 502 && h.why)));
	if (p == HTTP1_MORE)
		return;
	require_same(&h, &other);
	if (p == HTTP1_BAD)
		return;
	REQUIRE(h.used >= 4 && memcmp(bytes + h.used - 4, "\r\n\r\n", 4) == 0 && h.code >= 100 && h.code <= 599);
	REQUIRE(http1_count(bytes, &h, "content-length") + http1_count(bytes, &h, "transfer-encoding") <= 1);
	REQUIRE(!is_of_head || h.body == HTTP1_BODY_NONE);
	(void)check_body(bytes + h.used, size - h.used, &h, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http1_head h;
	const char *bytes = (const char *)data;
	size_t body;

	check_answer(bytes, size, false);
	check_answer(bytes, size, true);
	while (size > 0 && parse_head(bytes, size, &h) == HTTP1_DONE) {
		check_done(bytes, &h);
		check_decoding(bytes, h.path);
		bytes += h.used;
		size -= h.used;
		(void)check_body(bytes, size, &h, true);
		body = check_body(bytes, size, &h, false);
		if (body == SIZE_MAX || !h.keep_alive)
			break;
		bytes += body;
		size -= body;
	}
	return 0;
}
