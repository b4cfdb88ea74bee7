/* SPDX-License-Identifier: Apache-2.0 */
/* What this process holds of the machine's memory while it has nothing to do. */
#ifndef SYS_MEMORY_H
#define SYS_MEMORY_H

#include "base/clock.h"

/* Nothing has happened for so long: it would hardly be noticed that what was given back has to come again. */
#define MEMORY_REST_NS (2 * NS_PER_SEC)
#define MEMORY_REST_MS ((int)(MEMORY_REST_NS / NS_PER_MS))

/*
 * Gives back what is free of the heap, and the pages of programs and libraries that are read only: they stay in the page cache,
 * and come back when they are touched, sixteen with each fault.  Not for a process in which another thread allocates all the time.
 */
void memory_rest(void);

#endif
