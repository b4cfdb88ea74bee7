/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INSPECT_DISPATCH_H
#define INSPECT_DISPATCH_H

#include "inspect/judge.h"

/* Runs the bytes pass, then the inspector of that kind; sets the judge's language. */
void inspect_dispatch(struct judge *j, enum inspect_kind kind, const char *text, size_t len);
enum rule_language inspect_language(enum inspect_kind kind);
/* The kind under which the examples of a rule for this language are inspected. */
enum inspect_kind inspect_example_kind(enum rule_language lang);

#endif
