/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar archives that clients send: ustar, with pax headers (path, size) and GNU long names.
 *
 * The front reads what came and writes it anew: regular files only, in the plainest form (base/ustar.h), each path once.  The
 * runner reads that form with the same reader, when it puts together what was there and what a program changed.  Folders
 * are where files are: one without a file is left out.  Whatever else an archive can hold refuses it whole.
 */
#ifndef SERVER_ARCHIVE_H
#define SERVER_ARCHIVE_H

#include "base/buf.h"
#include "base/err.h"

#define ARCHIVE_FILES_MAX 4096
#define ARCHIVE_PATH_MAX  1024
#define ARCHIVE_BYTES_MAX (64 * MiB)

struct archive_file {
	char path[ARCHIVE_PATH_MAX + 1]; /* UTF-8, below the workspace, without control characters */
	bool may_execute;
	const char *data;
	size_t len;
};

struct archive {
	const char *bytes;
	size_t len, at;
};

/* The next regular file: 1; 0: that was all; -BRIG_E_USAGE: it is none that is taken, and *err says why and where. */
int archive_next(struct archive *a, struct archive_file *ret, struct brig_error *err);
/* False: no room, or no memory. */
bool archive_put(struct buf *out, const struct archive_file *f);

#endif
