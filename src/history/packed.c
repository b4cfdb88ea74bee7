/* SPDX-License-Identifier: Apache-2.0 */
#include "history/packed.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "model/plan.h"

#define TABLE(name, many, help)
#define COLUMN(table, name, kind, help) \
	static_assert(COLUMN_##table##_##name - FIRST_##table < TABLE_COLUMNS_MAX, "too many columns in " #table);
#include "history/tables.def"

/* ---- writing ----------------------------------------------------------------------------------- */

void packed_begin(struct packed_writer *w, struct buf *out)
{
	const char version = PACKED_VERSION;

	*w = (struct packed_writer){ .out = out };
	buf_add(out, &version, 1);
}

void packed_row(struct packed_writer *w, enum history_table table)
{
	const char head[] = { (char)table, 0 };

	buf_add(w->out, head, sizeof(head));
	w->count_at = w->out->len - 1;
}

static void add_value(struct packed_writer *w, char kind, const void *data, size_t len)
{
	buf_add(w->out, &kind, 1);
	buf_add(w->out, data, len);
	if (w->count_at < w->out->len)
		w->out->data[w->count_at]++;
}

void packed_null(struct packed_writer *w)
{
	add_value(w, '0', "", 0);
}

void packed_num(struct packed_writer *w, uint64_t v)
{
	const int64_t n = (int64_t)min_u64(v, INT64_MAX);

	add_value(w, 'n', &n, sizeof(n));
}

void packed_real(struct packed_writer *w, double v)
{
	add_value(w, 'r', &v, sizeof(v));
}

void packed_bytes(struct packed_writer *w, const void *data, size_t len)
{
	const uint32_t n = (uint32_t)len;

	assert(len <= UINT32_MAX);
	add_value(w, 's', &n, sizeof(n));
	buf_add(w->out, data, len);
}

void packed_text(struct packed_writer *w, const char *s)
{
	packed_bytes(w, s, strlen(s));
}

void packed_text_or_null(struct packed_writer *w, const char *s)
{
	if (*s)
		packed_text(w, s);
	else
		packed_null(w);
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* NULL: so much is not there. */
static const char *take(struct packed_reader *r, size_t len)
{
	const char *at = r->at;

	if (len > r->left)
		return NULL;
	r->at += len;
	r->left -= len;
	return at;
}

static bool take_into(struct packed_reader *r, void *dst, size_t len)
{
	const char *at = take(r, len);

	if (at)
		memcpy(dst, at, len);
	return at != NULL;
}

static bool take_bytes(struct packed_reader *r, struct packed_value *v)
{
	uint32_t len;

	v->kind = PACKED_BYTES;
	if (!take_into(r, &len, sizeof(len)))
		return false;
	v->len = len;
	v->data = take(r, len);
	return v->data != NULL;
}

static bool take_value(struct packed_reader *r, struct packed_value *v)
{
	char kind;

	*v = (struct packed_value){ .kind = PACKED_NULL };
	if (!take_into(r, &kind, 1))
		return false;
	switch (kind) {
	case '0':
		return true;
	case 'n':
		v->kind = PACKED_NUM;
		return take_into(r, &v->num, sizeof(v->num));
	case 'r':
		v->kind = PACKED_REAL;
		return take_into(r, &v->real, sizeof(v->real)) && isfinite(v->real);
	case 's':
		return take_bytes(r, v);
	default:
		return false;
	}
}

bool packed_open(struct packed_reader *r, const void *data, size_t len)
{
	char version;

	*r = (struct packed_reader){ .at = data, .left = len };
	return take_into(r, &version, 1) && version == PACKED_VERSION;
}

int packed_next(struct packed_reader *r, struct packed_row *ret)
{
	unsigned char head[2];
	struct packed_value v;

	if (r->left == 0)
		return 0;
	if (!take_into(r, head, sizeof(head)))
		return -1;
	ret->table = head[0];
	ret->n = 0;
	for (unsigned i = 0; i < head[1]; i++) {
		if (!take_value(r, &v))
			return -1;
		if (ret->n < TABLE_COLUMNS_MAX)
			ret->value[ret->n++] = v;
	}
	return 1;
}

size_t packed_place(const void *data, size_t len, unsigned column)
{
	struct packed_reader r;
	struct packed_value v;
	unsigned char head[2];

	if (!packed_open(&r, data, len) || !take_into(&r, head, sizeof(head)) || column > head[1])
		return 0;
	for (unsigned i = 0; i < column; i++)
		if (!take_value(&r, &v))
			return 0;
	return len - r.left;
}

static bool read_id(const struct packed_row *row, char *ret_id)
{
	const struct packed_value *id = &row->value[COLUMN_executions_id];

	if (row->table != TABLE_executions || row->n <= COLUMN_executions_at_ns || id->kind != PACKED_BYTES ||
	    id->len != RUN_ID_LEN)
		return false;
	memcpy(ret_id, id->data, RUN_ID_LEN);
	ret_id[RUN_ID_LEN] = '\0';
	return strspn(ret_id, "abcdefghijklmnopqrstuvwxyz234567") == RUN_ID_LEN;
}

bool packed_check(const void *data, size_t len, char *ret_id)
{
	struct packed_reader r;
	struct packed_row row;
	int rc;

	if (!packed_open(&r, data, len) || packed_next(&r, &row) != 1 || !read_id(&row, ret_id) ||
	    row.value[COLUMN_executions_at_ns].kind != PACKED_NUM)
		return false;
	while ((rc = packed_next(&r, &row)) == 1)
		if (row.table == TABLE_executions) /* there is one only */
			return false;
	return rc == 0;
}
