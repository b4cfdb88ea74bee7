/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/crypto.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

static_assert(sizeof(crypto_hash_sha256_state) <= sizeof(struct sha256), "struct sha256 is too small");
static_assert(SIGN_SEED_LEN == crypto_sign_SEEDBYTES && SIGN_PUB_LEN == crypto_sign_PUBLICKEYBYTES &&
		      SIGN_LEN == crypto_sign_BYTES,
	      "libsodium's Ed25519 has other sizes");

#define SHA256_BLOCK 64

static crypto_hash_sha256_state *sha256_state(struct sha256 *h)
{
	return (crypto_hash_sha256_state *)(void *)h; /* its one member */
}

void sha256_begin(struct sha256 *h)
{
	(void)crypto_hash_sha256_init(sha256_state(h));
}

void sha256_add(struct sha256 *h, const void *data, size_t len)
{
	if (len > 0)
		(void)crypto_hash_sha256_update(sha256_state(h), data, len);
}

void sha256_end(struct sha256 *h, uint8_t out[SHA256_LEN])
{
	(void)crypto_hash_sha256_final(sha256_state(h), out);
}

void sha256(const void *data, size_t len, uint8_t out[SHA256_LEN])
{
	struct sha256 h;

	sha256_begin(&h);
	sha256_add(&h, data, len);
	sha256_end(&h, out);
}

/* libsodium's own crypto_auth_hmacsha256 spends two more blocks on the key at every call. */
static void hmac256_pad(struct sha256 *h, const uint8_t key[SHA256_LEN], uint8_t with)
{
	uint8_t block[SHA256_BLOCK];

	memset(block, with, sizeof(block));
	for (size_t i = 0; i < SHA256_LEN; i++)
		block[i] ^= key[i];
	sha256_begin(h);
	sha256_add(h, block, sizeof(block));
	crypto_wipe(block, sizeof(block));
}

void hmac256_key(struct hmac256 *m, const uint8_t key[SHA256_LEN])
{
	hmac256_pad(&m->inner, key, 0x36);
	hmac256_pad(&m->outer, key, 0x5c);
}

void hmac256(const struct hmac256 *m, const void *data, size_t len, uint8_t out[SHA256_LEN])
{
	struct sha256 h = m->inner;

	sha256_add(&h, data, len);
	sha256_end(&h, out);
	h = m->outer;
	sha256_add(&h, out, SHA256_LEN);
	sha256_end(&h, out);
}

void blake2b(const void *data, size_t len, uint8_t out[BLAKE2B_LEN])
{
	(void)crypto_generichash_blake2b(out, BLAKE2B_LEN, data, len, NULL, 0);
}

uint64_t short_hash(const uint8_t key[SHORT_HASH_KEY_LEN], const void *data, size_t len)
{
	uint64_t sum = 0;

	static_assert(crypto_shorthash_KEYBYTES == SHORT_HASH_KEY_LEN && crypto_shorthash_BYTES == sizeof(sum),
		      "libsodium's SipHash has other sizes");
	(void)crypto_shorthash((unsigned char *)&sum, data, len, key);
	return sum;
}

bool sign_public(const uint8_t seed[SIGN_SEED_LEN], uint8_t pub[SIGN_PUB_LEN])
{
	uint8_t secret[crypto_sign_SECRETKEYBYTES];
	bool ok = sodium_init() >= 0 && crypto_sign_seed_keypair(pub, secret, seed) == 0;

	crypto_wipe(secret, sizeof(secret));
	return ok;
}

bool sign_make(const uint8_t seed[SIGN_SEED_LEN], const void *data, size_t len, uint8_t sig[SIGN_LEN])
{
	uint8_t secret[crypto_sign_SECRETKEYBYTES], pub[SIGN_PUB_LEN];
	bool ok = sodium_init() >= 0 && crypto_sign_seed_keypair(pub, secret, seed) == 0 &&
		  crypto_sign_detached(sig, NULL, data, len, secret) == 0;

	crypto_wipe(secret, sizeof(secret));
	return ok;
}

bool sign_check(const uint8_t pub[SIGN_PUB_LEN], const void *data, size_t len, const uint8_t sig[SIGN_LEN])
{
	return sodium_init() >= 0 && crypto_sign_verify_detached(sig, data, len, pub) == 0;
}

void crypto_warm_up(void)
{
	(void)!sodium_init();
}

int crypto_random(void *dst, size_t len)
{
	uint8_t *at = dst;

	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

void crypto_wipe(void *data, size_t len)
{
	explicit_bzero(data, len);
}

bool crypto_same(const void *a, const void *b, size_t len)
{
	return sodium_memcmp(a, b, len) == 0;
}

char *hex_put(char *dst, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *in = data;

	for (size_t i = 0; i < len; i++) {
		dst[2 * i] = digits[in[i] >> 4];
		dst[2 * i + 1] = digits[in[i] & 15];
	}
	dst[2 * len] = '\0';
	return dst;
}

/* Digit + 1; 0: no lower-case digit. */
static const uint8_t hex_digit[256] = {
	['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
	['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

bool hex_get(const char *text, void *dst, size_t len)
{
	uint8_t *out = dst;

	for (size_t i = 0; i < len; i++) {
		uint8_t high = hex_digit[(uint8_t)text[2 * i]], low = high ? hex_digit[(uint8_t)text[2 * i + 1]] : 0;

		if (!low)
			return false;
		out[i] = (uint8_t)((high - 1) << 4 | (low - 1));
	}
	return true;
}
