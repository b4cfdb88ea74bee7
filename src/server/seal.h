/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed messages, as they pass through brokers: jobs, claims, results, events, cancellations and node entries.
 *
 * A sealed message is a message (server/message.h) in which fields have names instead of numbers, so that nodes of
 * different versions understand each other or report an unknown field, plus an Ed25519 signature:
 *
 *	"brig sealed 1\n"
 *	length of the fields, four bytes, little endian
 *	for each field: length of its name (one byte), name, length (four bytes), bytes; numbers have eight, little endian
 *	signature, 64 bytes: of "brig seal 1\n" and the SHA-256 of the fields
 *
 * The first field says what kind of message it is (sealed_as), the second which key sealed it (node).
 *
 *   RULE S1  The link parses these bytes and has no privilege.  The runner verifies the signature and parses no such
 *   bytes: it serialises the flat, checked message that it got from the link again.  The serialisation is canonical, so
 *   the signature matches what the runner is going to act on, or verification fails.
 *   RULE S2  A signature only identifies the sealer.  Whether that node is known and may send such a message is decided
 *   by the operator's list of nodes (runner/peers.h).
 */
#ifndef SERVER_SEAL_H
#define SERVER_SEAL_H

#include "server/message.h"
#include "sys/crypto.h"

#define SEAL_OVERHEAD 128 /* bytes in addition to the fields */

/* Serialises the fields of a message; false: buffer full or out of memory. */
bool seal_write_fields(const struct message *m, struct buf *out);
/* The identity of a message wherever one refers to it: the SHA-256 of its fields.  False: out of memory. */
bool seal_hash(const struct message *m, uint8_t ret[SHA256_LEN]);
bool seal_make(const uint8_t seed[SIGN_SEED_LEN], const struct message *m, uint8_t ret[SIGN_LEN]);
/* Whether the signature is valid for this message and key. */
bool seal_fits(const uint8_t pub[SIGN_PUB_LEN], const struct message *m, const uint8_t sig[SIGN_LEN]);

/* The complete sealed message as brokers carry it. */
bool seal_write(const struct message *m, const uint8_t sig[SIGN_LEN], struct buf *out);
/*
 * The reverse: appends the message's bytes, validated by message_read(), to out.  NULL, or the reason why it is
 * invalid.
 */
const char *seal_read(const void *bytes, size_t len, struct buf *out, uint8_t sig[SIGN_LEN]);

#endif
