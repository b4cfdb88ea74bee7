/* SPDX-License-Identifier: Apache-2.0 */
/* Who of a service of root's has which capabilities: capabilities.def as sets. */
#ifndef SERVER_RIGHTS_H
#define SERVER_RIGHTS_H

#include <stdint.h>

enum {
	RIGHTS_RUNNER = 1,
	RIGHTS_DIRECT = 2,   /* ... under a policy that lets runs be direct */
	RIGHTS_FALLBACK = 4, /* ... on hosts that let nobody else make user namespaces */
	RIGHTS_KEEPER = 8,
};

/* From now on this process, and all that it starts, have these of those that it has; root's gets no others by executing
 * something either.  0 or -errno. */
int rights_keep(unsigned wanted);

#endif
