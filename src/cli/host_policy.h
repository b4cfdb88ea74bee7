/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_HOST_POLICY_H
#define CLI_HOST_POLICY_H

#include "cli/document.h"

/*
 * Writes the smallest policy that this host can enforce: it gives up what is missing here, with a comment on what is
 * lost.  rows: of `brig doctor --json`; file NULL: the caller's own policy, "-": standard output.  Never replaces an
 * existing file.  Returns the exit status.
 */
int host_policy_write(const json_t *rows, const char *file);

#endif
