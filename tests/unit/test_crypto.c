/* SPDX-License-Identifier: Apache-2.0 */
/* Known answers: FIPS 180-4, RFC 4231, RFC 8032. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "sys/crypto.h"

static void expect_hex(const void *data, size_t len, const char *hex)
{
	char text[2 * SIGN_LEN + 1];

	assert_string_equal(hex_put(text, data, len), hex);
}

static void sha256_answers(void **state UNUSED)
{
	uint8_t out[SHA256_LEN];
	struct sha256 h;

	sha256("", 0, out);
	expect_hex(out, sizeof(out), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256("abc", 3, out);
	expect_hex(out, sizeof(out), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256_begin(&h);
	for (int i = 0; i < 1000000; i++)
		sha256_add(&h, "a", 1);
	sha256_add(&h, NULL, 0);
	sha256_end(&h, out);
	expect_hex(out, sizeof(out), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* RFC 4231 has no key of 32 bytes; shorter ones are filled up with zeros, as the standard says. */
static void hmac256_answers(void **state UNUSED)
{
	uint8_t key[SHA256_LEN] = "Jefe", out[SHA256_LEN];
	struct hmac256 m;

	hmac256_key(&m, key);
	hmac256(&m, "what do ya want for nothing?", 28, out);
	expect_hex(out, sizeof(out), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0, sizeof(key));
	memset(key, 0x0b, 20);
	hmac256_key(&m, key);
	hmac256(&m, "Hi There", 8, out);
	expect_hex(out, sizeof(out), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac256(&m, "Hi There", 8, out); /* a key serves many times */
	expect_hex(out, sizeof(out), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

/* No key and 32 bytes, as hashlib.blake2b(digest_size=32) gives them. */
static void blake2b_answers(void **state UNUSED)
{
	uint8_t out[BLAKE2B_LEN];

	blake2b("", 0, out);
	expect_hex(out, sizeof(out), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
	blake2b("abc", 3, out);
	expect_hex(out, sizeof(out), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void ed25519_answers(void **state UNUSED)
{
	uint8_t seed[SIGN_SEED_LEN], pub[SIGN_PUB_LEN], sig[SIGN_LEN];

	assert_true(hex_get("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", seed, sizeof(seed)));
	assert_true(sign_public(seed, pub));
	expect_hex(pub, sizeof(pub), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
	assert_true(sign_make(seed, "\x72", 1, sig));
	expect_hex(sig, sizeof(sig),
		   "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
		   "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
	assert_true(sign_check(pub, "\x72", 1, sig));
	assert_false(sign_check(pub, "\x73", 1, sig));
	sig[0] ^= 1;
	assert_false(sign_check(pub, "\x72", 1, sig));
}

static void hex_is_strict(void **state UNUSED)
{
	uint8_t out[2];

	assert_true(hex_get("00ff", out, 2));
	assert_int_equal(out[1], 0xff);
	assert_false(hex_get("00FF", out, 2));
	assert_false(hex_get("0g00", out, 2));
	assert_false(hex_get("000", out, 2));
	assert_false(hex_get("00 0", out, 2));
}

static void random_bytes_differ(void **state UNUSED)
{
	uint8_t a[32] = { 0 }, b[32] = { 0 };

	assert_int_equal(crypto_random(a, sizeof(a)), 0);
	assert_int_equal(crypto_random(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_false(crypto_same(a, b, sizeof(a)));
	crypto_wipe(a, sizeof(a));
	memset(b, 0, sizeof(b));
	assert_true(crypto_same(a, b, sizeof(a)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_answers),  cmocka_unit_test(hmac256_answers),
		cmocka_unit_test(blake2b_answers), cmocka_unit_test(ed25519_answers),
		cmocka_unit_test(hex_is_strict),   cmocka_unit_test(random_bytes_differ),
	};

	return cmocka_run_group_tests_name("crypto", tests, NULL, NULL);
}
