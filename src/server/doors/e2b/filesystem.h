/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and entries of files, for what speaks of files in a sandbox (filesystem.c, files.c). */
#ifndef SERVER_DOORS_E2B_FILESYSTEM_H
#define SERVER_DOORS_E2B_FILESYSTEM_H

#include "server/doors/e2b/e2b.h"

/* A path as clients write it, plain and as the session has it; false: it is an invalid argument. */
bool filesystem_path(const char *path, char dst[E2B_PATH_MAX + 1]);
/* Its last part. */
const char *filesystem_name(const char *path);
/* An entry of a list of the runner's, as EntryInfo; a new reference. */
json_t *filesystem_entry(const json_t *row);

#endif
