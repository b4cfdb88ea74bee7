/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns for paths below a folder, as .gitignore has them without its negations: without a slash a pattern is for a
 * name anywhere; with one (at its beginning, too) it is for the whole path; * and ? and [a-z] stop at slashes, a
 * component ** stands for any number of components; a slash at the end is for a folder and everything below it.
 *
 * Matching takes time in the order of pattern times path, whatever they hold.
 */
#ifndef FILES_GLOB_H
#define FILES_GLOB_H

#include "base/util.h"

bool glob_matches(const char *pattern, const char *path, bool is_dir);
/* Whether it can match anything: not empty, no empty, "." or ".." component. */
bool glob_is_pattern(const char *pattern);

#endif
