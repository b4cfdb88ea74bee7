/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host lacks, another may have (brig/exchange.h).
 *
 * What runs keep has a key of this host, into which inodes and times of programs go: quick to make, and of no use elsewhere.  For
 * exchange it has a second one, its kind with "shared-" before it, of the same inputs but programs known by their bytes
 * (lang/identity.c): hosts that have it in common would have made the same thing of the same request.
 */
#ifndef EXECUTOR_EXCHANGE_H
#define EXECUTOR_EXCHANGE_H

#include <brig/exchange.h>

#include "store/store.h"

#define EXCHANGE_PREFIX "shared-"

/*
 * Asks for what is known elsewhere as shared; true: it is there under own now, as if it had been made here.  Waits, but not longer
 * than a while and not when cancel_fd (or -1) turns readable.  x may be NULL.
 */
bool exchange_fetch(const struct brig_exchange *x, struct store *s, const struct store_key *shared,
		    const struct store_key *own, int cancel_fd);
/* What is kept under own may be given to others from now on; if that cannot be noted, it is not. */
void exchange_offer(const struct brig_exchange *x, struct store *s, const struct store_key *own,
		    const struct store_key *shared);

#endif
