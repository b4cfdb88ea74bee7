/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that a request's packages bring, as far as their names are known before anything is installed: see modules.c. */
#ifndef EXECUTOR_MODULES_H
#define EXECUTOR_MODULES_H

#include "inspect/inspect.h"
#include "packages/packages.h"

struct asked_modules {
	const char **name; /* heap, and each of them, too */
	size_t n, cap;
	enum inspect_kind kind; /* the language that they are modules of */
};

/* project: for the packages of its own files; NULL: those of the words alone. */
int asked_modules_find(struct asked_modules *ret, const struct ecosystem *e, const char *const *words, size_t n,
		       const struct plan_workspace *project, struct brig_error *err);
void asked_modules_release(struct asked_modules *m);

#endif
