/* SPDX-License-Identifier: Apache-2.0 */
/* What travels through brokers: written in one way, read back as it was, and not one bit of it changed unnoticed; who is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/runner/peers.h"
#include "server/seal.h"

static const uint8_t seed[SIGN_SEED_LEN] = { 1, 2, 3 };

static void fill(struct buf *inner)
{
	message_put_text(inner, FIELD_sealed_as, "job");
	message_put_number(inner, FIELD_expires, 0x0102030405060708);
	message_put_text(inner, FIELD_arg, "one");
	message_put_bytes(inner, FIELD_code, "print('\0')", 10);
	message_put_text(inner, FIELD_arg, "two");
}

static void read_it(const struct buf *inner, struct message *ret)
{
	const char *why;

	assert_true(message_read(inner->data, inner->len, ret, &why));
}

static void test_round_trip(void **state UNUSED)
{
	AUTO_BUF inner = BUF_INIT(KiB);
	AUTO_BUF wire = BUF_INIT(KiB);
	AUTO_BUF back = BUF_INIT(KiB);
	uint8_t pub[SIGN_PUB_LEN], sig[SIGN_LEN], sig_back[SIGN_LEN];
	struct message m;

	fill(&inner);
	read_it(&inner, &m);
	assert_true(sign_public(seed, pub));
	assert_true(seal_make(seed, &m, sig));
	assert_true(seal_write(&m, sig, &wire));
	assert_null(seal_read(wire.data, wire.len, &back, sig_back));
	assert_int_equal(back.len, inner.len);
	assert_memory_equal(back.data, inner.data, inner.len);
	assert_memory_equal(sig, sig_back, sizeof(sig));
	read_it(&back, &m);
	assert_true(seal_fits(pub, &m, sig_back));
}

/* Whatever bit is another one: it is not read, or the seal does not fit. */
static void test_every_bit_counts(void **state UNUSED)
{
	AUTO_BUF inner = BUF_INIT(KiB);
	AUTO_BUF wire = BUF_INIT(KiB);
	uint8_t pub[SIGN_PUB_LEN], sig[SIGN_LEN];
	struct message m;

	fill(&inner);
	read_it(&inner, &m);
	assert_true(sign_public(seed, pub));
	assert_true(seal_make(seed, &m, sig));
	assert_true(seal_write(&m, sig, &wire));
	for (size_t i = 0; i < wire.len * 8; i++) {
		AUTO_BUF back = BUF_INIT(KiB);
		uint8_t read_sig[SIGN_LEN];

		wire.data[i / 8] ^= (char)(1 << i % 8);
		if (!seal_read(wire.data, wire.len, &back, read_sig)) {
			read_it(&back, &m);
			assert_false(seal_fits(pub, &m, read_sig));
		}
		wire.data[i / 8] ^= (char)(1 << i % 8);
	}
}

static void test_another_key(void **state UNUSED)
{
	static const uint8_t other[SIGN_SEED_LEN] = { 9 };
	AUTO_BUF inner = BUF_INIT(KiB);
	uint8_t pub[SIGN_PUB_LEN], sig[SIGN_LEN];
	struct message m;

	fill(&inner);
	read_it(&inner, &m);
	assert_true(seal_make(seed, &m, sig));
	assert_true(sign_public(other, pub));
	assert_false(seal_fits(pub, &m, sig));
}

static void test_nonsense(void **state UNUSED)
{
	static const struct {
		const char *bytes;
		size_t len;
	} rows[] = { { "", 0 }, { "brig sealed 1\n", 14 }, { "brig sealed 2\n\0\0\0\0", 18 } };
	char cut[200] = "brig sealed 1\n";
	uint8_t sig[SIGN_LEN];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF back = BUF_INIT(KiB);

		assert_non_null(seal_read(rows[i].bytes, rows[i].len, &back, sig));
	}
	for (size_t len = 0; len < sizeof(cut); len++) { /* lengths that lie */
		AUTO_BUF back = BUF_INIT(KiB);

		cut[14] = (char)len;
		cut[18] = 5;
		assert_non_null(seal_read(cut, len, &back, sig));
	}
}

static void write_list(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_peers(void **state UNUSED)
{
#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	static const char *const bad[] = { "front x\n",         "front x 12\n",      "master x " A "\n",
					   "front \"x " A "\n", "front x " A " y\n", "front x " A "a\n" };
	struct brig_error err = BRIG_ERROR_INIT;
	char path[] = "/tmp/brig-peers-XXXXXX";
	int fd = mkstemp(path);
	struct peers p;

	assert_true(fd >= 0);
	(void)close(fd);
	write_list(path, "# who is known\n\nfront web " A "\n  both\tlab " B "\n");
	assert_int_equal(peers_read(path, &p, &err), 0);
	assert_int_equal(p.n, 2);
	assert_non_null(peers_find(&p, A, PEER_FRONT));
	assert_null(peers_find(&p, A, PEER_WORKER));
	assert_string_equal(peers_find(&p, B, PEER_WORKER)->name, "lab");
	peers_release(&p);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		write_list(path, bad[i]);
		assert_int_equal(peers_read(path, &p, &err), -BRIG_E_USAGE);
		assert_non_null(strstr(err.msg, ":1: "));
	}
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_every_bit_counts),
		cmocka_unit_test(test_another_key), cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
