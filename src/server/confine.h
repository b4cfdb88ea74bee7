/* SPDX-License-Identifier: Apache-2.0 */
/* Steps with which the processes of the service that need no privilege give up what they have. */
#ifndef SERVER_CONFINE_H
#define SERVER_CONFINE_H

#include "base/util.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#define SYSTEM_USER "_brig"

/* What differs between them. */
struct confinement {
	int (*load_libraries)(void); /* 0 or -errno; NULL: none beyond those that all of them use */
	bool keeps_ids;              /* else it gets those of the system user */
	uint64_t more_memory;        /* bytes beyond what it has now; 0: no limits of its own */
	const struct landlock_rule *rules;
	size_t n_rules;
	struct seccomp_filter filter;
};

/*
 * Applies, in this order: libraries (what they read files for, they read now), user ids and capabilities, environment,
 * death with the parent, limits, Landlock, filter.  Up to the first that fails: 0 or -errno, and *ret_step names the last.
 */
int confine(const struct confinement *c, const char **ret_step);
/* A rule to read each of those places that exist; their number. */
size_t confine_read_rules(const char *const *places, size_t n, struct landlock_rule *rules);

#endif
