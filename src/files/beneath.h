/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening things in untrusted trees: always beneath one descriptor, with openat2, so that no link, no "..", no magic
 * link and no mount leads out, and never so that opening itself blocks or has side effects (FIFOs, devices).  A path of
 * "" or "." is the root itself.  All functions are async-signal-safe and give a descriptor, 0 or -errno; -ELOOP: there
 * is a link on the way, -EXDEV: the path leads out.
 */
#ifndef FILES_BENEATH_H
#define FILES_BENEATH_H

#include <sys/stat.h>

#include "base/util.h"

/* Anything, with O_PATH; links are not followed, they are what is opened. st may be NULL. */
int beneath_look(int root, const char *path, struct stat *st);
/* A folder, for reading. */
int beneath_open_dir(int root, const char *path);
/* A regular file, for reading; -EINVAL: it is something else.  st may be NULL. */
int beneath_open_file(int root, const char *path, struct stat *st);
/* A new regular file, for writing; -EEXIST: there is something of that name. */
int beneath_create(int root, const char *path, mode_t mode);
/* The folder that holds path, and the last component in *ret_name (points into path), which is not checked. */
int beneath_open_parent(int root, const char *path, const char **ret_name);
/* Makes every folder of path that is not there yet (mode 0755). 0 or -errno. */
int beneath_make_dirs(int root, const char *path);
/* Whether a path is one that such trees have: not empty, relative, no empty, "." or ".." component, below PATH_MAX. */
bool beneath_is_path(const char *path, size_t len);

#endif
