/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's st_dev is the partition, or the mapped or whole disk, that its file system is on; limits are for whole
 * disks. In sysfs the folder of a partition is inside that of its disk.  File systems that have no block device of
 * their own, or several, get a number with major 0, which says nothing about a disk.
 */
#include "sys/disk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"

static bool is_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static int whole_disk(dev_t part, dev_t *ret)
{
	char path[64], text[32];
	unsigned major_no, minor_no;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(part), minor(part));
	*ret = part;
	if (access(path, F_OK) < 0)
		return 0;
	/* Through the link into /sys/devices: its folder's folder. */
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(part), minor(part));
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0 || sscanf(text, "%u:%u", &major_no, &minor_no) != 2)
		return -EOPNOTSUPP;
	*ret = makedev(major_no, minor_no);
	return 0;
}

int disk_add(struct disk_list *list, int fd)
{
	struct stat st;
	dev_t disk;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (major(st.st_dev) == 0)
		return is_in_memory(fd) ? 0 : -EOPNOTSUPP;
	rc = whole_disk(st.st_dev, &disk);
	for (size_t i = 0; rc == 0 && i < list->n; i++)
		if (list->dev[i] == disk)
			return 0;
	if (rc == 0 && list->n == DISKS_MAX)
		rc = -E2BIG;
	if (rc == 0)
		list->dev[list->n++] = disk;
	return rc;
}

int disk_add_path(struct disk_list *list, const char *path)
{
	AUTO_FD fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : disk_add(list, fd);
}

int disk_node(dev_t disk, char *dst, size_t size)
{
	static const char key[] = "DEVNAME=";
	char path[64], text[1024], *name;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", major(disk), minor(disk));
	n = fd_get_at(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	name = strstr(text, key);
	if (!name)
		return -ENODATA;
	name += strlen(key);
	name[strcspn(name, "\n")] = '\0';
	n = snprintf(dst, size, "/dev/%s", name);
	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}
