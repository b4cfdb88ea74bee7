/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process that is about to become the program confines itself, for all backends.
 *
 * A backend fills one struct guest_confine and runs the steps in its own order, with its own names for them.  The
 * struct has only plain data, so the steps need nothing else of the backend.  Everything here is async-signal-safe, and
 * uses neither heap memory nor stdio.  A step returns 0 or -errno; none can be undone.
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
	unsigned close_from; /* the first descriptor that the program does not inherit */
	bool deny_write_exec;
	bool own_ids; /* take uid and gid; otherwise keep the current ids */
	uid_t uid;
	gid_t gid;
	int landlock_abi; /* 0: not supported by the kernel */
	struct landlock_rule rule[GUEST_RULES_MAX];
	size_t n_rules;
	struct seccomp_filter filter;
	struct seccomp_filter telling_filter; /* with a listener, tried first; n == 0: none wanted */

	/* Set by the steps. */
	int listener; /* of telling_filter, close-on-exec; FD_NONE: the plain filter is in force */
};

/*
 * Filling the struct.  A rule that does not fit is left out, which denies more; a limit that does not fit makes its
 * step fail.
 */
void guest_add_rlimit(struct guest_confine *c, int resource, uint64_t value);
/* The limits that every program has, except RLIMIT_CORE, which an engine may have set itself. */
void guest_add_rlimits(struct guest_confine *c, uint64_t open_files, uint64_t file_bytes, uint64_t cpu_time_ms);
void guest_add_rule(struct guest_confine *c, const char *path, unsigned grant);

/* The steps. */
int guest_reset_signals(struct guest_confine *c);
int guest_offer_to_oom_killer(struct guest_confine *c);
int guest_set_rlimits(struct guest_confine *c);
int guest_close_files(struct guest_confine *c); /* and creates a session */
int guest_memory_rules(struct guest_confine *c);
int guest_no_new_privs(struct guest_confine *c);
int guest_take_ids(struct guest_confine *c);
int guest_clear_caps(struct guest_confine *c);
int guest_apply_landlock(struct guest_confine *c);
int guest_install_filter(struct guest_confine *c);

/*
 * Result of an ioctl on a device that was opened inside the Landlock domain: an errno (guest_landlock_in_force), or 0.
 */
int guest_probe_landlock(void);
/* Parts of steps, for processes other than the program's. */
int guest_set_ids(uid_t uid, gid_t gid); /* and drops supplementary groups */
/* Not _exit(): a sanitizer's version makes calls that a filter refuses, and that would wait for an answer. */
_Noreturn void guest_end(int status);

#endif
