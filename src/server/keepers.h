/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keepers, the processes that create cells for the runner (docs/WARM.md); the master starts them.
 *
 * The runner handles requests of clients; a keeper has more privileges than the runner and must not do whatever the
 * runner asks.  So the master starts it, and the runner does not choose its ceilings: a process that reads nothing but
 * the policy derives them, before the first request and again at every reload, and stores them in sealed files.  When
 * the runner needs a keeper, the first or a replacement, it sends the master one end of a socket (CONTROL_KEEPER); the
 * keeper that serves this end has all privileges that cells and forks of interpreters require.  It exits when the
 * runner closes its own end.
 */
#ifndef SERVER_KEEPERS_H
#define SERVER_KEEPERS_H

#include "base/fd.h"
#include "server/serve.h"

/*
 * at one time: for the previous policy and the current one, each with and without disk limits, and those that are
 * exiting
 */
#define KEEPERS_MAX 16

struct keepers {
	int ceilings[2]; /* sealed files; [1]: with disk limits */
	int pidfd[KEEPERS_MAX];
	int ended; /* an epoll descriptor: readable when a keeper has exited */
};

#define KEEPERS_NONE                                                                                                \
	{                                                                                                           \
		.ceilings = { FD_NONE, FD_NONE }, .pidfd = { [0 ... KEEPERS_MAX - 1] = FD_NONE }, .ended = FD_NONE, \
	}

int keepers_open(struct keepers *k, const struct serve_options *o, struct brig_error *err);
/* Derives the ceilings for keepers started from now on.  If the policy cannot be read, the old ones stay. */
int keepers_read_policy(struct keepers *k, const struct serve_options *o, struct brig_error *err);
/*
 * Starts a keeper that serves this end of a socket.  Failures are reported on stderr, and the other end sees end of
 * file.
 */
void keepers_start(struct keepers *k, int socket, bool limits_disks);
void keepers_reap(struct keepers *k); /* reaps keepers that have exited */
/* For when the runner has exited: waits up to patience_ns for the keepers to remove their cells, then kills them. */
void keepers_close(struct keepers *k, uint64_t patience_ns);

#endif
