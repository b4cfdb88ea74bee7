/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: mostly dropping all of them for good.  Async-signal-safe. */
#ifndef SYS_CAPS_H
#define SYS_CAPS_H

#include <stdint.h>

/*
 * Empties the bounding and ambient sets and locks the secure bits, so that no later call or exec can regain a
 * capability.  The current sets stay until caps_clear(): changing user ids in between still works and drops nothing by
 * itself.  0 or -errno.
 */
int caps_lock(void);
/* Empties the permitted, effective and inheritable sets.  0 or -errno. */
int caps_clear(void);
/*
 * Keeps only the capabilities in the set, for itself and, if it may lower its bounding set (CAP_SETPCAP), for what it
 * executes.  0 or -errno.
 */
int caps_keep(uint64_t set);
/* For a process that changed its effective id: makes the permitted capabilities effective again.  0 or -errno. */
int caps_use_permitted(void);

#endif
