/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - packs the files of a request into the archive for `brig run --files`. */
#include "base/ustar.h"
#include "mcp/tools.h"

bool tar_add(struct buf *tar, const char *path, const char *data, size_t len)
{
	static const char zeroes[USTAR_BLOCK];
	size_t rest = ustar_padding(len);

	return ustar_add_head(tar, path, 0644, len) && buf_add(tar, data, len) == len &&
	       buf_add(tar, zeroes, rest) == rest;
}

bool tar_end(struct buf *tar)
{
	return ustar_add_end(tar);
}
