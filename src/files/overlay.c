/* SPDX-License-Identifier: Apache-2.0 */
#include "files/overlay.h"

#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "files/beneath.h"

bool overlay_is_gone(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool overlay_is_opaque(int root, const char *path)
{
	static const char *const names[] = { OVERLAY_OPAQUE, "trusted.overlay.opaque" };
	AUTO_FD fd = beneath_open_dir(root, path);
	char value = 0;

	for (size_t i = 0; i < ARRAY_LEN(names) && fd >= 0; i++)
		if (fgetxattr(fd, names[i], &value, 1) == 1 && value == 'y')
			return true;
	return false;
}
