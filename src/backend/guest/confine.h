/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that is about to become the program does to itself, whichever backend made it.
 *
 * A backend fills one struct guest_confine and takes the steps in its own order, with its own names for them.  The struct
 * holds plain data: whoever takes the steps needs nothing else of the backend.  Everything here is async-signal-safe, and
 * uses neither memory of the heap nor stdio.  A step gives 0 or -errno, and there is no way back from any of them.
 */
#ifndef GUEST_CONFINE_H
#define GUEST_CONFINE_H

#include <sys/types.h>

#include "sys/landlock.h"
#include "sys/seccomp.h"

#define GUEST_RLIMITS_MAX 16
#define GUEST_RULES_MAX   64

struct guest_confine {
	struct guest_rlimit {
		int resource; /* RLIMIT_ */
		uint64_t value;
	} rlimit[GUEST_RLIMITS_MAX];
	size_t n_rlimits;
	unsigned close_from; /* the first descriptor that the program does not get */
	bool deny_write_exec;
	bool own_ids; /* takes uid and gid; else it keeps the ids that it has */
	uid_t uid;
	gid_t gid;
	int landlock_abi; /* 0: the kernel has none */
	struct landlock_rule rule[GUEST_RULES_MAX];
	size_t n_rules;
	struct seccomp_filter filter;
	struct seccomp_filter telling_filter; /* tried first, if it is to tell of refused calls; n == 0: it is not */

	/* Filled by the steps. */
	int listener; /* of the telling filter, close-on-exec; FD_NONE: the plain one is in force */
};

/* Filling it.  A rule that does not fit is left out, which denies more; a limit that does not fit makes its step fail. */
void guest_add_rlimit(struct guest_confine *c, int resource, uint64_t value);
/* Those that every program has, but for RLIMIT_CORE, which an engine may have taken for itself. */
void guest_add_rlimits(struct guest_confine *c, uint64_t open_files, uint64_t file_bytes, uint64_t cpu_time_ms);
void guest_add_rule(struct guest_confine *c, const char *path, unsigned grant);

/* The steps. */
int guest_reset_signals(struct guest_confine *c);
int guest_offer_to_oom_killer(struct guest_confine *c);
int guest_set_rlimits(struct guest_confine *c);
int guest_close_files(struct guest_confine *c); /* and begins a session */
int guest_memory_rules(struct guest_confine *c);
int guest_no_new_privs(struct guest_confine *c);
int guest_take_ids(struct guest_confine *c);
int guest_clear_caps(struct guest_confine *c);
int guest_apply_landlock(struct guest_confine *c);
int guest_install_filter(struct guest_confine *c);

/* What an ioctl on a device says that was opened inside the Landlock domain: an errno (guest_landlock_in_force), 0. */
int guest_probe_landlock(void);
/* Parts of steps, for others than the program's process. */
int guest_set_ids(uid_t uid, gid_t gid); /* and no supplementary group */
/* Not _exit(): a sanitizer's version of it makes calls that a filter refuses, and they would wait for an answer. */
_Noreturn void guest_end(int status);

#endif
