/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of pack.h, byte by byte.  Numbers are little-endian.
 *
 *	stream  { block }                          until the one that ends with the end record
 *	block   u32 length, 1 to PACK_BLOCK; that many bytes of records, which know nothing of blocks
 *	record  u8 type, u8 zero, u16 mode, u32 path_len, u64 content_len; path; content
 *
 *	type        path            content
 *	'd' folder  its path        none
 *	'f' file    its path        its bytes
 *	'l' link    its path        its target, 1 to PACK_PATH_MAX - 1 bytes without NUL
 *	'm' mode    of a folder     none: given when everything is in it, because the owner may not write there
 *	'x' gone    its path        none: what an overlay's lower layer has there is gone
 *	'o' opaque  of a folder     none: and so is everything that the lower layer has in it
 *	'e' end     none            u64 entries, u64 bytes
 */
#ifndef FILES_PACK_FORMAT_H
#define FILES_PACK_FORMAT_H

#include <endian.h>
#include <string.h>

#include "base/util.h"

#define PACK_BLOCK    (64 * 1024)
#define PACK_PATH_MAX 4096
#define PACK_HEAD     16
#define PACK_END      16 /* bytes of an end record's content */

enum pack_type {
	PACK_DIR = 'd',
	PACK_FILE = 'f',
	PACK_LINK = 'l',
	PACK_MODE = 'm',
	PACK_GONE = 'x',
	PACK_OPAQUE = 'o',
	PACK_END_RECORD = 'e'
};

struct pack_head {
	uint8_t type, zero;
	uint16_t mode;
	uint32_t path_len;
	uint64_t content_len;
};
_Static_assert(sizeof(struct pack_head) == PACK_HEAD, "the head of a record has no padding");

/* Both ways the same. */
static inline struct pack_head pack_head_swap(struct pack_head h)
{
	h.mode = htole16(h.mode);
	h.path_len = htole32(h.path_len);
	h.content_len = htole64(h.content_len);
	return h;
}

#endif
