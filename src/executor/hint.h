/* SPDX-License-Identifier: Apache-2.0 */
/* Hints for programs that failed because something is not installed. */
#ifndef EXECUTOR_HINT_H
#define EXECUTOR_HINT_H

#include "base/util.h"

/*
 * Searches the end of what a failed program or its compiler wrote to stderr. dst: a sentence about the missing package,
 * or "". The text is untrusted: only a name that can be a package's is taken from it.
 */
enum hint_place {
	HINT_HOST /* the host's own programs */,
	HINT_IMAGE /* those of an image, where --packages does not apply */
};
void hint_find(const char *tail, size_t len, enum hint_place where, char *dst, size_t size);

#endif
