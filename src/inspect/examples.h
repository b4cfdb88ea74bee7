/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the examples of every rule through the inspectors. */
#ifndef INSPECT_EXAMPLES_H
#define INSPECT_EXAMPLES_H

#include "inspect/rules.h"

/*
 * Runs match and no_match of the rules that came from `file` (NULL: of all rules), at each trust level where the rule
 * has a severity and in each of its languages.  The first example with a wrong result: -BRIG_E_POLICY, "file:line:
 * why".
 */
int rules_check_examples(const struct rule_set *set, const char *file, struct brig_error *err);

#endif
