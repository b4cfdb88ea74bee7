/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confinement of a zygote's child: one flat block that the supervisor writes once for all children of a zygote,
 * into a sealed memfd.  They confine themselves as a payload does (guest/confine.h), with the same data.  What all
 * processes of the kind have in common (resource limits, no_new_privs, the rule on writable and executable memory, the
 * OOM score) they inherit from the zygote.
 */
#ifndef GUEST_WALLS_H
#define GUEST_WALLS_H

#include <stddef.h>
#include <stdint.h>

#define GUEST_WALLS_MAGIC 0x57414c4cu /* "WALL" */

/* The child's steps, in this order; the names are those of native/steps.def. */
#define GUEST_JOINS(X)      \
	X(child_groups)     \
	X(child_namespaces) \
	X(child_fork)       \
	X(child_time)       \
	X(child_streams)    \
	X(child_session)    \
	X(child_lock_caps)  \
	X(child_ids)        \
	X(child_caps)       \
	X(child_workspace)  \
	X(child_landlock)   \
	X(child_filter)

enum guest_join {
#define X(name) JOIN_##name,
	GUEST_JOINS(X)
#undef X
		JOIN_COUNT
};

struct guest_rule {
	uint32_t grant; /* enum landlock_grant */
	char path[220];
};

struct guest_walls {
	uint32_t magic;
	uint32_t uid, gid;
	uint32_t landlock_abi;
	uint32_t n_rules;
	uint32_t n_filter, n_telling; /* instructions; n_telling 0: refused calls are not reported */
	uint32_t fault, fault_errno;  /* for the fault suite: 1 + the step that fails; 0: none */
	char folder[32];              /* the program's working directory */
	/* struct guest_rule[n_rules], struct sock_filter[n_filter], struct sock_filter[n_telling] */
};

#endif
