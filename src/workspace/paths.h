/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of paths below a project. */
#ifndef WORKSPACE_PATHS_H
#define WORKSPACE_PATHS_H

#include "base/buf.h"
#include "files/foreign.h"

struct path_list {
	char **item; /* heap */
	size_t n, cap;
};

/* Copies.  False: no memory. */
bool paths_add(struct path_list *l, const char *path);
/* Puts them in order, each once: before paths_cover. */
void paths_sort(struct path_list *l);
/* Leaves out those that are below another one.  After paths_sort. */
void paths_prune(struct path_list *l);
/* Whether path is one of them, or below one. */
bool paths_cover(const struct path_list *l, const char *path);
void paths_release(struct path_list *l);

/* Adds the line "path: why".  A program chose the path: a newline in it is written as \n and makes no second line. */
void path_say(struct buf *lines, const char *path, const char *why);

#endif
