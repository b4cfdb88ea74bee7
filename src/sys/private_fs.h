/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An in-memory file system that is mounted nowhere: no other process can reach it, and it disappears with its last
 * descriptor, however this process ends.
 */
#ifndef SYS_PRIVATE_FS_H
#define SYS_PRIVATE_FS_H

#include "base/util.h"

/* Its root, a folder of mode 0700 that belongs to us; or -errno. */
int private_fs(uint64_t bytes, uint64_t inodes);

#endif
