/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of all inspectors ask of a list of findings. */
#ifndef TESTS_INSPECT_HELPERS_H
#define TESTS_INSPECT_HELPERS_H

#include "base/str.h"
#include "model/finding.h"

/* The first finding of a rule; NULL: none. */
static inline const struct finding *by_rule(const struct findings *f, const char *rule)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->row[i].rule, rule))
			return &f->row[i];
	return NULL;
}

#endif
