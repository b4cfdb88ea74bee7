/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - confinement of the front, before it receives data from a client
 *
 *	user ids     as root: those of the system user _brig, or, without one, an unassigned number; no groups
 *	capabilities none, and no way to regain one: the bounding set is empty, no_new_privs is set
 *	memory       environment variables are wiped
 *	limits       no core file, no locked memory, bounded address space (files in memory carry long messages)
 *	Landlock     no path, no signals to others, no abstract sockets; if the kernel lacks it, only the filter remains, which
 *	             permits no call that opens a file, and that is logged
 *	filter       data/syscalls/front.list
 *
 * If a step cannot be applied, the process exits and the service does not start.
 */
#include "server/confine.h"
#include "server/front/front.h"

#define MEMORY_EXTRA (GiB + GiB / 2) /* bodies, answers and parsed documents */

bool front_lacks_landlock(void)
{
	return landlock_abi() == 0;
}

int front_confine(const char **ret_step)
{
	const struct confinement c = { .more_memory = MEMORY_EXTRA, .filter = seccomp_filter_front() };

	return confine(&c, ret_step);
}
