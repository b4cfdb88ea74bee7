/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a tar stream: what engines take as a root file system, a build context or an archive to unpack.  Everything in
 * it belongs to root, and nothing is setuid: modes are cut to 0755 (folders that everybody may write in are the
 * caller's explicit wish).  Names longer than the format's 255 bytes take GNU's extra entry, which engines read.
 */
#ifndef DOCKER_IMAGE_TAR_H
#define DOCKER_IMAGE_TAR_H

#include <sys/types.h>

#include "base/err.h"

struct tar {
	int fd;
	char *out; /* collected until it is worth a write */
	size_t have;
	int error; /* the first errno; what follows it is not written */
	uint64_t written;
};

/* A stream onto fd, which stays the caller's. */
int tar_open(struct tar *t, int fd, struct brig_error *err);
/* path: without a leading slash. */
void tar_folder(struct tar *t, const char *path, unsigned mode, int64_t mtime);
void tar_link(struct tar *t, const char *path, const char *target, int64_t mtime);
void tar_data(struct tar *t, const char *path, unsigned mode, const void *data, size_t len);
/* Exactly size bytes of a file; one that has become shorter meanwhile is filled up with zeros. */
void tar_file(struct tar *t, const char *path, unsigned mode, int64_t mtime, int from, uint64_t size);
/* Ends the stream.  0, or negative: something could not be written. */
int tar_close(struct tar *t, struct brig_error *err);

/* An unnamed file for a stream: on disk where that is possible, else in memory; positioned at its start. */
int tar_temporary(struct brig_error *err);

#endif
