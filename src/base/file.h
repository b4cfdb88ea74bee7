/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a caller names.  A path may lead to anything: opening a FIFO without a writer blocks forever, and opening
 * a device may have side effects.  So its type is checked first, and only acceptable files are opened.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/stat.h>

#include "base/util.h"

/* What is accepted besides regular files. */
enum file_also {
	FILE_STREAMS = 1, /* inherited descriptors of any kind: /dev/stdin, /dev/fd/N, /proc/self/fd/N */
	FILE_FOLDERS = 2,
	FILE_DEVICES = 4, /* character devices, such as /dev/null; opened without blocking */
};

/* For reading, links followed; a descriptor or -errno.  -EINVAL: it is something else, and file_kind(st->st_mode) says
 * what. */
int file_open(const char *path, unsigned also, struct stat *st);
/* "a FIFO", "a directory" ... */
const char *file_kind(mode_t mode);

#endif
