/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches three-number versions against npm's selectors: "*", "3", "3.x", "3.11.2", "^3.0.0", "~3.1", ">=3 <4", "1.0.0
 * - 2.0.0", "2 || 3".
 */
#ifndef SERVER_DOORS_PISTON_SEMVER_H
#define SERVER_DOORS_PISTON_SEMVER_H

#include "base/util.h"

/* False also if the selector is malformed. */
bool semver_fits(const char *version, const char *selector);

#endif
