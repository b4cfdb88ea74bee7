/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's own filter of system calls.
 *
 * A keeper that was taken over through a job would have its caller's rights: it must be able to mount, to make namespaces
 * and groups and to become any user, and no filter takes that from whoever has to do it.  What it takes is the rest of the
 * kernel: tracing and writing into other processes, modules, kexec, bpf, perf, io_uring, userfaultfd, handles of files, clocks,
 * disks and swap, raw sockets.  It is in force before the first job is looked at.
 *
 * A filter is inherited and can never be taken off again, so every program of a cell has this one behind its own.  What makes
 * that harmless:
 *
 *	what it refuses	is answered with SECCOMP_RET_TRACE.  Of several filters' answers the kernel takes the strictest, and
 *			this one is weaker than all others but "allowed": whatever a program's own filter refuses is refused
 *			in that filter's words (an errno, death, a word to the listener that notes refused calls), and not here
 *	what it allows	is all that any family of programs may do, made from the same lists (tools/gen-filters), so that it
 *			never speaks up where a program's own filter allows: tests/unit/test_seccomp.c compares the two
 *	what it costs	nothing for calls that both allow whatever their arguments, which the kernel remembers by number; for
 *			the others one more walk through a tree of some ten comparisons
 *
 * Without a debugger that asks for it SECCOMP_RET_TRACE is ENOSYS; one that traces the keeper needs no filter's leave.
 * The evidence's number of filters is 2 in a keeper's cell for this reason, and 1 elsewhere; none is promised.
 *
 * Root installs it without no_new_privs, which is the cells' own step, and so does a keeper that has the ids for its cells in a user
 * namespace of its own (native/range_ns.c).  Another ordinary user's needs that bit, and then cannot run newuidmap any more: where
 * each cell gets its ids from that there is no filter, around a keeper that has no more rights than its user.
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
