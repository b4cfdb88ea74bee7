/* SPDX-License-Identifier: Apache-2.0 */
/* A container's stderr, and its stdout up to the mark: any bytes, in pieces of any size, give the same as in one piece. */
#include <stdlib.h>
#include <string.h>

#include "backend/container/wire.h"

struct sum {
	size_t guest, frames;
	uint32_t hash;
	bool broken;
};

static void add(struct sum *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		s->hash = (s->hash ^ (unsigned char)data[i]) * 16777619u;
	s->guest += len;
}

static void feed(struct wire_reader *r, const char *data, size_t len, struct sum *s)
{
	const char *piece;
	size_t n;
	unsigned type;

	while (!s->broken)
		switch (wire_next(r, &data, &len, &type, &piece, &n)) {
		case WIRE_NOTHING:
			return;
		case WIRE_ITEM_GUEST:
			add(s, piece, n);
			break;
		case WIRE_ITEM_FRAME:
			if (n > WIRE_BODY_MAX || type >= WIRE_FRAMES)
				abort();
			s->frames++;
			break;
		case WIRE_ITEM_BROKEN:
			s->broken = true;
		}
}

static struct sum run(const char *data, size_t len, size_t step)
{
	static struct wire_reader r;
	uint8_t key[2][WIRE_KEY];
	struct sum s = { .hash = 2166136261u };
	const char *rest;
	size_t n;

	/* Keys with few different bytes, so that a fuzzer comes across their beginnings. */
	memset(key[0], 'A', WIRE_KEY);
	for (size_t i = 0; i < WIRE_KEY; i++)
		key[1][i] = "aab"[i % 3];
	wire_reader_init(&r, (const uint8_t(*)[WIRE_KEY])key);
	for (size_t at = 0; at < len; at += step)
		feed(&r, data + at, len - at < step ? len - at : step, &s);
	n = wire_rest(&r, &rest);
	if (!s.broken)
		add(&s, rest, n);
	return s;
}

static struct sum run_mark(const char *data, size_t len, size_t step)
{
	struct sum s = { .hash = 2166136261u };
	uint8_t key[WIRE_KEY];
	const char *piece;
	struct wire_mark m;
	size_t n;

	for (size_t i = 0; i < WIRE_KEY; i++)
		key[i] = "aab"[i % 3];
	wire_mark_init(&m, key);
	for (size_t at = 0; at < len && !s.broken; at += step) {
		const char *from = data + at;
		size_t left = len - at < step ? len - at : step;

		while (wire_mark_next(&m, &from, &left, &piece, &n))
			add(&s, piece, n);
		s.broken = left > 0; /* something behind it */
	}
	s.frames = wire_mark_found(&m);
	n = wire_mark_rest(&m, &piece);
	add(&s, piece, n);
	return s;
}

static bool same(struct sum whole, struct sum bytes)
{
	return whole.broken == bytes.broken && whole.frames == bytes.frames && whole.guest == bytes.guest &&
	       whole.hash == bytes.hash;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len)
{
	const char *data = (const char *)bytes;

	if (!same(run(data, len, len ? len : 1), run(data, len, 1)) ||
	    !same(run_mark(data, len, len ? len : 1), run_mark(data, len, 1)))
		abort();
	return 0;
}
