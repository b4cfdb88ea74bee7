/* SPDX-License-Identifier: Apache-2.0 */
/* Files that go into a run, and artifacts that come out of it, as tar archives. */
#ifndef CLI_ARCHIVE_H
#define CLI_ARCHIVE_H

#include "base/err.h"

/*
 * A name is a path or "fd:N", a descriptor that we have inherited; for reading also "-", standard input.  *ret is above 2 and
 * the caller's to close.  0, also if name is NULL.
 */
int archive_open_in(const char *name, int *ret, struct brig_error *err);
int archive_open_out(const char *name, int *ret, struct brig_error *err);

#endif
