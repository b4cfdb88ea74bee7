/* SPDX-License-Identifier: Apache-2.0 */
/* Static inspection without a run, and the list of rules, as documents. */
#ifndef API_CHECK_H
#define API_CHECK_H

#include "base/err.h"

struct policy;
struct rulebook;

/* Implements brig_check(). */
int check_text(const struct policy *policy, struct rulebook *book, const struct brig_check *req, char **ret,
	       struct brig_error *err);
/* Implements brig_rules_json(). */
int check_rules_json(const struct policy *policy, struct rulebook *book, char **ret, struct brig_error *err);

#endif
