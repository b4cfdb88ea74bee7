/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process competes for CPUs and disks.
 *
 * A caller may run with a real-time policy, a negative nice value or a raised I/O priority, all of which children inherit.
 * A real-time process is not bound by the CPU quota of its control group, so the program of a cell must never be one.
 * Priorities that were lowered (nice 10, SCHED_IDLE, ionice -c 3) stay as they are.
 */
#ifndef SYS_SCHEDULING_H
#define SYS_SCHEDULING_H

#include <sys/types.h>

/* Takes raised priorities from this process and what it forks; needs no privilege.  0 or -errno. */
int scheduling_reset(void);
/* "ordinary", "real-time" or "raised" (a negative nice value), for a zombie as well; NULL: not known. */
const char *scheduling_of(pid_t pid);

#endif
