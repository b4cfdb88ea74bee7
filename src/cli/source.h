/* SPDX-License-Identifier: Apache-2.0 */
/* The program that `brig run` was given by its path: a file, or a folder in which one begins (entries.def). */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include <limits.h>

#include <brig/brig.h>

#include "base/util.h"

struct source {
	char file[PATH_MAX];         /* to be read */
	char workspace[PATH_MAX];    /* "": as the options say; else the folder itself */
	char in_workspace[PATH_MAX]; /* the file's path below the workspace; "": it is not in it */
};

/* workspace: that of the options, or NULL. */
int source_find(const char *path, const char *workspace, struct source *ret, struct brig_error *err);

#endif
