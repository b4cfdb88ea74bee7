/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the recorder before it reads the first message
 *
 *	user ids     it keeps those of the service: the state folder is theirs, and so `brig run`, `brig audit` and `brig key`
 *	             of the same user go on working on one log.  Without capabilities that makes root the owner of its files
 *	             and nothing else
 *	capabilities none, and no way to get one
 *	memory       variables of the environment are wiped; nobody can trace it
 *	limits       no core file: there are keys in its memory
 *	Landlock     the state folder, and no other path; no signal to others, no abstract socket
 *	filter       data/syscalls/recorder.list: no socket is made, no program started, no memory becomes code
 *
 * What cannot be applied ends the process: there is no service without.  Where the kernel has no Landlock the others have to
 * do.
 */
#include <jansson.h>
#include <time.h>

#include "server/confine.h"
#include "server/recorder/recorder.h"
#include "sys/caps.h"
#include "sys/landlock.h"

#define MEMORY_EXTRA (GiB + GiB / 2) /* records on their way, answers of the history */

static const char *state_folder;

/* What libraries read files for, they read now. */
static int warm_up(void)
{
	time_t now = time(NULL);
	struct tm tm;

	json_object_seed(0);
	return gmtime_r(&now, &tm) ? 0 : -EINVAL;
}

static int give_up_capabilities(void)
{
	int rc = geteuid() == 0 ? caps_lock() : 0;

	return rc < 0 ? rc : caps_clear();
}

static int set_limits(void)
{
	return confine_limits(MEMORY_EXTRA);
}

static int confine_files(void)
{
	const struct landlock_rule rule = { .path = state_folder,
					    .grant = LANDLOCK_READ | LANDLOCK_WRITE,
					    .fd = FD_NONE };
	int abi = landlock_abi();

	return abi == 0 ? 0 : landlock_confine(abi, &rule, 1);
}

static int install_filter(void)
{
	return confine_filter(seccomp_filter_recorder());
}

int recorder_confine(const char *state, const char **ret_step)
{
	static const struct confine_step steps[] = {
		{ "libraries", warm_up },
		{ "capabilities", give_up_capabilities },
		{ "environment", confine_environment },
		{ "master", confine_to_parent },
		{ "limits", set_limits },
		{ "Landlock", confine_files },
		{ "system call filter", install_filter },
	};

	state_folder = state;
	return confine_run(steps, ARRAY_LEN(steps), ret_step);
}
