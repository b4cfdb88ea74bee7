/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - confinement of the recorder, before it receives the first message
 *
 *	user ids     those of the service are kept: it owns the state directory, so that `brig run`, `brig audit` and
 *	             `brig key` of the same user can use the same log.  Without capabilities, root is merely the owner of its
 *	             files
 *	capabilities none, and no way to regain one
 *	memory       environment variables are wiped; the process cannot be traced
 *	limits       no core file, since there are keys in memory
 *	Landlock     the state directory and no other path; no signals to others, no abstract sockets
 *	filter       data/syscalls/recorder.list: no new sockets, no programs, no executable memory
 *
 * If a step cannot be applied, the process exits and the service does not start.  Where the kernel lacks Landlock, the
 * others must suffice.
 */
#include "server/confine.h"
#include "server/recorder/recorder.h"

#define MEMORY_EXTRA (GiB + GiB / 2) /* records in transit, answers of the history */

int recorder_confine(const char *state, const char **ret_step)
{
	const struct landlock_rule state_folder = { .path = state,
						    .grant = LANDLOCK_READ | LANDLOCK_WRITE,
						    .fd = FD_NONE };
	const struct confinement c = { .keeps_ids = true,
				       .more_memory = MEMORY_EXTRA,
				       .rules = &state_folder,
				       .n_rules = 1,
				       .filter = seccomp_filter_recorder() };

	return confine(&c, ret_step);
}
