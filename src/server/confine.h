/* SPDX-License-Identifier: Apache-2.0 */
/* How the unprivileged processes of the service (front, link, recorder, exporter) drop what they do not need. */
#ifndef SERVER_CONFINE_H
#define SERVER_CONFINE_H

#include "base/util.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#define SYSTEM_USER "_brig"

/* What differs between these processes. */
struct confinement {
	int (*load_libraries)(void); /* 0 or -errno; NULL: only the libraries that all of them use */
	bool keeps_ids;              /* do not switch to the ids of the system user */
	uint64_t more_memory;        /* address space beyond the current size, in bytes; 0: set no limits */
	const struct landlock_rule *rules;
	size_t n_rules;
	struct seccomp_filter filter;
};

/*
 * Applies, in this order: libraries (they read their files now), user ids and capabilities, environment, death with the
 * parent, limits, Landlock, system call filter.  Stops at the first that fails: 0 or -errno; *ret_step names the last
 * step tried.
 */
int confine(const struct confinement *c, const char **ret_step);
/* Makes a read rule for each of these paths that exists; returns their number. */
size_t confine_read_rules(const char *const *places, size_t n, struct landlock_rule *rules);

#endif
