/* SPDX-License-Identifier: Apache-2.0 */
/* What `brig history` and `brig show` share. */
#ifndef CLI_HISTORY_TEXT_H
#define CLI_HISTORY_TEXT_H

#include "cli/document.h"

/* What went wrong while the history was read, on standard error. */
void history_say_warnings(const json_t *doc);

#endif
