/* SPDX-License-Identifier: Apache-2.0 */
/* The loopback interface of the network namespace that the caller is in.  Async-signal-safe. */
#ifndef SYS_LOOPBACK_H
#define SYS_LOOPBACK_H

#include "base/util.h"

/* 0 or -errno. */
int loopback_up(void);

/* Where a socket is to be: TCP and listening, or UDP. */
struct loopback_place {
	uint32_t address; /* in 127.0.0.0/8, host order */
	uint16_t port;
	bool datagrams;
};

/*
 * Creates all these sockets.  They belong to this namespace, whichever process serves them; and they may be many, more
 * than the processes in between should hold.  So they are returned inside one close-on-exec descriptor, from which
 * loopback_take() takes them.  That descriptor, or -errno.
 */
int loopback_offer(const struct loopback_place *places, size_t n, int backlog);
/* The sockets, close-on-exec, in their order.  How many they are, or -errno: more than max are -E2BIG. */
int loopback_take(int offered, int *ret, size_t max);

#endif
