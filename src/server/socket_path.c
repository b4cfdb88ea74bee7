/* SPDX-License-Identifier: Apache-2.0 */
#include "server/socket_path.h"

#include <stdio.h>
#include <unistd.h>

#include "base/str.h"

bool socket_path_own(char dst[SOCKET_PATH_MAX])
{
	const char *folder = secure_getenv("XDG_RUNTIME_DIR");
	int len;

	if (geteuid() == 0)
		return str_copy(dst, SOCKET_PATH_MAX, SOCKET_OF_SYSTEM);
	if (!folder || *folder != '/')
		return false;
	len = snprintf(dst, SOCKET_PATH_MAX, "%s/brig/" SOCKET_NAME, folder);
	return len > 0 && len < SOCKET_PATH_MAX;
}
