/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SYS_SYSTEMD_SCOPE_H
#define SYS_SYSTEMD_SCOPE_H

#include "base/util.h"

/*
 * Asks the user's service manager for a scope with Delegate=yes and waits until this process is in it.
 * 0, or -errno with one sentence in why.  Waits timeout_ms for the answer, then once more for the move.
 */
int systemd_scope_enter(unsigned timeout_ms, char *why, size_t size);

#endif
