/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps two processes that work at the same time on two cpus.
 *
 * A cell is built by several processes side by side, in two or three milliseconds.  On a machine with two cpus the
 * kernel leaves a new child, or whom it wakes, on its parent's cpu more often than not while the other one sleeps: it
 * balances in longer times than that.  So they are put apart by hand for as long as the building takes.  Where there are
 * more cpus an idle one is found without us, and where there is one there is nothing to do: then all of this does nothing.
 * It is a matter of speed only, so nothing of it can fail.
 */
#ifndef SYS_CPUS_H
#define SYS_CPUS_H

#include <sched.h>

#include "base/util.h"

struct cpu_pair {
	bool usable;
	cpu_set_t both;
};

/* What the calling thread may run on. */
struct cpu_pair cpu_pair_find(void);
/* Both async-signal-safe.  A child gets the cpu that its parent does not run on, until it takes the other one back itself. */
void cpu_pair_part(const struct cpu_pair *p, pid_t child);
void cpu_pair_join(const struct cpu_pair *p);

#endif
