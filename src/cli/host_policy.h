/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_HOST_POLICY_H
#define CLI_HOST_POLICY_H

#include "cli/document.h"

/*
 * Writes the smallest policy that this host can enforce: what is missing here, each with what is lost without it.  rows
 * are those of `brig doctor --json`; file NULL: the caller's own policy, "-": standard output.  A file that is there is
 * never replaced.  Returns the exit status.
 */
int host_policy_write(const json_t *rows, const char *file);

#endif
