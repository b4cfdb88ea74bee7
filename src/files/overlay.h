/* SPDX-License-Identifier: Apache-2.0 */
/* Marks in the upper layer of an overlay that hide parts of the lower one. */
#ifndef FILES_OVERLAY_H
#define FILES_OVERLAY_H

#include <sys/stat.h>

#include "base/util.h"

#define OVERLAY_OPAQUE \
	"user.overlay.opaque" /* the attribute that any user may set, from Linux 6.6 on also in a tmpfs */

/* Whether what the lower layer has at this place is gone. */
bool overlay_is_gone(const struct stat *st);
/* Whether everything is that it has in this folder. */
bool overlay_is_opaque(int root, const char *path);

#endif
