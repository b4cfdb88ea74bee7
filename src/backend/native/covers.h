/* SPDX-License-Identifier: Apache-2.0 */
/* What is mounted in a cell's workspace, and what a program therefore sees at a path in it. */
#ifndef NATIVE_COVERS_H
#define NATIVE_COVERS_H

#include "base/util.h"
#include "sys/proc.h"

struct covers {
	struct cover *row; /* allocated */
	size_t n, cap;
	bool ordered;    /* sorted; no more mounts are added */
	size_t lowest;   /* index of the workspace's own mount; n: none */
	bool incomplete; /* out of memory: a missing mount may still be there */
};

/* For each line of the cell's mountinfo; ignores mounts outside of the workspace. */
void covers_note(struct covers *c, const struct mount_line *m);
/* Whether a path below the workspace shows exactly our i-th empty object (root_project.c). */
bool covers_hide(struct covers *c, const char *path, size_t i);
/* Whether the path has a read-only mount of its own, or is inside something hidden. */
bool covers_seal(struct covers *c, const char *path);
/*
 * Whether the i-th empty object is visible anywhere: it moves with the directory that it is in if the program renames
 * that.
 */
bool covers_have(struct covers *c, size_t i);
/* How many other read-only mounts are visible. */
size_t covers_seals(struct covers *c);
void covers_release(struct covers *c);

#endif
