/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that make cells for the runner (docs/WARM.md), started by the master.
 *
 * The runner hears of strangers' requests; a keeper has more rights than it, and must not do whatever it asks.  So neither is it
 * started by the runner nor are its ceilings of the runner's choosing: they are made of the policy by a process that has read
 * nothing else, before anything is asked for and again when the policy is read anew, and lie in sealed files.  When the runner needs
 * a keeper, the first or one in the place of one that was killed, it sends the master one end of a socket (CONTROL_KEEPER); who answers
 * at that end has all that cells and forks of interpreters take.  It ends with the runner's end of the socket.
 */
#ifndef SERVER_KEEPERS_H
#define SERVER_KEEPERS_H

#include "base/fd.h"
#include "server/serve.h"

#define KEEPERS_MAX 16 /* at one time: the policy before and now, with and without disks, and those that are ending */

struct keepers {
	int ceilings[2]; /* the second: with limits on disks */
	int pidfd[KEEPERS_MAX];
	int ended; /* an epoll: readable when one has */
};

#define KEEPERS_NONE                                                                                                \
	{                                                                                                           \
		.ceilings = { FD_NONE, FD_NONE }, .pidfd = { [0 ... KEEPERS_MAX - 1] = FD_NONE }, .ended = FD_NONE, \
	}

int keepers_open(struct keepers *k, const struct serve_options *o, struct brig_error *err);
/* Ceilings of the policy as it is now, for those that are started from now on; if it cannot be read, the old ones stay. */
int keepers_read_policy(struct keepers *k, const struct serve_options *o, struct brig_error *err);
/* One that serves this end of a socket.  What cannot be started says why on stderr; the other end sees the end of the socket. */
void keepers_start(struct keepers *k, int socket, bool limits_disks);
void keepers_reap(struct keepers *k); /* those that have ended */
/* The runner is gone: waits until they have removed their cells. */
void keepers_close(struct keepers *k, uint64_t patience_ns);

#endif
