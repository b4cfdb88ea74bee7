/* SPDX-License-Identifier: Apache-2.0 */
#include "server/assets.h"

#include <string.h>

const struct asset *asset_find(const char *path)
{
	for (size_t i = 0; i < asset_count; i++)
		if (strcmp(asset_table[i].path, path) == 0)
			return &asset_table[i];
	return NULL;
}
