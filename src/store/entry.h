/* SPDX-License-Identifier: Apache-2.0 */
/* One record of the index: which content belongs to a key.  A file of its own each, of a fixed size. */
#ifndef STORE_ENTRY_H
#define STORE_ENTRY_H

#include "store/store.h"

#define STORE_RECORD_SIZE 256

struct store_entry {
	struct store_key key;
	unsigned char content[STORE_HASH_LEN];
	uint64_t created_ns; /* wall clock */
	uint64_t size;       /* of the content */
	uint64_t hits;
	bool pinned; /* store_pin() made it */
};

/* The file's bytes. */
void store_entry_encode(const struct store_entry *e, unsigned char bytes[STORE_RECORD_SIZE]);
/* False if these bytes are not a whole record that store_entry_encode() made. */
bool store_entry_decode(const void *bytes, size_t len, struct store_entry *ret);
/* Where in the record its hits stand: they change while the rest does not, and no sum covers them. */
extern const size_t store_entry_hits_offset;

/* STORE_HEX_LEN digits and a NUL. */
void store_hex(const unsigned char hash[STORE_HASH_LEN], char dst[STORE_HEX_LEN + 1]);
/* Whether the text is STORE_HEX_LEN lower-case digits and nothing else. */
bool store_unhex(const char *text, unsigned char ret[STORE_HASH_LEN]);

#endif
