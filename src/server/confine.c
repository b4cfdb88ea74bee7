/* SPDX-License-Identifier: Apache-2.0 */
#include "server/confine.h"

#include <grp.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "sys/caps.h"
#include "sys/proc.h"

/* Above what accounts, containers and cells have, below what some tools take for negative. */
#define NOBODY_ELSE 2147480000u
#define LARGE_BLOCK (256 * 1024)

int confine_run(const struct confine_step *steps, size_t n, const char **ret_step)
{
	for (size_t i = 0; i < n; i++) {
		int rc = steps[i].run();

		*ret_step = steps[i].name;
		if (rc < 0)
			return rc;
	}
	return 0;
}

int confine_ids(void)
{
	const struct passwd *user;
	uid_t uid = NOBODY_ELSE;
	gid_t gid = NOBODY_ELSE;
	int rc;

	if (geteuid() != 0)
		return caps_clear();
	user = getpwnam(SYSTEM_USER);
	if (user && user->pw_uid != 0 && user->pw_gid != 0) {
		uid = user->pw_uid;
		gid = user->pw_gid;
	}
	rc = caps_lock();
	if (rc < 0)
		return rc;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return caps_clear();
}

int confine_environment(void)
{
	for (char **variable = environ; variable && *variable; variable++)
		explicit_bzero(*variable, strlen(*variable));
	return clearenv() == 0 ? 0 : -EINVAL;
}

/* That the parent is still there its socket tells. */
int confine_to_parent(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

int confine_limits(uint64_t more_memory)
{
	const struct {
		int what;
		uint64_t max;
	} rows[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_MEMLOCK, 0 },
		/* AddressSanitizer reserves terabytes of address space. */
		{ RLIMIT_AS, SANITIZED ? RLIM_INFINITY : proc_address_space() + more_memory },
	};
	int rc = 0;

	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK); /* large blocks go back to the kernel one by one */
	for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++)
		rc = proc_lower_limit(rows[i].what, rows[i].max);
	return rc;
}

int confine_filter(struct seccomp_filter filter)
{
	/* AddressSanitizer makes calls of its own; the plain build is the one that is used. */
	return SANITIZED ? 0 : seccomp_install(filter);
}
