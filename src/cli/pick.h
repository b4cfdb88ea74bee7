/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PICK_H
#define CLI_PICK_H

#include "cli/document.h"

/*
 * The row whose "id" is word, or the only one whose id begins with it.  kind names what is looked for ("run"), list is
 * the command that lists them.  NULL: none, or several; *err says which.
 */
const json_t *pick_row(const json_t *rows, const char *word, const char *kind, const char *list,
		       struct brig_error *err);

#endif
