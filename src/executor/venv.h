/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual environment of Python in a project: its packages are there for the program, and its programs in $PATH. */
#ifndef EXECUTOR_VENV_H
#define EXECUTOR_VENV_H

#include "workspace/workspace.h"

struct venv {
	char text[3][256];
	const char *env[4]; /* points into text; NULL-terminated */
};

/* Whether the project has one at its top, .venv or venv, and shows it.  The struct must not be moved afterwards. */
bool venv_find(const struct workspace *project, struct venv *ret);

#endif
