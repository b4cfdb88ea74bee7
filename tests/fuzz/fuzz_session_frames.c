/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a session's kernel.  Whole or byte by byte, the same comes out; what comes out was in it, and ends with a NUL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "session/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	size_t frames, fields, bytes;
	int end;
};

static void take(const struct frame *f, const struct frame_reader *r, struct seen *ret)
{
	ret->frames++;
	if (f->n_fields > FRAME_FIELDS_MAX || strlen(f->kind) > FRAME_NAME_MAX)
		abort();
	for (size_t i = 0; i < f->n_fields; i++) {
		const struct brig_session_field *v = &f->field[i];

		if (v->value < r->bytes.data || v->value + v->len >= r->bytes.data + r->bytes.len || v->value[v->len])
			abort();
		ret->fields++;
		ret->bytes += v->len;
	}
}

static void decode(const uint8_t *data, size_t size, size_t piece, struct seen *ret)
{
	struct frame_reader r = FRAME_READER_INIT(1 << 10);
	struct frame f;

	for (size_t at = 0; at < size && ret->end == 0; at += piece) {
		if (!frame_add(&r, (const char *)data + at, piece < size - at ? piece : size - at))
			break;
		while ((ret->end = frame_next(&r, &f)) > 0)
			take(&f, &r, ret);
	}
	frame_reader_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = { 0 }, single = { 0 };

	if (size > 1 << 14)
		return 0;
	decode(data, size, size ? size : 1, &whole);
	decode(data, size, 1, &single);
	if (whole.frames != single.frames || whole.fields != single.fields || whole.bytes != single.bytes ||
	    whole.end != single.end)
		abort();
	return 0;
}
