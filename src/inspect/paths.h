/* SPDX-License-Identifier: Apache-2.0 */
/* Preparation of a path for judgement (path_text.c), and globs (paths.c). */
#ifndef INSPECT_PATHS_H
#define INSPECT_PATHS_H

#include "base/util.h"

/* Longer than any path that the kernel accepts, so no path that can be opened is truncated. */
#define PATH_READING_MAX 4352

/*
 * Decodes %XX and %uXXXX once.  dst holds len bytes, which suffice.  If the result has the same length, nothing was
 * decoded.
 */
size_t path_percent_decode(const char *text, size_t len, char *dst);
/*
 * Replaces look-alikes: backslashes and similar characters become "/", fullwidth letters and overlong sequences become
 * ASCII.  Removes invisible characters, white space around the path, and parameters after "..".  Returns the length.
 */
size_t path_fold(const char *text, size_t len, char *dst, size_t size);

#define HOME_READING "/home/user" /* stands for "~" and "$HOME" */

/*
 * Resolves text, used in folder base, to an absolute path: removes "file:", replaces "~", "$HOME" and drive letters,
 * resolves "." and "..".  *climbs: a ".." left base.  Returns the length; truncated to size, NUL-terminated.
 */
size_t path_resolve(const char *base, const char *text, size_t len, char *dst, size_t size, bool *climbs);
/* True if removing it would remove everything: "/", a folder directly below it, a home folder. */
bool path_is_precious(const char *workspace, const char *text, size_t len);
/* path is a result of path_resolve(). */
bool path_glob_matches(const char *glob, const char *path, size_t len);

#endif
