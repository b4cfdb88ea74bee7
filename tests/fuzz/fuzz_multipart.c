/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A form of several parts: the first line is the request's Content-Type, the rest the body.  Whole, byte by byte and cut in
 * two, the same parts with the same data come out; and what a reader that has all of the body before it finds is the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "net/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(what)            \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

struct outcome {
	struct multipart m;
	uint64_t hash, data;
	size_t n_parts, n_ends;
	bool in_part, done, bad, complete;
};

static void mix(struct outcome *o, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		o->hash = o->hash * 31 + (unsigned char)bytes[i] + 1;
}

static void begin_part(struct outcome *o)
{
	REQUIRE(!o->in_part && !o->done);
	o->in_part = true;
	o->n_parts++;
	REQUIRE(o->m.name && o->m.name[0] && str_is_utf8(o->m.name, strlen(o->m.name)));
	mix(o, o->m.name, strlen(o->m.name) + 1);
	if (o->m.file_name) {
		REQUIRE(str_is_utf8(o->m.file_name, strlen(o->m.file_name)));
		mix(o, o->m.file_name, strlen(o->m.file_name) + 1);
	}
	if (o->m.type)
		mix(o, o->m.type, strlen(o->m.type) + 1);
}

static void note(struct outcome *o, enum multipart_event e, const char *data, size_t len)
{
	REQUIRE((e == MULTIPART_DATA) == (len > 0));
	if (e == MULTIPART_PART) {
		begin_part(o);
	} else if (e == MULTIPART_DATA) {
		REQUIRE(o->in_part);
		mix(o, data, len);
		o->data += len;
	} else if (e == MULTIPART_PART_END) {
		REQUIRE(o->in_part);
		o->in_part = false;
		o->n_ends++;
		mix(o, ".", 1);
	} else if (e == MULTIPART_DONE) {
		REQUIRE(!o->in_part && !o->done);
		o->done = true;
	} else if (e == MULTIPART_BAD) {
		REQUIRE(o->m.status >= 400 && o->m.why && o->m.why[0]);
		o->bad = true;
	}
}

static void feed(struct outcome *o, const char *bytes, size_t len)
{
	enum multipart_event e;

	if (o->bad)
		return;
	do {
		const char *data;
		size_t used, n;

		e = multipart_take(&o->m, bytes, len, &used, &data, &n);
		REQUIRE(used <= len);
		note(o, e, data, n);
		bytes += used;
		len -= used;
	} while (e != MULTIPART_MORE && e != MULTIPART_BAD);
	REQUIRE(e == MULTIPART_BAD || len == 0);
}

static void require_same(const struct outcome *a, const struct outcome *b)
{
	REQUIRE(a->hash == b->hash && a->data == b->data && a->n_parts == b->n_parts && a->n_ends == b->n_ends);
	REQUIRE(a->done == b->done && a->bad == b->bad && a->m.status == b->m.status && a->m.why == b->m.why);
	REQUIRE(a->complete == b->complete);
}

/* Everything but heads, delimiters and the end is data. */
static void check_complete(const struct outcome *o, const char *body, size_t len)
{
	const char *d = o->m.delimiter;
	size_t n = o->m.delimiter_len, found = 0;

	REQUIRE(o->done && o->n_parts == o->n_ends && o->n_parts == o->m.n_parts && o->n_parts <= MULTIPART_PARTS_MAX);
	REQUIRE(len >= n && memcmp(body, d + 2, n - 2) == 0);
	for (const char *at = body; (at = memmem(at, len - (size_t)(at - body), d, n)); at++)
		found++;
	/* A head may hold one, too. */
	REQUIRE(found >= o->n_parts);
	REQUIRE(o->data + (found + 1) * 2 <= len || o->n_parts == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, single, halves;
	const char *type = (const char *)data, *line = memchr(data, '\n', size);
	const char *body = line ? line + 1 : type + size;
	size_t type_len = line ? (size_t)(line - type) : size, len = size - (size_t)(body - type);
	size_t cut = len ? (unsigned char)body[len / 2] % len : 0;

	whole = (struct outcome){ .data = 0 };
	if (!multipart_begin(&whole.m, type, type_len)) {
		REQUIRE(whole.m.status >= 400 && whole.m.why);
		return 0;
	}
	single = halves = whole;
	feed(&whole, body, len);
	for (size_t i = 0; i < len; i++)
		feed(&single, body + i, 1);
	feed(&halves, body, cut);
	feed(&halves, body + cut, len - cut);
	whole.complete = multipart_end(&whole.m);
	single.complete = multipart_end(&single.m);
	halves.complete = multipart_end(&halves.m);
	require_same(&whole, &single);
	require_same(&whole, &halves);
	if (whole.complete)
		check_complete(&whole, body, len);
	return 0;
}
