/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded walk over an untrusted tree, which may be changing: folders before their contents, names in byte order,
 * nothing followed, nothing opened but folders, no recursion on our own stack.
 */
#ifndef FILES_WALK_H
#define FILES_WALK_H

#include <sys/stat.h>

#include "base/err.h"

#define WALK_DEPTH_MAX 256 /* levels, and so descriptors held at once */
#define WALK_PATH_MAX  4096

struct walk_entry {
	int dir;          /* the folder it is in; borrowed */
	const char *name; /* in that folder */
	const char *path; /* below the root of the walk */
	const struct stat *st;
};

enum walk_next { WALK_ON, WALK_SKIP /* do not enter this folder */, WALK_STOP };

struct walk_caps {
	uint64_t entries;  /* looked at; more end the walk */
	bool cross_mounts; /* enter folders of other file systems */
	bool kinds_only; /* st has nothing but the kind in st_mode, and names come as they come: several times as quick */
};

struct walk_outcome {
	uint64_t entries;
	bool cut;          /* a cap, the depth or the length of a path was reached: it did not see everything */
	bool stopped;      /* by WALK_STOP */
	uint64_t vanished; /* entries that had vanished or changed their type when they were examined */
	uint64_t
		unreadable; /* folders that could not be read; and, without cross_mounts, those that others are mounted on */
};

typedef enum walk_next (*walk_fn)(void *arg, const struct walk_entry *e);

/* 0, or negative: the root cannot be read, or no memory. */
int walk_tree(int root, const struct walk_caps *caps, walk_fn each, void *arg, struct walk_outcome *ret,
	      struct brig_error *err);

#endif
