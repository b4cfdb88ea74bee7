/* SPDX-License-Identifier: Apache-2.0 */
/* Name resolution outside the event loop: getaddrinfo() blocks, so a few threads call it. */
#ifndef EGRESS_RESOLVE_H
#define EGRESS_RESOLVE_H

#include "egress/rules.h"

#define RESOLVE_ADDRESSES_MAX 8

struct answer {
	uint64_t ticket;
	char why[64]; /* "": addresses came */
	size_t n;
	struct address address[RESOLVE_ADDRESSES_MAX];
};

struct resolver;

/* Each thread calls confine before anything else.  0, or -errno of what failed; there is no way to stop it. */
int resolver_start(int (*confine)(void), struct resolver **ret);
/* Readable when answers wait. */
int resolver_fd(const struct resolver *r);
/* False: too many questions are open. */
bool resolver_ask(struct resolver *r, uint64_t ticket, const char *name);
/* The next answer; false: there is none. */
bool resolver_take(struct resolver *r, struct answer *ret);

#endif
