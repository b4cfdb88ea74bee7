/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path of a project leads, links at every component followed; the target is only examined. */
#ifndef WORKSPACE_RESOLVE_H
#define WORKSPACE_RESOLVE_H

#include <limits.h>
#include <sys/stat.h>

#include "base/util.h"

/*
 * As this host sees it.  True: ret is a path of the project without links in it, "" for the project itself.  False: it
 * leads out, and *st tells what to, or nowhere, and *st is all zero.
 */
bool resolve_on_host(int project, const char *path, char ret[PATH_MAX], struct stat *st);
/* As a program sees it whose workspace is the project: its root is another one.  False: it leads out, or nowhere. */
bool resolve_in_cell(int project, const char *path, char ret[PATH_MAX]);

#endif
