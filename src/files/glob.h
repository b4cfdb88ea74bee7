/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns for paths below a folder, as .gitignore has them without its negations: without a slash a pattern is for a
 * name anywhere; with one it is for the whole path; * and ? stop at slashes, ** does not; a slash at the end is for a
 * folder and everything below it.
 */
#ifndef FILES_GLOB_H
#define FILES_GLOB_H

#include "base/util.h"

bool glob_matches(const char *pattern, const char *path, bool is_dir);

#endif
