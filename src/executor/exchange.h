/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchange of stored artifacts with other hosts (brig/exchange.h).
 *
 * The key of a stored artifact includes inodes and times of local programs: fast to compute, but meaningless elsewhere.
 * For exchange it gets a second key, with "shared-" before its kind, from the same inputs but with programs identified
 * by their contents (lang/identity.c): hosts with the same shared key would have produced the same artifact.
 */
#ifndef EXECUTOR_EXCHANGE_H
#define EXECUTOR_EXCHANGE_H

#include <brig/exchange.h>

#include "store/store.h"

#define EXCHANGE_PREFIX "shared-"

/*
 * Asks other hosts for the artifact with key shared; true: it is now stored under own, as if made here. Waits for a
 * limited time, and not after cancel_fd (or -1) becomes readable. x may be NULL.
 */
bool exchange_fetch(const struct brig_exchange *x, struct store *s, const struct store_key *shared,
		    const struct store_key *own, int cancel_fd);
/* Offers the artifact stored under own to other hosts; if that cannot be recorded, it is not offered. */
void exchange_offer(const struct brig_exchange *x, struct store *s, const struct store_key *own,
		    const struct store_key *shared);

#endif
