/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by `brig history` and `brig show`. */
#ifndef CLI_HISTORY_TEXT_H
#define CLI_HISTORY_TEXT_H

#include "cli/document.h"

/* Prints problems with reading the history, on standard error. */
void history_say_warnings(const json_t *doc);

#endif
