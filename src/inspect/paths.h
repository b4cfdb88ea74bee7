/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with a path before it is judged (path_text.c), and the globs it is compared with (paths.c). */
#ifndef INSPECT_PATHS_H
#define INSPECT_PATHS_H

#include "base/util.h"

/* Longer than what the kernel takes, so nothing that could be opened is cut. */
#define PATH_READING_MAX 4352

/* One round: %XX and %uXXXX.  Never longer than the text; dst holds len bytes.  The same length: nothing was decoded. */
size_t path_percent_decode(const char *text, size_t len, char *dst);
/*
 * Look-alikes become what they look like: backslashes and their kin "/", fullwidth letters and overlong sequences
 * ASCII; invisible characters vanish, and so do spaces around the path and parameters behind "..".  Returns the length.
 */
size_t path_fold(const char *text, size_t len, char *dst, size_t size);

#define HOME_READING "/home/user" /* what "~" and "$HOME" are read as */

/*
 * The absolute path that text means when used in folder base: "file:" taken off, "~", "$HOME" and drive letters
 * replaced, "." and ".." resolved.  *climbs: a ".." left base.  Returns the length; cut at size, terminated.
 */
size_t path_resolve(const char *base, const char *text, size_t len, char *dst, size_t size, bool *climbs);
/* Whether removing it would take everything along: "/", a folder directly below it, a home folder. */
bool path_is_precious(const char *workspace, const char *text, size_t len);
/* path is what path_resolve() made. */
bool path_glob_matches(const char *glob, const char *path, size_t len);

#endif
