/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files beneath a directory, sorted by name.  Links are not followed, even if the tree changes meanwhile: every
 * step is an openat() with O_NOFOLLOW.  Directories with third-party code are skipped.
 */
#ifndef CLI_WALK_H
#define CLI_WALK_H

#include "base/buf.h"
#include "base/err.h"

#define WALK_DEPTH_MAX 64
#define WALK_FILES_MAX 20000

struct walk {
	/* Whether a file with this name is wanted. */
	bool (*wants)(void *user, const char *name);
	/* fd is open for reading and stays the walk's.  A negative return value ends the walk. */
	int (*file)(void *user, int fd, const char *path);
	/* Called for what could not be read; the walk continues. */
	void (*trouble)(void *user, const char *path, int error);
	void *user;
	size_t n_files;
};

/* dir is open for reading and stays the caller's; path is its name for messages. */
int walk_sources(struct walk *w, int dir, const char *path, struct brig_error *err);

#endif
