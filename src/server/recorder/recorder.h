/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the service that writes audit log and history: see main.c. */
#ifndef SERVER_RECORDER_RECORDER_H
#define SERVER_RECORDER_RECORDER_H

#include "base/err.h"

/* Drops everything but access to the state directory: 0 or -errno; *ret_step: the last step tried. */
int recorder_confine(const char *state, const char **ret_step);

#endif
