/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens that an installation of LibreChat signs for each of its requests, where it has a key to sign with (CODEAPI_JWT_PRIVATE_KEY).
 *
 * They say which of its users asks, for five minutes at most, and come beside brig's own key, which says what may be done.  With
 * `brig serve --librechat-jwt-key` every request of the door has to have one that is good: then somebody who has found out an address
 * with a key in it can do nothing with it.
 */
#ifndef SERVER_DOORS_LIBRECHAT_JWT_H
#define SERVER_DOORS_LIBRECHAT_JWT_H

#include "base/err.h"
#include "sys/crypto.h"

#define JWT_KEY_HEX (2 * SIGN_PUB_LEN)

/* The public key of a file's text, PEM or JWK, as hex digits.  Ed25519 only. */
int jwt_read_key(const char *text, char ret_hex[JWT_KEY_HEX + 1], struct brig_error *err);

/* NULL: it is good at this moment (seconds of the wall clock); else why not. */
const char *jwt_fault(const char *token, size_t len, const char *key_hex, int64_t now);

#endif
