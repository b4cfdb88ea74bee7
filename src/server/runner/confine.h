/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_RUNNER_CONFINE_H
#define SERVER_RUNNER_CONFINE_H

#include "base/err.h"

/* Gives up what the runner does not need; before it has read anything. */
int runner_confine(struct brig_error *err);

#endif
