/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JWT that LibreChat signs for each of its requests, if it has a signing key (CODEAPI_JWT_PRIVATE_KEY).
 *
 * A token names the LibreChat user and is valid for five minutes at most. It comes in addition to brig's own key, which
 * decides what the request may do. With `brig serve --librechat-jwt-key`, every request to the door must carry a valid
 * token, so a leaked URL with a key in it is not enough.
 */
#ifndef SERVER_DOORS_LIBRECHAT_JWT_H
#define SERVER_DOORS_LIBRECHAT_JWT_H

#include "base/err.h"
#include "sys/crypto.h"

#define JWT_KEY_HEX (2 * SIGN_PUB_LEN)

/* Reads a public key in PEM or JWK form into hex digits. Ed25519 only. */
int jwt_read_key(const char *text, char ret_hex[JWT_KEY_HEX + 1], struct brig_error *err);

/* NULL: the token is valid at time now (seconds since the epoch); else the reason why not. */
const char *jwt_fault(const char *token, size_t len, const char *key_hex, int64_t now);

#endif
