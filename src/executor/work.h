/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's workspace and artifacts, from its resolution to the last process of its cell:
 *
 *	work_open      the project is opened and looked through; the staged file gets a name that covers nothing of it
 *	work_check     can this backend show what the host has for it?
 *	work_collect   what changed is found and kept, artifacts are fetched, changes applied if that was asked for
 *
 * A compiler whose source lies in the project works in a copy of it, too, of which nothing but its output is read;
 * installers do not see it.
 */
#ifndef EXECUTOR_WORK_H
#define EXECUTOR_WORK_H

#include "executor/prepare.h"
#include "executor/record.h"
#include "executor/stage.h"
#include "executor/venv.h"
#include "workspace/workspace.h"

#define LEFT_BYTES_MAX (512 * MiB) /* that are handed over, so that no run fills the memory of a service */

/* The first byte of left_fd (brig.h): what kind of tree follows. */
enum left_head {
	LEFT_WHOLE = 1,   /* the complete tree; else the upper layer of an overlay */
	LEFT_IN_PART = 2, /* from which things are missing */
	LEFT_ALL = 3
};

struct work {
	const struct brig_request *req;
	const struct settings *set;
	struct recorder *recorder;
	struct workspace *project; /* NULL: none */
	struct folder out;         /* for artifacts; its descriptor negative: none */
	bool apply;                /* if it ends well, or at any end with workspace_mode rw */
	struct language renamed;   /* the request's language, if its output has another name */
	char output_name[LANG_PATH_MAX + 1];
	struct venv venv;              /* of Python, that the request names or the project has */
	struct plan_workspace sources; /* the project as a compiler sees it */
};
#define WORK_INIT                                     \
	{                                             \
		.out.fd = FD_NONE, .venv = VENV_INIT, \
	}

/* With the request resolved: fills in pr what the plans need of it. */
int work_open(struct work *w, struct recorder *recorder, const struct brig_request *req, struct prepared_request *pr,
	      struct brig_error *err);
void work_close(struct work *w);
/* Before a cell is made; w may be NULL. */
int work_check(const struct work *w, const struct backend_ops *backend, struct brig_error *err);
/* With the cell dead and judged; negative and s->err: something that was asked for could not be done. */
int work_collect(struct stage *s);
/* The last part of it: of a view that is there, wherever it came from. */
int work_take(struct stage *s, const struct workspace_view *view);

#endif
