/* SPDX-License-Identifier: Apache-2.0 */
/* A Python virtual environment: provides its packages to the program, and its programs in $PATH. */
#ifndef EXECUTOR_VENV_H
#define EXECUTOR_VENV_H

#include "files/folder.h"
#include "model/plan.h"
#include "workspace/workspace.h"

#define VENV_PARTS    3 /* parts of its folder that are visible: programs, libraries, pyvenv.cfg */
#define VENV_PATH_MAX 128

struct venv {
	char text[3][3 * VENV_PATH_MAX];
	const char *env[4]; /* points into text; NULL-terminated */
	/* For one outside the project: */
	int part[VENV_PARTS];
	char source[VENV_PARTS][PATH_MAX + 16], target[VENV_PARTS][VENV_PATH_MAX + 16];
	struct plan_bind bind[VENV_PARTS]; /* points into source and target */
	size_t n_binds;
	char warning[512]; /* "": none */
};
#define VENV_INIT                                     \
	{                                             \
		.part = { FD_NONE, FD_NONE, FD_NONE } \
	}

/* Looks for .venv or venv at the top of the project and uses it. The struct must not be moved afterwards. */
bool venv_find(const struct workspace *project, struct venv *ret);
/*
 * Opens the one in a host folder; project: if it lies in there, it is used from there (NULL: none). state: path of the
 * state folder. BRIG_E_REFUSED: it is no virtual environment, or not for the Python of the cells.
 */
int venv_open(const char *path, const struct workspace *project, const char *state, struct venv *ret,
	      struct brig_error *err);
void venv_close(struct venv *v);

#endif
