/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registries of special-purpose addresses (IANA, RFC 6890 and its updates), multicast and reserved blocks.  A
 * whitelisted name promises an internet host; its owner must not be able to turn it into a way to this machine or its
 * neighbours.  So everything in these tables is refused, even where the registry calls a block reachable (AS112, say):
 * it is not needed by name, and it can be listed by address.
 *
 * IPv6 is the other way round: nothing outside 2000::/3 is public today, whatever the table says.  Addresses with an
 * IPv4 address inside are judged by it (NAT64), or refused whole (mapped, compatible, 6to4, Teredo).
 */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

struct block {
	uint8_t byte[8]; /* the prefixes end there */
	uint8_t bits;
	const char *what;
};

static const struct block v4_blocks[] = {
	{ { 0 }, 8, "this network" },
	{ { 10 }, 8, "private" },
	{ { 100, 64 }, 10, "shared, behind carrier-grade NAT" },
	{ { 127 }, 8, "loopback" },
	{ { 169, 254 }, 16, "link-local" },
	{ { 172, 16 }, 12, "private" },
	{ { 192, 0, 0 }, 24, "IETF protocol assignments" },
	{ { 192, 0, 2 }, 24, "documentation" },
	{ { 192, 31, 196 }, 24, "AS112" },
	{ { 192, 52, 193 }, 24, "AMT" },
	{ { 192, 88, 99 }, 24, "6to4 relay" },
	{ { 192, 168 }, 16, "private" },
	{ { 192, 175, 48 }, 24, "AS112" },
	{ { 198, 18 }, 15, "benchmarking" },
	{ { 198, 51, 100 }, 24, "documentation" },
	{ { 203, 0, 113 }, 24, "documentation" },
	{ { 224 }, 4, "multicast" },
	{ { 240 }, 4, "reserved" },
};

static const struct block v6_blocks[] = {
	{ { 0x01, 0x00 }, 48, "discard-only" }, /* 100::/64 and its neighbour, which is a dummy prefix */
	{ { 0x20, 0x01, 0x00 }, 23, "IETF protocol assignments" }, /* Teredo, ORCHID ... */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, "documentation" },
	{ { 0x20, 0x02 }, 16, "6to4" },
	{ { 0x26, 0x20, 0x00, 0x4f, 0x80, 0x00 }, 48, "AS112" },
	{ { 0x3f, 0xff, 0x00 }, 20, "documentation" },
	{ { 0x5f, 0x00 }, 16, "segment routing" },
	{ { 0xfc }, 7, "private" },
	{ { 0xfe, 0x80 }, 10, "link-local" },
	{ { 0xfe, 0xc0 }, 10, "site-local" },
	{ { 0xff }, 8, "multicast" },
};

static const uint8_t nat64_prefix[12] = { 0x00, 0x64, 0xff, 0x9b };
static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool address_parse(const char *text, struct address *ret)
{
	struct address a = { .v6 = strchr(text, ':') != NULL };

	if (inet_pton(a.v6 ? AF_INET6 : AF_INET, text, a.byte) != 1)
		return false;
	*ret = a;
	return true;
}

bool address_eq(const struct address *a, const struct address *b)
{
	return a->v6 == b->v6 && memcmp(a->byte, b->byte, sizeof(a->byte)) == 0;
}

bool address_is_loopback(const struct address *a)
{
	static const uint8_t v6[16] = { [15] = 1 };

	return a->v6 ? memcmp(a->byte, v6, sizeof(v6)) == 0 : a->byte[0] == 127;
}

const char *address_text(const struct address *a, char dst[ADDRESS_TEXT_MAX])
{
	if (!inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->byte, dst, ADDRESS_TEXT_MAX))
		dst[0] = '\0';
	return dst;
}

static bool in_block(const uint8_t *byte, const struct block *b)
{
	size_t whole = b->bits / 8, rest = b->bits % 8;

	if (memcmp(byte, b->byte, whole) != 0)
		return false;
	return rest == 0 || (byte[whole] ^ b->byte[whole]) >> (8 - rest) == 0;
}

static const char *find_block(const uint8_t *byte, const struct block *blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (in_block(byte, &blocks[i]))
			return blocks[i].what;
	return NULL;
}

static const char *special_v4(const uint8_t *byte)
{
	return find_block(byte, v4_blocks, ARRAY_LEN(v4_blocks));
}

/* ::, ::1 and what has an IPv4 address behind zeros. */
static const char *special_zeros(const uint8_t *byte)
{
	static const uint8_t zero[16] = { 0 }, one[16] = { [15] = 1 };

	if (memcmp(byte, zero, sizeof(zero)) == 0)
		return "unspecified";
	if (memcmp(byte, one, sizeof(one)) == 0)
		return "loopback";
	if (memcmp(byte, mapped_prefix, sizeof(mapped_prefix)) == 0)
		return "IPv4-mapped";
	return memcmp(byte, zero, 12) == 0 ? "IPv4-compatible" : NULL;
}

static const char *special_v6(const uint8_t *byte)
{
	const char *what = special_zeros(byte);

	if (what)
		return what;
	if (memcmp(byte, nat64_prefix, sizeof(nat64_prefix)) == 0)
		return special_v4(byte + sizeof(nat64_prefix));
	what = find_block(byte, v6_blocks, ARRAY_LEN(v6_blocks));
	if (what)
		return what;
	return byte[0] >> 5 == 1 ? NULL : "not global unicast";
}

const char *address_special(const struct address *a)
{
	return a->v6 ? special_v6(a->byte) : special_v4(a->byte);
}

bool address_from_sockaddr(const struct sockaddr *sa, struct address *ret)
{
	struct address a = { .v6 = sa->sa_family == AF_INET6 };
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		memcpy(a.byte, &in.sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		memcpy(a.byte, &in6.sin6_addr, 16);
	} else {
		return false;
	}
	*ret = a;
	return true;
}

uint16_t address_port(const struct sockaddr *sa)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		return ntohs(in6.sin6_port);
	}
	if (sa->sa_family != AF_INET)
		return 0;
	memcpy(&in, sa, sizeof(in));
	return ntohs(in.sin_port);
}

socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(ret, 0, sizeof(*ret));
	if (a->v6) {
		memcpy(&in6.sin6_addr, a->byte, 16);
		memcpy(ret, &in6, sizeof(in6));
		return sizeof(in6);
	}
	memcpy(&in.sin_addr, a->byte, 4);
	memcpy(ret, &in, sizeof(in));
	return sizeof(in);
}
