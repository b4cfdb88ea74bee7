/* SPDX-License-Identifier: Apache-2.0 */
/* Releasing memory while this process is idle. */
#ifndef SYS_MEMORY_H
#define SYS_MEMORY_H

#include "base/clock.h"

/* Idle time after which it hardly matters that released memory must be faulted in again. */
#define MEMORY_REST_NS (2 * NS_PER_SEC)
#define MEMORY_REST_MS ((int)(MEMORY_REST_NS / NS_PER_MS))

/*
 * Releases free heap memory, and read-only pages of programs and libraries: these stay in the page cache and are
 * faulted in again when touched, sixteen per fault.  Not for a process in which another thread allocates all the time.
 */
void memory_rest(void);

#endif
