/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual environment of Python: its packages are there for the program, and its programs in $PATH. */
#ifndef EXECUTOR_VENV_H
#define EXECUTOR_VENV_H

#include "files/folder.h"
#include "model/plan.h"
#include "workspace/workspace.h"

#define VENV_PARTS    3 /* of its folder that are shown: programs, libraries, pyvenv.cfg */
#define VENV_PATH_MAX 128

struct venv {
	char text[3][3 * VENV_PATH_MAX];
	const char *env[4]; /* points into text; NULL-terminated */
	/* Of one that is not in the project: */
	int part[VENV_PARTS];
	char source[VENV_PARTS][PATH_MAX + 16], target[VENV_PARTS][VENV_PATH_MAX + 16];
	struct plan_bind bind[VENV_PARTS]; /* points into both */
	size_t n_binds;
	char warning[512]; /* "": there is nothing to be said */
};
#define VENV_INIT                                     \
	{                                             \
		.part = { FD_NONE, FD_NONE, FD_NONE } \
	}

/* Whether the project has one at its top, .venv or venv, and shows it.  The struct must not be moved afterwards. */
bool venv_find(const struct workspace *project, struct venv *ret);
/*
 * The one in a folder of the host; project: that it may be in, and is then used there (NULL: none).  state: path of the
 * state folder.  BRIG_E_REFUSED: it is none, or not one for the Python that cells have.
 */
int venv_open(const char *path, const struct workspace *project, const char *state, struct venv *ret,
	      struct brig_error *err);
void venv_close(struct venv *v);

#endif
