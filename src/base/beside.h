/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

#include "base/util.h"

/*
 * A file of an npm package that came with brig: below $BRIG_LIBEXEC, next to the executable (in a build tree or an
 * installation), or where `make install` puts it.  Calls try with each candidate path until it returns true.
 */
bool beside_find(const char *file, bool (*try)(const char *path, void *arg), void *arg);

#endif
