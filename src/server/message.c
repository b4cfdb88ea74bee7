/* SPDX-License-Identifier: Apache-2.0 */
#include "server/message.h"

#include <string.h>

#include "base/str.h"

enum field_kind { KIND_TEXT, KIND_LINE, KIND_BYTES, KIND_NUMBER };

struct field_head {
	uint16_t field;
	uint16_t reserved;
	uint32_t len;
};

static const struct field_row {
	const char *name;
	enum field_kind kind;
	uint32_t max, many;
} rows[] = {
#define FIELD(name, kind, max, many) [FIELD_##name] = { #name, KIND_##kind, max, many },
#include "server/fields.def"
#undef FIELD
};

/* ---- writing -------------------------------------------------------------------------------------- */

void message_put_bytes(struct buf *m, enum field f, const void *bytes, size_t len)
{
	const struct field_head head = { .field = (uint16_t)f, .len = (uint32_t)len };

	if (len > UINT32_MAX || len + sizeof(head) > m->max - m->len) {
		m->full = true;
		return;
	}
	(void)buf_add(m, &head, sizeof(head));
	(void)buf_add(m, bytes, len);
}

void message_put_head(struct buf *m, enum field f, size_t len)
{
	const struct field_head head = { .field = (uint16_t)f, .len = (uint32_t)len };

	if (len > UINT32_MAX || sizeof(head) > m->max - m->len)
		m->full = true;
	else
		(void)buf_add(m, &head, sizeof(head));
}

void message_put_text(struct buf *m, enum field f, const char *text)
{
	if (text)
		message_put_bytes(m, f, text, strlen(text) + 1);
}

void message_put_number(struct buf *m, enum field f, uint64_t n)
{
	message_put_bytes(m, f, &n, sizeof(n));
}

size_t message_max_bytes(enum field f)
{
	return rows[f].max;
}

size_t message_max_count(enum field f)
{
	return rows[f].many;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Printable text of at least one byte, with its NUL. */
static bool is_line(const char *bytes, size_t len, size_t max)
{
	if (len < 2 || len > max + 1 || bytes[len - 1] != '\0' || !str_is_utf8(bytes, len - 1))
		return false;
	for (size_t i = 0; i < len - 1; i++)
		if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f)
			return false;
	return true;
}

static const char *wrong_with(const struct field_row *row, const char *bytes, size_t len)
{
	switch (row->kind) {
	case KIND_NUMBER:
		return len == sizeof(uint64_t) ? NULL : "a number that has not eight bytes";
	case KIND_TEXT:
		if (len == 0 || len > (size_t)row->max + 1)
			return "a text of a length that it cannot have";
		return memchr(bytes, '\0', len) == bytes + len - 1 ? NULL : "a text that does not end where it says";
	case KIND_LINE:
		return is_line(bytes, len, row->max) ? NULL : "a line that is none, or that is too long";
	case KIND_BYTES:
		return len <= row->max ? NULL : "more bytes than the field may have";
	}
	return "a field of no kind";
}

bool message_takes(enum field f, const char *text)
{
	return !wrong_with(&rows[f], text, strlen(text) + 1);
}

/* Validates the field at *at and moves *at past it.  NULL, or the reason why it is invalid. */
static const char *read_field(struct message *m, size_t *at)
{
	const struct field_row *row;
	struct field_head head;
	const char *why;

	if (m->len - *at < sizeof(head))
		return "a field whose head is cut";
	memcpy(&head, m->bytes + *at, sizeof(head));
	if (head.field >= FIELD_COUNT || head.reserved != 0)
		return "an unknown field";
	if (head.len > m->len - *at - sizeof(head))
		return "a field that is longer than its message";
	row = &rows[head.field];
	if (m->count[head.field] == row->many)
		return "a field that comes too often";
	why = wrong_with(row, m->bytes + *at + sizeof(head), head.len);
	if (why)
		return why;
	if (m->count[head.field]++ == 0)
		m->first[head.field] = (uint32_t)*at + 1;
	*at += sizeof(head) + head.len;
	return NULL;
}

