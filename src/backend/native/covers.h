/* SPDX-License-Identifier: Apache-2.0 */
/* What is mounted in a cell's workspace, and so what a program finds at a path of it. */
#ifndef NATIVE_COVERS_H
#define NATIVE_COVERS_H

#include "base/util.h"
#include "sys/proc.h"

struct covers {
	struct cover *row; /* heap */
	size_t n, cap;
	bool ordered;    /* nothing is noted any more */
	size_t lowest;   /* the workspace's own mount; n: there is none */
	bool incomplete; /* no memory: what is not in it may be there */
};

/* For each line of the cell's mountinfo; those outside the workspace are passed over. */
void covers_note(struct covers *c, const struct mount_line *m);
/* Whether a path below the workspace shows nothing but the i-th empty object of ours (root_project.c). */
bool covers_hide(struct covers *c, const char *path, size_t i);
/* Whether it has a mount of its own that cannot be written to, or is in something hidden. */
bool covers_seal(struct covers *c, const char *path);
/* Whether the i-th empty object is seen anywhere: a program may move the folder that it is in, and it moves along. */
bool covers_have(struct covers *c, size_t i);
/* How many others that cannot be written to are seen. */
size_t covers_seals(struct covers *c);
void covers_release(struct covers *c);

#endif
