/* SPDX-License-Identifier: Apache-2.0 */
#include "server/confine.h"

#include <grp.h>
#include <jansson.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "sys/caps.h"
#include "sys/proc.h"

/* An unassigned id: above those of accounts, containers and cells, below those that some tools take for negative. */
#define NOBODY_ELSE 2147480000u
#define LARGE_BLOCK (256 * 1024)

/* Makes libraries read their files now: the time zone, and the random seed of jansson's hash tables. */
static int load_libraries(const struct confinement *c)
{
	time_t now = time(NULL);
	struct tm tm;

	json_object_seed(0);
	if (!gmtime_r(&now, &tm))
		return -EINVAL;
	return c->load_libraries ? c->load_libraries() : 0;
}

/* As root: switches to the ids of the system user, or to an unassigned id; drops all groups. */
static int change_ids(void)
{
	const struct passwd *user = getpwnam(SYSTEM_USER);
	uid_t uid = NOBODY_ELSE;
	gid_t gid = NOBODY_ELSE;

	if (user && user->pw_uid != 0 && user->pw_gid != 0) {
		uid = user->pw_uid;
		gid = user->pw_gid;
	}
	return setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ? -errno : 0;
}

/* Drops all capabilities and the ways to regain them. */
static int drop_privileges(const struct confinement *c)
{
	bool is_root = geteuid() == 0;
	int rc = is_root ? caps_lock() : 0;

	if (rc == 0 && is_root && !c->keeps_ids)
		rc = change_ids();
	return rc < 0 ? rc : caps_clear();
}

/* The variables of the service may contain secrets, and a forked process has a copy of them. */
static int wipe_environment(const struct confinement *c UNUSED)
{
	for (char **variable = environ; variable && *variable; variable++)
		explicit_bzero(*variable, strlen(*variable));
	return clearenv() == 0 ? 0 : -EINVAL;
}

/*
 * Dies with its parent, cannot be traced, gains no privileges.  After the change of ids, which resets the first two.
 * If the parent has died already, the process notices when its socket ends.
 */
static int bind_to_parent(const struct confinement *c UNUSED)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int set_limits(const struct confinement *c)
{
	const struct {
		int what;
		uint64_t max;
	} rows[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_MEMLOCK, 0 },
		/* AddressSanitizer reserves terabytes of address space. */
		{ RLIMIT_AS, SANITIZED ? RLIM_INFINITY : proc_address_space() + c->more_memory },
	};
	int rc = 0;

	if (c->more_memory == 0)
		return 0;
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK); /* return large blocks to the kernel individually */
	for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++)
		rc = proc_lower_limit(rows[i].what, rows[i].max);
	return rc;
}

static int restrict_files(const struct confinement *c)
{
	int abi = landlock_abi();

	return abi == 0 ? 0 : landlock_confine(abi, c->rules, c->n_rules);
}

static int install_filter(const struct confinement *c)
{
	/* AddressSanitizer makes system calls of its own; production builds are not sanitized. */
	return SANITIZED ? 0 : seccomp_install(c->filter);
}

int confine(const struct confinement *c, const char **ret_step)
{
	static const struct {
		const char *name;
		int (*run)(const struct confinement *c);
	} steps[] = {
		{ "libraries", load_libraries },
		{ "user ids and capabilities; a system user '" SYSTEM_USER "' may be needed", drop_privileges },
		{ "environment", wipe_environment },
		{ "death with its parent", bind_to_parent },
		{ "limits", set_limits },
		{ "Landlock", restrict_files },
		{ "system call filter", install_filter },
	};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(steps) && rc == 0; i++) {
		*ret_step = steps[i].name;
		rc = steps[i].run(c);
	}
	return rc;
}

size_t confine_read_rules(const char *const *places, size_t n, struct landlock_rule *rules)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (access(places[i], R_OK) == 0)
			rules[found++] =
				(struct landlock_rule){ .path = places[i], .grant = LANDLOCK_READ, .fd = FD_NONE };
	return found;
}
