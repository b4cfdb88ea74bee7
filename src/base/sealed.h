/* SPDX-License-Identifier: Apache-2.0 */
/* Immutable bytes in a sealed memory file: how large data is passed along with a message. */
#ifndef BASE_SEALED_H
#define BASE_SEALED_H

#include "base/util.h"

/* The descriptor, or -errno. */
int sealed_make(const char *name, const void *data, size_t len);
/* Seals a file that was created with MFD_ALLOW_SEALING and filled: 0 or -errno. */
int sealed_close(int fd);
/* Maps it for reading: NULL if it is not sealed, or does not have exactly len bytes, at least one. */
void *sealed_map(int fd, size_t len);

#endif
