/* SPDX-License-Identifier: Apache-2.0 */
/* Where no program's files are read or written: folders of the system (places.def), homes, brig's own state. */
#ifndef FILES_PLACE_H
#define FILES_PLACE_H

#include "files/folder.h"

/*
 * Refuses a folder that cannot be a project.  Checks the path that was opened, not the one that was given. what:
 * "workspace"; state: path of the state folder, which need not be there (NULL, "": it is not looked at).
 */
int place_check(const struct folder *f, const char *what, const char *state, struct brig_error *err);

#endif
