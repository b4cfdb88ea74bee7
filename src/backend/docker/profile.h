/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seccomp profile that an engine applies to a whole container: the lists of the native filters, as JSON
 * (tools/gen-filters).
 */
#ifndef DOCKER_PROFILE_H
#define DOCKER_PROFILE_H

#include "sys/seccomp.h"

extern const char *const docker_profile[FAMILY_COUNT][2]; /* default, strict */

#endif
