/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a file in a tar archive: ustar, with a pax header for a path that does not fit. */
#ifndef BASE_USTAR_H
#define BASE_USTAR_H

#include "base/buf.h"

#define USTAR_BLOCK 512

/* Zeroes that fill the last block of so many bytes. */
static inline size_t ustar_padding(uint64_t size)
{
	return (size_t)((USTAR_BLOCK - size % USTAR_BLOCK) % USTAR_BLOCK);
}

/* Of a regular file: size bytes and their padding follow.  Of its mode only the executable bit matters.  False: no
 * room. */
bool ustar_add_head(struct buf *out, const char *path, unsigned mode, uint64_t size);
/* A whole regular file.  False: no room, or no memory (out says which). */
bool ustar_add_file(struct buf *out, const char *path, const struct bytes *content);
/* What ends an archive. */
bool ustar_add_end(struct buf *out);
/* Ends the archive and returns it as a sealed memory file, owned by the caller and positioned at its start; or -errno.
 */
int ustar_to_file(struct buf *out);

#endif
