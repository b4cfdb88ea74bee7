/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the front before it reads the first byte of a stranger's
 *
 *	user ids     as root: those of the system user _brig, or, without one, a number that is nobody's; no groups
 *	capabilities none, and no way to get one: the bounding set is empty, no_new_privs
 *	memory       variables of the environment are wiped: it was forked with a copy of them
 *	limits       no core file, no locked memory, so much memory (files in memory are how long messages travel)
 *	Landlock     no path at all, no signal to others and no abstract socket; where the kernel has none, the filter has to do
 *	             alone, which knows no call that opens anything
 *	filter       data/syscalls/front.list
 *
 * What cannot be applied ends the process: there is no service without.
 */
#include <grp.h>
#include <jansson.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "server/front/front.h"
#include "sys/caps.h"
#include "sys/landlock.h"
#include "sys/proc.h"
#include "sys/seccomp.h"

#define SYSTEM_USER "_brig"
/* Above what accounts, containers and cells have, below what some tools take for negative. */
#define NOBODY_ELSE  2147480000u
#define LARGE_BLOCK  (256 * 1024)
#define MEMORY_EXTRA (GiB + GiB / 2) /* bodies, answers and the documents made of them */

/* What libraries read files for, they read now: the zone of the clock, the random number that hash tables begin with. */
static int warm_up(void)
{
	time_t now = time(NULL);
	struct tm tm;

	json_object_seed(0);
	return gmtime_r(&now, &tm) ? 0 : -EINVAL;
}

/* Variables of whoever started the service may be secrets, and this process has a copy of them. */
static int forget_environment(void)
{
	for (char **variable = environ; variable && *variable; variable++)
		explicit_bzero(*variable, strlen(*variable));
	return clearenv() == 0 ? 0 : -EINVAL;
}

static int give_up_ids(void)
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

/* After the ids: changing them makes the kernel forget the signal.  That the master is still there its socket tells. */
static int die_with_master(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int set_limits(void)
{
	const struct {
		int what;
		uint64_t max;
	} rows[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_MEMLOCK, 0 },
		/* AddressSanitizer reserves terabytes of address space. */
		{ RLIMIT_AS, SANITIZED ? RLIM_INFINITY : proc_address_space() + MEMORY_EXTRA },
	};
	int rc = 0;

	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK); /* bodies and answers go back to the kernel one by one */
	for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++)
		rc = proc_lower_limit(rows[i].what, rows[i].max);
	return rc;
}

static int confine_files(void)
{
	int abi = landlock_abi();

	return abi == 0 ? 0 : landlock_confine(abi, NULL, 0);
}

static int install_filter(void)
{
	/* AddressSanitizer makes calls of its own; the plain build is the one that is used. */
	return SANITIZED ? 0 : seccomp_install(seccomp_filter_front());
}

int front_confine(const char **ret_step)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} steps[] = {
		{ "libraries", warm_up },
		{ "user ids; a system user '" SYSTEM_USER "' may be needed", give_up_ids },
		{ "environment", forget_environment },
		{ "master", die_with_master },
		{ "limits", set_limits },
		{ "Landlock", confine_files },
		{ "system call filter", install_filter },
	};

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int rc = steps[i].run();

		*ret_step = steps[i].name;
		if (rc < 0)
			return rc;
	}
	return 0;
}
