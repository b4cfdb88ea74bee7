/* SPDX-License-Identifier: Apache-2.0 */
/* The program given to `brig run` as a path: a file, or a directory with an entry file (entries.def). */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include <limits.h>

#include <brig/brig.h>

#include "base/util.h"

struct source {
	char file[PATH_MAX];         /* file to read */
	char workspace[PATH_MAX];    /* "": as the options say; otherwise the directory itself */
	char in_workspace[PATH_MAX]; /* the file's path relative to the workspace; "": it is outside */
};

/* workspace: from the options, or NULL. */
int source_find(const char *path, const char *workspace, struct source *ret, struct brig_error *err);

#endif
