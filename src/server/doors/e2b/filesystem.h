/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and file entries in a sandbox (for filesystem.c, files.c and others). */
#ifndef SERVER_DOORS_E2B_FILESYSTEM_H
#define SERVER_DOORS_E2B_FILESYSTEM_H

#include "server/doors/e2b/e2b.h"

/* Normalizes a client's path and maps it to the session; false: invalid argument. */
bool filesystem_path(const char *path, char dst[E2B_PATH_MAX + 1]);
/* The last component. */
const char *filesystem_name(const char *path);
/* An entry of the runner's file list as EntryInfo; a new reference. */
json_t *filesystem_entry(const json_t *row);

#endif
