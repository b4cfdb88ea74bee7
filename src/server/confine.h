/* SPDX-License-Identifier: Apache-2.0 */
/* Steps with which the processes of the service that need no privilege give up what they have. */
#ifndef SERVER_CONFINE_H
#define SERVER_CONFINE_H

#include "base/util.h"
#include "sys/seccomp.h"

#define SYSTEM_USER "_brig"

struct confine_step {
	const char *name;
	int (*run)(void); /* 0 or -errno */
};

/* One after the other, up to the first that fails: 0 or -errno; *ret_step is the one that was last. */
int confine_run(const struct confine_step *steps, size_t n, const char **ret_step);

/* As root: the ids of the system user, or of nobody; no groups.  No capability, and no way to get one. */
int confine_ids(void);
/* Variables of whoever started the service may be secrets, and a process that was forked has a copy of them. */
int confine_environment(void);
/* Dies with its parent, cannot be traced, gets no privilege.  After user ids were changed: that makes the kernel forget. */
int confine_to_parent(void);
/* No core file, no locked memory, so many bytes of memory more than there are now. */
int confine_limits(uint64_t more_memory);
int confine_filter(struct seccomp_filter filter);

#endif
