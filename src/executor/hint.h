/* SPDX-License-Identifier: Apache-2.0 */
/* What would help a program that ended because something is not installed. */
#ifndef EXECUTOR_HINT_H
#define EXECUTOR_HINT_H

#include "base/util.h"

/*
 * Reads the end of what a failed program, or its compiler, wrote to standard error.  dst: a sentence about the package
 * that it misses, or "".  The text is the program's: nothing of it is shown but a name that can be one of a package.
 */
enum hint_place {
	HINT_HOST /* the host's own programs */,
	HINT_IMAGE /* those of an image, which --packages is not for */
};
void hint_find(const char *tail, size_t len, enum hint_place where, char *dst, size_t size);

#endif
