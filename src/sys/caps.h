/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: there is mostly one wish here, to have none and never get one.  Async-signal-safe. */
#ifndef SYS_CAPS_H
#define SYS_CAPS_H

#include <stdint.h>

/*
 * Empties the bounding and ambient sets and locks the secure bits, so that no later call or exec can
 * bring a capability back.  What is held stays held until caps_clear(): changing user ids in between
 * still works and does not drop anything by itself.  0 or -errno.
 */
int caps_lock(void);
/* Empties the permitted, effective and inheritable sets.  0 or -errno. */
int caps_clear(void);
/*
 * Has those of the set from now on that it has, and no others; nor has what it executes, if it may lower its bounding set
 * (CAP_SETPCAP).  0 or -errno.
 */
int caps_keep(uint64_t set);
/* The other way round, for a process that changed its effective id: what is permitted is in effect again.  0 or -errno. */
int caps_use_permitted(void);

#endif
