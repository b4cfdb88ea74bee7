/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that brig can do without, loaded when they are first needed: most runs never are in need of them, and loading
 * one costs more than a cell.  What is called of a library is a table: names, and where each address goes in the
 * caller's struct of function pointers.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include "base/util.h"

struct library_function {
	const char *name;
	size_t offset; /* of its pointer, in the caller's struct */
};

struct library {
	const char *const *names; /* of its file, the first that is there is taken; NULL at the end */
	const struct library_function *functions;
	size_t n_functions;
};

/*
 * Loads it and fills all pointers of the struct.  0, and *ret_handle for dlclose(); -ENOENT: it is not there, and *ret_why
 * is the loader's sentence; -ENOSYS: it has no function *ret_why.  On failure nothing stays loaded.
 */
int library_load(const struct library *what, void *pointers, void **ret_handle, const char **ret_why);

#endif
