/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a program's files may be written to a folder on the host.  The same rules for every way out of a cell:
 * changes of a project, artifacts, package sets.
 */
#ifndef FILES_FOREIGN_H
#define FILES_FOREIGN_H

#include <limits.h>

#include "base/util.h"

/* ---- names ------------------------------------------------------------------------------------- */

/* Whether some component is ".git" in any spelling that some file system treats as equivalent. */
bool path_has_git(const char *path);
/* Whether some component begins with a dot: what shells, editors and tools read without being asked. */
bool path_has_hidden(const char *path);

/*
 * A folder of any name is one that git reads its configuration from, and so runs programs, if it holds what git_folder
 * says: HEAD, and either objects and refs or commondir.  git_mark: what a name contributes to that, in any case of
 * letters; 0: nothing.
 */
unsigned git_mark(const char *name);
bool git_folder(unsigned marks);
/* Of a folder beneath root ("": root itself) as it is. */
unsigned git_marks_in(int root, const char *folder);

/* ---- permissions ------------------------------------------------------------------------------- */

/*
 * The permission bits that a file or folder gets: what the program set, but no setuid, setgid or sticky bit, and no
 * right of the group or of all to write that was not there before (0 for something new).
 */
unsigned foreign_mode(unsigned wanted, unsigned before);

/* ---- links ------------------------------------------------------------------------------------- */

/*
 * Whether a link at path, below some root, stays below it whatever other links of this kind it passes: it may lead
 * upwards only with leading ".." components, and no higher than the root.  Those pass folders that the link lies in,
 * and what follows has no "..", so that a chain of such links cannot leave the tree either.
 */
bool link_stays(const char *path, const char *target);
/*
 * Where a link at path leads in a tree that may also have other links: into dst.  False: out of it, or round and round.
 * read: the target of the link that the tree has at a path, or false if that is none.
 */
typedef bool (*link_read_fn)(void *arg, const char *path, char target[PATH_MAX]);
bool link_leads(const char *path, const char *target, link_read_fn read, void *arg, char dst[PATH_MAX]);

#endif
