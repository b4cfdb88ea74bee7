/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the recorder before it reads the first message
 *
 *	user ids     it keeps those of the service: the state folder is theirs, and so `brig run`, `brig audit` and `brig key`
 *	             of the same user go on working on one log.  Without capabilities that makes root the owner of its files
 *	             and nothing else
 *	capabilities none, and no way to get one
 *	memory       variables of the environment are wiped; nobody can trace it
 *	limits       no core file: there are keys in its memory
 *	Landlock     the state folder, and no other path; no signal to others, no abstract socket
 *	filter       data/syscalls/recorder.list: no socket is made, no program started, no memory becomes code
 *
 * What cannot be applied ends the process: there is no service without.  Where the kernel has no Landlock the others have to
 * do.
 */
#include "server/confine.h"
#include "server/recorder/recorder.h"

#define MEMORY_EXTRA (GiB + GiB / 2) /* records on their way, answers of the history */

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
