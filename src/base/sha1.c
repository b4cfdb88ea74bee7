/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <string.h>

#define BLOCK 64

static uint32_t turn(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static uint32_t mix(size_t round, uint32_t b, uint32_t c, uint32_t d)
{
	switch (round / 20) {
	case 0:
		return ((b & c) | (~b & d)) + 0x5a827999u;
	case 1:
		return (b ^ c ^ d) + 0x6ed9eba1u;
	case 2:
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu;
	default:
		return (b ^ c ^ d) + 0xca62c1d6u;
	}
}

static void add_block(uint32_t h[5], const uint8_t *block)
{
	uint32_t w[80], s[5];

	for (size_t t = 0; t < 16; t++)
		w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
		       (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
	for (size_t t = 16; t < 80; t++)
		w[t] = turn(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	memcpy(s, h, sizeof(s));
	for (size_t t = 0; t < 80; t++) {
		uint32_t next = turn(s[0], 5) + mix(t, s[1], s[2], s[3]) + s[4] + w[t];

		s[4] = s[3];
		s[3] = s[2];
		s[2] = turn(s[1], 30);
		s[1] = s[0];
		s[0] = next;
	}
	for (size_t i = 0; i < 5; i++)
		h[i] += s[i];
}

void sha1(const void *data, size_t len, uint8_t ret[SHA1_LEN])
{
	uint32_t h[5] = { 0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u };
	const uint8_t *bytes = data;
	uint8_t last[2 * BLOCK] = { 0 };
	size_t whole = len / BLOCK * BLOCK, rest = len - whole, end = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

	for (size_t at = 0; at < whole; at += BLOCK)
		add_block(h, bytes + at);
	if (rest > 0)
		memcpy(last, bytes + whole, rest);
	last[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[end - 1 - i] = (uint8_t)((uint64_t)len * 8 >> 8 * i);
	for (size_t at = 0; at < end; at += BLOCK)
		add_block(h, last + at);
	for (size_t i = 0; i < SHA1_LEN; i++)
		ret[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
