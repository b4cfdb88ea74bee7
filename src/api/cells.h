/* SPDX-License-Identifier: Apache-2.0 */
/* Existing cells of all backends, and the removal of those whose owner is dead. */
#ifndef API_CELLS_H
#define API_CELLS_H

#include "base/err.h"

struct policy;

/* Implement brig_ps_json() and brig_reap_json(). */
int cells_json(const struct policy *policy, char **ret, struct brig_error *err);
int cells_reap_json(const struct policy *policy, char **ret, struct brig_error *err);
/* Implements brig_pool(). */
int cells_pool(const struct policy *policy, const struct brig_pool *what, struct brig_error *err);

#endif
