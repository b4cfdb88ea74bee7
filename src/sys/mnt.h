/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts by descriptor, with the mount API of Linux 5.12.  A tree is made detached, given its flags while nobody can
 * see it, and attached below a directory descriptor that we hold: no path that guest or host control is ever looked up
 * twice.
 *
 * Everything here is async-signal-safe and returns 0, a descriptor, or -errno.
 */
#ifndef SYS_MNT_H
#define SYS_MNT_H

#include "base/util.h"

/* One "key=value" (value may be NULL: a flag) for a new filesystem. */
struct mount_param {
	const char *key;
	const char *value;
};

enum mount_flag {
	MNT_RO = 1 << 0,
	MNT_NOEXEC = 1 << 1,
	MNT_DEV = 1 << 2, /* without it every mount is nodev; nosuid and private always */
	MNT_RECURSIVE = 1 << 3,
};

/* A new filesystem, detached. */
int mount_new(const char *type, const struct mount_param *params, size_t n, unsigned flags);
/* A copy of what dir/path shows, detached.  "" is dir itself.  Symbolic links are not followed. */
int mount_copy(int dir, const char *path, unsigned flags);
/* The same, read-only, of dir alone, with the owners of its files as the user namespace maps them: inside ids are those
 * on the disk, outside ones those that are seen.  -EINVAL: not supported by this file system. */
int mount_copy_mapped(int dir, int userns, unsigned flags);
/* Attaches a detached tree on dir/path, which must exist and not be a symbolic link. */
int mount_attach(int tree, int dir, const char *path);
/* Adds flags to a mount that is already attached (dir is the root of that mount). */
int mount_restrict(int dir, unsigned flags);
/* Changes parameters of a filesystem that is mounted; dir is the root of a mount of it. */
int mount_reconfigure(int dir, const struct mount_param *params, size_t n);
/* Takes away what is mounted on path; waits for other cpus as mount_detach_old_root does. */
int mount_detach(const char *path);
/* Makes dir the root of this mount namespace.  The old root stays, stacked below the working directory ... */
int mount_pivot(int dir);
/* ... until this takes it away with everything on it.  The kernel waits for other cpus here: a tenth of a
 * millisecond, or many under load. */
int mount_detach_old_root(void);

#endif
