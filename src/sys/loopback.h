/* SPDX-License-Identifier: Apache-2.0 */
/* The loopback interface of the network namespace that the caller is in.  Async-signal-safe. */
#ifndef SYS_LOOPBACK_H
#define SYS_LOOPBACK_H

#include "base/util.h"

/* 0 or -errno. */
int loopback_up(void);
/* A TCP socket that listens on 127.0.0.1, close-on-exec; or -errno.  It belongs to this namespace, whoever serves it. */
int loopback_listen(uint16_t port, int backlog);

#endif
