/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What brig needs of cryptography, all of it libsodium's: SHA-256, HMAC-SHA-256, BLAKE2b, Ed25519, random bytes, wiping.
 *
 * Hashing and keyed hashing touch no global state and cost nothing to begin with.  The first signature or
 * verification of a process initialises the library (about 0.06 ms).
 */
#ifndef SYS_CRYPTO_H
#define SYS_CRYPTO_H

#include "base/util.h"

#define SHA256_LEN    32
#define SHA256_HEX    64 /* without the NUL */
#define SIGN_SEED_LEN 32 /* the secret */
#define SIGN_PUB_LEN  32
#define SIGN_LEN      64
#define SIGN_HEX      128

struct sha256 {
	_Alignas(8) unsigned char state[104];
};

void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t len);
void sha256_end(struct sha256 *h, uint8_t out[SHA256_LEN]);
void sha256(const void *data, size_t len, uint8_t out[SHA256_LEN]);

/* HMAC-SHA-256 with a key that is used many times: what depends on the key alone is computed once. */
struct hmac256 {
	struct sha256 inner, outer;
};

void hmac256_key(struct hmac256 *m, const uint8_t key[SHA256_LEN]);
void hmac256(const struct hmac256 *m, const void *data, size_t len, uint8_t out[SHA256_LEN]);

/* BLAKE2b with 32 bytes and no key. */
#define BLAKE2B_LEN 32
void blake2b(const void *data, size_t len, uint8_t out[BLAKE2B_LEN]);

/* SipHash-2-4: fast, and its value cannot be predicted or chosen without the key.  For checksums, not for proofs. */
#define SHORT_HASH_KEY_LEN 16
uint64_t short_hash(const uint8_t key[SHORT_HASH_KEY_LEN], const void *data, size_t len);

/* Ed25519, detached signatures; the secret is its 32-byte seed.  False: the library cannot be used. */
bool sign_public(const uint8_t seed[SIGN_SEED_LEN], uint8_t pub[SIGN_PUB_LEN]);
bool sign_make(const uint8_t seed[SIGN_SEED_LEN], const void *data, size_t len, uint8_t sig[SIGN_LEN]);
bool sign_check(const uint8_t pub[SIGN_PUB_LEN], const void *data, size_t len, const uint8_t sig[SIGN_LEN]);

/* What the first signature or verification would do, for a process that will not be able to later. */
void crypto_warm_up(void);
/* 0 or -errno. */
int crypto_random(void *dst, size_t len);
/* Not optimised away. */
void crypto_wipe(void *data, size_t len);
/* In time that depends on len only. */
bool crypto_same(const void *a, const void *b, size_t len);

/* dst has 2 * len + 1 bytes; returned. */
char *hex_put(char *dst, const void *data, size_t len);
/* Exactly 2 * len lower-case digits; what follows them is ignored. */
bool hex_get(const char *text, void *dst, size_t len);

#endif
