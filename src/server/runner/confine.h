/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_RUNNER_CONFINE_H
#define SERVER_RUNNER_CONFINE_H

#include "base/err.h"

/* Gives up what the runner does not need; before it has read anything. */
int runner_confine(struct brig_error *err);
/* ... and what only direct runs take, if the policy has none; refused if it has and that is gone. */
int runner_confine_to_policy(bool has_direct_runs, struct brig_error *err);

#endif
