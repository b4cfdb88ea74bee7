/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the front before it reads the first byte of a stranger's
 *
 *	user ids     as root: those of the system user _brig, or, without one, a number that is nobody's; no groups
 *	capabilities none, and no way to get one: the bounding set is empty, no_new_privs
 *	memory       variables of the environment are wiped: it was forked with a copy of them
 *	limits       no core file, no locked memory, so much memory (files in memory are how long messages travel)
 *	Landlock     no path at all, no signal to others and no abstract socket; where the kernel has none, the filter has to do
 *	             alone, which knows no call that opens anything, and the log says so
 *	filter       data/syscalls/front.list
 *
 * What cannot be applied ends the process: there is no service without.
 */
#include <grp.h>
#include <jansson.h>
#include <pwd.h>
#include <time.h>

#include "server/confine.h"
#include "server/front/front.h"
#include "sys/caps.h"
#include "sys/landlock.h"

#define MEMORY_EXTRA (GiB + GiB / 2) /* bodies, answers and the documents made of them */

/* What libraries read files for, they read now: the zone of the clock, the random number that hash tables begin with. */
static int warm_up(void)
{
	time_t now = time(NULL);
	struct tm tm;

	json_object_seed(0);
	return gmtime_r(&now, &tm) ? 0 : -EINVAL;
}

/* Files in memory are how long messages travel. */
static int set_limits(void)
{
	return confine_limits(MEMORY_EXTRA);
}

static int confine_files(void)
{
	int abi = landlock_abi();

	return abi == 0 ? 0 : landlock_confine(abi, NULL, 0);
}

static int install_filter(void)
{
	return confine_filter(seccomp_filter_front());
}

bool front_lacks_landlock(void)
{
	return landlock_abi() == 0;
}

int front_confine(const char **ret_step)
{
	static const struct confine_step steps[] = {
		{ "libraries", warm_up },
		{ "user ids; a system user '" SYSTEM_USER "' may be needed", confine_ids },
		{ "environment", confine_environment },
		{ "master", confine_to_parent },
		{ "limits", set_limits },
		{ "Landlock", confine_files },
		{ "system call filter", install_filter },
	};

	return confine_run(steps, ARRAY_LEN(steps), ret_step);
}
