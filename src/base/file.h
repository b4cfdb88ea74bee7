/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a caller names.  A path may lead to anything: to open a FIFO that nobody writes to waits for ever, and to
 * open a device may do something.  So it is looked at first, and only what is wanted is opened.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/stat.h>

#include "base/util.h"

/* What is taken besides regular files. */
enum file_also {
	FILE_STREAMS = 1, /* what this process was given open, whatever it is: /dev/stdin, /dev/fd/N, /proc/self/fd/N */
	FILE_FOLDERS = 2,
	FILE_DEVICES = 4, /* character devices, such as /dev/null; opened without blocking */
};

/* For reading, links followed; a descriptor or -errno.  -EINVAL: it is something else, and file_kind(st->st_mode) says
 * what. */
int file_open(const char *path, unsigned also, struct stat *st);
/* "a FIFO", "a directory" ... */
const char *file_kind(mode_t mode);

#endif
