/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the front before it reads the first byte of a stranger's
 *
 *	user ids     as root: those of the system user _brig, or, without one, a number that is nobody's; no groups
 *	capabilities none, and no way to get one: the bounding set is empty, no_new_privs
 *	memory       variables of the environment are wiped: it was forked with a copy of them
 *	limits       no core file, no locked memory, so much memory (files in memory are how long messages travel)
 *	Landlock     no path at all, no signal to others and no abstract socket; where the kernel has none, the filter has to do
 *	             alone, which knows no call that opens anything, and the log says so
 *	filter       data/syscalls/front.list
 *
 * What cannot be applied ends the process: there is no service without.
 */
#include "server/confine.h"
#include "server/front/front.h"

#define MEMORY_EXTRA (GiB + GiB / 2) /* bodies, answers and the documents made of them */

bool front_lacks_landlock(void)
{
	return landlock_abi() == 0;
}

int front_confine(const char **ret_step)
{
	const struct confinement c = { .more_memory = MEMORY_EXTRA, .filter = seccomp_filter_front() };

	return confine(&c, ret_step);
}
