/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's own system call filter.
 *
 * A keeper that was compromised through a job would have its caller's rights.  It has to mount, to create namespaces
 * and cgroups and to become any user, so no filter can take that away.  The filter takes the rest of the kernel:
 * tracing and writing into other processes, modules, kexec, bpf, perf, io_uring, userfaultfd, file handles, clocks,
 * disks and swap, raw sockets.  It is installed before the first job is read.
 *
 * A filter is inherited and can never be removed, so every program in a cell has this one in addition to its own.  That
 * is harmless:
 *
 *	refused calls	return SECCOMP_RET_TRACE.  The kernel applies the most restrictive result of all filters, and
 *			this one is weaker than all others except "allow": a call that the program's own filter refuses
 *			is answered by that filter (an errno, a kill, a notification to the listener that counts refused
 *			calls)
 *	allowed calls	are a superset of what any family of programs may do, generated from the same lists
 *			(tools/gen-filters), so this filter refuses nothing that a program's own filter allows:
 *			tests/unit/test_seccomp.c compares the two
 *	cost		none for calls that both filters allow regardless of arguments, which the kernel caches by
 *			number; for the others one more walk through a tree of about ten comparisons
 *
 * Without a tracer that asks for it, SECCOMP_RET_TRACE fails the call with ENOSYS; a process that can trace the keeper
 * does not need the filter's permission.  The evidence therefore shows 2 filters in a keeper's cell and 1 elsewhere; no
 * number is promised.
 *
 * Root installs the filter without no_new_privs, which each cell sets for itself.  So does a keeper that holds the ids
 * of its cells in its own user namespace (native/range_ns.c).  Any other ordinary user needs no_new_privs to install a
 * filter, and newuidmap would then lose its privileges: where newuidmap maps the ids of each cell, the keeper stays
 * unfiltered.  It has no more rights than its user.
 */
#include <sys/prctl.h>

#include "keeper/inside.h"
#include "sys/seccomp.h"

int keeper_confine(bool runs_helpers, struct brig_error *err)
{
	int rc;

	if (runs_helpers)
		return 0;
	rc = seccomp_install(seccomp_filter_keeper());
	if (rc == -EACCES)
		rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : seccomp_install(seccomp_filter_keeper());
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "the keeper of cells cannot filter its own system calls") : 0;
}
