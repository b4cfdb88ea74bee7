/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for one case, and its end with everything in it. */
#ifndef TEMP_FOLDER_H
#define TEMP_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

/* <TMPDIR>/brig-<what>-XXXXXX, made.  0 or -1. */
static inline int temp_folder_make(char *dst, size_t size, const char *what)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(dst, size, "%s/brig-%s-XXXXXX", tmp ? tmp : "/tmp", what);
	return mkdtemp(dst) ? 0 : -1;
}

static inline int temp_folder_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline int temp_folder_remove(const char *path)
{
	return nftw(path, temp_folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
