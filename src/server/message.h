/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the processes of the service: a flat sequence of fields, validated once before use.
 *
 * A field is its number (fields.def), its length and its bytes.  Text includes its NUL, so it can be used in place as a
 * C string; a number has eight bytes.  The reader trusts nothing: the runner, which may be root, reads what the front
 * wrote, and the front handles what clients wrote.
 */
#ifndef SERVER_MESSAGE_H
#define SERVER_MESSAGE_H

#include <brig/brig.h>

#include "base/buf.h"
#include "server/batch.h"

#define MESSAGE_MAX  (96 * MiB)
#define SEAL_KEY_HEX 64 /* hex digits of an Ed25519 public key */

enum field {
#define FIELD(name, kind, max, many) FIELD_##name,
#include "server/fields.def"
#undef FIELD
	FIELD_COUNT
};

/* ---- writing: each appends to a buffer; a field that does not fit marks it (full or no_memory) ------------------ */

void message_put_text(struct buf *m, enum field f, const char *text); /* NULL: nothing is written */
void message_put_bytes(struct buf *m, enum field f, const void *bytes, size_t len);
void message_put_number(struct buf *m, enum field f, uint64_t n);

/* The header of a field whose bytes the caller appends itself. */
void message_put_head(struct buf *m, enum field f, size_t len);

/*
 * Limits of a field, for callers with error messages of their own: its bytes (of text without the NUL), and how often
 * it may occur.
 */
size_t message_max_bytes(enum field f);
/* Whether the text is a valid value of the field: in a LINE, only printable characters. */
bool message_takes(enum field f, const char *text);
size_t message_max_count(enum field f);

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* An index of the fields in the bytes that were read.  The bytes stay the caller's and must not change. */
struct message {
	const char *bytes;
	size_t len;
	uint32_t first[FIELD_COUNT]; /* offset of the first field of each kind, plus 1; 0: there is none */
	uint32_t count[FIELD_COUNT];
};

/* False: the bytes are not a valid message; *ret_why is the reason, for the log. */
bool message_read(const void *bytes, size_t len, struct message *ret, const char **ret_why);

bool message_has(const struct message *m, enum field f);
const char *message_text(const struct message *m, enum field f); /* NULL: none */
uint64_t message_number(const struct message *m, enum field f, uint64_t without);
const char *message_bytes(const struct message *m, enum field f, size_t *ret_len); /* NULL: none */
/* message_texts() stores all texts of a field, in order, in an array of message_count() pointers. */
static inline size_t message_count(const struct message *m, enum field f)
{
	return m->count[f];
}
/* The next field of this kind at or after *at, initially 0, which is moved past it; NULL: no more. */
const char *message_next(const struct message *m, enum field f, size_t *at, size_t *ret_len);
void message_texts(const struct message *m, enum field f, const char **ret);

/* The next field of any kind at *at, initially 0, which is moved past it; NULL: end of the message. */
const char *message_walk(const struct message *m, size_t *at, enum field *ret, size_t *ret_len);

/* ---- fields by name, for messages between versions (server/seal.h) ---------------------------------------------- */

const char *message_field_name(enum field f);
bool message_field_named(const char *name, enum field *ret);
bool message_is_number(enum field f);

/* A hash of brig's version, its fields and its routes; peers with another value cannot understand each other. */
uint16_t message_protocol(void);

/* What travels as descriptors with a message, in the order in which they are sent. */
enum beside { BESIDE_FILES, BESIDE_INPUT, BESIDE_OUT, BESIDE_PROJECT, BESIDE_LEFT, BESIDE_PEER, BESIDE_COUNT };
/* Index of each in the array of descriptors, or -1; *ret_n: how many descriptors belong to the message. */
void message_beside(const struct message *m, int ret[BESIDE_COUNT], size_t *ret_n);

#endif
