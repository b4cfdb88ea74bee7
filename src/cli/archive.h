/* SPDX-License-Identifier: Apache-2.0 */
/* Tar archives with files for a run, and with its artifacts. */
#ifndef CLI_ARCHIVE_H
#define CLI_ARCHIVE_H

#include "base/err.h"

/*
 * name: a path, or "fd:N" for an inherited descriptor; for reading also "-", standard input.  *ret is above 2, and the
 * caller closes it.  Returns 0 also if name is NULL.
 */
int archive_open_in(const char *name, int *ret, struct brig_error *err);
int archive_open_out(const char *name, int *ret, struct brig_error *err);

#endif
