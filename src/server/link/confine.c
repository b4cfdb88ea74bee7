/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the link before it hears the first byte of a broker
 *
 *	user ids     as root: those of the system user _brig, or, without one, a number that is nobody's; no groups
 *	capabilities none, and no way to get one
 *	memory       variables of the environment are wiped
 *	limits       no core file, no locked memory, so much memory
 *	Landlock     what names are looked up with and certificates known by, to be read; nothing else
 *	filter       data/syscalls/link.list: sockets, threads and memory; no process, no program
 *
 * Landlock and filters are of a thread, and those that a thread starts have them, too: so this comes before libnats starts any.
 */
#include <jansson.h>
#include <netdb.h>
#include <time.h>

#include "server/confine.h"
#include "server/link/link.h"
#include "sys/landlock.h"

#define MEMORY_EXTRA (4 * GiB) /* stacks of threads, of which little is used; pieces on their way */

/* What libraries read files for, they read now: among them those that look up names. */
static int warm_up(void)
{
	struct addrinfo *list = NULL;
	time_t now = time(NULL);
	struct tm tm;

	json_object_seed(0);
	if (getaddrinfo("localhost", NULL, NULL, &list) == 0)
		freeaddrinfo(list);
	return gmtime_r(&now, &tm) ? 0 : -EINVAL;
}

static int set_limits(void)
{
	return confine_limits(MEMORY_EXTRA);
}

static int confine_files(void)
{
	static const char *const places[] = { "/etc/resolv.conf",
					      "/etc/hosts",
					      "/etc/nsswitch.conf",
					      "/etc/gai.conf",
					      "/etc/host.conf",
					      "/etc/ssl",
					      "/etc/pki",
					      "/usr/lib/ssl",
					      "/usr/share/ca-certificates",
					      "/usr/local/share/ca-certificates",
					      "/run/systemd/resolve" };
	struct landlock_rule rules[ARRAY_LEN(places)];
	int abi = landlock_abi();
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], R_OK) == 0)
			rules[n++] = (struct landlock_rule){ .path = places[i], .grant = LANDLOCK_READ, .fd = FD_NONE };
	return abi == 0 ? 0 : landlock_confine(abi, rules, n);
}

static int install_filter(void)
{
	return confine_filter(seccomp_filter_link());
}

int link_confine(const char **ret_step)
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
