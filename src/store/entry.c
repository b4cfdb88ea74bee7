/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of an entry, and how keys are made.
 *
 * A record is never changed in place, except for its count of hits: it is written next to the index and renamed into
 * it, so that a reader sees the old one or the new one.  It carries a hash of itself because after a power failure a
 * file may have its name and size but not its bytes; such a record is invalid.  The hash keeps accidents out, not the
 * owner of the folder: who may write there may write a whole entry.
 */
#include "store/entry.h"

#include <assert.h>
#include <string.h>

static const char record_magic[8] = { 'b', 'r', 'i', 'g', 'i', 'd', 'x', '1' };

/* In the machine's own byte order: the state folder stays on its machine. */
struct record {
	char magic[8];
	uint64_t created_ns;
	uint64_t size;
	unsigned char key[STORE_HASH_LEN];
	unsigned char content[STORE_HASH_LEN];
	char kind[STORE_KIND_MAX + 1];
	unsigned char pinned;        /* 0 or 1 */
	unsigned char reserved[111]; /* zero */
	unsigned char sum[STORE_HASH_LEN];
	uint64_t hits; /* behind the sum, which does not cover it */
};
static_assert(sizeof(struct record) == STORE_RECORD_SIZE, "the record has gaps");

const size_t store_entry_hits_offset = offsetof(struct record, hits);

static void record_sum(const struct record *r, unsigned char sum[STORE_HASH_LEN])
{
	sha256(r, offsetof(struct record, sum), sum);
}

void store_entry_encode(const struct store_entry *e, unsigned char bytes[STORE_RECORD_SIZE])
{
	struct record r = { .created_ns = e->created_ns, .size = e->size, .hits = e->hits, .pinned = e->pinned };

	memcpy(r.magic, record_magic, sizeof(r.magic));
	memcpy(r.key, e->key.hash, sizeof(r.key));
	memcpy(r.content, e->content, sizeof(r.content));
	memcpy(r.kind, e->key.kind, sizeof(r.kind));
	record_sum(&r, r.sum);
	memcpy(bytes, &r, sizeof(r));
}

static bool kind_is_sound(const char kind[STORE_KIND_MAX + 1])
{
	size_t len = strnlen(kind, STORE_KIND_MAX + 1);

	if (len == 0 || len > STORE_KIND_MAX)
		return false;
	return strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool store_entry_decode(const void *bytes, size_t len, struct store_entry *ret)
{
	unsigned char sum[STORE_HASH_LEN];
	struct record r;

	if (len != sizeof(r))
		return false;
	memcpy(&r, bytes, sizeof(r));
	record_sum(&r, sum);
	if (memcmp(r.magic, record_magic, sizeof(r.magic)) != 0 || memcmp(r.sum, sum, sizeof(sum)) != 0 ||
	    !kind_is_sound(r.kind) || r.size > INT64_MAX || r.pinned > 1)
		return false;
	*ret = (struct store_entry){
		.created_ns = r.created_ns, .size = r.size, .hits = r.hits, .pinned = r.pinned == 1
	};
	memcpy(ret->key.kind, r.kind, sizeof(r.kind));
	memcpy(ret->key.hash, r.key, sizeof(r.key));
	memcpy(ret->content, r.content, sizeof(r.content));
	return true;
}

/* ---- names ------------------------------------------------------------------------------------ */

void store_hex(const unsigned char hash[STORE_HASH_LEN], char dst[STORE_HEX_LEN + 1])
{
	(void)hex_put(dst, hash, STORE_HASH_LEN);
}

bool store_unhex(const char *text, unsigned char ret[STORE_HASH_LEN])
{
	return strnlen(text, STORE_HEX_LEN + 1) == STORE_HEX_LEN && hex_get(text, ret, STORE_HASH_LEN);
}

/* ---- keys ------------------------------------------------------------------------------------- */

/* Lengths before contents: two lists of inputs give the same bytes only if they are the same list. */
static void add_sized(struct sha256 *h, const void *data, size_t len)
{
	uint64_t size = len;

	sha256_add(h, &size, sizeof(size));
	sha256_add(h, data, len);
}

void store_key_begin(struct store_key_maker *m, const char *kind)
{
	*m = (struct store_key_maker){ .kind = "" };
	strncpy(m->kind, kind, sizeof(m->kind) - 1);
	assert(kind_is_sound(m->kind));
	sha256_begin(&m->hash);
	add_sized(&m->hash, m->kind, strlen(m->kind));
}

void store_key_add(struct store_key_maker *m, const char *name, const void *data, size_t len)
{
	add_sized(&m->hash, name, strlen(name));
	add_sized(&m->hash, data, len);
}

void store_key_text(struct store_key_maker *m, const char *name, const char *text)
{
	store_key_add(m, name, text, strlen(text));
}

void store_key_number(struct store_key_maker *m, const char *name, uint64_t value)
{
	store_key_add(m, name, &value, sizeof(value));
}

void store_key_end(struct store_key_maker *m, struct store_key *ret)
{
	memcpy(ret->kind, m->kind, sizeof(ret->kind));
	sha256_end(&m->hash, ret->hash);
}
