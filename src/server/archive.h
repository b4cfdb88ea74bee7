/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar archives from clients: ustar, with pax headers (path, size) and GNU long names.
 *
 * The front parses the client's archive and writes a normalised one: regular files only, in plain ustar (base/ustar.h),
 * each path once.  The runner parses that with the same code when it merges the original files with a program's
 * changes.  Directories exist through their files; an empty one is dropped.  Any other kind of entry refuses the whole
 * archive.
 */
#ifndef SERVER_ARCHIVE_H
#define SERVER_ARCHIVE_H

#include "base/buf.h"
#include "base/err.h"

#define ARCHIVE_FILES_MAX 4096
#define ARCHIVE_PATH_MAX  1024
#define ARCHIVE_BYTES_MAX (64 * MiB)

struct archive_file {
	char path[ARCHIVE_PATH_MAX + 1]; /* relative to the workspace: UTF-8, without control characters */
	bool may_execute;
	const char *data;
	size_t len;
};

struct archive {
	const char *bytes;
	size_t len, at;
};

/*
 * Reads the next regular file.  1: *ret is set; 0: end of the archive; -BRIG_E_USAGE: the archive is refused, *err says
 * why and at which byte.
 */
int archive_next(struct archive *a, struct archive_file *ret, struct brig_error *err);
/* False: the buffer is full, or out of memory. */
bool archive_put(struct buf *out, const struct archive_file *f);

#endif
