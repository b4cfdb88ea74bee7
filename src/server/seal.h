/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said through brokers, sealed: jobs, claims, results, events, cancellations and the entries of nodes.
 *
 * A sealed thing is a message (server/message.h) whose fields are called by their names instead of their numbers, so that
 * nodes of two versions understand each other or say what they do not know, and a signature of Ed25519:
 *
 *	"brig sealed 1\n"
 *	length of what follows but the signature, four bytes, the lowest first
 *	for each field: length of its name (one byte), name, length (four bytes), bytes; numbers have eight, the lowest first
 *	signature, 64 bytes: of "brig seal 1\n" and the SHA-256 of the fields
 *
 * The first field says what it is (sealed_as), the second whose key sealed it (node).
 *
 *   RULE S1  Who reads these bytes is the link, which can do nothing with them.  Who checks the signature is the runner, and
 *            he reads no such bytes: from the flat, checked message that the link made of them he writes them again.  There
 *            is one way to write a message, so the signature fits what the runner is going to do, or it does not fit.
 *   RULE S2  A signature says who sealed something.  Whether that one is known, and may say such a thing, stands in a list
 *            that the operator wrote (runner/peers.h).
 */
#ifndef SERVER_SEAL_H
#define SERVER_SEAL_H

#include "server/message.h"
#include "sys/crypto.h"

#define SEAL_OVERHEAD 128 /* bytes, besides the fields */

/* Writes the fields of a message; false: no room, or no memory. */
bool seal_write_fields(const struct message *m, struct buf *out);
/* What stands for the message everywhere: the SHA-256 of its fields.  False: no memory. */
bool seal_hash(const struct message *m, uint8_t ret[SHA256_LEN]);
bool seal_make(const uint8_t seed[SIGN_SEED_LEN], const struct message *m, uint8_t ret[SIGN_LEN]);
/* Whether the key sealed this. */
bool seal_fits(const uint8_t pub[SIGN_PUB_LEN], const struct message *m, const uint8_t sig[SIGN_LEN]);

/* All of it, as brokers carry it. */
bool seal_write(const struct message *m, const uint8_t sig[SIGN_LEN], struct buf *out);
/* The other way round: the message's bytes are put into out, and have been checked by message_read().  NULL, or why not. */
const char *seal_read(const void *bytes, size_t len, struct buf *out, uint8_t sig[SIGN_LEN]);

#endif