bool message_read(const void *bytes, size_t len, struct message *ret, const char **ret_why)
{
	size_t at = 0;

	*ret = (struct message){ .bytes = bytes, .len = len };
	*ret_why = len <= MESSAGE_MAX ? NULL : "a message that is too long";
	while (!*ret_why && at < len)
		*ret_why = read_field(ret, &at);
	return !*ret_why;
}

bool message_has(const struct message *m, enum field f)
{
	return m->count[f] > 0;
}

const char *message_bytes(const struct message *m, enum field f, size_t *ret_len)
{
	struct field_head head;

	*ret_len = 0;
	if (m->count[f] == 0)
		return NULL;
	memcpy(&head, m->bytes + m->first[f] - 1, sizeof(head));
	*ret_len = head.len;
	return m->bytes + m->first[f] - 1 + sizeof(head);
}

const char *message_text(const struct message *m, enum field f)
{
	size_t len;

	return message_bytes(m, f, &len);
}

uint64_t message_number(const struct message *m, enum field f, uint64_t without)
{
	size_t len;
	const char *bytes = message_bytes(m, f, &len);
	uint64_t n = without;

	if (bytes)
		memcpy(&n, bytes, sizeof(n));
	return n;
}

void message_texts(const struct message *m, enum field f, const char **ret)
{
	size_t at = m->count[f] ? m->first[f] - 1 : m->len;
	struct field_head head;

	for (size_t n = 0; n < m->count[f]; at += sizeof(head) + head.len) {
		memcpy(&head, m->bytes + at, sizeof(head));
		if (head.field == f)
			ret[n++] = m->bytes + at + sizeof(head);
	}
}

const char *message_next(const struct message *m, enum field f, size_t *at, size_t *ret_len)
{
	struct field_head head;

	while (*at < m->len) {
		const char *bytes = m->bytes + *at + sizeof(head);

		memcpy(&head, m->bytes + *at, sizeof(head));
		*at += sizeof(head) + head.len;
		*ret_len = head.len;
		if (head.field == f)
			return bytes;
	}
	return NULL;
}

const char *message_walk(const struct message *m, size_t *at, enum field *ret, size_t *ret_len)
{
	struct field_head head;
	const char *bytes;

	if (*at >= m->len)
		return NULL;
	memcpy(&head, m->bytes + *at, sizeof(head));
	bytes = m->bytes + *at + sizeof(head);
	*at += sizeof(head) + head.len;
	*ret = (enum field)head.field;
	*ret_len = head.len;
	return bytes;
}

const char *message_field_name(enum field f)
{
	return rows[f].name;
}

bool message_field_named(const char *name, enum field *ret)
{
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (str_eq(rows[i].name, name)) {
			*ret = (enum field)i;
			return true;
		}
	return false;
}

bool message_is_number(enum field f)
{
	return rows[f].kind == KIND_NUMBER;
}

void message_beside(const struct message *m, int ret[BESIDE_COUNT], size_t *ret_n)
{
	static const enum field announces[] = {
		[BESIDE_FILES] = FIELD_has_files, [BESIDE_INPUT] = FIELD_has_input_fd,
		[BESIDE_OUT] = FIELD_has_out_fd,  [BESIDE_PROJECT] = FIELD_has_project,
		[BESIDE_LEFT] = FIELD_has_left,   [BESIDE_PEER] = FIELD_has_peer,
	};
	size_t n = 0;

	for (size_t i = 0; i < BESIDE_COUNT; i++)
		ret[i] = message_number(m, announces[i], 0) ? (int)n++ : -1;
	*ret_n = n;
}

uint16_t message_protocol(void)
{
	static const char all[] = BRIG_VERSION
#define FIELD(name, kind, max, many) "|" #name " " #kind " " #max " " #many
#include "server/fields.def"
#undef FIELD
#define ROUTE(name, ...) "|" #name
#include "server/routes.def"
#undef ROUTE
		;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(all); i++)
		hash = (hash ^ (unsigned char)all[i]) * 16777619u;
	return (uint16_t)(hash ^ hash >> 16);
}
