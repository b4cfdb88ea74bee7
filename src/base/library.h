/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optional libraries, loaded when they are first needed: most runs never need them, and loading one costs more than a
 * cell.  The functions used are a table: names, and where each address goes in the caller's struct of function
 * pointers.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include "base/util.h"

struct library_function {
	const char *name;
	size_t offset; /* of its pointer, in the caller's struct */
};

struct library {
	const char *const *names; /* file names, the first that exists is used; NULL-terminated */
	const struct library_function *functions;
	size_t n_functions;
};

/*
 * Loads it and fills all pointers of the struct.  0, and *ret_handle for dlclose(); -ENOENT: it is not installed, and
 * *ret_why is the loader's message; -ENOSYS: it lacks the function *ret_why.  On failure nothing stays loaded.
 */
int library_load(const struct library *what, void *pointers, void **ret_handle, const char **ret_why);

#endif
