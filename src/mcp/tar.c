/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - files of a request as the archive that `brig run --files` takes: ustar, with a pax header for long paths. */
#include <stdio.h>
#include <string.h>

#include "mcp/tools.h"

#define BLOCK    512
#define NAME_LEN 100

static void put_octal(char *dst, size_t size, uint64_t value)
{
	(void)snprintf(dst, size, "%0*llo", (int)size - 1, (unsigned long long)value);
}

/* Fields by their places in the format. */
static bool put_head(struct buf *tar, const char *name, size_t name_len, size_t len, char type)
{
	char head[BLOCK] = { 0 };
	unsigned sum = 0;

	memcpy(head, name, name_len < NAME_LEN ? name_len : NAME_LEN);
	put_octal(head + 100, 8, 0644);
	put_octal(head + 108, 8, 0);
	put_octal(head + 116, 8, 0);
	put_octal(head + 124, 12, len);
	put_octal(head + 136, 12, 0);
	memset(head + 148, ' ', 8);
	head[156] = type;
	memcpy(head + 257,
	       "ustar\0"
	       "00",
	       8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)head[i];
	(void)snprintf(head + 148, 8, "%06o", sum);
	return buf_add(tar, head, BLOCK) == BLOCK;
}

static bool put_body(struct buf *tar, const char *data, size_t len)
{
	static const char zeroes[BLOCK];
	size_t rest = (BLOCK - len % BLOCK) % BLOCK;

	return buf_add(tar, data, len) == len && buf_add(tar, zeroes, rest) == rest;
}

/* "LEN path=PATH\n", where LEN counts itself. */
static bool put_long_path(struct buf *tar, const char *path)
{
	size_t bare = strlen(" path=\n") + strlen(path), len = bare + 2;
	AUTO_BUF record = BUF_INIT(64 * KiB);
	char digits[24];

	while (len != bare + (size_t)snprintf(digits, sizeof(digits), "%zu", len))
		len++;
	return buf_addf(&record, "%zu path=%s\n", len, path) && put_head(tar, "path", 4, record.len, 'x') &&
	       put_body(tar, buf_str(&record), record.len);
}

bool tar_add(struct buf *tar, const char *path, const char *data, size_t len)
{
	return (strlen(path) <= NAME_LEN || put_long_path(tar, path)) && put_head(tar, path, strlen(path), len, '0') &&
	       put_body(tar, data, len);
}

bool tar_end(struct buf *tar)
{
	static const char zeroes[2 * BLOCK];

	return buf_add(tar, zeroes, sizeof(zeroes)) == sizeof(zeroes);
}
