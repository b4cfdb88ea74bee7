/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that callers send and receive as one byte stream: a tar archive, which every language can read and write.
 *
 * Read: ustar with pax headers (path, size) and GNU long names; folders and regular files.  An archive with anything
 * else, or with a path that is not below the folder, is refused as a whole: what was silently skipped would be missed
 * later.  Owners and times have no meaning in a cell and are ignored; of the permissions only the executable bit
 * matters.
 *
 * Written: ustar, with a pax header for paths that do not fit.
 *
 * Both wait for the other end only until cancel_fd (or -1) becomes readable.
 */
#ifndef FILES_TAR_H
#define FILES_TAR_H

#include "base/err.h"
#include "base/ustar.h"

#define TAR_BLOCK USTAR_BLOCK

struct untar_caps {
	uint64_t entries, bytes; /* files and folders; contents, each file taking at least a page */
};

/* Reads an archive up to its end, not beyond, and makes what is in it below dir, an empty folder. */
int untar(int in, int dir, const struct untar_caps *caps, int cancel_fd, struct brig_error *err);

/* One file: its head, size bytes from a descriptor, and what fills the last block.  0 or -errno; -ENODATA: it was shorter. */
int tar_put_file(int out, const char *path, unsigned mode, uint64_t size, int from, int cancel_fd);
/* What ends an archive. */
int tar_put_end(int out, int cancel_fd);

#endif
