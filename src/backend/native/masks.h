/* SPDX-License-Identifier: Apache-2.0 */
/* Which hidden files of a project were opened. */
#ifndef NATIVE_MASKS_H
#define NATIVE_MASKS_H

#include "model/attempts.h"

struct masks_watch;

/*
 * Call before the program starts.  folder has an object named "0", "1" ... for each of the n hidden paths that exists.
 * NULL: no memory.
 */
struct masks_watch *masks_begin(int folder, size_t n);
/* Call when the last process is dead, and before anything else opens files of the project. */
void masks_end(struct masks_watch *w);
void masks_list(const struct masks_watch *w, const char *const *hidden, struct denied *ret);
void masks_free(struct masks_watch *w); /* NULL is fine */

#endif
