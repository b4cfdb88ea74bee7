/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the service that writes audit log and history: see main.c. */
#ifndef SERVER_RECORDER_RECORDER_H
#define SERVER_RECORDER_RECORDER_H

#include "base/err.h"

/* Takes from this process all but the state folder: 0 or -errno; *ret_step: what was done last. */
int recorder_confine(const char *state, const char **ret_step);

#endif
