/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that a service manager opened for this process (socket activation): descriptors 3 and up, as many as $LISTEN_FDS
 * says, if $LISTEN_PID is this process.
 */
#ifndef SYS_LISTEN_FDS_H
#define SYS_LISTEN_FDS_H

#include "base/err.h"

#define LISTEN_FDS_MAX 16

struct listen_fds {
	int fd[LISTEN_FDS_MAX]; /* the caller's now; closed on exec, non-blocking */
	size_t n;               /* 0: none were passed */
};

/*
 * Takes them, and removes the variables from the environment, so that no child takes them for its own.  If one is not a
 * listening stream socket: -BRIG_E_USAGE, and everything is left as it is.
 */
int listen_fds_take(struct listen_fds *ret, struct brig_error *err);

#endif
