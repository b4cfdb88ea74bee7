/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the processes of the service: rows of fields, flat, checked once before anybody uses them.
 *
 * A field is its number (fields.def), its length and its bytes.  Text has its NUL among them, so that what was read is a
 * string of C where it lies; a number has eight bytes.  The reader believes nothing: the runner, which may be root, reads
 * what the front wrote, and the front reads what strangers wrote.
 */
#ifndef SERVER_MESSAGE_H
#define SERVER_MESSAGE_H

#include <brig/brig.h>

#include "base/buf.h"
#include "server/batch.h"

#define MESSAGE_MAX  (96 * MiB)
#define SEAL_KEY_HEX 64 /* of a public key of Ed25519 */

enum field {
#define FIELD(name, kind, max, many) FIELD_##name,
#include "server/fields.def"
#undef FIELD
	FIELD_COUNT
};

/* ---- writing: each appends to a buffer; a field that does not fit leaves it marked (full or no_memory) --------- */

void message_put_text(struct buf *m, enum field f, const char *text); /* NULL: nothing */
void message_put_bytes(struct buf *m, enum field f, const void *bytes, size_t len);
void message_put_number(struct buf *m, enum field f, uint64_t n);

/* The head of one whose bytes are written behind it by somebody else. */
void message_put_head(struct buf *m, enum field f, size_t len);

/* What a field may have, for who complains in words of its own: bytes of one (of a text without its NUL), and how many. */
size_t message_max_bytes(enum field f);
/* Whether a text of ours can be that of a field: of a LINE, nothing but what can be printed. */
bool message_takes(enum field f, const char *text);
size_t message_max_count(enum field f);

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Where fields lie in the bytes that were read, which stay the caller's and must stay as they are. */
struct message {
	const char *bytes;
	size_t len;
	uint32_t first[FIELD_COUNT]; /* where the first one of its kind begins, counted from 1; 0: there is none */
	uint32_t count[FIELD_COUNT];
};

/* False: the bytes are no message; *ret_why says why not, for the log. */
bool message_read(const void *bytes, size_t len, struct message *ret, const char **ret_why);

bool message_has(const struct message *m, enum field f);
const char *message_text(const struct message *m, enum field f); /* NULL: none */
uint64_t message_number(const struct message *m, enum field f, uint64_t without);
const char *message_bytes(const struct message *m, enum field f, size_t *ret_len); /* NULL: none */
/* All texts of a kind, in their order, in memory of the caller's: *ret has message_count() of them. */
static inline size_t message_count(const struct message *m, enum field f)
{
	return m->count[f];
}
/* The field of its kind at or behind *at (0 at first), and *at moved behind it; NULL: no more. */
const char *message_next(const struct message *m, enum field f, size_t *at, size_t *ret_len);
void message_texts(const struct message *m, enum field f, const char **ret);

/* Every field in its order, from *at (0 at first) on, which is moved behind it; NULL: that was all. */
const char *message_walk(const struct message *m, size_t *at, enum field *ret, size_t *ret_len);

/* ---- fields by their names, for who speaks to other versions (server/seal.h) ------------------------------------- */

const char *message_field_name(enum field f);
bool message_field_named(const char *name, enum field *ret);
bool message_is_number(enum field f);

/* A number that stands for this version of brig, its fields and its routes: who has another one does not understand us. */
uint16_t message_protocol(void);

/* What travels beside a message, in the order of its fields. */
enum beside { BESIDE_FILES, BESIDE_INPUT, BESIDE_OUT, BESIDE_PROJECT, BESIDE_LEFT, BESIDE_PEER, BESIDE_COUNT };
/* Where in the row of descriptors it is: -1: nowhere; *ret_n of them belong to the message. */
void message_beside(const struct message *m, int ret[BESIDE_COUNT], size_t *ret_n);

#endif
