/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/mnt.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>

static uint64_t attributes(unsigned flags)
{
	uint64_t attr = MOUNT_ATTR_NOSUID;

	if (!(flags & MNT_DEV))
		attr |= MOUNT_ATTR_NODEV;
	if (flags & MNT_RO)
		attr |= MOUNT_ATTR_RDONLY;
	if (flags & MNT_NOEXEC)
		attr |= MOUNT_ATTR_NOEXEC;
	return attr;
}

static int set_attributes(int tree, unsigned flags)
{
	struct mount_attr attr = { .attr_set = attributes(flags), .propagation = MS_PRIVATE };
	unsigned at = AT_EMPTY_PATH | (flags & MNT_RECURSIVE ? AT_RECURSIVE : 0);

	return mount_setattr(tree, "", at, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static int set_params(int fs, const struct mount_param *params, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned cmd = params[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (fsconfig(fs, cmd, params[i].key, params[i].value, 0) < 0)
			return -errno;
	}
	return 0;
}

int mount_new(const char *type, const struct mount_param *params, size_t n, unsigned flags)
{
	AUTO_FD fs = fsopen(type, FSOPEN_CLOEXEC);
	int tree, rc;

	if (fs < 0)
		return -errno;
	rc = set_params(fs, params, n);
	if (rc < 0)
		return rc;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attributes(flags));
	return tree < 0 ? -errno : tree;
}

int mount_copy(int dir, const char *path, unsigned flags)
{
	unsigned at = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW;
	AUTO_FD tree = FD_NONE;
	int rc;

	if (flags & MNT_RECURSIVE)
		at |= AT_RECURSIVE;
	if (!*path)
		at |= AT_EMPTY_PATH;
	tree = open_tree(dir, path, at);
	if (tree < 0)
		return -errno;
	rc = set_attributes(tree, flags);
	return rc < 0 ? rc : fd_move(&tree);
}

int mount_copy_mapped(int dir, int userns, unsigned flags)
{
	AUTO_FD tree = open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	struct mount_attr attr = { .attr_set = attributes(flags | MNT_RO) | MOUNT_ATTR_IDMAP,
				   .propagation = MS_PRIVATE,
				   .userns_fd = (uint64_t)userns };

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return fd_move(&tree);
}

int mount_attach(int tree, int dir, const char *path)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH);

	return move_mount(tree, "", dir, path, flags) < 0 ? -errno : 0;
}

int mount_restrict(int dir, unsigned flags)
{
	return set_attributes(dir, flags);
}

int mount_reconfigure(int dir, const struct mount_param *params, size_t n)
{
	AUTO_FD fs = fspick(dir, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
	int rc;

	if (fs < 0)
		return -errno;
	rc = set_params(fs, params, n);
	if (rc < 0)
		return rc;
	return fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0 ? -errno : 0;
}

int mount_detach(const char *path)
{
	return umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

int mount_pivot(int dir)
{
	if (fchdir(dir) < 0)
		return -errno;
	return syscall(SYS_pivot_root, ".", ".") < 0 ? -errno : 0;
}

int mount_detach_old_root(void)
{
	if (umount2(".", MNT_DETACH) < 0)
		return -errno;
	return chdir("/") < 0 ? -errno : 0;
}
