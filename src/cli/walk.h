/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files beneath a directory, in the order of their names.  Links are not followed, not even while the tree changes
 * underneath: every step is an openat() without following.  Folders with third-party code are skipped.
 */
#ifndef CLI_WALK_H
#define CLI_WALK_H

#include "base/buf.h"
#include "base/err.h"

#define WALK_DEPTH_MAX 64
#define WALK_FILES_MAX 20000

struct walk {
	/* Whether this file is wanted, by its name. */
	bool (*wants)(void *user, const char *name);
	/* fd is open for reading and stays the walk's.  Negative ends the walk. */
	int (*file)(void *user, int fd, const char *path);
	/* Something that could not be read, with the reason; the walk goes on. */
	void (*trouble)(void *user, const char *path, int error);
	void *user;
	size_t n_files;
};

/* dir is open for reading and stays the caller's; path is what it is called. */
int walk_sources(struct walk *w, int dir, const char *path, struct brig_error *err);

#endif
