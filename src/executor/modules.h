/* SPDX-License-Identifier: Apache-2.0 */
/* Modules provided by the requested packages, as far as their names are known before installation: see modules.c. */
#ifndef EXECUTOR_MODULES_H
#define EXECUTOR_MODULES_H

#include "inspect/inspect.h"
#include "packages/packages.h"

struct asked_modules {
	const char **name; /* the array and its strings are on the heap */
	size_t n, cap;
	enum inspect_kind kind; /* the language that they are modules of */
};

/* project: also look at the packages that its files list; NULL: words only. */
int asked_modules_find(struct asked_modules *ret, const struct ecosystem *e, const char *const *words, size_t n,
		       const struct plan_workspace *project, struct brig_error *err);
void asked_modules_release(struct asked_modules *m);

#endif
