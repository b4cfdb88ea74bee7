/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's workspace and artifacts, from its resolution to the last process of its cell:
 *
 *	work_open      opens and scans the project; gives the staged file a name that hides none of the project's files
 *	work_check     checks whether the backend can show the host's files that the request needs
 *	work_collect   finds and keeps changes, fetches artifacts, applies changes if requested
 *
 * A compiler whose source is in the project also works on a copy, of which only its output is read; installers do not
 * see the project.
 */
#ifndef EXECUTOR_WORK_H
#define EXECUTOR_WORK_H

#include "executor/prepare.h"
#include "executor/record.h"
#include "executor/stage.h"
#include "executor/venv.h"
#include "workspace/workspace.h"

#define LEFT_BYTES_MAX (512 * MiB) /* limit of what is handed over, so that no run exhausts a service's memory */

/* The first byte of left_fd (brig.h): what kind of tree follows. */
enum left_head {
	LEFT_WHOLE = 1,   /* the complete tree; else the upper layer of an overlay */
	LEFT_IN_PART = 2, /* incomplete: some things are missing */
	LEFT_ALL = 3
};

struct work {
	const struct brig_request *req;
	const struct settings *set;
	struct recorder *recorder;
	struct workspace *project; /* NULL: none */
	struct folder out;         /* for artifacts; its descriptor negative: none */
	bool apply;                /* after success, or, with workspace_mode rw, after any end */
	struct language renamed;   /* the request's language, if its output gets another name */
	char output_name[LANG_PATH_MAX + 1];
	struct venv venv;              /* the Python environment that the request names or the project contains */
	struct plan_workspace sources; /* the project as a compiler sees it */
};
#define WORK_INIT                                     \
	{                                             \
		.out.fd = FD_NONE, .venv = VENV_INIT, \
	}

/* To be called with the request resolved: fills in what the plans need in pr. */
int work_open(struct work *w, struct recorder *recorder, const struct brig_request *req, struct prepared_request *pr,
	      struct brig_error *err);
void work_close(struct work *w);
/* Checks the backend before a cell is created; w may be NULL. */
int work_check(const struct work *w, const struct backend_ops *backend, struct brig_error *err);
/* To be called with the cell dead and judged; negative and s->err: something requested could not be done. */
int work_collect(struct stage *s);
/* The last part of work_collect(): takes artifacts and changes from a view of any origin. */
int work_take(struct stage *s, const struct workspace_view *view);

#endif
