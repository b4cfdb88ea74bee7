/* SPDX-License-Identifier: Apache-2.0 */
/* The disks behind folders, by the numbers that control groups limit them by. */
#ifndef SYS_DISK_H
#define SYS_DISK_H

#include <sys/types.h>

#include "base/util.h"

#define DISKS_MAX 16

struct disk_list {
	dev_t dev[DISKS_MAX];
	size_t n;
};

/*
 * Adds the whole disk that an open file or directory is on, once; in-memory file systems have none.  0 or -errno;
 * -EOPNOTSUPP: there is no single disk behind it that could be limited (overlay, btrfs, NFS, 9p ...).
 */
int disk_add(struct disk_list *list, int fd);
int disk_add_path(struct disk_list *list, const char *path);
/* The name of a disk's node, "/dev/sda".  0 or -errno. */
int disk_node(dev_t disk, char *dst, size_t size);

#endif
