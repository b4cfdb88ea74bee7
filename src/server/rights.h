/* SPDX-License-Identifier: Apache-2.0 */
/* Which process of a service started by root has which capabilities: capabilities.def as sets. */
#ifndef SERVER_RIGHTS_H
#define SERVER_RIGHTS_H

#include <stdint.h>

enum {
	RIGHTS_RUNNER = 1,
	RIGHTS_DIRECT = 2,   /* ... under a policy that permits direct runs */
	RIGHTS_FALLBACK = 4, /* ... on hosts where unprivileged processes cannot create user namespaces */
	RIGHTS_KEEPER = 8,
};

/*
 * Limits this process and its descendants to the wanted capabilities among those it has; root also cannot gain others
 * by execve().  0 or -errno.
 */
int rights_keep(unsigned wanted);

#endif
