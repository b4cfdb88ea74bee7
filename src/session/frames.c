/* SPDX-License-Identifier: Apache-2.0 */
#include "session/frames.h"

#include <string.h>

#include "base/str.h"

bool frame_add(struct frame_reader *r, const char *data, size_t len)
{
	size_t dropped = (size_t)min_u64(r->dropped, len);

	if (r->used > 0) {
		r->bytes.len -= r->used;
		memmove(r->bytes.data, r->bytes.data + r->used, r->bytes.len);
		r->used = 0;
	}
	r->dropped -= dropped;
	return buf_add(&r->bytes, data + dropped, len - dropped) == len - dropped;
}

/* Parses "NAME NUMBER\n" at *at: 1, 0 if it is incomplete, -1 if it is malformed. */
static int read_line(const struct buf *b, size_t *at, char name[FRAME_NAME_MAX + 1], uint64_t *ret, uint64_t most)
{
	const char *from = b->data + *at;
	size_t left = b->len - *at, longest = FRAME_NAME_MAX + 22;
	const char *end = memchr(from, '\n', left < longest ? left : longest);
	size_t len = 0;

	if (!end)
		return left < longest ? 0 : -1;
	while (len < FRAME_NAME_MAX && ((from[len] >= 'a' && from[len] <= 'z') || from[len] == '_'))
		len++;
	if (len == 0 || from[len] != ' ' || from + len + 1 == end)
		return -1;
	memcpy(name, from, len);
	name[len] = '\0';
	*ret = 0;
	for (const char *c = from + len + 1; c < end; c++) {
		if (*c < '0' || *c > '9')
			return -1;
		*ret = *ret * 10 + (uint64_t)(*c - '0');
		if (*ret > most)
			return -1;
	}
	*at += (size_t)(end - from) + 1;
	return 1;
}

/* Makes "NAME 0\n" of the line of a field from start to at, and drops the value that follows. */
static void drop_value(struct frame_reader *r, size_t start, size_t at, const char *name, uint64_t len)
{
	struct buf *b = &r->bytes;
	size_t here = (size_t)min_u64(len, b->len - at), next = start + strlen(name) + 3;

	memcpy(b->data + next - 2, "0\n", 2);
	memmove(b->data + next, b->data + at + here, b->len - at - here);
	b->len -= at + here - next;
	b->data[b->len] = '\0';
	r->dropped = len - here;
	r->is_cut = true;
}

/* Parses one field.  Its value stays in the buffer, and the newline after it is overwritten with NUL. */
static int read_field(struct frame_reader *r, size_t *at, struct frame *ret)
{
	char *name = r->name[ret->n_fields];
	size_t start = *at;
	uint64_t len = 0;
	int rc = read_line(&r->bytes, at, name, &len, FRAME_VALUE_MAX);

	if (rc <= 0)
		return rc;
	if (len > 0 && *at - r->used + len >= r->most) {
		drop_value(r, start, *at, name, len);
		*at = start + strlen(name) + 3;
		len = 0;
	}
	if (r->bytes.len - *at <= len)
		return 0;
	if (r->bytes.data[*at + len] != '\n' && r->bytes.data[*at + len] != '\0') /* NUL: set by an earlier call */
		return -1;
	ret->field[ret->n_fields++] =
		(struct brig_session_field){ .name = name, .value = r->bytes.data + *at, .len = len };
	*at += len + 1;
	return 1;
}

int frame_next(struct frame_reader *r, struct frame *ret)
{
	size_t at = r->used;
	uint64_t n = 0;
	int rc = r->bytes.data ? read_line(&r->bytes, &at, ret->kind, &n, FRAME_FIELDS_MAX) : 0;

	ret->n_fields = 0;
	while (rc > 0 && ret->n_fields < n)
		rc = read_field(r, &at, ret);
	if (rc <= 0)
		return rc;
	for (size_t i = 0; i < ret->n_fields; i++)
		r->bytes.data[(size_t)(ret->field[i].value - r->bytes.data) + ret->field[i].len] = '\0';
	r->used = at;
	ret->is_cut = r->is_cut;
	r->is_cut = false;
	return 1;
}

void frame_reader_reset(struct frame_reader *r)
{
	r->used = r->bytes.len = 0;
	r->dropped = 0;
	r->is_cut = false;
}

void frame_reader_release(struct frame_reader *r)
{
	buf_release(&r->bytes);
	r->used = 0;
}

const char *frame_value(const struct frame *f, const char *name)
{
	for (size_t i = 0; i < f->n_fields; i++)
		if (str_eq(f->field[i].name, name))
			return f->field[i].value;
	return NULL;
}

void frame_write(struct buf *out, const char *kind, const struct brig_session_field *fields, size_t n)
{
	(void)buf_addf(out, "%s %zu\n", kind, n);
	for (size_t i = 0; i < n; i++) {
		(void)buf_addf(out, "%s %zu\n", fields[i].name, fields[i].len);
		(void)buf_add(out, fields[i].value, fields[i].len);
		(void)buf_add(out, "\n", 1);
	}
}
