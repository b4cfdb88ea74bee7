/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - confinement of the link, before it receives data from a broker
 *
 *	user ids     as root: those of the system user _brig, or, without one, an unassigned number; no groups
 *	capabilities none, and no way to regain one
 *	memory       environment variables are wiped
 *	limits       no core file, no locked memory, bounded address space
 *	Landlock     may read what name resolution and TLS need; nothing else
 *	filter       data/syscalls/link.list: sockets, threads and memory; no processes, no programs
 *
 * Landlock and seccomp apply to a thread and to those it starts later, so this must happen before libnats starts any.
 */
#include <netdb.h>

#include "server/confine.h"
#include "server/link/link.h"

#define MEMORY_EXTRA (4 * GiB) /* stacks of threads, mostly unused; pieces in transit */

/* Loads the libraries for name resolution. */
static int load_resolver(void)
{
	struct addrinfo *list = NULL;

	if (getaddrinfo("localhost", NULL, NULL, &list) == 0)
		freeaddrinfo(list);
	return 0;
}

int link_confine(const char **ret_step)
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
	const struct confinement c = { .load_libraries = load_resolver,
				       .more_memory = MEMORY_EXTRA,
				       .rules = rules,
				       .n_rules = confine_read_rules(places, ARRAY_LEN(places), rules),
				       .filter = seccomp_filter_link() };

	return confine(&c, ret_step);
}
