/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in a file in memory that nobody can change any more: how what is long travels beside a message. */
#ifndef BASE_SEALED_H
#define BASE_SEALED_H

#include "base/util.h"

/* The descriptor, or -errno. */
int sealed_make(const char *name, const void *data, size_t len);
/* One that was made with MFD_ALLOW_SEALING, and filled: 0 or -errno. */
int sealed_close(int fd);
/* Maps it to be read: NULL if it is not sealed, or has not exactly len bytes, of which there is at least one. */
void *sealed_map(int fd, size_t len);

#endif
