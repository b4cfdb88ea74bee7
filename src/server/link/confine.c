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
#include <netdb.h>

#include "server/confine.h"
#include "server/link/link.h"

#define MEMORY_EXTRA (4 * GiB) /* stacks of threads, of which little is used; pieces on their way */

/* Those that look up names. */
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
