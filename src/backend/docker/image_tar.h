/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a tar stream: the format in which engines take a root file system, a build context or an archive to unpack.
 * All entries belong to root, and none is setuid: modes of files are masked with 0755, those of directories are the
 * caller's.  Names longer than the format's 255 bytes use GNU's additional entry, which engines support.
 */
#ifndef DOCKER_IMAGE_TAR_H
#define DOCKER_IMAGE_TAR_H

#include <sys/types.h>

#include "base/err.h"

struct tar {
	int fd;
	char *out; /* buffer */
	size_t have;
	int error; /* the first errno; nothing is written after it */
	uint64_t written;
};

/* A stream to fd, which stays the caller's. */
int tar_open(struct tar *t, int fd, struct brig_error *err);
/* path: without a leading slash. */
void tar_folder(struct tar *t, const char *path, unsigned mode, int64_t mtime);
void tar_link(struct tar *t, const char *path, const char *target, int64_t mtime);
void tar_data(struct tar *t, const char *path, unsigned mode, const void *data, size_t len);
/* Exactly size bytes of a file; padded with zeros if it has become shorter meanwhile. */
void tar_file(struct tar *t, const char *path, unsigned mode, int64_t mtime, int from, uint64_t size);
/* Ends the stream.  0, or negative: a write has failed. */
int tar_close(struct tar *t, struct brig_error *err);

/* An unnamed file for a stream, on disk if possible, otherwise in memory; positioned at its start. */
int tar_temporary(struct brig_error *err);

#endif
