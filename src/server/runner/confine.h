/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_RUNNER_CONFINE_H
#define SERVER_RUNNER_CONFINE_H

#include "base/err.h"

/* Drops unneeded capabilities; called before the runner reads anything. */
int runner_confine(struct brig_error *err);
/*
 * Then drops those for direct runs unless the policy permits them.  Refused if the policy permits them and they were
 * dropped before.
 */
int runner_confine_to_policy(bool has_direct_runs, struct brig_error *err);

#endif
