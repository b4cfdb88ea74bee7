/* SPDX-License-Identifier: Apache-2.0 */
#include "base/config_path.h"

#include <stdio.h>
#include <stdlib.h>

bool config_path(char *dst, size_t size)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
	int n;

	if (config && *config == '/')
		n = snprintf(dst, size, "%s/brig/sandbox.yaml", config);
	else if (home && *home == '/')
		n = snprintf(dst, size, "%s/.config/brig/sandbox.yaml", home);
	else
		return false;
	return n > 0 && (size_t)n < size;
}
