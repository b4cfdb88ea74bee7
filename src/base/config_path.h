/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CONFIG_PATH_H
#define BASE_CONFIG_PATH_H

#include "base/util.h"

/* The user's own policy file: brig/sandbox.yaml below $XDG_CONFIG_HOME, or below ~/.config.  False: there is no such
 * place, or it does not fit into dst. */
bool config_path(char *dst, size_t size);

#endif
